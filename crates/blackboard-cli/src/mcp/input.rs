//! Standard input that signals its end.
//!
//! When the input ends, the SDK waits for calls in progress. Calls that wait for something must end then, because the
//! client is gone.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::watch;

/// A reader that signals the end of its input.
pub struct Input<R> {
    reader: R,
    ended: watch::Sender<bool>,
}

impl<R> Input<R> {
    /// Reads from `reader`, and sets `ended` at its end.
    pub fn new(reader: R, ended: watch::Sender<bool>) -> Input<R> {
        Input { reader, ended }
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
        Poll::Ready(outcome)
    }
}
