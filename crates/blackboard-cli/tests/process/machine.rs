//! What some tests need of the machine.

use std::path::Path;
use std::process::{Command, Stdio};

/// Whether a command works here. Where it does not, the test that needs it says why it shows nothing.
pub fn can(what_for: &str, program: &str, arguments: &[&str]) -> bool {
    let ran = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let can = ran.is_ok_and(|status| status.success());
    if !can {
        println!("skipped: {what_for} needs `{program} {}`, which does not work here", arguments.join(" "));
    }
    can
}

/// Whether system calls of a child can be traced and made to fail.
pub fn can_trace(what_for: &str) -> bool {
    can(what_for, "strace", &["-qq", "-o", "/dev/null", "-e", "inject=fsync:error=EIO", "true"])
}

/// Whether a process can have a PID namespace of its own.
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
