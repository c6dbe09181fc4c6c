//! What some tests need from the machine.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::process::RunToEnd as _;
use crate::skip;

/// Whether a command works here. If it does not, the test that needs it is reported as skipped.
#[track_caller]
pub fn can(what_for: &str, program: &str, arguments: &[&str]) -> bool {
    crate::limit_test();
    let ran = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let can = ran.is_ok_and(|child| child.run_to_end().status.success());
    if !can {
        skip(what_for, &format!("`{program} {}`, which does not work here", arguments.join(" ")));
    }
    can
}

/// Whether system calls of a child can be traced and made to fail.
#[track_caller]
pub fn can_trace(what_for: &str) -> bool {
    can(what_for, "strace", &["-qq", "-o", "/dev/null", "-e", "inject=fsync:error=EIO", "true"])
}

/// Whether a process can have its own PID namespace.
#[track_caller]
pub fn can_unshare(what_for: &str) -> bool {
    can(what_for, "unshare", &["--pid", "--fork", "--mount-proc", "true"])
}

/// Whether this process can change the owner of files, which only root can.
#[cfg(unix)]
#[track_caller]
pub fn can_give_files_away() -> bool {
    is_root_for("files of another user")
}

/// Whether this process can run a program as another user, which only root can.
#[cfg(unix)]
#[track_caller]
pub fn can_become_another_user() -> bool {
    is_root_for("a process of another user")
}

#[cfg(unix)]
#[track_caller]
fn is_root_for(what_for: &str) -> bool {
    crate::limit_test();
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip(what_for, "root");
    }
    is_root
}

/// A mounted file system of a fixed size, unmounted when this value is dropped.
pub struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    /// Mounts it, which only root may do.
    pub fn mount(at: &'a Path, kilobytes: usize) -> Option<SmallDisk<'a>> {
        let options = format!("size={kilobytes}k,mode=0700");
        can("a full disk", "mount", &["-t", "tmpfs", "-o", &options, "tmpfs", at.to_str()?])
            .then_some(SmallDisk(at))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).run_to_end();
    }
}
