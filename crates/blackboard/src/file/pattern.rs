//! [`PathPattern`]: which files a reservation is about, and whether two reservations can be about the same file.

use std::fmt;

use crate::error::{Code, Refusal, Result};
use crate::text::{hides, shown};
use crate::wildcard;

/// The most bytes of a pattern.
const MAX_BYTES: usize = 1024;

/// A pattern of paths, relative to the root of a tree, with `/` between the segments.
///
/// `?` stands for one character and `*` for any number of them, inside a segment; `**` as a whole segment stands for
/// any number of segments, none included. At the end it stands for at least one: `src/**` is everything below `src`,
/// and not `src` itself. `src/` is another way to write that. Everything else stands for itself, and case matters.
///
/// What other programs give a meaning to is refused rather than taken for something else: classes, braces, `\`, and `**`
/// beside other characters. So is what is not a plain path: it begins with `/`, or has empty, `.` or `..` segments.
/// Whoever talks to users resolves those first.
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
    /// One segment. At least one name fits it.
    Name(Vec<Token>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Literal(char),
    AnyCharacter,
    AnyText,
}

impl PathPattern {
    /// Checks a pattern.
    pub fn parse(text: &str) -> Result<PathPattern> {
        check_characters(text)?;
        let with_depth = if text.ends_with('/') { format!("{text}**") } else { text.to_owned() };
        let mut names: Vec<&str> = with_depth.split('/').collect();
        names.iter().try_for_each(|name| check_segment(name, text))?;
        // The same segments again say nothing more, and one pattern should have one text.
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

    /// The pattern, with `**` in place of a `/` at the end and without a `**` right behind another.
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

    /// Whether the pattern is about this path. It is never about something that is not a plain relative path.
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

    /// Whether there is a path, existing or not, that both patterns are about.
    ///
    /// It takes at most as many steps as the two patterns have characters, multiplied, times a small number.
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
        let (ours, theirs) = (&self.segments, &other.segments);
        // Both walk along the same path. A place is how much of each pattern lies behind them.
        let mut places = Places::new([ours.len() + 1, theirs.len() + 1, 1]);
        places.visit([0, 0, 0]);
        while let Some([our, their, _]) = places.next() {
            match (ours.get(our), theirs.get(their)) {
                (None, None) => return true,
                // A `**` ends here, or it takes the segment of the other one, which at least one name fits. When both
                // are `**`, they need not take anything.
                (Some(Segment::AnyDepth), other) => {
                    places.visit([our + 1, their, 0]);
                    if other.is_some() {
                        places.visit([our, their + 1, 0]);
                    }
                }
                (other, Some(Segment::AnyDepth)) => {
                    places.visit([our, their + 1, 0]);
                    if other.is_some() {
                        places.visit([our + 1, their, 0]);
                    }
                }
                (Some(Segment::Name(one)), Some(Segment::Name(two))) if names_overlap(one, two) => {
                    places.visit([our + 1, their + 1, 0]);
                }
                _ => {}
            }
        }
        false
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

/// Whether some name fits both. The empty one, `.` and `..` are no names.
fn names_overlap(ours: &[Token], theirs: &[Token]) -> bool {
    // What the name is so far: as many dots as the number says and nothing else, or a name.
    const NOTHING: usize = 0;
    const A_NAME: usize = 3;

    if ours == theirs {
        return true;
    }
    let mut places = Places::new([ours.len() + 1, theirs.len() + 1, A_NAME + 1]);
    places.visit([0, 0, NOTHING]);
    while let Some([our, their, so_far]) = places.next() {
        let (one, two) = (ours.get(our).copied(), theirs.get(their).copied());
        if one.is_none() && two.is_none() && so_far == A_NAME {
            return true;
        }
        if one == Some(Token::AnyText) {
            places.visit([our + 1, their, so_far]);
        }
        if two == Some(Token::AnyText) {
            places.visit([our, their + 1, so_far]);
        }
        let (Some(one), Some(two)) = (one, two) else { continue };
        let then = match (one, two) {
            (Token::Literal(one), Token::Literal(two)) if one != two => continue,
            (Token::Literal('.'), _) | (_, Token::Literal('.')) => (so_far + 1).min(A_NAME),
            // Where any character will do, let it be a letter: it makes a name.
            _ => A_NAME,
        };
        let next = |token: Token, place: usize| if token == Token::AnyText { place } else { place + 1 };
        places.visit([next(one, our), next(two, their), then]);
    }
    false
}

/// Places on a grid that are still to be looked at, each once.
struct Places {
    size: [usize; 3],
    seen: Vec<bool>,
    open: Vec<[usize; 3]>,
}

impl Places {
    fn new(size: [usize; 3]) -> Places {
        Places { size, seen: vec![false; size.iter().product()], open: Vec::new() }
    }

    fn visit(&mut self, place: [usize; 3]) {
        let index = (place[0] * self.size[1] + place[1]) * self.size[2] + place[2];
        if !std::mem::replace(&mut self.seen[index], true) {
            self.open.push(place);
        }
    }

    fn next(&mut self) -> Option<[usize; 3]> {
        self.open.pop()
    }
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
            format!(
                "the pattern contains '{bracket}', but has neither classes nor braces: \"{}\"",
                shown(text)
            ),
            format!(
                "reserve each pattern by itself; for a file with such a name, write \"{}\"",
                shown(&text.replace(WITHOUT_MEANING, "?"))
            ),
        );
    }
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

fn refuse<T>(message: impl Into<String>, hint: impl Into<String>) -> Result<T> {
    Err(Refusal::new(Code::InvalidValue, message).hint(hint).into())
}

#[cfg(test)]
mod tests;
