//! [`TxView`]: a view of the board that changes some answers of another one.

use super::{Key, Page, Prefetch, Range, Row, Tx, VersionHead};
use crate::Result;
use crate::clock::Timestamp;
use crate::entry::{EntryHead, EntryVersion};
use crate::event::Event;
use crate::revision::Revision;

/// All methods of [`Tx`], listed once: a view forwards those that it does not answer itself.
macro_rules! questions {
    ($(fn $question:ident($($name:ident: $type:ty),*) -> $answer:ty;)+) => {
        /// A view of the board that changes some answers of another one. It is a [`Tx`].
        pub(crate) trait TxView {
            /// The view that it forwards to.
            fn inner(&self) -> &dyn Tx;

            $(#[doc = concat!("See [`Tx::", stringify!($question), "`].")]
            fn $question(&self, $($name: $type),*) -> $answer {
                self.inner().$question($($name),*)
            })+
        }

        impl<V: TxView> Tx for V {
            $(fn $question(&self, $($name: $type),*) -> $answer {
                TxView::$question(self, $($name),*)
            })+
        }
    };
}

questions! {
    fn prefetch(next: &[Prefetch<'_>]) -> Result<()>;
    fn now() -> Timestamp;
    fn revision() -> Result<Revision>;
    fn get(key: &Key) -> Result<Option<Row>>;
    fn peek(key: &Key) -> Result<Option<Row>>;
    fn range(range: &Range) -> Result<Vec<Row>>;
    fn candidates(range: &Range, limit: usize) -> Result<Vec<Row>>;
    fn heads(range: &Range, limit: usize) -> Result<Vec<EntryHead>>;
    fn any(range: &Range) -> Result<bool>;
    fn keys(range: &Range, limit: usize) -> Result<Vec<Result<Key>>>;
    fn count(range: &Range) -> Result<u64>;
    fn events(page: &Page<'_>) -> Result<Vec<Event>>;
    fn version(revision: Revision) -> Result<Option<EntryVersion>>;
    fn version_heads(after: Revision, until: Revision) -> Result<Vec<VersionHead>>;
    fn count_events(after: Revision, until: Revision) -> Result<u64>;
    fn revision_back(until: Revision, count: u64) -> Result<Revision>;
    fn revision_before(moment: Timestamp) -> Result<Revision>;
    fn floor() -> Result<Revision>;
}
