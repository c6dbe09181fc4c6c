//! Standard input that signals its end, and lines that are not JSON.
//!
//! When the input ends, the SDK waits for calls in progress. Calls that wait for something must end then, because the
//! client is gone. The SDK ignores lines that are not JSON, and so the transport answers them (`handshake.rs`).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use serde_json::Value;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::{mpsc, watch};

/// A reader that signals the end of its input, and passes on every byte.
pub struct Input<R> {
    reader: R,
    ended: watch::Sender<bool>,
    lines: Lines,
}

/// Checks the lines that pass by.
struct Lines {
    /// The current line, up to here. `None` if it is too long, so that the SDK drops it.
    line: Option<Vec<u8>>,
    max_length: usize,
    not_json: mpsc::UnboundedSender<()>,
}

impl<R> Input<R> {
    /// Reads from `reader` and sets `ended` at its end. Each line of at most `max_length` bytes that is not JSON is
    /// reported to `not_json`.
    pub fn new(
        reader: R,
        ended: watch::Sender<bool>,
        max_length: usize,
        not_json: mpsc::UnboundedSender<()>,
    ) -> Input<R> {
        Input { reader, ended, lines: Lines { line: Some(Vec::new()), max_length, not_json } }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Input<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = ready!(Pin::new(&mut self.reader).poll_read(context, buffer));
        if outcome.is_err() || buffer.filled().len() == before {
            self.ended.send_replace(true);
        }
        self.lines.check(&buffer.filled()[before..]);
        Poll::Ready(outcome)
    }
}

impl Lines {
    fn check(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let is_complete = part.ends_with(b"\n");
            if let Some(line) = &mut self.line {
                if line.len() + part.len() > self.max_length {
                    self.line = None;
                } else {
                    line.extend_from_slice(part);
                }
            }
            if is_complete {
                if self.line.take().is_some_and(|line| !is_json(&line)) {
                    // If the transport is gone, there is no client to answer.
                    let _ = self.not_json.send(());
                }
                self.line = Some(Vec::new());
            }
        }
    }
}

/// Whether the SDK can parse a line. An empty line is no message, and needs no answer.
fn is_json(line: &[u8]) -> bool {
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    line.trim_ascii().is_empty() || serde_json::from_slice::<Value>(line).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count_of(chunks: &[&[u8]]) -> usize {
        let (not_json, mut reported) = mpsc::unbounded_channel();
        let mut lines = Lines { line: Some(Vec::new()), max_length: 20, not_json };
        for chunk in chunks {
            lines.check(chunk);
        }
        std::iter::from_fn(|| reported.try_recv().ok()).count()
    }

    #[test]
    fn each_complete_line_that_is_not_json_is_reported_once() {
        testkit::limit_test();
        for (chunks, expected) in [
            (&[&b"{}\n[1]\r\n \n\n\"x\"\n"[..]][..], 0),
            (&[b"{\n"], 1),
            (&[b"no\n{}\nno\n"], 2),
            (&[b"{\"a\"", b":", b"1}\n"], 0),
            (&[b"{\"a\"", b":", b"\n", b"1}\n"], 2),
            (&[b"\xff\n"], 1),
            (&["\u{feff}{}\n".as_bytes()], 0),
            // Incomplete, and therefore not a message.
            (&[b"no"], 0),
            // Too long: the SDK drops it, and the next line counts again.
            (&[b"xxxxxxxxxxxxxxx", b"xxxxxxxxxxxxxxx\nno\n"], 1),
        ] {
            assert_eq!(count_of(chunks), expected, "{chunks:?}");
        }
    }
}
