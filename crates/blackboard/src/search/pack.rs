//! The best results in a number of tokens.

use super::SearchResult;

/// How many characters of a text in a Latin script are one token for a model, at least.
const CHARACTERS: usize = 3;

/// About how many tokens a text has for a model: rather too many than too few. Every model counts in its own way.
///
/// ```
/// use blackboard::search::estimate_tokens;
///
/// assert_eq!(estimate_tokens(""), 0);
/// assert_eq!(estimate_tokens("retry the login"), 5);
/// assert_eq!(estimate_tokens("再試行"), 3);
/// ```
pub fn estimate_tokens(text: &str) -> usize {
    let (mut ascii, mut others) = (0_usize, 0_usize);
    for character in text.chars() {
        if character.is_ascii() {
            ascii += 1;
        } else {
            others += 1;
        }
    }
    ascii.div_ceil(CHARACTERS) + others
}

/// Takes the best results that fit into a number of tokens, in their order. `shown` writes a result as it will be read: with its
/// complete text, or, if that does not fit, with its snippet. Returns these texts and how many results were left out.
///
/// ```
/// # use blackboard::{Board, entry::{Value, Write}, search::{IndexLocation, Query, estimate_tokens, pack}};
/// # let board = Board::memory();
/// for (key, text) in [("long", "retry ".repeat(500)), ("short", "retry after five minutes".to_owned())] {
///     board.scope("team").write(&Write::new(key, Value::of(&text)?))?;
/// }
/// let query = Query { with_text: true, ..Query::new("retry") };
/// let found = board.search(&query, &IndexLocation::Memory)?;
/// let (texts, left_out) = pack(&found.results, 100, |result, complete| {
///     let text = if complete { result.text.as_deref().unwrap_or("") } else { &result.snippet };
///     format!("{}: {text}", result.id)
/// });
/// assert_eq!((texts.len(), left_out), (2, 0));
/// assert!(texts.iter().map(|text| estimate_tokens(text)).sum::<usize>() <= 100);
/// # Ok::<(), blackboard::Error>(())
/// ```
pub fn pack(
    results: &[SearchResult],
    tokens: usize,
    shown: impl Fn(&SearchResult, bool) -> String,
) -> (Vec<String>, usize) {
    let (mut left, mut texts, mut left_out) = (tokens, Vec::new(), 0);
    for result in results {
        // A line break between two texts is a token as well.
        let fits = |text: &String| estimate_tokens(text) < left;
        match Some(shown(result, true)).filter(fits).or_else(|| Some(shown(result, false)).filter(fits)) {
            Some(text) => {
                left -= estimate_tokens(&text) + 1;
                texts.push(text);
            }
            None => left_out += 1,
        }
    }
    (texts, left_out)
}
