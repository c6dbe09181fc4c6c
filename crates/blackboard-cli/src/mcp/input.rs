//! Standard input that tells when it ends.
//!
//! The SDK lets calls that are under way finish before it ends; those that wait for something have to end when the
//! client is gone.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::watch;

/// A reader that says when there is nothing more to read.
pub struct Input<R> {
    reader: R,
    ended: watch::Sender<bool>,
}

impl<R> Input<R> {
    /// Reads from `reader` and says in `ended` when that has ended.
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
