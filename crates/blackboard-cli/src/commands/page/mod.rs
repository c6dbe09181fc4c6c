//! Commands on pages of mapped scopes.

pub mod list;
pub mod map;
pub mod show;
pub mod unmap;

use blackboard::Board;

/// How many scopes one reading command brings up to date.
const MOST_SCOPES: usize = 8;

/// Stores the pages of these scopes, as far as one call does: readers pack in memory what is not stored. Other processes are not
/// waited for, and errors are ignored: the answer is printed already, and perhaps the board can only be read.
fn store_pages(board: &Board, scopes: &[String]) {
    for scope in scopes.iter().take(MOST_SCOPES) {
        let _ = board.pages().update(scope);
    }
}
