//! Errors while the output is written.

use std::fs::File;
use std::process::Stdio;

use testkit::process::RunToEnd as _;

use crate::scratch::{Output, Scratch};

/// Runs the program with this as its standard output.
fn output_to(stdout: impl Into<Stdio>, call: &[&str]) -> Output {
    let scratch = Scratch::new();
    Output::of(scratch.command(call).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap().run_to_end())
}

#[test]
fn command_exits_with_0_when_its_reader_closes_the_pipe() {
    for call in
        [&["version"][..], &["version", "--json"], &["completions", "zsh"], &["--help"], &["--version"]]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = output_to(writer, call);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{call:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn output_to_a_full_device_is_an_error() {
    for call in [&["version"][..], &["version", "--json"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = output_to(full, call);
        assert_eq!(output.code, 1);
        assert!(output.stderr.starts_with("error: the answer could not be written"), "{output:?}");
    }
}

#[test]
fn colors_are_printed_on_terminals_or_on_request() {
    let scratch = Scratch::new();
    let plain = scratch.run(["--help"]).success().stdout;
    assert!(!plain.contains('\u{1b}'));
    let forced = scratch.command(["--help"]).env("CLICOLOR_FORCE", "1").run_to_end();
    assert!(forced.stdout.contains(&0x1b));
}
