//! What some tests need of the machine.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// What even CI may leave out, because a container has no right to it. Whatever else is left out there fails.
const LEFT_OUT_IN_CI: &[(&str, &str)] = &[
    ("a full disk", "only root may mount a file system of a fixed size"),
    ("a FUSE mount", "only root may mount a file system"),
    ("read-only media", "only root may mount a directory so that root can't write to it"),
    ("a reused PID", "only root may make a PID namespace"),
    ("another PID namespace", "only root may make a PID namespace"),
    ("EPERM", "only root may become somebody else, and the program may lie where nobody else gets"),
];

/// Whether a command works here. Where it does not, the test that needs it shows nothing, and says so.
#[track_caller]
pub fn can(what_for: &str, program: &str, arguments: &[&str]) -> bool {
    crate::limit_test();
    let ran = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let can = ran.is_ok_and(|status| status.success());
    if !can {
        skip(what_for, &format!("`{program} {}`, which does not work here", arguments.join(" ")));
    }
    can
}

/// Says that a test shows nothing because something is missing; in CI that is a failure, unless there is a reason.
#[track_caller]
pub fn skip(what_for: &str, missing: &str) {
    let reason = LEFT_OUT_IN_CI.iter().find(|(allowed, _)| *allowed == what_for);
    let in_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!in_ci || reason.is_some(), "{what_for} is not tested: it needs {missing}");
    let reason = reason.map_or(String::new(), |(_, reason)| format!(" ({reason})"));
    // Not by a macro, whose output the test harness keeps to itself when a test passes.
    let _ = writeln!(std::io::stderr(), "skipped: {what_for} needs {missing}{reason}");
}

/// Whether system calls of a child can be traced and made to fail.
#[track_caller]
pub fn can_trace(what_for: &str) -> bool {
    can(what_for, "strace", &["-qq", "-o", "/dev/null", "-e", "inject=fsync:error=EIO", "true"])
}

/// Whether a process can have a PID namespace of its own.
#[track_caller]
pub fn can_unshare(what_for: &str) -> bool {
    can(what_for, "unshare", &["--pid", "--fork", "--mount-proc", "true"])
}

/// A file system of its own, of a fixed size, gone with the value.
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
        let _ = Command::new("umount").arg(self.0).status();
    }
}
