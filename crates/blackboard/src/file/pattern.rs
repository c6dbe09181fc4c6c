//! [`PathPattern`]: the files of a reservation, and whether two reservations overlap.

use std::cell::Cell;
use std::fmt;

use crate::error::{Code, Refusal, Result};
use crate::hint::Hint;
use crate::text::{hides, shown};
use crate::wildcard;

/// The most bytes of a pattern.
const MAX_BYTES: usize = 1024;

/// The most segments of a pattern.
const MAX_SEGMENTS: usize = 64;

/// The most characters of a segment: file systems have no longer names.
const MAX_SEGMENT_CHARACTERS: usize = 255;

/// The most `*` in one segment.
const MAX_WILDCARDS: usize = 8;

/// A pattern of paths, relative to the root of a tree, with `/` between the segments.
///
/// `?` matches one character and `*` any number of them, inside a segment. `**` as a complete segment matches any
/// number of segments, including none. At the end it matches at least one: `src/**` is everything below `src`, and
/// not `src` itself. `src/` means the same. Every other character matches itself, and case matters.
///
/// Syntax of other programs is refused, not reinterpreted: classes, braces, `\`, and `**` beside other characters. A
/// text that is not a plain relative path is refused too: it begins with `/`, or has empty, `.` or `..` segments. The
/// caller resolves those first.
///
/// A pattern has at most 1,024 bytes, 64 segments, 255 characters in a segment and 8 `*` in a segment.
///
/// ```
/// use blackboard::file::PathPattern;
///
/// let sources = PathPattern::parse("src/**/*.rs")?;
/// assert!(sources.matches("src/lib.rs"));
/// assert!(sources.matches("src/store/sqlite/open.rs"));
/// assert!(sources.overlaps(&PathPattern::parse("src/store/")?));
/// assert!(!sources.overlaps(&PathPattern::parse("src/*.toml")?));
/// # Ok::<(), blackboard::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct PathPattern {
    text: String,
    segments: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    /// `**`: any number of segments. Never the last one: at the end of a pattern, a segment `*` follows.
    AnyDepth,
    /// One segment. At least one name matches it.
    Name(Vec<Token>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Literal(char),
    AnyCharacter,
    /// Made by [`names_overlap`] alone.
    AnyCharacterButDot,
    AnyText,
}

/// How many comparisons of characters take as long as the beginning of a comparison of two segments.
const STEPS_OF_A_SEGMENT: u64 = 10;

/// Counts the comparisons that [`PathPattern::overlaps`] makes, so that a caller can limit the work for many patterns.
#[derive(Debug, Default)]
pub(super) struct Steps(Cell<u64>);

impl Steps {
    pub(super) fn count(&self) -> u64 {
        self.0.get()
    }

    fn add(&self, steps: u64) {
        self.0.set(self.0.get() + steps);
    }
}

impl PathPattern {
    /// Checks a pattern.
    pub fn parse(text: &str) -> Result<PathPattern> {
        let pattern = PathPattern::parse_stored(text)?;
        check_visible(text)?;
        check_bounds(&pattern)?;
        Ok(pattern)
    }

    /// Parses a pattern that was accepted when it was stored. Earlier versions allowed more segments, wildcards and
    /// invisible characters.
    pub(crate) fn parse_stored(text: &str) -> Result<PathPattern> {
        check_characters(text)?;
        let with_depth = if text.ends_with('/') { format!("{text}**") } else { text.to_owned() };
        let mut names: Vec<&str> = with_depth.split('/').collect();
        names.iter().try_for_each(|name| check_segment(name, text))?;
        // A repeated `**` adds nothing, and one pattern should have one text.
        names.dedup_by(|second, first| *second == "**" && *first == "**");

        let text = names.join("/");
        if text.len() > MAX_BYTES {
            return refuse(
                format!(
                    "the pattern has {} bytes; {MAX_BYTES} are allowed: \"{}\"",
                    text.len(),
                    shown(&text)
                ),
                "reserve a directory above, such as \"src/**\"",
            );
        }
        let mut segments: Vec<Segment> = names.into_iter().map(Segment::of).collect();
        if segments.last() == Some(&Segment::AnyDepth) {
            segments.push(Segment::of("*"));
        }
        Ok(PathPattern { text, segments })
    }

    /// The pattern, with `**` in place of a `/` at the end and without a `**` directly behind another.
    ///
    /// ```
    /// use blackboard::file::PathPattern;
    ///
    /// assert_eq!(PathPattern::parse("src/**/")?.as_str(), "src/**");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the pattern matches this path. It never matches a text that is not a plain relative path.
    ///
    /// ```
    /// use blackboard::file::PathPattern;
    ///
    /// let pattern = PathPattern::parse("docs/*.md")?;
    /// assert!(pattern.matches("docs/cli.md"));
    /// assert!(!pattern.matches("docs/decisions/cli.md"));
    /// assert!(!pattern.matches("docs/../docs/cli.md"));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn matches(&self, path: &str) -> bool {
        let names = path.split('/');
        names.clone().all(|name| !matches!(name, "" | "." | ".."))
            && wildcard::matches(
                &self.segments,
                |segment| *segment == Segment::AnyDepth,
                names,
                Segment::fits,
            )
    }

    /// Whether a path, existing or not, can match both patterns.
    ///
    /// If both patterns have wildcards, the time grows with the sum of their lengths; otherwise with the product at most.
    ///
    /// ```
    /// use blackboard::file::PathPattern;
    ///
    /// let tests = PathPattern::parse("**/tests/*")?;
    /// assert!(tests.overlaps(&PathPattern::parse("crates/*/tests/cli.rs")?));
    /// assert!(!tests.overlaps(&PathPattern::parse("src/*.rs")?));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn overlaps(&self, other: &PathPattern) -> bool {
        self.overlaps_counted(other, &Steps::default())
    }

    /// Whether a reservation of these files is about this path: the pattern matches it, or one of them is a directory of
    /// the other. A path may become a directory, so one without wildcards also means everything below it.
    ///
    /// ```
    /// use blackboard::file::PathPattern;
    ///
    /// let library = PathPattern::parse("lib")?;
    /// assert!(library.covers("lib") && library.covers("lib/a.rs") && !library.covers("library"));
    /// assert!(PathPattern::parse("lib/**")?.covers("lib"));
    /// assert!(!PathPattern::parse("**/*.md")?.covers("lib"));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn covers(&self, path: &str) -> bool {
        let is_path = path.split('/').all(|name| !matches!(name, "" | "." | ".."));
        is_path
            && (self.matches(path) || is_directory_of(&self.text, path) || is_directory_of(path, &self.text))
    }

    /// Whether two sessions cannot reserve both: the patterns overlap, or one is a path without wildcards with which
    /// the other begins.
    ///
    /// ```
    /// use blackboard::file::PathPattern;
    ///
    /// let library = PathPattern::parse("lib")?;
    /// assert!(library.conflicts_with(&PathPattern::parse("lib/*.rs")?));
    /// assert!(!library.conflicts_with(&PathPattern::parse("**/*.rs")?));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn conflicts_with(&self, other: &PathPattern) -> bool {
        self.conflicts_counted(other, &Steps::default())
    }

    /// The same, and adds the number of comparisons to `steps`.
    pub(super) fn conflicts_counted(&self, other: &PathPattern, steps: &Steps) -> bool {
        self.overlaps_counted(other, steps)
            || is_directory_of(&self.text, &other.text)
            || is_directory_of(&other.text, &self.text)
    }

    /// Counts the comparisons of [`PathPattern::overlaps`].
    pub(super) fn overlaps_counted(&self, other: &PathPattern, steps: &Steps) -> bool {
        wildcard::overlap(
            &self.segments,
            &other.segments,
            |segment| *segment == Segment::AnyDepth,
            |ours, theirs| {
                steps.add(STEPS_OF_A_SEGMENT);
                match (ours, theirs) {
                    (Segment::Name(ours), Segment::Name(theirs)) => names_overlap(ours, theirs, steps),
                    // At least one name matches the other segment.
                    (Segment::AnyDepth, _) | (_, Segment::AnyDepth) => true,
                }
            },
        )
    }
}

impl fmt::Debug for PathPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PathPattern({:?})", self.text)
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.text)
    }
}

impl Segment {
    fn of(text: &str) -> Segment {
        match text {
            "**" => Segment::AnyDepth,
            _ => Segment::Name(
                text.chars()
                    .map(|character| match character {
                        '*' => Token::AnyText,
                        '?' => Token::AnyCharacter,
                        _ => Token::Literal(character),
                    })
                    .collect(),
            ),
        }
    }

    fn fits(&self, name: &str) -> bool {
        match self {
            Segment::AnyDepth => true,
            Segment::Name(tokens) => wildcard::matches(
                tokens,
                |token| *token == Token::AnyText,
                name.chars(),
                |token, character| *token == Token::AnyCharacter || *token == Token::Literal(character),
            ),
        }
    }
}

/// Whether a path without wildcards is above a path or pattern. A wildcard of the pattern never stands for a name of the
/// path: `**/*.md` is about no file but those that match.
fn is_directory_of(path: &str, below: &str) -> bool {
    !path.contains(['*', '?']) && below.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether a name can match both. The empty text, `.` and `..` are not names.
fn names_overlap(ours: &[Token], theirs: &[Token], steps: &Steps) -> bool {
    let overlap = |ours: &[Token], theirs: &[Token]| {
        wildcard::overlap(
            ours,
            theirs,
            |token| *token == Token::AnyText,
            |one, two| {
                steps.add(1);
                one.fits(*two)
            },
        )
    };
    let is_fixed = |tokens: &[Token]| !tokens.contains(&Token::AnyText);
    let (fixed, other) = match (is_fixed(ours), is_fixed(theirs)) {
        (true, _) => (ours, theirs),
        (false, true) => (theirs, ours),
        // There is a common text, and a common text with one more character.
        (false, false) => return overlap(ours, theirs),
    };
    if fixed.len() > "..".len() {
        return overlap(fixed, other);
    }
    // A text this short is a name if one of its characters is not a dot.
    (0..fixed.len()).any(|index| {
        let mut name = [Token::AnyCharacter; "..".len()];
        let name = &mut name[..fixed.len()];
        name.copy_from_slice(fixed);
        name[index] = match name[index] {
            Token::Literal('.') => return false,
            Token::AnyCharacter => Token::AnyCharacterButDot,
            token => token,
        };
        overlap(name, other)
    })
}

impl Token {
    /// Whether a character can match both. Neither is [`Token::AnyText`].
    fn fits(self, other: Token) -> bool {
        match (self, other) {
            (Token::Literal(one), Token::Literal(two)) => one == two,
            (Token::AnyCharacterButDot, Token::Literal('.'))
            | (Token::Literal('.'), Token::AnyCharacterButDot) => false,
            _ => true,
        }
    }
}

/// Refuses a pattern that would take long to compare with others.
fn check_bounds(pattern: &PathPattern) -> Result<()> {
    let shown = || shown(&pattern.text);
    let count = pattern.text.split('/').count();
    if count > MAX_SEGMENTS {
        return refuse(
            format!("the pattern has {count} segments; {MAX_SEGMENTS} are allowed: \"{}\"", shown()),
            "reserve a directory above, such as \"src/**\"",
        );
    }
    for name in pattern.text.split('/').filter(|name| *name != "**") {
        let (length, wildcards) = (name.chars().count(), name.matches('*').count());
        if length > MAX_SEGMENT_CHARACTERS {
            return refuse(
                format!(
                    "a segment of the pattern has {length} characters; {MAX_SEGMENT_CHARACTERS} are allowed: \"{}\"",
                    shown()
                ),
                "write the name of a file or directory, or \"*\" for any name",
            );
        }
        if wildcards > MAX_WILDCARDS {
            return refuse(
                format!(
                    "a segment of the pattern has {wildcards} wildcards \"*\"; {MAX_WILDCARDS} are allowed: \"{}\"",
                    shown()
                ),
                "reserve the directory instead, such as \"src/**\"",
            );
        }
    }
    Ok(())
}

fn check_characters(text: &str) -> Result<()> {
    const WITHOUT_MEANING: [char; 4] = ['[', ']', '{', '}'];
    if text.is_empty() {
        return refuse("the pattern is empty", "write \"**\" for every file");
    }
    if text.starts_with('/') {
        return refuse(
            format!("the pattern begins with \"/\": \"{}\"", shown(text)),
            "write it relative to the root of the repository, such as \"src/**\"",
        );
    }
    if text.contains('\\') {
        return refuse(
            format!("the pattern contains \"\\\": \"{}\"", shown(text)),
            "write \"/\" between directories; nothing can be quoted in a pattern",
        );
    }
    if let Some(bracket) = text.chars().find(|character| WITHOUT_MEANING.contains(character)) {
        return refuse(
            format!("\"{}\" contains '{bracket}', which patterns do not support", shown(text)),
            format!(
                "only *, ? and ** are special; for this file name, write \"{}\"",
                shown(&text.replace(WITHOUT_MEANING, "?"))
            ),
        );
    }
    Ok(())
}

fn check_visible(text: &str) -> Result<()> {
    if hides(text) {
        return refuse(
            format!("the pattern contains control or invisible characters: \"{}\"", shown(text)),
            "write \"?\" in the place of each of them",
        );
    }
    Ok(())
}

fn check_segment(name: &str, text: &str) -> Result<()> {
    match name {
        "" => refuse(
            format!("the pattern has nothing between two \"/\": \"{}\"", shown(text)),
            "write one \"/\" between directories",
        ),
        "." | ".." => refuse(
            format!("the pattern has a segment \"{name}\": \"{}\"", shown(text)),
            "write it relative to the root of the repository, without \".\" and \"..\"",
        ),
        "**" => Ok(()),
        _ if name.contains("**") => refuse(
            format!("the pattern has \"**\" beside other characters: \"{}\"", shown(text)),
            "write \"**/*.rs\" for all depths, \"*.rs\" for one directory",
        ),
        _ => Ok(()),
    }
}

fn refuse<T>(message: impl Into<String>, hint: impl Into<Hint>) -> Result<T> {
    Err(Refusal::new(Code::InvalidValue, message).hint(hint).into())
}

#[cfg(test)]
mod tests;
