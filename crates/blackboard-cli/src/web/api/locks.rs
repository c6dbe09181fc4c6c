//! `/api/locks`: who holds which lock, and works on which files.

use blackboard::Result;
use blackboard::Revision;
use blackboard::file::{FileFilter, Reservation};
use blackboard::lock::Lock;
use serde::Serialize;

use super::at_one_moment;
use crate::web::reply::{Reply, written};
use crate::web::route::Asked;

/// The maximum of each, which is the default.
const MOST: usize = 5000;

#[derive(Serialize)]
struct Held<'a> {
    locks: &'a [Lock],
    files: &'a [Reservation],
    /// Whether there are more of one of them.
    more: bool,
    revision: Revision,
}

/// `{ok, locks, files, more, revision, timestamp}`. `limit` (of each)
pub fn list(asked: &Asked<'_>) -> Result<Reply> {
    let limit = asked.query(&["limit"])?.limit(MOST)?.unwrap_or(MOST);
    let ((locks, files), revision) = at_one_moment(asked.board, || {
        Ok((asked.board.locks().list()?, asked.board.files().list(&FileFilter::default())?))
    })?;
    let held = Held {
        locks: &locks[..locks.len().min(limit)],
        files: &files[..files.len().min(limit)],
        more: locks.len() > limit || files.len() > limit,
        revision,
    };
    Ok(written(revision, |answer| answer.object(&held)))
}
