//! What a diff shows of a file: its structure, and values that are ours.
//!
//! Settings contain credentials, and diffs end up in terminals, logs and transcripts of agents. Of other settings, only
//! keys are shown: never a value that this program would not write, and never a comment. The exceptions are the hooks of
//! ivy-blackboard, which setup removes: a reader has to see which they are.

use std::collections::HashSet;

use blackboard::Code;
use blackboard::text::{TextRules, escape_for_terminal};

use super::command;

/// The placeholder for hidden text.
const HIDDEN: &str = "…";

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Syntax {
    Json,
    Toml,
}

/// The text with every value hidden that is not also in `ours`. The number of lines stays the same.
pub fn masked(syntax: Syntax, text: &str, ours: &str) -> String {
    let known: HashSet<&str> = Pieces::of(syntax, ours).filter_map(|piece| piece.value(ours)).collect();
    let mut shown = String::with_capacity(text.len());
    for piece in Pieces::of(syntax, text) {
        let source = &text[piece.start..piece.end];
        match piece.kind {
            Kind::Between => shown.push_str(source),
            Kind::Key if !is_secret(source) => shown.push_str(source),
            Kind::Value if is_ours(source, &known) => shown.push_str(source),
            Kind::Value => match predecessor(syntax, source) {
                Some(command) => shown.push_str(&command),
                None => hide(source, &mut shown),
            },
            Kind::Key | Kind::Comment => hide(source, &mut shown),
        }
    }
    shown
}

/// The text with all lines hidden that look like a credential. The number of lines stays the same.
pub fn without_credentials(text: &str) -> String {
    let lines = text.split('\n').map(|line| if is_secret(line) { HIDDEN } else { line });
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether a value contains nothing that this program would not write.
fn is_ours(source: &str, known: &HashSet<&str>) -> bool {
    if matches!(source, "true" | "false" | "null") || known.contains(source) {
        return true;
    }
    // An older version may have written the path of the program.
    let mut words = source.trim_matches(['"', '\'']).split(' ');
    let program = words.next().and_then(|program| program.rsplit(['/', '\\']).next());
    let known_words = || known.iter().flat_map(|known| known.trim_matches('"').split(' '));
    matches!(program, Some("blackboard" | "blackboard.exe"))
        && words.all(|word| known_words().any(|known| known == word))
}

/// The beginning of a command that setup removes, in quotes. Arguments of `ivy-blackboard` are the user's own and stay hidden.
fn predecessor(syntax: Syntax, source: &str) -> Option<String> {
    const CHARACTERS: usize = 100;
    const WORDS: usize = 3;
    let text: String = serde_json::from_str(source).ok().filter(|_| syntax == Syntax::Json)?;
    if !command::is_predecessor(&serde_json::json!({ "command": text })) || is_secret(&text) {
        return None;
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut shown: String = words[..words.len().min(WORDS)].join(" ");
    let is_cut = if let Some((end, _)) = shown.char_indices().nth(CHARACTERS) {
        shown.truncate(end);
        true
    } else {
        words.len() > WORDS
    };
    let more = if is_cut { " …" } else { "" };
    Some(serde_json::Value::String(format!("{}{more}", escape_for_terminal(&shown))).to_string())
}

/// Hides a text, except for its quotes or comment markers and its line breaks.
fn hide(source: &str, shown: &mut String) {
    let marks = ["\"\"\"", "'''", "\"", "'", "//", "/*", "#"];
    let mark = marks.into_iter().find(|mark| source.starts_with(mark)).unwrap_or_default();
    shown.push_str(mark);
    for (index, line) in source.split('\n').enumerate() {
        if index > 0 {
            shown.push('\n');
        }
        shown.push_str(if mark.starts_with(['/', '#']) && index == 0 { " " } else { "" });
        shown.push_str(HIDDEN);
        shown.push_str(if line.ends_with('\r') { "\r" } else { "" });
    }
    match mark {
        "/*" => shown.push_str(" */"),
        "//" | "#" => {}
        quotes => shown.push_str(quotes),
    }
}

fn is_secret(text: &str) -> bool {
    TextRules::default().description(text).is_err_and(|error| error.code() == Code::SecretLooking)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Spaces and punctuation.
    Between,
    Key,
    Value,
    Comment,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    kind: Kind,
    start: usize,
    end: usize,
}

impl Piece {
    fn value<'a>(&self, text: &'a str) -> Option<&'a str> {
        (self.kind == Kind::Value).then(|| &text[self.start..self.end])
    }
}

/// A text split into tokens that cover all of its bytes.
struct Pieces<'a> {
    syntax: Syntax,
    text: &'a str,
    at: usize,
    /// The number of open brackets.
    depth: usize,
    /// Whether this line has only spaces so far.
    line_is_new: bool,
    /// Whether this line is a table header.
    is_header: bool,
}

impl<'a> Pieces<'a> {
    fn of(syntax: Syntax, text: &'a str) -> Pieces<'a> {
        Pieces { syntax, text, at: 0, depth: 0, line_is_new: true, is_header: false }
    }

    /// The length of the comment that starts here.
    fn comment(&self, rest: &str) -> Option<usize> {
        let line = || rest.find('\n').unwrap_or(rest.len());
        match self.syntax {
            Syntax::Toml => rest.starts_with('#').then(line),
            Syntax::Json if rest.starts_with("//") => Some(line()),
            Syntax::Json if rest.starts_with("/*") => Some(rest.find("*/").map_or(rest.len(), |end| end + 2)),
            Syntax::Json => None,
        }
    }

    /// The length of the string that starts here.
    fn string(&self, rest: &str) -> Option<usize> {
        let marks: &[&str] =
            if self.syntax == Syntax::Toml { &["\"\"\"", "'''", "\"", "'"] } else { &["\""] };
        let mark = marks.iter().find(|mark| rest.starts_with(**mark))?;
        let mut at = mark.len();
        while at < rest.len() {
            let here = &rest.as_bytes()[at..];
            if here[0] == b'\\' && mark.starts_with('"') {
                at += 2;
            } else if here.starts_with(mark.as_bytes()) {
                // Quotes before the last three belong to the content.
                let more = here.iter().take_while(|byte| **byte == mark.as_bytes()[0]).count();
                let end = at + if mark.len() == 3 { more.min(5) } else { 1 };
                return Some(end);
            } else {
                at += 1;
            }
        }
        Some(rest.len())
    }

    /// Whether the token that ends here is a key.
    fn is_key(&self, end: usize) -> bool {
        let next = self.text[end..].trim_start_matches([' ', '\t', '\r', '\n']).chars().next();
        match self.syntax {
            Syntax::Json => next == Some(':'),
            Syntax::Toml => {
                let on_this_line = self.text[end..].trim_start_matches([' ', '\t']).chars().next();
                self.is_header || matches!(on_this_line, Some('=' | '.'))
            }
        }
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let rest = &self.text[self.at..];
        let first = rest.chars().next()?;
        let start = self.at;
        let marks = if self.syntax == Syntax::Json { "{}[]:,\u{feff}" } else { "{}[],=" };
        let is_between = |character: char| character.is_whitespace() || marks.contains(character);
        let is_dot = |character: char| self.syntax == Syntax::Toml && character == '.';
        let (kind, length) = if let Some(length) = self.comment(rest) {
            (Kind::Comment, length)
        } else if let Some(length) = self.string(rest) {
            (if self.is_key(start + length) { Kind::Key } else { Kind::Value }, length)
        } else if is_between(first) || is_dot(first) {
            match first {
                '[' if self.syntax == Syntax::Toml && self.depth == 0 && self.line_is_new => {
                    self.is_header = true;
                }
                '[' | '{' if !self.is_header => self.depth += 1,
                ']' | '}' if !self.is_header => self.depth = self.depth.saturating_sub(1),
                '\n' => self.is_header = false,
                _ => {}
            }
            self.line_is_new = first == '\n' || (self.line_is_new && first.is_whitespace());
            (Kind::Between, first.len_utf8())
        } else {
            let ends = |character: char| is_between(character) || "\"'#/".contains(character);
            // A comment directly after it is hidden with it.
            let length = rest.find(ends).unwrap_or(rest.len()).max(first.len_utf8());
            (if self.is_key(start + length) { Kind::Key } else { Kind::Value }, length)
        };
        if kind != Kind::Between {
            self.line_is_new = false;
        }
        self.at = (start + length).min(self.text.len());
        while !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
        Some(Piece { kind, start, end: self.at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_json_the_keys_are_shown_and_the_values_that_we_would_write() {
        testkit::limit_test();
        let ours =
            r#"{ "servers": { "blackboard": { "command": "blackboard", "args": ["mcp"], "timeout": 5 } } }"#;
        for (text, expected) in [
            (ours, ours),
            (r#"{"key": "sk-1", "n": 17, "five": 5}"#, r#"{"key": "…", "n": …, "five": 5}"#),
            (
                r#"{"a": ["x\"y", "z"], "b": {"c" : true, "d": null}}"#,
                r#"{"a": ["…", "…"], "b": {"c" : true, "d": null}}"#,
            ),
            ("{ // token: x\n  \"a\": /* b\n \"c\": */ 1.5e9\n}", "{ // …\n  \"a\": /* …\n… */ …\n}"),
            ("{\r\n\"a\": \"b\" // c\r\n}", "{\r\n\"a\": \"…\" // …\r\n}"),
            (
                r#"{"command": "/opt/my secret/blackboard", "x": "/opt/bin/blackboard mcp"}"#,
                r#"{"command": "…", "x": "/opt/bin/blackboard mcp"}"#,
            ),
            (r#"{"command": "blackboard mcp --token abc"}"#, r#"{"command": "…"}"#),
            (r#"{"ünï": "gehéim""#, r#"{"ünï": "…""#),
            (
                r#"{"command": "bun /x/blackboard-register.ts", "b": "bun /x/other.ts"}"#,
                r#"{"command": "bun /x/blackboard-register.ts", "b": "…"}"#,
            ),
            (
                r#"{"command": "ivy-blackboard agent register --name secret"}"#,
                r#"{"command": "ivy-blackboard agent register …"}"#,
            ),
        ] {
            assert_eq!(masked(Syntax::Json, text, ours), expected);
        }
        let key = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
        assert_eq!(masked(Syntax::Json, &format!("{{\"{key}\": true}}"), ours), "{\"…\": true}");
    }

    #[test]
    fn of_toml_the_keys_are_shown_and_the_values_that_we_would_write() {
        let ours = "[mcp_servers.blackboard]\ncommand = \"blackboard\"\nargs = [\"mcp\"]\n";
        for (text, expected) in [
            (ours, ours),
            ("a = 'x' # y\nb=1979-05-27T07:32:00Z\n", "a = '…' # …\nb=…\n"),
            ("[ a . \"b.c\" ] # d\ne.f = true", "[ a . \"b.c\" ] # …\ne.f = true"),
            ("a = \"\"\"\nb = c\nabc==\n\"\"\"\n", "a = \"\"\"…\n…\n…\n…\"\"\"\n"),
            ("a = [\n  [\"x\"],\n  ['y'],\n]\n[[b]]\n", "a = [\n  [\"…\"],\n  ['…'],\n]\n[[b]]\n"),
            ("s = { env = { TOKEN = \"x\" }, n = 1.5 }\n", "s = { env = { TOKEN = \"…\" }, n = … }\n"),
        ] {
            assert_eq!(masked(Syntax::Toml, text, ours), expected);
        }
    }
}
