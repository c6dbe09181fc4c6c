//! A place where the real program runs and finds nothing of the machine it runs on.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A directory of its own that is home, working directory and environment of every call.
pub struct Scratch {
    directory: TempDir,
}

/// How a call ended.
#[derive(Debug)]
pub struct Output {
    /// The exit code.
    pub code: i32,
    /// What it answered.
    pub stdout: String,
    /// What it said beside that.
    pub stderr: String,
}

impl Scratch {
    pub fn new() -> Scratch {
        Scratch { directory: tempfile::tempdir().unwrap() }
    }

    /// The directory; home and working directory of every call.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Runs the program to its end.
    pub fn run(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
        Output::of(self.command(arguments).output().unwrap())
    }

    /// The program as it would be run, for tests that change something about that.
    pub fn command(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_blackboard"));
        command.args(arguments).current_dir(self.path()).stdin(Stdio::null());
        command
            .env_clear()
            .env("HOME", self.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }
}

impl Output {
    /// From what the operating system returns; the text has to be UTF-8.
    pub fn of(output: std::process::Output) -> Output {
        Output {
            code: output.status.code().expect("ended by itself"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The answer as JSON: exactly one line.
    pub fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "one line of JSON, not {self:?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The same, from a call that did what it was asked to.
    #[track_caller]
    pub fn success(self) -> Output {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }
}
