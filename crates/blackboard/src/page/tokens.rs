//! The estimate of tokens: the only place that knows how a text becomes a number of them.
//!
//! A board knows no tokenizer of a model, and needs none: pages and budgets have to be about right, and the same on every
//! machine. Common tokenizers make about one token of four characters of English text or of code, and about one of each
//! character of other scripts.

use crate::entry::Entry;

/// What a page adds to an entry: its author, its age and the end of its lines.
const FRAME: u64 = 8;

/// About how many tokens a text has: one for four ASCII characters, and one for each other character.
///
/// ```
/// use blackboard::page::tokens_of;
///
/// assert_eq!(tokens_of("the login test fails"), 5);
/// assert_eq!(tokens_of("東京"), 2);
/// ```
pub fn tokens_of(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    // A character that is not ASCII begins with a byte of at least 0xc0.
    let others = text.bytes().filter(|byte| *byte >= 0xc0).count();
    (ascii.div_ceil(4) + others) as u64
}

/// About how many tokens an entry has in a page.
pub(super) fn tokens_of_entry(entry: &Entry) -> u64 {
    tokens_of(&entry.key) + tokens_of(entry.value.as_str()) + FRAME
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimate_counts_four_ascii_characters_or_one_other_as_a_token() {
        for (text, tokens) in
            [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("é", 1), ("aé", 2), ("\u{1f980}ab", 2)]
        {
            assert_eq!(tokens_of(text), tokens, "{text:?}");
        }
    }
}
