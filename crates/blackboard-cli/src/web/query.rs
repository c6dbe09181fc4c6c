//! Decoding of paths and query strings.

use blackboard::{Code, Error, Refusal, Result, Revision};

/// The parameters of a request.
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Parses the query string. Refuses an unknown name: otherwise a mistyped filter would be ignored.
    pub fn parse(text: &str, known: &[&str]) -> Result<Query> {
        let mut parameters: Vec<(String, String)> = Vec::new();
        for part in text.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let name = decoded(&name.replace('+', " "))?;
            if !known.contains(&name.as_str()) {
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(Refusal::new(Code::Usage, "unknown parameter")
                    .hint(format!("known here: {known}"))
                    .into());
            }
            if parameters.iter().any(|(before, _)| *before == name) {
                return Err(wrong(&format!("{name} is given more than once")));
            }
            parameters.push((name, decoded(&value.replace('+', " "))?));
        }
        Ok(Query(parameters))
    }

    /// The value of a parameter; an empty value counts as missing.
    pub fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name)?;
        Some(found.1.as_str()).filter(|value| !value.is_empty())
    }

    /// The value of a required parameter.
    pub fn needed(&self, name: &str) -> Result<&str> {
        self.text(name).ok_or_else(|| wrong(&format!("{name} is missing")))
    }

    /// The `limit` parameter, at most `most`.
    pub fn limit(&self, most: usize) -> Result<Option<usize>> {
        let Some(text) = self.text("limit") else { return Ok(None) };
        let limit: usize = text.parse().map_err(|_| wrong("limit is not a number"))?;
        if limit == 0 {
            return Err(wrong("limit is at least 1"));
        }
        Ok(Some(limit.min(most)))
    }

    /// A parameter that is a revision.
    pub fn revision(&self, name: &str) -> Result<Option<Revision>> {
        self.text(name).map(revision).transpose()
    }

    /// A position in the event log. A position after the end means the end.
    pub fn position(&self, name: &str) -> Result<Option<u64>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let number = text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
        number.map(Some).ok_or_else(|| wrong("a position is a number, 0 or more"))
    }

    /// Whether a switch is on.
    pub fn is_set(&self, name: &str) -> Result<bool> {
        match self.text(name) {
            None | Some("0" | "false") => Ok(false),
            Some("1" | "true") => Ok(true),
            Some(_) => Err(wrong(&format!("{name} is 1 or 0"))),
        }
    }
}

/// Parses a revision.
pub fn revision(text: &str) -> Result<Revision> {
    let number = text.parse::<i64>().ok().filter(|number| *number >= 0);
    number.map(Revision::new).ok_or_else(|| wrong("a revision is a number, 0 or more"))
}

/// A usage error.
pub fn wrong(message: &str) -> Error {
    Refusal::new(Code::Usage, message).into()
}

/// Decodes percent-encoded text.
pub fn decoded(text: &str) -> Result<String> {
    let unreadable = || wrong("the address has an invalid % escape");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |place: usize| tail.get(place).and_then(|digit| char::from(*digit).to_digit(16));
        let (Some(high), Some(low)) = (digit(0), digit(1)) else { return Err(unreadable()) };
        bytes.push(u8::try_from(high * 16 + low).map_err(|_| unreadable())?);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).map_err(|_| unreadable())
}

/// Percent-encodes text.
pub fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            other => {
                let digit = |value: u8| char::from(b"0123456789ABCDEF"[usize::from(value)]);
                encoded.extend(['%', digit(other >> 4), digit(other & 15)]);
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_text_round_trips() {
        testkit::limit_test();
        for text in ["", "gh:owner/repo#78", "P2 2026-02-03T15:30:00.000Z a+b", "ä\n\"%"] {
            assert_eq!(decoded(&encoded(text)).unwrap(), text);
        }
        for wrong in ["%", "%4", "%zz", "%ff", "%C3"] {
            assert!(decoded(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_query_is_read_strictly() {
        testkit::limit_test();
        let query =
            Query::parse("limit=7&project=a%20b+c&all=1&after=", &["limit", "project", "all", "after"]);
        let query = query.unwrap();
        assert_eq!(query.limit(5).unwrap(), Some(5));
        assert_eq!(query.text("project"), Some("a b c"));
        assert_eq!((query.is_set("all").unwrap(), query.text("after")), (true, None));
        for wrong in ["limits=7", "limit=7&limit=8", "li%mit=7"] {
            assert!(Query::parse(wrong, &["limit"]).is_err(), "{wrong}");
        }
        for wrong in ["limit=0", "limit=-1", "limit=x", "limit=99999999999999999999"] {
            assert!(Query::parse(wrong, &["limit"]).unwrap().limit(5).is_err(), "{wrong}");
        }
        let position = |text: &str| Query::parse(text, &["position"]).unwrap().position("position");
        for (text, expected) in [("", None), ("position=0", Some(0)), ("position=007", Some(7))] {
            assert_eq!(position(text).unwrap(), expected, "{text}");
        }
        for wrong in ["position=-1", "position=%2B1", "position=1.5", "position=99999999999999999999"] {
            assert!(position(wrong).is_err(), "{wrong}");
        }
    }
}
