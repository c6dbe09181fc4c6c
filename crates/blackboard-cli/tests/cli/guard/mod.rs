mod check;
mod install;
mod remove;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use testkit::process::RunToEnd as _;

use crate::machine::can;
use crate::scratch::{Output, Scratch};

/// A real repository without a commit, if git is installed.
#[track_caller]
fn repository() -> Option<Scratch> {
    if !can("a commit", "git", &["--version"]) {
        return None;
    }
    let scratch = Scratch::new();
    git(&scratch, "init -q -b main");
    Some(scratch)
}

/// Runs git there, which has to succeed.
#[track_caller]
fn git(scratch: &Scratch, arguments: &str) -> Output {
    Output::of(scratch.shell(&format!("git {arguments}")).run_to_end()).success()
}

/// Where the hook belongs.
fn hook(scratch: &Scratch) -> PathBuf {
    scratch.path().join(".git/hooks/pre-commit")
}

/// Writes a hook of the user.
fn write_hook(scratch: &Scratch, content: &[u8], mode: u32) {
    let hook = hook(scratch);
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, content).unwrap();
    fs::set_permissions(&hook, Permissions::from_mode(mode)).unwrap();
}

/// Everything in the directory of hooks, with modes and contents.
fn hooks(scratch: &Scratch) -> Vec<(PathBuf, u32, Vec<u8>)> {
    let below = |path: &Path| path.starts_with(scratch.path().join(".git/hooks"));
    scratch.contents().into_iter().filter(|(path, ..)| below(path)).collect()
}
