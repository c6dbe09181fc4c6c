//! Finds the paths of this machine in text, and replaces them.
//!
//! A path is read to the end of its word, or to its quote. If a text can be read as a path of this machine and as something
//! else, it is replaced. Relative paths stay: they are paths of the repository.

/// Replaces a path of this machine.
const PATH: &str = "[path]";

/// The addresses whose paths are those of another machine.
const REMOTE_SCHEMES: [&str; 3] = ["http", "https", "ssh"];

/// How a shell names the home directory.
const HOME_VARIABLES: [&str; 2] = ["$HOME", "${HOME}"];

/// The quotes in which a path may have spaces, each with the one that ends it.
const QUOTES: [(char, char); 6] =
    [('"', '"'), ('\'', '\''), ('`', '`'), ('\u{201c}', '\u{201d}'), ('\u{2018}', '\u{2019}'), ('«', '»')];

/// The text with every absolute path, and every path in a home directory, replaced. `home` is the home directory of the user.
pub(super) fn without_paths(text: &str, home: Option<&str>) -> String {
    let home = home.map(|home| home.trim_end_matches(['/', '\\'])).filter(|home| !home.is_empty());
    let mut scan = Scan { text, at: 0, word: 0, quote: None, address_end: 0, local_path: None };
    let mut clean = String::with_capacity(text.len());
    while let Some(first) = scan.rest().chars().next() {
        let path = scan.path(home);
        if path > 0 {
            clean.push_str(PATH);
            scan.skip(path);
            continue;
        }
        let address = scan.address();
        let shown = address.max(first.len_utf8());
        clean.push_str(&scan.rest()[..shown]);
        if address > 0 {
            scan.skip(address);
        } else {
            scan.pass(first);
        }
    }
    clean
}

/// A position in a text.
struct Scan<'a> {
    text: &'a str,
    at: usize,
    /// Where the word at this position begins.
    word: usize,
    /// The quote that ends the word, if it began with a quote.
    quote: Option<char>,
    /// Where the address of another machine ends, if this position is inside of one.
    address_end: usize,
    /// Where the path of an address of this machine begins.
    local_path: Option<usize>,
}

impl<'a> Scan<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn before(&self) -> Option<char> {
        self.text[..self.at].chars().next_back()
    }

    /// Continues after a path, or after the beginning of an address. A new word begins there.
    fn skip(&mut self, length: usize) {
        self.at += length;
        self.word = self.at;
    }

    /// Continues after one character.
    fn pass(&mut self, character: char) {
        // Between letters it is an apostrophe.
        let next = self.rest().chars().nth(1);
        let is_apostrophe = character == '\''
            && [self.before(), next].into_iter().flatten().filter(|c| c.is_alphanumeric()).count() == 2;
        let opened = QUOTES.iter().find(|(open, _)| *open == character).filter(|_| !is_apostrophe);
        if character.is_whitespace() || self.quote == Some(character) {
            self.quote = None;
        } else if let Some((_, close)) = opened {
            self.quote = Some(*close);
        }
        self.at += character.len_utf8();
        if !is_of_word(character) {
            self.word = self.at;
        }
    }

    /// The length of the path that begins here, or 0.
    fn path(&self, home: Option<&str>) -> usize {
        let rest = self.rest();
        if let Some(home) = home.filter(|home| begins_with(rest, home)) {
            let has_several_names = home.trim_start_matches(['/', '\\']).contains(['/', '\\']);
            let next = rest[home.len()..].chars().next();
            let is_complete = !next.is_some_and(|next| next.is_alphanumeric() || "._-".contains(next));
            // A home directory of one name, such as `/root`, may be a part of a relative path.
            if has_several_names || (is_complete && self.begins_path()) {
                return self.end_of_path(home.len());
            }
        }
        if self.at < self.address_end {
            return 0;
        }
        if let Some(start) = home_start(rest).or_else(|| self.file_address()).or_else(|| self.drive()) {
            return self.end_of_path(start);
        }
        if !rest.starts_with(['/', '\\']) || !self.begins_path() {
            return 0;
        }
        if rest.starts_with('\\') {
            // A share of another machine.
            let name = rest.trim_start_matches('\\');
            let is_share = rest.starts_with("\\\\")
                && name.starts_with(|c: char| c.is_alphanumeric() || "?.".contains(c));
            return if is_share { self.end_of_path(rest.len() - name.len()) } else { 0 };
        }
        let length = self.end_of_path(0);
        // A single name after a slash is a command or a route, and is the same on every machine.
        let has_several_names = |path: &str| path.trim_matches('/').contains(['/', '\\']);
        // With quotes, it may be a name with spaces. In `'/help and /quit'` there are two names.
        let is_one_path = self.quote.is_none() || !rest[..length].contains(" /");
        let shown = if is_one_path { length } else { end_of_word(rest, 0) };
        if has_several_names(&rest[..shown]) { length } else { 0 }
    }

    /// Whether a slash at this position begins a path, and does not continue a relative one.
    fn begins_path(&self) -> bool {
        if self.local_path == Some(self.at) {
            return true;
        }
        let word = &self.text[self.word..self.at];
        if word.contains('/') || matches!(word, "." | "..") {
            return false;
        }
        // `-I/usr/include`
        let option = word.trim_start_matches('-');
        let is_option = option.len() < word.len() && option.bytes().all(|byte| byte.is_ascii_alphabetic());
        is_option || word.ends_with('*') || !word.contains(char::is_alphanumeric)
    }

    /// The length of `C:\`, or of `C:/` at the beginning of a word.
    fn drive(&self) -> Option<usize> {
        let bytes = self.rest().as_bytes();
        let has_letter = bytes.first().is_some_and(u8::is_ascii_alphabetic);
        let is_drive = has_letter
            && (bytes[1..].starts_with(b":\\") || (bytes[1..].starts_with(b":/") && self.begins_path()));
        (is_drive && !bytes[1..].starts_with(b"://")).then_some(3)
    }

    /// The length of `file://`.
    fn file_address(&self) -> Option<usize> {
        const START: &str = "file://";
        let begins = !self.before().is_some_and(char::is_alphanumeric);
        (begins && begins_with(self.rest(), START)).then_some(START.len())
    }

    /// The length of the scheme of an address that begins here, or 0. The path of the address is one of this machine, unless it
    /// is an address of another machine.
    fn address(&mut self) -> usize {
        let rest = self.rest();
        if self.at < self.address_end || self.before().is_some_and(char::is_alphanumeric) {
            return 0;
        }
        let is_of_scheme = |character: char| character.is_ascii_alphanumeric() || "+-.".contains(character);
        let scheme = rest.find(|character| !is_of_scheme(character)).unwrap_or(rest.len());
        if !rest.starts_with(|character: char| character.is_ascii_alphabetic())
            || !rest[scheme..].starts_with("://")
        {
            return 0;
        }
        let start = scheme + "://".len();
        // `git+ssh` is ssh, and a sentence may end directly before an address.
        let transport = rest[..scheme].rsplit(['+', '-', '.']).next().unwrap_or_default();
        if REMOTE_SCHEMES.iter().any(|remote| remote.eq_ignore_ascii_case(transport)) {
            // An address of IPv6 has brackets.
            let brackets = rest[start..].find(']').filter(|_| rest[start..].starts_with('['));
            let host = start + brackets.map_or(0, |end| end + 1);
            let end = rest[host..].find(ends_address).map_or(rest.len(), |end| host + end);
            self.address_end = self.at + end;
            return start;
        }
        let slash =
            rest[start..].find(|character: char| matches!(character, '/' | '\\') || ends_address(character));
        self.local_path = slash.map(|slash| self.at + start + slash);
        start
    }

    /// The length of the path that begins here, whose end is not before `start`.
    fn end_of_path(&self, start: usize) -> usize {
        let rest = self.rest();
        if let Some(quote) = self.quote {
            let ends = |end: &usize| !rest[end + quote.len_utf8()..].starts_with(char::is_alphanumeric);
            let end = rest[start..].match_indices(quote).map(|(end, _)| start + end).find(ends);
            if let Some(end) = end {
                return end;
            }
        }
        end_of_word(rest, start)
    }
}

/// The length of a path without quotes. A space after a backslash belongs to it, as in a shell.
fn end_of_word(text: &str, start: usize) -> usize {
    let has_escapes = text.starts_with(['/', '~', '$']);
    let is_file = begins_with(text, "file:");
    let mut before = None;
    let mut end = text.len();
    for (at, character) in text[start..].char_indices() {
        let is_escaped = has_escapes && before == Some('\\') && character.is_whitespace();
        if !is_escaped && ends_path(character) && !(is_file && character == ':') {
            end = start + at;
            break;
        }
        before = Some(character);
    }
    // The period of a sentence does not belong to the path.
    text[..end].trim_end_matches(['.', '!', '?']).len().max(start)
}

/// The length of `~/`, `~ivy/` and `$HOME/`, with which the text begins.
fn home_start(text: &str) -> Option<usize> {
    let end = if let Some(name) = text.strip_prefix('~') {
        let is_name = |character: char| character.is_alphanumeric() || "._-".contains(character);
        // `~1/2` is a number.
        if name.starts_with(|first: char| first.is_numeric() || first == '.' || first == '-') {
            return None;
        }
        1 + name.find(|character| !is_name(character)).unwrap_or(name.len())
    } else {
        HOME_VARIABLES.iter().find(|variable| text.starts_with(**variable))?.len()
    };
    text[end..].starts_with(['/', '\\']).then_some(end + 1)
}

/// Whether a character continues a word that may be a relative path.
fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || "/.-_~\\*".contains(character)
}

fn ends_path(character: char) -> bool {
    character == ':' || character == '[' || ends_address(character)
}

fn ends_address(character: char) -> bool {
    let is_quote = QUOTES.iter().any(|(open, close)| [*open, *close].contains(&character));
    character.is_whitespace() || is_quote || "<>|,;(){}]".contains(character)
}

/// Whether a text begins with another, in upper or lower case.
fn begins_with(text: &str, start: &str) -> bool {
    text.get(..start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start))
}

#[cfg(test)]
mod tests;
