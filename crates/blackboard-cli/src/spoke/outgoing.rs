//! What may leave the machine. Text of agents is filtered again: a board may have been written by an older version, or
//! with `--allow-secret-looking`. Paths of this machine and its host name are replaced, in names and ids too.

mod paths;

use std::ffi::OsStr;

use blackboard::text::TextRules;

use self::paths::without_paths;
use super::check::one_line;

/// Replaces text that looks like a credential.
const REDACTED: &str = "[redacted]";

/// Replaces the name of this machine.
const HOST: &str = "[host]";

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
    home: Option<String>,
}

impl Outgoing {
    /// The filter of this machine. `rules` are those of the board, but text that looks like a credential never leaves. `home`
    /// is the home directory of the user.
    pub fn new(rules: &TextRules, home: Option<&OsStr>) -> Outgoing {
        Outgoing::of_machine(rules, host_name().as_deref(), home.and_then(OsStr::to_str))
    }

    fn of_machine(rules: &TextRules, host: Option<&str>, home: Option<&str>) -> Outgoing {
        let host = host.unwrap_or_default().to_lowercase();
        let short = host.split('.').next().unwrap_or_default().to_owned();
        let mut hosts = vec![host];
        if !hosts.contains(&short) {
            hosts.push(short);
        }
        hosts.retain(|host| !host.is_empty() && host != "localhost");
        let rules = TextRules { allow_secret_looking: false, ..rules.clone() };
        Outgoing { rules, hosts, home: home.map(str::to_owned) }
    }

    /// One line of clean text.
    pub fn text(&self, text: &str) -> String {
        let Ok(text) = self.rules.field(text) else { return REDACTED.to_owned() };
        self.without_places(&text)
    }

    /// The name of a project or a branch, or the id of an item. It keeps what looks like markup in a sentence.
    pub fn name(&self, name: &str) -> String {
        if self.rules.field(name).is_err() {
            return REDACTED.to_owned();
        }
        self.without_places(&one_line(name))
    }

    /// The text without paths and host names.
    fn without_places(&self, text: &str) -> String {
        // A character that belonged to a word that was replaced may be alone now.
        one_line(&self.without_hosts(&without_paths(text, self.home.as_deref())))
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn host_names_and_credentials_are_replaced() {
        testkit::limit_test();
        for (host, text, expected) in [
            ("Build7.lan", "on build7: done, BUILD7.LAN too", "on [host]: done, [host] too"),
            ("Build7.lan", "rebuild7 build7-x build77", "rebuild7 build7-x build77"),
            ("vm", "ivy@vm:/srv/git/x on vm.", "ivy@[host]:[path] on [host]."),
            ("vm", "ssh://vm/x, vm_1, kvm and vms", "ssh://[host]/x, [host]_1, kvm and vms"),
            ("localhost", "http://localhost:80/a/b", "http://localhost:80/a/b"),
            ("", "a b", "a b"),
            ("vm", &["key AKIA", "IOSFODNN7EXAMPLE"].concat(), "[redacted]"),
            ("vm", "a\u{1b}[2Jb\nc", "ab c"),
            ("vm", "", ""),
        ] {
            let outgoing = Outgoing::of_machine(&TextRules::default(), Some(host), None);
            for filtered in [outgoing.text(text), outgoing.name(text)] {
                assert_eq!(filtered, expected, "{text}");
                assert_eq!(outgoing.text(&filtered), filtered, "filtered twice: {text}");
            }
        }
        assert_eq!(Outgoing::of_machine(&TextRules::default(), None, None).hosts, [""; 0]);
    }

    #[test]
    fn names_keep_their_markup_and_lose_paths() {
        testkit::limit_test();
        let outgoing = Outgoing::of_machine(&TextRules::default(), Some("vm"), Some("/home/ivy"));
        for (name, expected) in [
            ("/home/ivy/secret/plan", "[path]"),
            ("fix/home/ivy", "fix[path]"),
            ("feature/<b>vm</b>", "feature/<b>[host]</b>"),
            ("gh:owner/repo#78", "gh:owner/repo#78"),
            ("release/1.2", "release/1.2"),
        ] {
            assert_eq!(outgoing.name(name), expected);
        }
    }

    /// Text before and after a path or a name that is not a part of it.
    fn surroundings() -> impl Strategy<Value = (String, String)> {
        let words = "([a-zA-Z0-9äß]{0,4}( |: |, |=|\\(|\\[|\\{|<|>|\\||;|\\*|@|#|&|\\+|\\?|!| \\.\\.\\.| --| -I| _)){0,3}";
        let quotes = prop::sample::select(vec![
            "",
            "'",
            "\"",
            "`",
            "(",
            "**",
            " -L",
            " file://",
            " vscode://file",
            " x://a:1",
        ]);
        let after = "(| [ -~]{0,12}|['\"`),;:][ -~]{0,12})";
        (words, quotes, after).prop_map(|(words, quote, after)| (format!("{words}{quote}"), after))
    }

    fn local_path() -> impl Strategy<Value = String> {
        let absolute = prop_oneof![
            "/[a-z]{1,8}/[a-zA-Z0-9_.-]{1,8}(/[a-zé]{1,8}){0,2}",
            "/home/ivy(/[a-z. ]{1,5}[a-z])?",
        ];
        // A marker that the surroundings do not contain.
        absolute.prop_map(|path| format!("{path}/QQQ"))
    }

    proptest! {
        #[test]
        fn no_path_or_host_name_survives(
            (before, after) in surroundings(),
            path in local_path(),
            windows in "([A-Z]:\\\\|[A-Z]:/|\\\\\\\\)[a-z]{1,5}\\\\QQQ",
            home in "(~|~ivy|/home/ivy|\\$HOME)/QQQ",
            host in "(vm|VM|vm\\.lan)",
        ) {
            testkit::limit_test();
            let outgoing = Outgoing::of_machine(&TextRules::default(), Some("vm.lan"), Some("/home/ivy"));
            let has_spaces = path.contains(' ');
            let is_quoted = ["'", "\"", "`"].iter().any(|quote| before.ends_with(quote));
            for found in [&path, &windows, &home] {
                // Only quotes show where a path with spaces ends.
                let (before, after) = match (has_spaces && !is_quoted, before.chars().next_back()) {
                    (true, _) => (format!("{before} '"), format!("'{after}")),
                    (false, Some(quote)) if is_quoted => (before.clone(), format!("{quote} {after}")),
                    _ => (before.clone(), after.clone()),
                };
                let text = format!("{before}{found}{after}");
                let clean = outgoing.name(&text);
                prop_assert!(!clean.contains("QQQ") && !clean.contains("/home/ivy"), "{text:?}: {clean:?}");
                // `x://a:1[path])@b` looks like an address with a password.
                let again = outgoing.name(&clean);
                prop_assert!(again == clean || again == REDACTED, "filtered twice: {text:?}: {again:?}");
            }
            let text = format!("{before} {host}");
            let clean = outgoing.name(&text);
            prop_assert!(clean.ends_with("[host]"), "{text:?}: {clean:?}");
            // A home directory is replaced in the middle of a word, too.
            let text = format!("{before}x/home/ivy{after}");
            let clean = outgoing.name(&text);
            prop_assert!(!clean.contains("/home/ivy"), "{text:?}: {clean:?}");
        }

        #[test]
        fn ordinary_text_stays(words in proptest::collection::vec(ordinary(), 1..6)) {
            testkit::limit_test();
            let outgoing = Outgoing::of_machine(&TextRules::default(), Some("vm"), Some("/home/ivy"));
            let text = words.join(" ");
            prop_assert_eq!(outgoing.name(&text), text);
        }
    }

    fn ordinary() -> impl Strategy<Value = String> {
        let fixed = prop::sample::select(vec![
            "and/or",
            "1/2",
            "~1/2",
            "n/a",
            "src/lib.rs",
            "./src/a/b.rs",
            "../../docs/c/d.md",
            "'docs/a b/c.md'",
            "crates/**/tests/*.rs",
            "gh:owner/repo#78",
            "git@example.org:owner/repo.git",
            "/help",
            "C:",
            r"a\b\c",
            "it's",
            "—",
            "(see docs/spoke.md)",
            "src/store/mod.rs:12:",
            "root/a/b",
            "src/home/page.rs",
        ]);
        prop_oneof![
            4 => fixed.prop_map(str::to_owned),
            1 => "[a-z]{1,6}(/[a-z.]{1,6}[a-z]){0,3}",
            1 => "(https?|ssh|git\\+ssh)://[a-z]{2,6}\\.org(:80)?(/[a-z0-9~=?&%_.-]{1,5}){0,4}",
        ]
        .prop_filter("the name of the machine", |word| !word.contains("vm"))
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
