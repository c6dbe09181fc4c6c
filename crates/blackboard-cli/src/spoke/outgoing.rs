//! What may leave the machine. Text of agents is filtered again: a board may have been written by an older version, or
//! with `--allow-secret-looking`. Paths of this machine and its host name are replaced.

use blackboard::text::TextRules;

use super::check::one_line;

/// What stands for text that looks like a credential.
const REDACTED: &str = "[redacted]";

/// What stands for a path of this machine.
const PATH: &str = "[path]";

/// What stands for the name of this machine.
const HOST: &str = "[host]";

/// A shorter host name is probably a word.
const SHORTEST_HOST: usize = 4;

/// What else is left out of an export: `export.redact` in the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each part is left out or not, whatever the others are")]
pub struct Redaction {
    /// The names of agents.
    pub agents: bool,
    /// What agents work on: current work and claimed items. Their numbers stay.
    pub work: bool,
    /// Progress notes and what was completed.
    pub progress: bool,
    /// The name of the branch.
    pub branch: bool,
}

impl Redaction {
    /// The words of the configuration.
    pub const WORDS: [&str; 4] = ["agents", "work", "progress", "branch"];

    /// What these words name. `None` if there is another one among them.
    pub fn named(words: &[&str]) -> Option<Redaction> {
        let has = |word: &str| words.contains(&word);
        let is_known = words.iter().all(|word| Redaction::WORDS.contains(word));
        is_known.then(|| Redaction {
            agents: has("agents"),
            work: has("work"),
            progress: has("progress"),
            branch: has("branch"),
        })
    }

    /// What either of them leaves out.
    pub fn and(self, other: Redaction) -> Redaction {
        Redaction {
            agents: self.agents || other.agents,
            work: self.work || other.work,
            progress: self.progress || other.progress,
            branch: self.branch || other.branch,
        }
    }
}

/// Filters text that leaves the machine.
#[derive(Clone, Debug)]
pub struct Outgoing {
    rules: TextRules,
    hosts: Vec<String>,
}

impl Outgoing {
    /// The filter of this machine. `rules` are those of the board, but text that looks like a credential never leaves.
    pub fn new(rules: &TextRules) -> Outgoing {
        Outgoing::of_hosts(rules, host_name().as_deref())
    }

    fn of_hosts(rules: &TextRules, host: Option<&str>) -> Outgoing {
        let host = host.unwrap_or_default().to_lowercase();
        let short = host.split('.').next().unwrap_or_default().to_owned();
        let mut hosts = vec![host];
        if !hosts.contains(&short) {
            hosts.push(short);
        }
        hosts.retain(|host| host.len() >= SHORTEST_HOST && host != "localhost");
        Outgoing { rules: TextRules { allow_secret_looking: false, ..rules.clone() }, hosts }
    }

    /// One line of clean text.
    pub fn text(&self, text: &str) -> String {
        let Ok(text) = self.rules.field(text) else { return REDACTED.to_owned() };
        // A character that belonged to a word that was replaced may be alone now.
        one_line(&self.without_hosts(&without_paths(&text)))
    }

    /// A name of a project or a branch, or the id of an item: these are no sentences, and keep what looks like markup.
    pub fn name(&self, name: &str) -> String {
        if self.rules.field(name).is_err() {
            return REDACTED.to_owned();
        }
        one_line(name)
    }

    fn without_hosts(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for host in &self.hosts {
            // Lower case may have another length, and then positions differ: such text has no host name in ASCII.
            let lower = text.to_ascii_lowercase();
            let mut replaced = String::with_capacity(text.len());
            let mut rest = 0;
            for (start, found) in lower.match_indices(host.as_str()) {
                let end = start + found.len();
                let is_part = |character: char| character.is_alphanumeric() || character == '-';
                let before = lower[..start].chars().next_back().is_some_and(is_part);
                let after = lower[end..].chars().next().is_some_and(is_part);
                if start >= rest && !before && !after {
                    replaced.push_str(&text[rest..start]);
                    replaced.push_str(HOST);
                    rest = end;
                }
            }
            replaced.push_str(&text[rest..]);
            text = replaced;
        }
        text
    }
}

/// The text with every absolute path, and every path in a home directory, replaced. Paths in a repository stay.
fn without_paths(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = None;
    while let Some(first) = rest.chars().next() {
        let skipped = if begins_word(before) { url(rest) } else { 0 };
        let length = if skipped == 0 && begins_word(before) { path(rest) } else { 0 };
        if length > 0 {
            clean.push_str(PATH);
        } else {
            clean.push_str(&rest[..skipped.max(first.len_utf8())]);
        }
        let (consumed, following) = rest.split_at(length.max(skipped).max(first.len_utf8()));
        before = consumed.chars().next_back();
        rest = following;
    }
    clean
}

/// Whether a path or an address can begin after this character.
fn begins_word(before: Option<char>) -> bool {
    before.is_none_or(|before| {
        !(before.is_alphanumeric() || matches!(before, '/' | '.' | '-' | '_' | '~' | '\\'))
    })
}

/// The length of an address on the web that the text begins with: its slashes begin no path.
fn url(text: &str) -> usize {
    let scheme = text.bytes().take_while(u8::is_ascii_alphanumeric).count();
    if scheme == 0 || !text[scheme..].starts_with("://") || text[..scheme].eq_ignore_ascii_case("file") {
        return 0;
    }
    text.find(char::is_whitespace).unwrap_or(text.len())
}

/// The length of a path that the text begins with, or 0.
fn path(text: &str) -> usize {
    let drive = text.as_bytes();
    let is_drive = drive.len() > 2
        && drive[0].is_ascii_alphabetic()
        && drive[1] == b':'
        && matches!(drive[2], b'\\' | b'/');
    let is_file = text.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("file://"));
    let is_home = text.starts_with("~/");
    let searched = if is_drive { 3 } else { 0 };
    let ends = |character: char| character.is_whitespace() || "\"'`<>|,;()[]{}".contains(character);
    let end = text[searched..]
        .find(|character: char| ends(character) || (character == ':' && !is_file))
        .map_or(text.len(), |end| end + searched);
    let shown = &text[..end];
    // A single name after a slash is a command or a route, and is the same on every machine.
    let is_absolute =
        shown.starts_with('/') && shown.trim_start_matches('/').trim_end_matches('/').contains('/');
    let is_share = shown.starts_with("\\\\") && shown.len() > 2;
    if !(is_drive || is_file || is_home || is_absolute || is_share) {
        return 0;
    }
    // The period of a sentence is no part of the path.
    shown.trim_end_matches(['.', '!', '?']).len()
}

#[cfg(unix)]
fn host_name() -> Option<String> {
    rustix::system::uname().nodename().to_str().ok().map(str::to_owned)
}

#[cfg(not(unix))]
fn host_name() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_the_host_name_are_replaced() {
        testkit::limit_test();
        let outgoing = Outgoing::of_hosts(&TextRules::default(), Some("Build7.lan"));
        for (text, expected) in [
            ("fixed /home/ivy/secret/main.rs.", "fixed [path]."),
            ("see (/home/ivy/x) and '~/notes'", "see ([path]) and '[path]'"),
            ("/home/ivy:12: error", "[path]:12: error"),
            ("PATH=/usr/local/bin:/opt/x/bin", "PATH=[path]:[path]"),
            (r"C:\Users\ivy\a.txt and \\nas\share", "[path] and [path]"),
            ("file:///home/ivy/a", "[path]"),
            ("https://example.org/a/b stays", "https://example.org/a/b stays"),
            ("src/store/mod.rs and/or docs/ 1/2", "src/store/mod.rs and/or docs/ 1/2"),
            ("run /help, /tmp and /", "run /help, /tmp and /"),
            ("on build7: done, BUILD7.LAN too", "on [host]: done, [host] too"),
            ("rebuild7 build7-x build77", "rebuild7 build7-x build77"),
            (&["key AKIA", "IOSFODNN7EXAMPLE"].concat(), "[redacted]"),
            ("a\u{1b}[2Jb\nc", "ab c"),
            ("ümlaut /härte/wörk ö", "ümlaut [path] ö"),
            ("", ""),
        ] {
            let clean = outgoing.text(text);
            assert_eq!(clean, expected, "{text}");
            assert_eq!(outgoing.text(&clean), clean, "filtered twice: {text}");
        }
    }

    #[test]
    fn a_host_name_that_is_a_word_is_no_host_name() {
        for host in [None, Some("localhost"), Some("pc"), Some("")] {
            assert_eq!(Outgoing::of_hosts(&TextRules::default(), host).hosts, [""; 0], "{host:?}");
        }
    }

    #[test]
    fn a_redaction_is_named_by_its_words() {
        assert_eq!(Redaction::named(&[]), Some(Redaction::default()));
        assert_eq!(Redaction::named(&["agents", "secrets"]), None);
        let all = Redaction::named(&Redaction::WORDS).expect("the words");
        assert_eq!(all, Redaction { agents: true, work: true, progress: true, branch: true });
        assert_eq!(Redaction::default().and(all), all);
    }
}
