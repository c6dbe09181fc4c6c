//! A program that hangs until it is ended, and a call that is interrupted while it waits for that program.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use testkit::process::RunToEnd as _;
use testkit::processes::signal;
use testkit::write_program;

use crate::scratch::{Output, Scratch};

/// A program that holds a pipe open as long as it, or a child of it, runs.
pub struct HangingProgram {
    pipe: PathBuf,
    /// Its directory, for the path.
    pub directory: PathBuf,
}

impl HangingProgram {
    /// A program of this name.
    pub fn new(scratch: &Scratch, name: &str) -> HangingProgram {
        let directory = scratch.path().join("hanging");
        std::fs::create_dir(&directory).unwrap();
        let pipe = directory.join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).run_to_end().status.success());
        let script = format!("#!/bin/sh\nexec 9> '{}'\necho ready >&9\nexec sleep 1000\n", pipe.display());
        write_program(&directory.join(name), &script);
        HangingProgram { pipe, directory }
    }

    /// Starts a call, sends it a signal once the program runs, and returns how it ends after the program has ended.
    #[track_caller]
    pub fn interrupt(&self, call: &mut Command, sent: Signal) -> Output {
        let call = call.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut pipe = BufReader::new(File::open(&self.pipe).unwrap());
        pipe.read_line(&mut String::new()).unwrap();
        signal(call.id(), sent);
        let output = Output::of(call.run_to_end());
        // The end of the pipe: no process holds it any more.
        pipe.read_to_end(&mut Vec::new()).unwrap();
        output
    }
}
