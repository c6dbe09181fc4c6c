//! The responses of the API, one file per noun.

pub mod agents;
pub mod board;
pub mod entries;
pub mod events;
pub mod locks;
pub mod projects;
pub mod quota;
pub mod status;
pub mod work;

use blackboard::{Board, Result, Revision};

/// How often a read is repeated because the board changed meanwhile.
const TRIES: usize = 3;

/// The result of `read`, and its revision. If the board keeps changing, the revision is the one before the read: a
/// client that follows the event log from there misses nothing.
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
