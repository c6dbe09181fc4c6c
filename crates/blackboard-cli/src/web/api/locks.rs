//! `/api/locks`: locks and file reservations, with their holders.

use blackboard::Result;
use blackboard::Revision;
use blackboard::file::{FileFilter, Reservation};
use blackboard::lock::Lock;
use serde::Serialize;

use super::at_one_moment;
use crate::web::reply::{Reply, written};
use crate::web::route::ApiRequest;

/// The default and the maximum number of each.
const MOST: usize = 5000;

#[derive(Serialize)]
struct Held<'a> {
    locks: &'a [Lock],
    files: &'a [Reservation],
    /// Whether one of the two lists is incomplete.
    more: bool,
    revision: Revision,
}

/// `{ok, locks, files, more, revision, timestamp}`. Parameter: `limit` (of each).
pub fn list(asked: &ApiRequest<'_>) -> Result<Reply> {
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
