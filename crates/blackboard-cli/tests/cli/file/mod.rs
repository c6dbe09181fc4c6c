mod check;
mod list;
mod release;
mod reserve;

use crate::scratch::Scratch;

/// A repository, which paths are relative to.
fn repository() -> Scratch {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.path().join(".git")).unwrap();
    scratch
}
