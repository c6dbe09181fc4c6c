//! The protocol of the server, RESP2: requests as bytes, and replies from a source of bytes.
//!
//! A reply is untrusted input. Its depth, its size and the length of each line are limited, and nothing is allocated
//! before the bytes have arrived.

use std::io::{self, ErrorKind};

/// How deep a reply may be nested. Our replies have at most four levels.
const MAX_DEPTH: usize = 16;

/// The largest reply to one request.
const MAX_REPLY: usize = 1 << 30;

/// The longest line: a status, an error or a number.
const MAX_LINE: usize = 64 << 10;

/// The most that is allocated for elements before they have arrived.
const MAX_RESERVED: usize = 1024;

/// How much is read at once.
const READ_SIZE: usize = 16 << 10;

/// The largest buffer that is kept for the next reply.
const MAX_KEPT: usize = 4 * READ_SIZE;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Nil,
    Integer(i64),
    Bytes(Vec<u8>),
    Status(String),
    /// An error of the server: its code, a space, and text for humans.
    Error(String),
    List(Vec<Reply>),
}

/// Commands to send at once. One of them may contain a password, so they are never printed.
#[derive(Clone, Default)]
pub(super) struct Request {
    bytes: Vec<u8>,
    commands: usize,
}

impl Request {
    /// Adds a command.
    pub(super) fn command(&mut self, arguments: &[&[u8]]) -> &mut Request {
        self.begin(arguments.len());
        for argument in arguments {
            self.argument(argument);
        }
        self
    }

    /// Adds a command whose arguments follow one by one.
    pub(super) fn begin(&mut self, arguments: usize) {
        self.commands += 1;
        self.bytes.extend(format!("*{arguments}\r\n").bytes());
    }

    /// Adds the next argument of the command.
    pub(super) fn argument(&mut self, argument: &[u8]) {
        self.bytes.extend(format!("${}\r\n", argument.len()).bytes());
        self.bytes.extend(argument);
        self.bytes.extend(b"\r\n");
    }

    /// The same commands for a server to which a cluster moves the board: `ASKING` precedes each command, and each
    /// transaction as a whole. Also returns which of the replies are those of `ASKING`.
    pub(super) fn asking(&self) -> (Request, Vec<bool>) {
        let (mut asking, mut is_added, mut in_transaction) = (Request::default(), Vec::new(), false);
        let mut rest = &self.bytes[..];
        while let Some((command, name, after)) = split_command(rest) {
            if !in_transaction {
                asking.command(&[b"ASKING"]);
                is_added.push(true);
            }
            in_transaction = match name {
                b"MULTI" => true,
                b"EXEC" => false,
                _ => in_transaction,
            };
            asking.commands += 1;
            asking.bytes.extend(command);
            is_added.push(false);
            rest = after;
        }
        (asking, is_added)
    }

    /// What is sent.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many replies it gets.
    pub(super) fn commands(&self) -> usize {
        self.commands
    }
}

/// The first command of a request, its name, and what follows it.
fn split_command(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let header = |at: usize| -> Option<(usize, usize)> {
        let line = bytes.get(at + 1..)?;
        let length = line.iter().position(|byte| *byte == b'\r')?;
        let number = std::str::from_utf8(&line[..length]).ok()?.parse().ok()?;
        Some((number, at + 1 + length + 2))
    };
    let (arguments, mut at) = header(0)?;
    let mut name = &bytes[..0];
    for argument in 0..arguments {
        let (length, start) = header(at)?;
        if argument == 0 {
            name = bytes.get(start..start + length)?;
        }
        at = start + length + 2;
    }
    Some((bytes.get(..at)?, name, &bytes[at..]))
}

/// Reads replies from a source. What a source sends beyond the last reply stays for the next one.
#[derive(Debug)]
pub(super) struct ReplyReader {
    /// It is initialized once, and not before each read.
    buffer: Vec<u8>,
    /// How much of the buffer has arrived.
    filled: usize,
    /// How much of that was parsed.
    parsed: usize,
    /// How many bytes the current reply may still have, as it arrives and with what each element needs in memory.
    left: usize,
    /// How many it may have.
    most: usize,
}

impl Default for ReplyReader {
    fn default() -> ReplyReader {
        ReplyReader { buffer: Vec::new(), filled: 0, parsed: 0, left: 0, most: MAX_REPLY }
    }
}

/// Reads the next bytes. Zero bytes mean the end.
type Fill<'a> = dyn FnMut(&mut [u8]) -> io::Result<usize> + 'a;

impl ReplyReader {
    /// The next reply.
    pub(super) fn read(&mut self, fill: &mut Fill<'_>) -> io::Result<Reply> {
        self.left = self.most;
        let reply = self.value(fill, 0)?;
        self.discard_parsed();
        if self.filled == 0 && self.buffer.len() > MAX_KEPT {
            self.buffer = Vec::new();
        }
        Ok(reply)
    }

    fn discard_parsed(&mut self) {
        self.buffer.copy_within(self.parsed..self.filled, 0);
        (self.filled, self.parsed) = (self.filled - self.parsed, 0);
    }

    /// Reads the first bytes of the next reply, unless they are there.
    pub(super) fn begin(&mut self, fill: &mut Fill<'_>) -> io::Result<()> {
        if self.is_empty() { self.fill(fill) } else { Ok(()) }
    }

    /// Whether bytes remain that no request has asked for.
    pub(super) fn is_empty(&self) -> bool {
        self.filled == 0
    }

    fn value(&mut self, fill: &mut Fill<'_>, depth: usize) -> io::Result<Reply> {
        // An element of a few bytes needs more in memory.
        self.charge(size_of::<Reply>())?;
        let line = self.line(fill)?;
        let (kind, text) = line.split_at_checked(1).ok_or_else(|| odd("an empty line"))?;
        match kind {
            "+" => Ok(Reply::Status(text.to_owned())),
            "-" => Ok(Reply::Error(text.to_owned())),
            ":" => Ok(Reply::Integer(number(text)?)),
            "$" => match usize::try_from(number(text)?) {
                Ok(length) => Ok(Reply::Bytes(self.bytes(fill, length)?)),
                Err(_) => Ok(Reply::Nil),
            },
            "*" if depth >= MAX_DEPTH => Err(odd("a reply that is nested too deep")),
            "*" => match usize::try_from(number(text)?) {
                Ok(length) => {
                    let mut list = Vec::with_capacity(length.min(MAX_RESERVED));
                    for _ in 0..length {
                        list.push(self.value(fill, depth + 1)?);
                    }
                    Ok(Reply::List(list))
                }
                Err(_) => Ok(Reply::Nil),
            },
            _ => Err(odd("a reply of an unknown type")),
        }
    }

    fn line(&mut self, fill: &mut Fill<'_>) -> io::Result<String> {
        let mut searched = 0;
        loop {
            let rest = &self.buffer[self.parsed..self.filled];
            if let Some(at) = rest[searched..].iter().position(|byte| *byte == b'\n') {
                let end = searched + at;
                let line = rest[..end].strip_suffix(b"\r").ok_or_else(|| odd("a line without its end"))?;
                let line = String::from_utf8_lossy(line).into_owned();
                self.advance(end + 1)?;
                return Ok(line);
            }
            searched = rest.len();
            if searched > MAX_LINE {
                return Err(odd("a line that is too long"));
            }
            self.fill(fill)?;
        }
    }

    fn bytes(&mut self, fill: &mut Fill<'_>, length: usize) -> io::Result<Vec<u8>> {
        if length > self.left {
            return Err(odd("a reply that is too large"));
        }
        while self.filled - self.parsed < length + 2 {
            self.fill(fill)?;
        }
        let start = self.parsed;
        if &self.buffer[start + length..start + length + 2] != b"\r\n" {
            return Err(odd("a value without its end"));
        }
        let bytes = self.buffer[start..start + length].to_vec();
        self.advance(length + 2)?;
        Ok(bytes)
    }

    fn advance(&mut self, count: usize) -> io::Result<()> {
        self.charge(count)?;
        self.parsed += count;
        Ok(())
    }

    fn charge(&mut self, count: usize) -> io::Result<()> {
        self.left = self.left.checked_sub(count).ok_or_else(|| odd("a reply that is too large"))?;
        Ok(())
    }

    fn fill(&mut self, fill: &mut Fill<'_>) -> io::Result<()> {
        // Parsed bytes go first, so that a large reply does not need its size twice.
        if self.parsed > READ_SIZE {
            self.discard_parsed();
        }
        // A large value is read in larger parts, but never in more than what has already arrived.
        let end = self.filled + self.filled.clamp(READ_SIZE, 1 << 20);
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        match fill(&mut self.buffer[self.filled..end])? {
            0 => Err(io::Error::new(ErrorKind::UnexpectedEof, "the server closed the connection")),
            count => {
                self.filled += count;
                Ok(())
            }
        }
    }
}

fn number(text: &str) -> io::Result<i64> {
    text.parse().map_err(|_| odd("a number that cannot be read"))
}

fn odd(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the server sent {what}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads replies that arrive in parts of this size.
    fn read_in_parts(bytes: &[u8], size: usize, replies: usize) -> io::Result<Vec<Reply>> {
        let (mut reader, mut at) = (ReplyReader::default(), 0);
        let mut fill = |buffer: &mut [u8]| {
            let count = size.min(buffer.len()).min(bytes.len() - at);
            buffer[..count].copy_from_slice(&bytes[at..at + count]);
            at += count;
            Ok(count)
        };
        (0..replies).map(|_| reader.read(&mut fill)).collect()
    }

    #[test]
    fn each_command_and_each_transaction_is_announced_once() {
        let mut request = Request::default();
        request.command(&[b"HGET", b"key", b"*1\r\n$4\r\nEXEC"]).command(&[b"MULTI"]).command(&[b"TIME"]);
        request.command(&[b"EXEC"]).command(&[b"PING"]);
        let (asking, is_added) = request.asking();
        let mut expected = Request::default();
        expected.command(&[b"ASKING"]).command(&[b"HGET", b"key", b"*1\r\n$4\r\nEXEC"]);
        expected.command(&[b"ASKING"]).command(&[b"MULTI"]).command(&[b"TIME"]).command(&[b"EXEC"]);
        expected.command(&[b"ASKING"]).command(&[b"PING"]);
        assert_eq!((asking.bytes(), asking.commands()), (expected.bytes(), expected.commands()));
        assert_eq!(is_added, [true, false, true, false, false, false, true, false]);
    }

    #[test]
    fn replies_are_equal_in_whatever_parts_they_arrive() {
        testkit::limit_test();
        let bytes = b"*3\r\n$4\r\na\r\n\0\r\n:-7\r\n*-1\r\n+OK\r\n-ERR no\r\n$-1\r\n$0\r\n\r\n";
        let expected = [
            Reply::List(vec![Reply::Bytes(b"a\r\n\0".to_vec()), Reply::Integer(-7), Reply::Nil]),
            Reply::Status("OK".to_owned()),
            Reply::Error("ERR no".to_owned()),
            Reply::Nil,
            Reply::Bytes(Vec::new()),
        ];
        for size in [1, 2, 3, 1000] {
            assert_eq!(read_in_parts(bytes, size, 5).unwrap(), expected, "parts of {size}");
        }
    }

    #[test]
    fn a_reply_that_no_server_sends_is_refused() {
        testkit::limit_test();
        let nested = "*1\r\n".repeat(40);
        let long = format!("+{}", "a".repeat(100_000));
        for (bytes, kind) in [
            ("", ErrorKind::UnexpectedEof),
            ("$5\r\nab", ErrorKind::UnexpectedEof),
            ("*1000000000000\r\n", ErrorKind::UnexpectedEof),
            ("$1000000000000\r\n", ErrorKind::InvalidData),
            ("\r\n", ErrorKind::InvalidData),
            ("+OK\n", ErrorKind::InvalidData),
            (":seven\r\n", ErrorKind::InvalidData),
            ("$2\r\nabcd", ErrorKind::InvalidData),
            ("HTTP/1.1 400 Bad Request\r\n", ErrorKind::InvalidData),
            (&nested, ErrorKind::InvalidData),
            (&long, ErrorKind::InvalidData),
        ] {
            let error = read_in_parts(bytes.as_bytes(), 1000, 1).unwrap_err();
            assert_eq!(error.kind(), kind, "{:?}", &bytes[..bytes.len().min(30)]);
        }
    }

    #[test]
    fn elements_count_with_what_they_need_in_memory() {
        testkit::limit_test();
        let numbers = |count: usize| format!("*{count}\r\n") + &":0\r\n".repeat(count);
        assert_eq!(read_all(numbers(20).as_bytes(), 1000).len(), 1);
        assert!(
            read_all(numbers(MOST / 5).as_bytes(), 1000).is_empty(),
            "only its bytes are below the limit"
        );
    }

    /// About the memory of a reply.
    fn memory(reply: &Reply) -> usize {
        size_of::<Reply>()
            + match reply {
                Reply::Nil | Reply::Integer(_) => 0,
                Reply::Bytes(bytes) => bytes.len(),
                Reply::Status(text) | Reply::Error(text) => text.len(),
                Reply::List(list) => list.iter().map(memory).sum(),
            }
    }

    fn encode(reply: &Reply, out: &mut Vec<u8>) {
        match reply {
            Reply::Nil => out.extend(b"$-1\r\n"),
            Reply::Integer(number) => out.extend(format!(":{number}\r\n").bytes()),
            Reply::Bytes(bytes) => {
                out.extend(format!("${}\r\n", bytes.len()).bytes());
                out.extend(bytes);
                out.extend(b"\r\n");
            }
            Reply::Status(text) => out.extend(format!("+{text}\r\n").bytes()),
            Reply::Error(text) => out.extend(format!("-{text}\r\n").bytes()),
            Reply::List(list) => {
                out.extend(format!("*{}\r\n", list.len()).bytes());
                for reply in list {
                    encode(reply, out);
                }
            }
        }
    }

    fn replies() -> impl Strategy<Value = Reply> {
        let leaf = prop_oneof![
            Just(Reply::Nil),
            any::<i64>().prop_map(Reply::Integer),
            prop::collection::vec(any::<u8>(), 0..64).prop_map(Reply::Bytes),
            "[ -~]{0,20}".prop_map(Reply::Status),
            "[ -~]{0,20}".prop_map(Reply::Error),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| prop::collection::vec(inner, 0..8).prop_map(Reply::List))
    }

    /// Text that looks like replies, with mistakes in it.
    fn noise() -> impl Strategy<Value = Vec<u8>> {
        let part = prop_oneof![
            Just(b"\r\n".to_vec()),
            "[*$:+-][0-9]{0,12}(\r\n)?".prop_map(String::into_bytes),
            prop::collection::vec(any::<u8>(), 0..8),
        ];
        prop::collection::vec(part, 0..64).prop_map(|parts| parts.concat())
    }

    const MOST: usize = 2000;

    /// Reads what it can with a small limit, and checks the memory of each reply and of the reader.
    fn read_all(bytes: &[u8], size: usize) -> Vec<Reply> {
        let mut reader = ReplyReader { most: MOST, ..ReplyReader::default() };
        let (mut at, mut found) = (0, Vec::new());
        let mut fill = |buffer: &mut [u8]| {
            let count = size.min(buffer.len()).min(bytes.len() - at);
            buffer[..count].copy_from_slice(&bytes[at..at + count]);
            at += count;
            Ok(count)
        };
        while let Ok(reply) = reader.read(&mut fill) {
            assert!(memory(&reply) <= MOST, "{reply:?}");
            found.push(reply);
        }
        // The buffer doubles, and has room for what is read next.
        let room = 2 * (MOST + MAX_LINE + 2 * READ_SIZE);
        assert!(reader.buffer.capacity() <= room, "{}", reader.buffer.capacity());
        found
    }

    proptest! {
        #[test]
        fn no_bytes_cause_a_panic_or_more_memory_than_the_limit(
            valid in prop::collection::vec(replies(), 0..4),
            noise in noise(),
            size in 1_usize..200,
        ) {
            testkit::limit_test();
            let mut bytes = Vec::new();
            for reply in &valid {
                encode(reply, &mut bytes);
            }
            bytes.extend(noise);
            read_all(&bytes, size);
        }

        #[test]
        fn every_prefix_of_replies_is_read_as_far_as_it_goes(
            valid in prop::collection::vec(replies(), 1..4),
            cut in any::<prop::sample::Index>(),
            size in 1_usize..200,
        ) {
            testkit::limit_test();
            let fits = |reply: &Reply| {
                let mut bytes = Vec::new();
                encode(reply, &mut bytes);
                bytes.len() + memory(reply) <= MOST
            };
            prop_assume!(valid.iter().all(fits));
            let mut bytes = Vec::new();
            for reply in &valid {
                encode(reply, &mut bytes);
            }
            prop_assert_eq!(&read_all(&bytes, size), &valid);
            let prefix = read_all(&bytes[..cut.index(bytes.len())], size);
            prop_assert!(prefix.len() < valid.len() && valid.starts_with(&prefix));
        }
    }

    #[test]
    fn request_has_the_length_of_each_argument() {
        let mut request = Request::default();
        request.command(&[b"GET", b"a\r\n"]).command(&[b"PING"]);
        assert_eq!(request.bytes(), b"*2\r\n$3\r\nGET\r\n$3\r\na\r\n\r\n*1\r\n$4\r\nPING\r\n");
        assert_eq!(request.commands(), 2);
    }
}
