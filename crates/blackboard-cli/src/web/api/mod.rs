//! The answers of the API, one file a noun.

pub mod agents;
pub mod board;
pub mod entries;
pub mod events;
pub mod locks;
pub mod projects;
pub mod status;
pub mod work;

use blackboard::{Board, Result, Revision};

/// How often a read is made again because the board has changed under it.
const TRIES: usize = 3;

/// What `read` finds, and the revision at which that was so. On a board that changes all the time it is that of the
/// moment before: a client that follows the event log from there misses nothing.
fn at_one_moment<T>(board: &Board, read: impl Fn() -> Result<T>) -> Result<(T, Revision)> {
    let mut before = board.revision()?;
    for _ in 1..TRIES {
        let found = read()?;
        let after = board.revision()?;
        if after == before {
            return Ok((found, after));
        }
        before = after;
    }
    Ok((read()?, before))
}
