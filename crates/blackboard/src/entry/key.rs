//! The rules for names of entries: keys, patterns of keys, scopes and tags.
//!
//! Every path checks here: single operations, batches, transactions, queries and subscriptions. Names are never
//! altered. White space at the ends is refused: `"deploy "` and `"deploy"` would be two locks that look the same.

use super::LOCKS;
use crate::error::{Code, Refusal, Result};
use crate::protocol::is_first_word;
use crate::text::{Ambiguity, ambiguity, forges, forges_in_every_version, shown};

/// The most bytes of a key and of a pattern.
pub const MAX_KEY_BYTES: usize = 1024;
/// The most bytes of a scope's name.
pub const MAX_SCOPE_BYTES: usize = 128;
/// The most bytes of a tag.
pub const MAX_TAG_BYTES: usize = 128;
/// The most tags of an entry.
pub const MAX_TAGS: usize = 64;

/// The prefix of a key that also names its scope, in the library where these names come from.
pub(crate) const ABSOLUTE_PREFIX: &str = "polymathera:";

/// The characters with a meaning in patterns.
const WILDCARDS: [char; 4] = ['*', '?', '[', ']'];

/// Refuses a text that cannot be the key of an entry of this scope.
///
/// ```
/// use blackboard::entry::check_key;
///
/// assert!(check_key("team-1", "task:write the docs").is_ok());
/// let error = check_key("team-1", "team-1:task").unwrap_err();
/// assert_eq!(error.hint().and_then(|hint| hint.advice()), Some("write \"task\"; pass the scope separately"));
/// ```
pub fn check_key(scope: &str, key: &str) -> Result<()> {
    check_known_key(scope, key)?;
    check_visible(Noun::of(scope).name, key)
}

/// As [`check_key`], for a key that may exist already: refuses only what no version has accepted.
pub(crate) fn check_known_key(scope: &str, key: &str) -> Result<()> {
    let Noun { name, part, example } = Noun::of(scope);
    if key.is_empty() {
        return refuse(&format!("the {name} is empty"), &format!("write a name, such as \"{example}\""));
    }
    if key.starts_with(':') || key.ends_with(':') {
        let hint = match key.trim_matches(':') {
            "" => format!("write a name, such as \"{example}\"; colons are between the parts of a {part}"),
            inner => format!("write \"{}\"; colons are between the parts of a {part}", shown(inner)),
        };
        return refuse(&format!("the {name} begins or ends with a colon: \"{}\"", shown(key)), &hint);
    }
    if let Some(wildcard) = key.chars().find(|character| WILDCARDS.contains(character)) {
        return refuse(
            &format!("the {name} contains '{wildcard}', which is a pattern character: \"{}\"", shown(key)),
            "write another character, such as '_'",
        );
    }
    check_prefixes(name, scope, key, example)?;
    check_size_and_characters(name, key, MAX_KEY_BYTES)
}

/// What the user of a scope calls its keys. Locks are entries, but their users name locks.
struct Noun {
    /// In a sentence after "the".
    name: &'static str,
    /// What has parts, after "a".
    part: &'static str,
    example: &'static str,
}

impl Noun {
    fn of(scope: &str) -> Noun {
        match scope {
            LOCKS => Noun { name: "name of the lock", part: "name", example: "deploy" },
            _ => Noun { name: "key", part: "key", example: "task:1" },
        }
    }
}

/// Refuses a text that cannot be a pattern of keys of this scope. [`Glob`](super::Glob) describes patterns.
///
/// ```
/// use blackboard::entry::check_pattern;
///
/// assert!(check_pattern("team-1", "agent:*:results").is_ok());
/// assert!(check_pattern("team-1", "team-1:*").is_err());
/// ```
pub fn check_pattern(scope: &str, pattern: &str) -> Result<()> {
    if pattern.is_empty() {
        return refuse("the pattern is empty", "write \"*\" for every key");
    }
    check_prefixes("pattern", scope, pattern, "*")?;
    check_size_and_characters("pattern", pattern, MAX_KEY_BYTES)
}

/// Refuses a text that cannot be the name of a scope. Colons are allowed, as in `team:1`: a scope and a key are never
/// joined.
///
/// ```
/// use blackboard::entry::check_scope;
///
/// assert!(check_scope("team:1").is_ok());
/// assert!(check_scope("team-*").is_err());
/// ```
pub fn check_scope(name: &str) -> Result<()> {
    check_known_scope(name)?;
    check_visible("name of the scope", name)
}

/// As [`check_scope`], for a scope that may exist already: refuses only what no version has accepted.
pub(crate) fn check_known_scope(name: &str) -> Result<()> {
    if name.is_empty() {
        return refuse("the name of the scope is empty", "leave it out for the scope \"default\"");
    }
    if let Some(wildcard) = name.chars().find(|character| WILDCARDS.contains(character)) {
        return refuse(
            &format!("the name of the scope contains '{wildcard}': \"{}\"", shown(name)),
            "name one scope; patterns are for keys",
        );
    }
    check_size_and_characters("name of the scope", name, MAX_SCOPE_BYTES)
}

/// Refuses a text that cannot be a tag.
///
/// ```
/// use blackboard::entry::check_tag;
///
/// assert!(check_tag("needs review").is_ok());
/// assert!(check_tag("").is_err());
/// ```
pub fn check_tag(tag: &str) -> Result<()> {
    check_known_tag(tag)?;
    check_visible("tag", tag)
}

/// As [`check_tag`], for a tag that an entry may have already: refuses only what no version has accepted.
pub(crate) fn check_known_tag(tag: &str) -> Result<()> {
    if tag.is_empty() {
        return refuse("a tag is empty", "leave it out");
    }
    check_size_and_characters("tag", tag, MAX_TAG_BYTES)
}

/// The tags in their stored form: each checked, each once, in order.
///
/// ```
/// use blackboard::entry::tag_set;
///
/// let tags = ["urgent", "finance", "urgent"].map(String::from);
/// assert_eq!(tag_set(tags.into())?, ["finance", "urgent"]);
/// # Ok::<(), blackboard::Error>(())
/// ```
pub fn tag_set(tags: Vec<String>) -> Result<Vec<String>> {
    tags.iter().try_for_each(|tag| check_tag(tag))?;
    known_tag_set(tags)
}

/// As [`tag_set`], for tags that entries may have already.
pub(super) fn known_tag_set(mut tags: Vec<String>) -> Result<Vec<String>> {
    tags.iter().try_for_each(|tag| check_known_tag(tag))?;
    tags.sort_unstable();
    tags.dedup();
    if tags.len() > MAX_TAGS {
        return refuse(
            &format!("there are {} tags; {MAX_TAGS} are allowed", tags.len()),
            "keep the tags that agents filter by, and put the rest into the metadata",
        );
    }
    Ok(tags)
}

/// Refuses a key that names its scope a second time: a reader would look for the entry under another key. A scope whose
/// name is the first word of a built-in protocol accepts the keys of that protocol.
fn check_prefixes(what: &str, scope: &str, text: &str, example: &str) -> Result<()> {
    let in_scope = text.strip_prefix(scope).and_then(|rest| rest.strip_prefix(':'));
    // In a scope with the name `task`, `task:1` is a key of the protocol `Task`.
    let in_scope = in_scope.filter(|_| !is_first_word(scope));
    let (prefix, rest) = match (in_scope, text.strip_prefix(ABSOLUTE_PREFIX)) {
        (Some(rest), _) => (format!("{scope}:"), rest),
        (None, Some(rest)) => (ABSOLUTE_PREFIX.to_owned(), rest),
        (None, None) => return Ok(()),
    };
    let instead = match rest.trim_matches(':') {
        "" => example.to_owned(),
        rest => shown(rest),
    };
    refuse(
        &format!("the {what} begins with \"{}\", which names a scope: \"{}\"", shown(&prefix), shown(text)),
        &format!("write \"{instead}\"; pass the scope separately"),
    )
}

fn check_size_and_characters(what: &str, text: &str, max_bytes: usize) -> Result<()> {
    if text.len() > max_bytes {
        return refuse(
            &format!("the {what} has {} bytes; {max_bytes} are allowed: \"{}\"", text.len(), shown(text)),
            "shorten it; put long text in the value",
        );
    }
    check_characters(what, text, forges_in_every_version)
}

/// Refuses a name that looks like another one.
fn check_visible(what: &str, text: &str) -> Result<()> {
    check_characters(what, text, forges)?;
    let Some(Ambiguity { problem, plain }) = ambiguity(text) else { return Ok(()) };
    let hint = match &*plain {
        "" => "write a name of letters, such as \"task-1\"".to_owned(),
        plain => {
            let (text, plain) = (shown(text), shown(plain));
            format!("write \"{plain}\"; \"{text}\" and \"{plain}\" look the same")
        }
    };
    refuse(&format!("the {what} {problem}: \"{}\"", shown(text)), &hint)
}

fn check_characters(what: &str, text: &str, forges: fn(char) -> bool) -> Result<()> {
    if text.contains(forges) {
        return refuse(
            &format!("the {what} contains control or invisible characters: \"{}\"", shown(text)),
            "remove them: the name would look the same as another one",
        );
    }
    Ok(())
}

fn refuse<T>(message: &str, hint: &str) -> Result<T> {
    Err(Refusal::new(Code::InvalidValue, message).hint(hint.to_owned()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hint::Hint;

    #[track_caller]
    fn refused<T>(result: Result<T>, part: &str) {
        let Err(error) = result else { panic!("not refused, expected: {part}") };
        assert_eq!(error.code(), Code::InvalidValue);
        assert!(error.to_string().contains(part), "{error}\nexpected: {part}");
        assert!(error.to_string().len() < 1000 && !error.to_string().contains(forges), "{error}");
        assert!(
            error
                .hint()
                .and_then(Hint::advice)
                .is_some_and(|hint| !hint.is_empty() && !hint.contains(forges)),
            "{error}"
        );
    }

    #[test]
    fn keys_of_every_kind_are_accepted() {
        testkit::limit_test();
        let longest = "ä".repeat(MAX_KEY_BYTES / 2);
        for key in [
            "a",
            "task:1",
            "cache:monthly_metrics",
            "with space",
            "käse 🧀",
            "a::b",
            "team-1",
            "team-10:x",
            "x:team-1:y",
            "polymathera",
            "xpolymathera:a",
            "a/b\\c{d}!^~",
            "%2A",
            &longest,
        ] {
            check_key("team-1", key).unwrap();
            check_pattern("team-1", key).unwrap();
        }
    }

    #[test]
    fn white_space_at_the_ends_is_refused_in_new_names_only() {
        testkit::limit_test();
        for name in ["deploy ", " deploy", "deploy\u{a0}", "\u{3000}deploy", " "] {
            refused(check_key("team-1", name), "the key begins or ends with white space");
            refused(check_scope(name), "the name of the scope begins or ends with white space");
            refused(check_tag(name), "the tag begins or ends with white space");
            check_known_key("team-1", name).unwrap();
            check_known_scope(name).unwrap();
            check_known_tag(name).unwrap();
            check_pattern("team-1", name).unwrap();
        }
        refused(check_key(LOCKS, "deploy "), "the name of the lock begins or ends with white space");
        let error = check_key(LOCKS, "deploy ").unwrap_err();
        let hint = "write \"deploy\"; \"deploy \" and \"deploy\" look the same";
        assert_eq!(error.hint().and_then(Hint::advice), Some(hint));
        for name in ["", ":deploy", "deploy*", "locks:deploy", "polymathera:deploy"] {
            let error = check_key(LOCKS, name).unwrap_err();
            assert!(error.to_string().starts_with("the name of the lock "), "{error}");
            let hint = error.hint().and_then(Hint::advice).unwrap();
            assert!(!hint.contains("key") && !hint.contains("task"), "{hint}");
        }
        let error = check_key("team-1", "deploy ").unwrap_err();
        let hint = error.hint().and_then(Hint::advice);
        assert_eq!(hint, Some("write \"deploy\"; \"deploy \" and \"deploy\" look the same"));
    }

    #[test]
    fn names_that_look_like_another_one_are_refused() {
        testkit::limit_test();
        for (name, plain) in [
            ("prod\u{a0}deploy", "prod deploy"),
            ("prod\u{2003}deploy", "prod deploy"),
            ("prod\u{3000}deploy", "prod deploy"),
            ("cafe\u{301}", "café"),
            ("\u{1100}\u{1161}", "가"),
            ("\u{212b}", "Å"),
        ] {
            for refusal in [check_key(LOCKS, name), check_scope(name), check_tag(name)] {
                let error = refusal.unwrap_err();
                let hint = error.hint().and_then(Hint::advice).unwrap();
                assert!(hint.starts_with(&format!("write \"{plain}\"")), "{hint}");
            }
            assert!(crate::text::check_id("work item", name).is_err(), "{name:?}");
            assert!(crate::text::check_name(name).is_err(), "{name:?}");
            check_key(LOCKS, plain).unwrap();
            // A board of an earlier version may have it.
            check_known_key(LOCKS, name).unwrap();
        }
        for name in ["café", "가", "日本語", "नमस्ते", "prod deploy", "e\u{334}"] {
            check_key(LOCKS, name).unwrap();
        }
    }

    #[test]
    fn first_violated_key_rule_is_reported() {
        testkit::limit_test();
        let long = "x".repeat(MAX_KEY_BYTES + 1);
        for (key, part) in [
            ("", "is empty"),
            (":", "a colon"),
            (":*", "a colon"),
            ("a:", "a colon"),
            ("team-1:", "a colon"),
            ("polymathera:", "a colon"),
            ("a*", "contains '*'"),
            ("team-1:b?", "contains '?'"),
            ("a[", "contains '['"),
            ("a]", "contains ']'"),
            ("team-1:a", "begins with \"team-1:\""),
            ("team-1:a\n", "begins with \"team-1:\""),
            ("polymathera:a", "begins with \"polymathera:\""),
            (&long, "has 1025 bytes; 1024 are allowed"),
            ("a\nb", "control or invisible"),
            ("a\0", "control or invisible"),
            ("a\u{202e}b", "control or invisible"),
            ("a\u{200b}", "control or invisible"),
            ("deploy\u{fe0f}", "control or invisible"),
            ("👩\u{200d}💻", "control or invisible"),
        ] {
            refused(check_key("team-1", key), part);
        }
    }

    #[test]
    fn a_pattern_may_have_wildcards_and_colons_at_its_ends_but_no_scope() {
        testkit::limit_test();
        for pattern in ["*", ":", "task:", ":*", "[!a-c]?*", "team-*:x", "[t]eam-1:x"] {
            check_pattern("team-1", pattern).unwrap();
        }
        let long = "*".repeat(MAX_KEY_BYTES + 1);
        for (pattern, part) in [
            ("", "is empty"),
            ("team-1:*", "begins with \"team-1:\""),
            ("team-1:", "begins with \"team-1:\""),
            ("polymathera:*", "begins with \"polymathera:\""),
            (&long, "has 1025 bytes"),
            ("*\u{1b}[2J", "control or invisible"),
        ] {
            refused(check_pattern("team-1", pattern), part);
        }
        assert_eq!(
            check_pattern("team-1", "team-1:").unwrap_err().hint().and_then(Hint::advice),
            Some("write \"*\"; pass the scope separately")
        );
    }

    #[test]
    fn scopes_are_plain_names() {
        testkit::limit_test();
        let long = "x".repeat(MAX_SCOPE_BYTES + 1);
        for scope in ["default", "team:1", "two words", "käse", &long[1..]] {
            check_scope(scope).unwrap();
        }
        for (scope, part) in [
            ("", "is empty"),
            ("a*", "contains '*'"),
            ("a]", "contains ']'"),
            (&long, "has 129 bytes; 128 are allowed"),
            ("a\tb", "control or invisible"),
        ] {
            refused(check_scope(scope), part);
        }
    }

    #[test]
    fn tags_are_checked_bounded_and_deduplicated() {
        testkit::limit_test();
        let numbered = |count: usize| (0..count).map(|number| format!("tag {number}")).collect::<Vec<_>>();
        assert_eq!(tag_set(Vec::new()).unwrap(), Vec::<String>::new());
        assert_eq!(tag_set(numbered(MAX_TAGS)).unwrap().len(), MAX_TAGS);
        refused(tag_set(numbered(MAX_TAGS + 1)), "there are 65 tags; 64 are allowed");
        assert_eq!(tag_set([numbered(MAX_TAGS), numbered(MAX_TAGS)].concat()).unwrap().len(), MAX_TAGS);
        for (tag, part) in [
            ("", "is empty"),
            ("a\rb", "control or invisible"),
            (&*"x".repeat(MAX_TAG_BYTES + 1), "has 129 bytes; 128 are allowed"),
        ] {
            refused(tag_set(vec!["fine".to_owned(), tag.to_owned()]), part);
        }
    }
}
