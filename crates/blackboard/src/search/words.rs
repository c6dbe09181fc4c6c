//! The words of a text: what the index stores, and what a query looks for.
//!
//! Letters are folded to lower case, without diacritics. An identifier (`login_retryCount`, `src/auth/login.rs`) is one
//! word, and each of its parts is one too. English words are reduced to their stems. Of text in scripts without spaces,
//! every two neighboring characters are a word.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::stem::stem;

/// The longest word in bytes. Longer ones are encoded data rather than words; their parts are words.
const LONGEST: usize = 64;

/// Words that are in most English sentences. No index has them, and no query looks for them.
const EVERYWHERE: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "in", "is", "it", "of", "on", "or",
    "that", "the", "this", "to", "was", "with",
];

/// Further words that say what a question asks, and not what it is about. A query looks for them only if it has no others.
const ASKING: &[&str] = &[
    "about", "after", "all", "any", "anyone", "been", "before", "but", "can", "could", "did", "do", "does",
    "done", "get", "got", "had", "has", "have", "how", "i", "if", "into", "its", "know", "made", "may", "me",
    "much", "must", "my", "need", "needs", "not", "our", "s", "should", "so", "some", "t", "tell", "than",
    "their", "them", "then", "there", "these", "they", "those", "us", "use", "used", "we", "were", "what",
    "when", "where", "which", "while", "who", "whose", "why", "will", "would", "you", "your",
];

/// A word, and where it is in its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word<'t> {
    /// The word in the index: folded, and reduced to its stem.
    pub(super) term: &'t str,
    /// The same before it was reduced.
    pub(super) surface: &'t str,
    /// Where it begins and ends.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Whether it is an identifier of which the parts are words as well.
    pub(super) is_whole_identifier: bool,
}

/// Calls `f` with each word of a text, except those that are in every text.
pub(super) fn each_word(text: &str, f: &mut dyn FnMut(Word<'_>)) {
    let mut folded = Folded::default();
    let mut rest = 0;
    while let Some((start, end)) = next_chunk(text, rest) {
        rest = end;
        chunk_words(text, start, end, &mut folded, f);
    }
}

/// Whether words of a question, but not of its subject.
pub(super) fn is_asking(surface: &str) -> bool {
    ASKING.binary_search(&surface).is_ok()
}

/// Characters that join the parts of an identifier.
fn joins(character: char) -> bool {
    matches!(character, '_' | '-' | ':' | '/' | '.' | '#' | '@')
}

/// The next run of letters, digits and what joins them, from a position on.
fn next_chunk(text: &str, from: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut at = from;
    let start = loop {
        let byte = *bytes.get(at)?;
        if byte.is_ascii_alphanumeric() {
            break at;
        }
        if byte.is_ascii() {
            at += 1;
        } else {
            let character = text[at..].chars().next()?;
            if character.is_alphanumeric() {
                break at;
            }
            at += character.len_utf8();
        }
    };
    // What joins is a part of the chunk only if a letter or digit follows.
    let mut end = start;
    while let Some(&byte) = bytes.get(at) {
        if byte.is_ascii() {
            at += 1;
            if byte.is_ascii_alphanumeric() {
                end = at;
            } else if !joins(char::from(byte)) {
                break;
            }
            continue;
        }
        let Some(character) = text[at..].chars().next() else { break };
        if !character.is_alphanumeric() && !is_combining_mark(character) {
            break;
        }
        at += character.len_utf8();
        end = at;
    }
    Some((start, end))
}

/// Buffers for the word that is reported.
#[derive(Default)]
struct Folded {
    surface: String,
    term: String,
}

impl Folded {
    /// Folds a text into the buffers. Returns whether it is a word.
    fn set(&mut self, text: &str, is_stemmed: bool) -> bool {
        self.surface.clear();
        if text.is_ascii() {
            self.surface.push_str(text);
            self.surface.make_ascii_lowercase();
        } else {
            let folded = text.nfkd().filter(|character| !is_combining_mark(*character));
            self.surface.extend(folded.flat_map(char::to_lowercase));
        }
        if self.surface.is_empty()
            || self.surface.len() > LONGEST
            || EVERYWHERE.binary_search(&self.surface.as_str()).is_ok()
        {
            return false;
        }
        self.term.clear();
        self.term.push_str(&self.surface);
        if is_stemmed {
            stem(&mut self.term);
        }
        true
    }

    fn word(&self, start: usize, end: usize, is_whole_identifier: bool) -> Word<'_> {
        Word { term: &self.term, surface: &self.surface, start, end, is_whole_identifier }
    }
}

fn chunk_words(text: &str, start: usize, end: usize, folded: &mut Folded, f: &mut dyn FnMut(Word<'_>)) {
    let chunk = &text[start..end];
    let parts = Parts { chunk, at: 0 };
    let mut count = 0;
    for (from, to) in parts.clone() {
        count += 1;
        let part = &chunk[from..to];
        if is_without_spaces(part) {
            pairs(part, start + from, folded, f);
        } else if folded.set(part, true) {
            f(folded.word(start + from, start + to, false));
        }
    }
    if count > 1 && chunk.len() <= LONGEST && folded.set(chunk, false) {
        f(folded.word(start, end, true));
    }
}

/// The parts of an identifier: between what joins them, and where an upper-case letter begins one.
#[derive(Clone)]
struct Parts<'t> {
    chunk: &'t str,
    at: usize,
}

impl Iterator for Parts<'_> {
    type Item = (usize, usize);

    fn next(&mut self) -> Option<(usize, usize)> {
        let rest = &self.chunk[self.at..];
        let skipped = rest.len() - rest.trim_start_matches(joins).len();
        let start = self.at + skipped;
        let mut characters = self.chunk[start..].char_indices();
        let (_, mut before) = characters.next()?;
        let mut before_that = None;
        let mut end = self.chunk.len();
        for (offset, character) in characters {
            // "retryCount", and "HTTPServer" before its S.
            let begins = character.is_uppercase() && (before.is_lowercase() || before.is_ascii_digit());
            let begins_after_capitals = character.is_lowercase()
                && before.is_uppercase()
                && before_that.is_some_and(char::is_uppercase);
            if joins(character) || begins {
                end = start + offset;
                break;
            }
            if begins_after_capitals {
                end = start + offset - before.len_utf8();
                break;
            }
            (before_that, before) = (Some(before), character);
        }
        self.at = end;
        Some((start, end))
    }
}

/// Whether a text is in a script that writes no spaces between words.
fn is_without_spaces(text: &str) -> bool {
    !text.is_ascii()
        && text.chars().any(|character| {
            matches!(character, '\u{0e00}'..='\u{0eff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}'
                | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
        })
}

/// Every two neighboring characters of a text.
fn pairs(text: &str, start: usize, folded: &mut Folded, f: &mut dyn FnMut(Word<'_>)) {
    let places: Vec<usize> = text.char_indices().map(|(place, _)| place).chain([text.len()]).collect();
    let length = 2.min(places.len() - 1);
    for window in places.windows(length + 1) {
        let (from, to) = (window[0], window[length]);
        if folded.set(&text[from..to], false) {
            f(folded.word(start + from, start + to, false));
        }
    }
}

/// The text of a JSON value: its strings, numbers and names of fields, without the syntax.
pub(super) fn text_of_json(json: &str) -> Cow<'_, str> {
    if !json.starts_with(['"', '[', '{']) {
        return Cow::Borrowed(json);
    }
    let (mut text, mut rest) = (String::with_capacity(json.len()), json);
    while let Some(place) = rest.find(['"', ',', '[', ']', '{', '}', ':']) {
        push_separate(&mut text, rest[..place].trim());
        rest = &rest[place..];
        if !rest.starts_with('"') {
            // A name is followed by its value, a value by the next name.
            if rest.starts_with(':') {
                text.push(':');
            } else if rest.starts_with(',') && !text.is_empty() {
                text.push(if text.ends_with([',', ':']) { ' ' } else { ',' });
            }
            rest = &rest[1..];
            continue;
        }
        let end = end_of_string(rest);
        match serde_json::from_str::<Cow<'_, str>>(&rest[..end]) {
            Ok(string) => push_separate(&mut text, &string),
            // It was checked when it was written. What another program stored is shown as it is.
            Err(_) => push_separate(&mut text, &rest[1..end]),
        }
        rest = &rest[end..];
    }
    push_separate(&mut text, rest.trim());
    Cow::Owned(text)
}

fn push_separate(text: &mut String, more: &str) {
    if more.is_empty() {
        return;
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push(' ');
    }
    text.push_str(more);
}

/// The length of a JSON string at the beginning of a text, with its quotation marks.
fn end_of_string(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each_word(text, &mut |word| {
            assert!(text.is_char_boundary(word.start) && text.is_char_boundary(word.end));
            words.push(word.term.to_owned());
        });
        words
    }

    #[test]
    fn lists_of_words_are_sorted() {
        assert!(EVERYWHERE.is_sorted() && ASKING.is_sorted());
    }

    #[test]
    fn identifiers_are_words_and_so_are_their_parts() {
        testkit::limit_test();
        for (text, expected) in [
            ("The claims of agents.", &["claim", "agent"][..]),
            ("login_retryCount", &["login", "retri", "count", "login_retrycount"]),
            ("auth:login:limit", &["auth", "login", "limit", "auth:login:limit"]),
            ("see src/auth/login.rs.", &["see", "src", "auth", "login", "rs", "src/auth/login.rs"]),
            ("HTTPServer v2Beta", &["http", "server", "httpserver", "v2", "beta", "v2beta"]),
            ("--force... ok?", &["forc", "ok"]),
            ("don't", &["don", "t"]),
            ("Café NAÏVE ﬁx", &["cafe", "naiv", "fix"]),
            ("日本語", &["日本", "本語"]),
            ("語", &["語"]),
            ("x-", &["x"]),
            ("", &[]),
            (" ._- ", &[]),
        ] {
            assert_eq!(words(text), expected, "{text:?}");
        }
    }

    #[test]
    fn encoded_data_is_no_word_but_its_parts_are() {
        testkit::limit_test();
        let long = "x".repeat(LONGEST + 1);
        assert_eq!(words(&long), Vec::<String>::new());
        assert_eq!(words(&format!("{long}-tail")), ["tail"]);
    }

    #[test]
    fn text_of_json_has_its_strings_numbers_and_names() {
        testkit::limit_test();
        for (json, expected) in [
            (r#""a \"b\"\nc""#, "a \"b\"\nc"),
            ("42", "42"),
            ("null", "null"),
            (r#"{"port": 8080, "host":"db"}"#, "port: 8080, host: db"),
            (r#"["a",["b"],{}]"#, "a, b,"),
            (r#"{"a\u0062":true}"#, "ab: true"),
            (r#""unclosed \"#, "unclosed \\"),
        ] {
            assert_eq!(text_of_json(json), expected, "{json}");
        }
    }
}
