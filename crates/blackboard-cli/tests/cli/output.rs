//! What happens to the answer on its way out.

use std::fs::File;

use crate::scratch::{Output, Scratch};

#[test]
fn a_reader_that_goes_away_ends_the_call_quietly() {
    for call in
        [&["version"][..], &["version", "--json"], &["completions", "zsh"], &["--help"], &["--version"]]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = Output::of(Scratch::new().command(call).stdout(writer).output().unwrap());
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{call:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_output_without_room_is_a_fault() {
    for call in [&["version"][..], &["version", "--json"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = Output::of(Scratch::new().command(call).stdout(full).output().unwrap());
        assert_eq!(output.code, 1);
        assert!(output.stderr.starts_with("error: the answer could not be written"), "{output:?}");
    }
}

#[test]
fn colours_are_for_terminals_or_for_those_who_insist() {
    let scratch = Scratch::new();
    let plain = scratch.run(["--help"]).success().stdout;
    assert!(!plain.contains('\u{1b}'));
    let forced = scratch.command(["--help"]).env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(forced.stdout.contains(&0x1b));
}
