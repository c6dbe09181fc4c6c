//! [`Glob`]: a pattern of keys.

use crate::wildcard;

/// A pattern of keys, with the wildcards of Python's `fnmatch.fnmatchcase`: `*` matches any text, colons and line
/// breaks included, `?` one character, `[ab-d]` one of these, `[!ab-d]` any other one. A `[` that is not closed
/// matches itself. Only a class can quote a wildcard: `[*]`.
///
/// A match takes at most as many steps as the lengths of key and pattern, multiplied, and no stack. The length of a
/// pattern is checked before, by [`check_pattern`](super::check_pattern).
///
/// ```
/// use blackboard::entry::Glob;
///
/// let results = Glob::new("agent:*:result[!s]");
/// assert!(results.matches("agent:ivy:2:result1"));
/// assert!(!results.matches("agent:ivy:results"));
/// assert_eq!(results.literal_prefix(), "agent:");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    pattern: String,
    prefix: String,
    /// What follows the prefix; it does not begin with a literal.
    rest: Vec<Token>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Literal(char),
    AnyText,
    /// One character that is in one of the ranges, or with `negated` in none of them.
    OneOf {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Glob {
    /// Prepares a pattern. Every text is a valid pattern.
    pub fn new(pattern: &str) -> Glob {
        let mut tokens = tokens(pattern);
        let literals = tokens.iter().take_while(|token| matches!(token, Token::Literal(_))).count();
        let rest = tokens.split_off(literals);
        let prefix = tokens.iter().filter_map(|token| match token {
            Token::Literal(character) => Some(*character),
            _ => None,
        });
        Glob { pattern: pattern.to_owned(), prefix: prefix.collect(), rest }
    }

    /// The pattern, unchanged.
    pub fn as_str(&self) -> &str {
        &self.pattern
    }

    /// Whether the pattern matches the complete key.
    ///
    /// ```
    /// use blackboard::entry::Glob;
    ///
    /// assert!(Glob::new("task:?").matches("task:1"));
    /// assert!(!Glob::new("task:?").matches("task:10"));
    /// ```
    pub fn matches(&self, key: &str) -> bool {
        let Some(key) = key.strip_prefix(self.prefix.as_str()) else { return false };
        wildcard::matches(&self.rest, |token| *token == Token::AnyText, key.chars(), Token::takes)
    }

    /// The text that every matching key begins with.
    ///
    /// ```
    /// use blackboard::entry::Glob;
    ///
    /// assert_eq!(Glob::new("task:*").literal_prefix(), "task:");
    /// assert_eq!(Glob::new("*:done").literal_prefix(), "");
    /// ```
    pub fn literal_prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether exactly one key matches: the [`literal_prefix`](Glob::literal_prefix).
    ///
    /// ```
    /// use blackboard::entry::Glob;
    ///
    /// assert!(Glob::new("task:1").is_literal());
    /// assert!(!Glob::new("task:?").is_literal());
    /// ```
    pub fn is_literal(&self) -> bool {
        self.rest.is_empty()
    }

    /// Whether the pattern has a `[` that is not closed, and so matches itself.
    ///
    /// ```
    /// use blackboard::entry::Glob;
    ///
    /// assert!(Glob::new("task[1").has_unclosed_class());
    /// assert!(!Glob::new("task[1]").has_unclosed_class());
    /// ```
    pub fn has_unclosed_class(&self) -> bool {
        let characters: Vec<char> = self.pattern.chars().collect();
        let mut at = 0;
        while let Some(&character) = characters.get(at) {
            at += 1;
            if character == '[' {
                let Some(length) = class_length(&characters[at..]) else { return true };
                at += length + 1;
            }
        }
        false
    }

    /// Whether every key that begins with the literal prefix matches, or only that prefix itself.
    pub(super) fn is_prefix(&self) -> bool {
        matches!(self.rest[..], [] | [Token::AnyText])
    }
}

impl Token {
    fn takes(&self, character: char) -> bool {
        match self {
            Token::Literal(literal) => *literal == character,
            Token::AnyText => false,
            Token::OneOf { negated, ranges } => {
                ranges.iter().any(|&(first, last)| (first..=last).contains(&character)) != *negated
            }
        }
    }
}

fn tokens(pattern: &str) -> Vec<Token> {
    let characters: Vec<char> = pattern.chars().collect();
    let mut tokens = Vec::with_capacity(characters.len());
    let mut at = 0;
    while let Some(&character) = characters.get(at) {
        at += 1;
        match character {
            '*' if tokens.last() == Some(&Token::AnyText) => {}
            '*' => tokens.push(Token::AnyText),
            '?' => tokens.push(Token::OneOf { negated: true, ranges: Vec::new() }),
            '[' => match class_length(&characters[at..]) {
                Some(length) => {
                    tokens.push(class(&characters[at..at + length]));
                    at += length + 1;
                }
                None => tokens.push(Token::Literal('[')),
            },
            _ => tokens.push(Token::Literal(character)),
        }
    }
    tokens
}

/// How many characters are before the `]` that closes a class. A `]` at its very beginning is a member.
fn class_length(rest: &[char]) -> Option<usize> {
    let negation = usize::from(rest.first() == Some(&'!'));
    let first_member = negation + 1;
    rest.get(first_member..)?
        .iter()
        .position(|&character| character == ']')
        .map(|length| first_member + length)
}

/// A class from the text between its brackets.
///
/// This follows `fnmatch.translate` step by step, also for ranges that are written the wrong way round. They match
/// nothing, and the text behind them moves to their position. So `[b-a!c]` is `[!c]` there and here.
fn class(members: &[char]) -> Token {
    // The texts between the hyphens that make ranges. No such hyphen is first, last, or directly behind a range.
    let mut chunks: Vec<Vec<char>> = Vec::new();
    let mut start = 0;
    let mut search = if members.first() == Some(&'!') { 2 } else { 1 };
    while let Some(distance) =
        members.get(search..).and_then(|rest| rest.iter().position(|&character| character == '-'))
    {
        let hyphen = search + distance;
        chunks.push(members[start..hyphen].to_vec());
        start = hyphen + 1;
        search = hyphen + 3;
    }
    match chunks.last_mut() {
        Some(last) if start == members.len() => last.push('-'),
        _ => chunks.push(members[start..].to_vec()),
    }
    for index in (1..chunks.len()).rev() {
        if chunks[index - 1].last() > chunks[index].first() {
            let behind = chunks.remove(index);
            chunks[index - 1].pop();
            chunks[index - 1].extend(behind.into_iter().skip(1));
        }
    }

    // `None` is a hyphen that makes a range, unless a `!` that became first leaves it without a beginning.
    let mut joined: Vec<Option<char>> = Vec::with_capacity(members.len());
    for (index, chunk) in chunks.iter().enumerate() {
        joined.extend((index > 0).then_some(None));
        joined.extend(chunk.iter().copied().map(Some));
    }
    let negated = joined.first() == Some(&Some('!'));
    let mut rest = &joined[usize::from(negated)..];
    let mut ranges = Vec::new();
    while let [first, more @ ..] = rest {
        let first = first.unwrap_or('-');
        let (last, behind) = match more {
            [None, Some(last), behind @ ..] => (*last, behind),
            _ => (first, more),
        };
        ranges.push((first, last));
        rest = behind;
    }
    match ranges[..] {
        [(first, last)] if first == last && !negated => Token::Literal(first),
        _ => Token::OneOf { negated, ranges },
    }
}

#[cfg(test)]
mod tests;
