//! Characters that make a reader see something else than what is stored.

/// What happens to line breaks and tabs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    /// Line feeds and tabs stay.
    Keep,
    /// Each line break or tab becomes a space.
    Join,
}

/// Whether a character moves the cursor, turns the direction of the text, breaks the line or hides.
///
/// The joiners U+200C and U+200D are not among them: emoji and several scripts can't be written without.
pub(crate) fn forges(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}' // direction
            | '\u{2028}' | '\u{2029}' // line and paragraph separators
            | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' // invisible
            | '\u{e0000}'..='\u{e007f}' // tags: a second, invisible alphabet
        )
}

/// Removes what [`forges`], and the sequences for terminals as a whole, so that no `[31m` remains of them.
pub(super) fn remove(text: &str, lines: Lines) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let rest = characters.as_str();
        match character {
            '\u{1b}' => characters = after_escape(rest).chars(),
            '\u{9b}' => characters = after_control_sequence(rest).chars(),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => characters = after_control_string(rest).chars(),
            '\n' | '\t' if lines == Lines::Keep => clean.push(character),
            '\t'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}' if lines == Lines::Join => clean.push(' '),
            _ if forges(character) => {}
            _ => clean.push(character),
        }
    }
    clean
}

/// What follows an ECMA-48 sequence whose escape character was just read.
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

/// OSC and its like end with BEL or ST. Any other control character ends them too, so that one which was never closed
/// takes no more than its line with it.
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
