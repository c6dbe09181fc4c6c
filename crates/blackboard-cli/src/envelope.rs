//! The format of all JSON output, written directly to the output: one object on one line.
//!
//! `ok` comes first and `timestamp` last; before it are the special circumstances of the call ([`Circumstances`]).
//! Objects are `{ok, …fields, timestamp}`, lists are `{ok, count, items, timestamp}`, refusals and faults are `{ok:
//! false, error, code, causes, hint, …details, timestamp}`. Commands, the web server and MCP all use this format.
//!
//! Text of the board is untrusted, and the output may go to a terminal. [`JsonWriter`] escapes the characters that move
//! the cursor, change the direction of text or are invisible. The JSON means the same.

use std::borrow::Cow;
use std::error::Error as _;
use std::io::{self, Write};

use blackboard::clock::Timestamp;
use blackboard::{Code, Error, UnreadableRow};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::hints::{self, GivenOptions};
use crate::output;

/// The JSON output of one call, while it is written.
pub struct Answer<'a> {
    out: &'a mut dyn Write,
    timestamp: Timestamp,
    circumstances: Circumstances,
    has_envelope: bool,
}

/// The special circumstances of a call. Usually there are none, and nothing is written.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Circumstances {
    /// The special state of the board.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub board: Option<BoardState>,
    /// Whether this is the home board, because the repository around the working directory has none.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub home_board: bool,
    /// The session of the environment that the call could not use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored_session: Option<String>,
    /// The rows that a list left out, because they cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableRow>,
}

/// The special state of the board of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BoardState {
    /// It does not exist, so the output is that of an empty board.
    Missing,
    /// This call has created it.
    Created,
    /// It cannot be written.
    ReadOnly,
}

/// A list whose items are written one by one, so that it is never completely in memory.
#[must_use = "a list that is not finished is not JSON"]
pub struct Items<'a> {
    out: JsonWriter<'a>,
    timestamp: Timestamp,
    circumstances: Circumstances,
    count: usize,
}

/// An error.
#[derive(Serialize)]
pub struct Failure<'a> {
    ok: bool,
    error: String,
    code: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// Its hint.
    pub hint: Option<Cow<'a, str>>,
    #[serde(flatten)]
    details: Option<&'a Map<String, Value>>,
    #[serde(flatten)]
    circumstances: Circumstances,
    timestamp: Timestamp,
}

impl<'a> Answer<'a> {
    /// An answer with this `timestamp`.
    pub fn new(out: &'a mut dyn Write, timestamp: Timestamp) -> Answer<'a> {
        Answer { out, timestamp, circumstances: Circumstances::default(), has_envelope: false }
    }

    /// Adds these circumstances.
    #[must_use]
    pub fn under(mut self, circumstances: Circumstances) -> Answer<'a> {
        self.circumstances = circumstances;
        self
    }

    /// Whether the output contained the circumstances. Bare values do not.
    pub fn has_envelope(&self) -> bool {
        self.has_envelope
    }

    /// Its timestamp.
    pub fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    /// `{ok, …fields, timestamp}`; `fields` serializes as a struct or a map without these two.
    pub fn object<T: Serialize + ?Sized>(&mut self, fields: &T) -> output::Result {
        self.report(true, fields)
    }

    /// The same for a call that reports what it could not do: then `ok` is false, as for an error.
    pub fn report<T: Serialize + ?Sized>(&mut self, ok: bool, fields: &T) -> output::Result {
        self.has_envelope = true;
        let circumstances = self.circumstances.clone();
        self.raw(&Object { ok, fields, circumstances, timestamp: self.timestamp })
    }

    /// `{ok, count, items, …more, timestamp}`
    pub fn list_with<T: Serialize, M: Serialize>(&mut self, items: &[T], more: &M) -> output::Result {
        self.has_envelope = true;
        let (count, circumstances) = (items.len(), self.circumstances.clone());
        self.raw(&List { ok: true, count, items, more, circumstances, timestamp: self.timestamp })
    }

    /// Flushes the output.
    pub fn flush(&mut self) -> output::Result {
        Ok(self.out.flush()?)
    }

    /// A list of unknown length: `count` follows the items.
    pub fn items(&mut self) -> output::Result<Items<'_>> {
        self.has_envelope = true;
        let mut out = JsonWriter::new(&mut *self.out);
        out.write_all(br#"{"ok":true,"items":["#)?;
        let circumstances = self.circumstances.clone();
        Ok(Items { out, timestamp: self.timestamp, circumstances, count: 0 })
    }

    /// Bare values, one per line, each flushed at once.
    pub fn lines<T: Serialize>(&mut self, values: &[T]) -> output::Result {
        let mut out = JsonWriter::new(&mut *self.out);
        for value in values {
            write_json(&mut out, value)?;
            out.write_all(b"\n")?;
        }
        out.flush()?;
        Ok(self.out.flush()?)
    }

    /// A bare value without the envelope. Several of them are JSON lines.
    pub fn raw<T: Serialize + ?Sized>(&mut self, value: &T) -> output::Result {
        let mut out = JsonWriter::new(&mut *self.out);
        write_json(&mut out, value)?;
        out.write_all(b"\n")?;
        Ok(out.flush()?)
    }
}

impl Items<'_> {
    /// Adds an item.
    pub fn push<T: Serialize + ?Sized>(&mut self, item: &T) -> output::Result {
        if self.count > 0 {
            self.out.write_all(b",")?;
        }
        self.count += 1;
        write_json(&mut self.out, item)
    }

    /// Ends the list with `count`, the fields of `more` and `timestamp`.
    pub fn finish<M: Serialize>(mut self, more: &M) -> output::Result {
        let mut rest = Vec::new();
        let (count, circumstances) = (self.count, self.circumstances);
        write_json(&mut rest, &Rest { count, more, circumstances, timestamp: self.timestamp })?;
        self.out.write_all(b"],")?;
        // The opening brace was written before the first item.
        self.out.write_all(&rest[1..])?;
        self.out.write_all(b"\n")?;
        Ok(self.out.flush()?)
    }
}

/// Writes JSON that is safe on a terminal.
///
/// It buffers the small pieces in which JSON is written, because passing each of them to a dynamic writer costs more
/// than the rest. No piece ends inside of a character.
pub struct JsonWriter<'a> {
    bytes: Vec<u8>,
    out: &'a mut dyn Write,
}

impl<'a> JsonWriter<'a> {
    const ENOUGH: usize = 4 * 1024;

    /// A writer to `out`, which gets the last bytes on a flush.
    pub fn new(out: &'a mut dyn Write) -> JsonWriter<'a> {
        JsonWriter { bytes: Vec::with_capacity(2 * JsonWriter::ENOUGH), out }
    }
}

impl Write for JsonWriter<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    /// Most pieces are one character of JSON: a quotation mark, a comma, a colon. Where one is written, the compiler
    /// leaves only the `push`, but this program is built for size, so it has to be told to.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "see above")]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match bytes {
            [byte] => self.bytes.push(*byte),
            bytes => self.bytes.extend_from_slice(bytes),
        }
        if self.bytes.len() >= JsonWriter::ENOUGH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        match harmless(&self.bytes) {
            Some(escaped) => self.out.write_all(escaped.as_bytes())?,
            None => self.out.write_all(&self.bytes)?,
        }
        self.bytes.clear();
        Ok(())
    }
}

/// The same JSON with invisible characters escaped; `None` if there are none. Line breaks stay: they are between
/// answers, or between the fields of one.
fn harmless(bytes: &[u8]) -> Option<String> {
    if is_plain(bytes) {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?;
    let lines = text.split_inclusive('\n').map(|line| match line.strip_suffix('\n') {
        Some(line) => (output::harmless_json(line), "\n"),
        None => (output::harmless_json(line), ""),
    });
    Some(lines.fold(String::with_capacity(bytes.len() + 16), |text, (line, end)| text + &line + end))
}

/// Whether all bytes are printable ASCII or line breaks, as in most output. Compares eight bytes at once: this program
/// is built for size, so the compiler does not vectorize it.
fn is_plain(bytes: &[u8]) -> bool {
    const EACH: u64 = u64::MAX / 0xff;
    let is_plain_byte = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n');
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().all(|word| {
        let number = u64::from_ne_bytes(*word);
        // The highest bit of a byte is set if it is not ASCII, below a space, or 0x7f.
        let below_space = number.wrapping_sub(EACH * 0x20) & !number;
        let delete = (number ^ (EACH * 0x7f)).wrapping_sub(EACH) & !(number ^ (EACH * 0x7f));
        (number | below_space | delete) & (EACH * 0x80) == 0 || word.iter().all(is_plain_byte)
    }) && rest.iter().all(is_plain_byte)
}

impl<'a> Failure<'a> {
    /// An error of the board.
    pub fn new(error: &'a Error, timestamp: Timestamp) -> Failure<'a> {
        let (message, code) = (error.to_string(), error.code().as_str());
        let causes = causes(error);
        let hint = error.hint().map(|hint| hints::as_command(hint, &GivenOptions::default()));
        let (details, circumstances) = (error.details(), Circumstances::default());
        Failure { ok: false, error: message, code, causes, hint, details, circumstances, timestamp }
    }

    /// Adds these circumstances.
    #[must_use]
    pub fn under(mut self, circumstances: Circumstances) -> Failure<'a> {
        self.circumstances = circumstances;
        self
    }

    /// A refusal that only the web server has. No command returns it.
    pub fn of_web(code: &'static str, error: String, hint: &'a str, timestamp: Timestamp) -> Failure<'a> {
        Failure {
            ok: false,
            error,
            code,
            causes: Vec::new(),
            hint: Some(hint.into()),
            details: None,
            circumstances: Circumstances::default(),
            timestamp,
        }
    }

    /// A usage error.
    pub fn usage(error: String, hint: &'a str, timestamp: Timestamp) -> Failure<'a> {
        Failure::of_web(Code::Usage.as_str(), error, hint, timestamp)
    }
}

/// The causes of a fault, nearest first.
pub fn causes(error: &Error) -> Vec<String> {
    let mut causes = Vec::new();
    let mut below = match error {
        Error::Fault(fault) => fault.source(),
        Error::Refusal(_) => None,
    };
    while let Some(cause) = below {
        causes.push(cause.to_string());
        below = cause.source();
    }
    causes
}

fn write_json<W: Write, T: Serialize + ?Sized>(out: &mut W, value: &T) -> output::Result {
    serde_json::to_writer(out, value).map_err(|error| output::Failure::Output(error.into()))
}

#[derive(Serialize)]
struct Object<'a, T: ?Sized> {
    ok: bool,
    #[serde(flatten)]
    fields: &'a T,
    #[serde(flatten)]
    circumstances: Circumstances,
    timestamp: Timestamp,
}

#[derive(Serialize)]
struct List<'a, T, M> {
    ok: bool,
    count: usize,
    items: &'a [T],
    #[serde(flatten)]
    more: &'a M,
    #[serde(flatten)]
    circumstances: Circumstances,
    timestamp: Timestamp,
}

#[derive(Serialize)]
struct Rest<'a, M> {
    count: usize,
    #[serde(flatten)]
    more: &'a M,
    #[serde(flatten)]
    circumstances: Circumstances,
    timestamp: Timestamp,
}

#[cfg(test)]
mod tests {
    use blackboard::Refusal;
    use serde_json::json;

    use super::*;

    const EPOCH: &str = r#""timestamp":"1970-01-01T00:00:00.000Z"}"#;

    fn written(write: impl FnOnce(&mut Answer<'_>) -> output::Result) -> String {
        let mut bytes = Vec::new();
        write(&mut Answer::new(&mut bytes, Timestamp::EPOCH)).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn an_object_keeps_its_fields_between_ok_and_timestamp() {
        let text = written(|answer| answer.object(&json!({"item_id": "a\nb"})));
        assert_eq!(text, format!("{{\"ok\":true,\"item_id\":\"a\\nb\",{EPOCH}\n"));
    }

    #[test]
    fn a_list_is_counted() {
        assert_eq!(
            written(|answer| answer.list_with(&[1, 2], &())),
            format!("{{\"ok\":true,\"count\":2,\"items\":[1,2],{EPOCH}\n")
        );
        let more = written(|answer| answer.list_with::<u8, _>(&[], &json!({"cursor": 7})));
        assert_eq!(more, format!("{{\"ok\":true,\"count\":0,\"items\":[],\"cursor\":7,{EPOCH}\n"));
    }

    #[test]
    fn a_streamed_list_says_the_same_as_a_known_one() {
        let more = json!({"cursor": 7});
        for items in [&[][..], &[1][..], &[1, 2, 3][..]] {
            let streamed = written(|answer| {
                let mut list = answer.items()?;
                items.iter().try_for_each(|item| list.push(item))?;
                list.finish(&more)
            });
            let known = written(|answer| answer.list_with(items, &more));
            let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            assert_eq!(parse(&streamed), parse(&known));
            assert!(streamed.ends_with(&format!("{EPOCH}\n")));
        }
    }

    #[test]
    fn every_envelope_has_what_is_special_about_the_call() {
        let missing = || Circumstances { board: Some(BoardState::Missing), ..Circumstances::default() };
        let ending = format!("\"board\":\"missing\",{EPOCH}\n");
        let writers: [fn(&mut Answer<'_>) -> output::Result; 3] = [
            |answer| answer.object(&json!({"item_id": "a"})),
            |answer| answer.list_with(&[1], &()),
            |answer| answer.items()?.finish(&()),
        ];
        for write in writers {
            let mut bytes = Vec::new();
            let mut answer = Answer::new(&mut bytes, Timestamp::EPOCH).under(missing());
            write(&mut answer).unwrap();
            assert!(answer.has_envelope());
            let text = String::from_utf8(bytes).unwrap();
            assert!(text.ends_with(&ending), "{text}");
        }
        let error = Refusal::new(Code::AgentNotFound, "none").into();
        let failure = Failure::new(&error, Timestamp::EPOCH).under(missing());
        let text = serde_json::to_string(&failure).unwrap() + "\n";
        assert!(text.ends_with(&ending), "{text}");
    }

    #[test]
    fn every_byte_is_judged_at_every_position() {
        testkit::limit_test();
        for byte in 0..=u8::MAX {
            for position in 0..17 {
                let mut bytes = [b'a'; 17];
                bytes[position] = byte;
                let expected = matches!(byte, b' '..=b'~' | b'\n');
                assert_eq!(is_plain(&bytes), expected, "{byte:#x} at {position}");
            }
        }
    }

    #[test]
    fn hidden_characters_are_escaped_and_mean_the_same() {
        testkit::limit_test();
        let hostile = "\u{1b}[2J\u{7f}\u{9b}31m\u{202e}\u{2028}\u{e0041}\u{ad} Zoë ❤\u{fe0f}";
        let expected = "\\u001b[2J\\u007f\\u009b31m\\u202e\\u2028\\udb40\\udc41\\u00ad Zoë ❤\u{fe0f}";
        let long = hostile.repeat(1000);
        let values = [json!({ hostile: [hostile] }), json!(long), json!("plain")];
        let text = written(|answer| answer.lines(&values));
        assert!(text.starts_with(&format!("{{\"{expected}\":[\"{expected}\"]}}\n")), "{text}");
        assert!(!text.contains(['\u{7f}', '\u{9b}', '\u{202e}', '\u{2028}', '\u{e0041}', '\u{ad}']));
        let read: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(read, values);
    }

    #[test]
    fn raw_values_are_json_lines() {
        let text = written(|answer| {
            answer.raw(&Value::Null)?;
            answer.raw(&["key"])?;
            answer.lines(&[1, 2])
        });
        assert_eq!(text, "null\n[\"key\"]\n1\n2\n");
    }

    #[test]
    fn a_refusal_carries_its_code_hint_and_details() {
        let error = Refusal::new(Code::AlreadyClaimed, "taken").hint("wait").detail("fence", 3).into();
        let text = serde_json::to_string(&Failure::new(&error, Timestamp::EPOCH)).unwrap();
        let expected = r#"{"ok":false,"error":"taken","code":"already_claimed","hint":"wait","fence":3,"#;
        assert_eq!(text, format!("{expected}{EPOCH}"));
    }
}
