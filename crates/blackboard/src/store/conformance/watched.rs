//! A store that calls a function after every read, so that a test can act meanwhile, or count.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::Board;
use crate::clock::Clock;
use crate::entry::EntryHead;
use crate::error::Result;
use crate::revision::Revision;
use crate::store::{Changes, Commit, Committed, Key, Prefetch, Range, Row, Store, Tx, TxView};

/// One read of a store.
pub(super) enum Look<'a> {
    /// Of a row.
    Row(&'a Key),
    /// Of the rows of a range.
    Rows(&'a [Row]),
    /// Of a row, for information only.
    Peek(&'a Key),
    /// Of the first rows of a range, perhaps outdated.
    Candidates(&'a [Row]),
    /// Of the first entries of a range, without their values.
    Heads,
}

type Watch = dyn Fn(Look<'_>) + Send + Sync;

/// The same board, watched.
pub(super) fn watched(
    board: Board,
    clock: Arc<dyn Clock>,
    watch: impl Fn(Look<'_>) + Send + Sync + 'static,
) -> Board {
    Board::on(Arc::new(Watched { board, watch: Box::new(watch) }), clock)
}

struct Watched {
    board: Board,
    watch: Box<Watch>,
}

impl Store for Watched {
    fn read(&self, prefetch: &[Prefetch<'_>], f: &mut dyn FnMut(&dyn Tx) -> Result<()>) -> Result<()> {
        self.board.store().read(prefetch, &mut |tx| f(&WatchedTx { tx, watch: &*self.watch }))
    }

    fn commit(
        &self,
        commit: &Commit<'_>,
        f: &mut dyn FnMut(&dyn Tx) -> Result<Changes>,
    ) -> Result<Committed> {
        self.board.store().commit(commit, &mut |tx| f(&WatchedTx { tx, watch: &*self.watch }))
    }

    fn wait(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        self.board.store().wait(after, timeout)
    }

    fn has_writer_lock(&self) -> bool {
        self.board.store().has_writer_lock()
    }

    fn size(&self) -> Result<u64> {
        self.board.store().size()
    }
}

struct WatchedTx<'a> {
    tx: &'a dyn Tx,
    watch: &'a Watch,
}

impl TxView for WatchedTx<'_> {
    fn inner(&self) -> &dyn Tx {
        self.tx
    }

    fn get(&self, key: &Key) -> Result<Option<Row>> {
        let row = self.tx.get(key);
        (self.watch)(Look::Row(key));
        row
    }

    fn peek(&self, key: &Key) -> Result<Option<Row>> {
        let row = self.tx.peek(key);
        (self.watch)(Look::Peek(key));
        row
    }

    fn range(&self, range: &Range) -> Result<Vec<Row>> {
        let rows = self.tx.range(range)?;
        (self.watch)(Look::Rows(&rows));
        Ok(rows)
    }

    fn candidates(&self, range: &Range, limit: usize) -> Result<Vec<Row>> {
        let rows = self.tx.candidates(range, limit)?;
        (self.watch)(Look::Candidates(&rows));
        Ok(rows)
    }

    fn heads(&self, range: &Range, limit: usize) -> Result<Vec<EntryHead>> {
        let heads = self.tx.heads(range, limit)?;
        (self.watch)(Look::Heads);
        Ok(heads)
    }
}

/// Counts the entries that are read with their values, on a watched board.
pub(super) struct ValuesRead {
    pub(super) board: Board,
    count: Arc<AtomicUsize>,
}

impl ValuesRead {
    pub(super) fn on(board: Board, clock: Arc<dyn Clock>) -> ValuesRead {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        let board = watched(board, clock, move |look| {
            let values = match look {
                Look::Row(Key::Entry(..)) | Look::Peek(Key::Entry(..)) => 1,
                Look::Row(_) | Look::Peek(_) | Look::Heads => 0,
                Look::Rows(rows) | Look::Candidates(rows) => {
                    rows.iter().filter(|row| matches!(row, Row::Entry(_))).count()
                }
            };
            counted.fetch_add(values, Ordering::Relaxed);
        });
        ValuesRead { board, count }
    }

    /// How many were read since the last call.
    pub(super) fn take(&self) -> usize {
        self.count.swap(0, Ordering::Relaxed)
    }
}
