//! Characters that make the displayed text differ from the stored one.

use super::unicode;

/// How line breaks and tabs are handled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    /// Line feeds and tabs stay.
    Keep,
    /// Each line break or tab becomes a space.
    Join,
}

/// Joins letters or emoji that would otherwise be separate.
const ZERO_WIDTH_JOINER: char = '\u{200d}';
/// Separates letters that would otherwise join.
const ZERO_WIDTH_NON_JOINER: char = '\u{200c}';

/// Whether a character moves the cursor, changes the direction of the text, breaks the line or is not displayed.
///
/// Ids and keys have none of them. Text keeps those that belong to its letters and emoji: see [`is_hidden`].
pub(crate) fn forges(character: char) -> bool {
    if character < '\u{a0}' {
        return character.is_control();
    }
    matches!(character, '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}')
        || unicode::contains(unicode::DEFAULT_IGNORABLE, character)
        || unicode::contains(unicode::BLANK, character)
}

/// Whether a character [`forges`] and no version has stored it in a name. Earlier versions accepted the others, for
/// example the joiners, so an existing name may have them.
pub(crate) fn forges_in_every_version(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{061c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// Whether a character [`forges`] and does not belong to its neighbors.
///
/// One variation selector belongs to the emoji before it; one joiner belongs between two letters or two emoji.
fn is_hidden(before: Option<char>, character: char, after: Option<char>) -> bool {
    forges(character) && !belongs(before, character, after)
}

fn belongs(before: Option<char>, character: char, after: Option<char>) -> bool {
    let (Some(before), after) = (before, after.unwrap_or_default()) else { return false };
    // Blank letters are removed, so a joiner next to one would be left without its letter.
    let between_letters = || can_precede_joiner(before) && after.is_alphabetic() && !forges(after);
    match character {
        // In `1️⃣` the selector is between a digit and the key around it.
        '\u{fe0e}' | '\u{fe0f}' => {
            is_pictographic(before) || (matches!(before, '#' | '*' | '0'..='9') && after == '\u{20e3}')
        }
        ZERO_WIDTH_NON_JOINER => between_letters(),
        ZERO_WIDTH_JOINER => between_letters() || (ends_emoji(before) && is_pictographic(after)),
        _ => false,
    }
}

fn is_pictographic(character: char) -> bool {
    unicode::contains(unicode::PICTOGRAPHIC, character)
}

/// An emoji, its skin tone, or its variation selector.
fn ends_emoji(character: char) -> bool {
    is_pictographic(character) || matches!(character, '\u{1f3fb}'..='\u{1f3ff}' | '\u{fe0e}' | '\u{fe0f}')
}

/// A letter, or a mark of a script in which marks precede joiners.
fn can_precede_joiner(character: char) -> bool {
    character.is_alphabetic()
        || matches!(character, '\u{300}'..='\u{1dff}' | '\u{a800}'..='\u{abff}' | '\u{11000}'..='\u{11fff}')
}

/// Each character of a text, with whether it has to be made visible in output.
///
/// ```
/// use blackboard::text::characters;
///
/// let hidden = |text: &str| characters(text).filter(|(_, hidden)| *hidden).count();
/// assert_eq!(hidden("❤️ 👩‍💻"), 0);
/// assert_eq!(hidden("deploy\u{fe0f}"), 1);
/// ```
pub fn characters(text: &str) -> impl Iterator<Item = (char, bool)> {
    let mut rest = text.chars();
    let mut before = None;
    std::iter::from_fn(move || {
        let character = rest.next()?;
        let hidden = is_hidden(before, character, rest.clone().next());
        before = (!hidden).then_some(character);
        Some((character, hidden))
    })
}

/// Whether a text has a character that has to be made visible in output.
pub(crate) fn hides(text: &str) -> bool {
    !is_plain(text) && characters(text).any(|(_, hidden)| hidden)
}

/// Whether a text is only printable ASCII. Most text is.
pub(super) fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Removes characters that [`is_hidden`] rejects. Terminal sequences are removed completely, so that no `[31m` is left.
pub(super) fn remove(text: &str, lines: Lines) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    let mut clean = String::with_capacity(text.len());
    let mut before = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let rest = characters.as_str();
        let kept = match character {
            '\u{1b}' => {
                characters = after_escape(rest).chars();
                continue;
            }
            '\u{9b}' => {
                characters = after_control_sequence(rest).chars();
                continue;
            }
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => {
                characters = after_control_string(rest).chars();
                continue;
            }
            '\n' | '\t' if lines == Lines::Keep => character,
            '\t'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}' if lines == Lines::Join => ' ',
            _ if is_hidden(before, character, rest.chars().next()) => continue,
            _ => character,
        };
        clean.push(kept);
        before = Some(kept);
    }
    clean
}

/// Removes the end of a text that was cut between characters that belong together: joined letters, or a keycap.
pub(super) fn trim_after_cut(text: &mut String) {
    loop {
        let mut backwards = text.chars().rev();
        let last = backwards.next().filter(|&last| !last.is_control());
        match last {
            Some(last) if is_hidden(backwards.next(), last, None) => text.pop(),
            _ => return,
        };
    }
}

/// The text after an ECMA-48 sequence whose escape character was just read.
fn after_escape(rest: &str) -> &str {
    if let Some(rest) = rest.strip_prefix('[') {
        after_control_sequence(rest)
    } else if let Some(rest) = rest.strip_prefix([']', 'P', 'X', '^', '_']) {
        after_control_string(rest)
    } else {
        after_final(rest.trim_start_matches(is_intermediate), '0'..='~')
    }
}

/// CSI: parameters, intermediates, one final character.
fn after_control_sequence(rest: &str) -> &str {
    let rest = rest.trim_start_matches(|character| matches!(character, '0'..='?'));
    after_final(rest.trim_start_matches(is_intermediate), '@'..='~')
}

/// OSC and similar strings end with BEL or ST. Any other control character ends them too, so that an unclosed one
/// removes no more than its line.
fn after_control_string(rest: &str) -> &str {
    let rest = rest.trim_start_matches(|character: char| !character.is_control());
    rest.strip_prefix("\u{1b}\\").or_else(|| rest.strip_prefix(['\u{7}', '\u{9c}'])).unwrap_or(rest)
}

fn is_intermediate(character: char) -> bool {
    matches!(character, ' '..='/')
}

fn after_final(rest: &str, range: std::ops::RangeInclusive<char>) -> &str {
    rest.strip_prefix(|character| range.contains(&character)).unwrap_or(rest)
}
