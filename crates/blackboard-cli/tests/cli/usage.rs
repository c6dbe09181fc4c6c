//! Help, and calls that can't be understood.

use crate::scratch::Scratch;

#[test]
fn help_lists_the_commands_in_groups() {
    let scratch = Scratch::new();
    let help = scratch.run(["--help"]).success();
    assert!(
        help.stdout.contains("\nSet-up:\n  init              Create a board for this repository\n"),
        "{help:?}"
    );
    assert!(help.stdout.contains("Exit codes:"));
    assert_eq!(scratch.run(["help"]).success().stdout, help.stdout);
}

#[test]
fn a_command_explains_itself_with_examples_last() {
    let scratch = Scratch::new();
    let help = scratch.run(["completions", "--help"]).success().stdout;
    assert!(help.contains("Usage: blackboard completions [OPTIONS] <SHELL>"), "{help}");
    assert!(help.find("Global options:") < help.find("Examples:\n  blackboard completions bash"), "{help}");
    assert_eq!(scratch.run(["help", "completions"]).success().stdout, help);
    assert!(!scratch.run(["completions", "-h"]).success().stdout.contains("Examples"));
}

#[test]
fn a_call_without_a_command_is_answered_with_help_as_a_mistake() {
    let output = Scratch::new().run([""; 0]);
    assert_eq!((output.code, output.stdout.as_str()), (2, ""));
    assert!(output.stderr.contains("Usage: blackboard"), "{output:?}");
}

#[test]
fn a_mistake_is_explained_on_stderr() {
    for (call, expected) in [
        (&["versoin"][..], "'version'"),
        (&["version", "--jsno"], "'--json'"),
        (&["completions"], "<SHELL>"),
        (&["--db"], "--db <PATH>"),
        (&["version", "extra"], "Usage: blackboard version"),
    ] {
        let output = Scratch::new().run(call);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{call:?}");
        assert!(output.stderr.starts_with("error: ") && output.stderr.contains(expected), "{output:?}");
    }
}

#[test]
fn a_mistake_is_an_object_for_programs() {
    for (call, error, hint) in [
        (
            &["versoin", "--json"][..],
            "unrecognized subcommand 'versoin'",
            "a similar subcommand exists: 'version'",
        ),
        (&["--json"], "a command is missing", "run `blackboard --help`"),
        (
            &["version", "--json", "--port"],
            "unexpected argument '--port' found",
            "run `blackboard version --help`",
        ),
        (
            &["completions", "--json"],
            "the following required arguments were not provided: <SHELL>",
            "run `blackboard completions --help`",
        ),
    ] {
        let output = Scratch::new().run(call);
        assert_eq!((output.code, output.stderr.as_str()), (2, ""), "{call:?}");
        let json = output.json();
        assert_eq!(json["ok"], false);
        assert_eq!(json["code"], "usage");
        assert_eq!((json["error"].as_str(), json["hint"].as_str()), (Some(error), Some(hint)));
        assert!(json["timestamp"].is_string());
    }
}

#[cfg(unix)]
#[test]
fn bytes_that_are_no_text_are_a_mistake_and_no_crash() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let bytes = OsStr::from_bytes(b"\xff\xfe");
    for call in [&[bytes][..], &["version".as_ref(), bytes], &["completions".as_ref(), bytes]] {
        let output = Scratch::new().run(call);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{call:?}");
        assert!(output.stderr.starts_with("error: "), "{output:?}");
    }
    Scratch::new().run(["--db".as_ref(), bytes, "version".as_ref()]).success();
}

#[test]
fn whoever_takes_the_session_from_the_environment_is_told_so() {
    let scratch = Scratch::new();
    let mut command = scratch.command(["agent", "heartbeat"]);
    let output =
        crate::scratch::Output::of(command.env("BLACKBOARD_SESSION_ID", "forgotten").output().unwrap());
    assert_eq!(output.code, 3);
    assert!(output.stderr.contains("BLACKBOARD_SESSION_ID names it"), "{output:?}");
}

#[test]
fn a_wrong_value_points_to_the_help_of_its_command() {
    let output = Scratch::new().run(["work", "list", "--limit", "0", "--json"]);
    assert_eq!(output.refused(blackboard::Code::Usage)["hint"], "run `blackboard work list --help`");
}

#[test]
fn options_that_would_mean_nothing_are_refused() {
    let scratch = Scratch::new();
    for call in [
        &["work", "claim", "item", "--description", "x"][..],
        &["work", "claim", "item", "--priority", "P1"],
        &["work", "claim", "--next", "--title", "x"],
        &["work", "claim", "item", "--next"],
        &["work", "create", "item", "--id", "item", "--title", "x"],
        &["work", "list", "--all", "--status", "blocked"],
        &["agent", "heartbeat", "--milestone"],
        &["agent", "register", "--name", "x", "--shell", "--json"],
        &["agent", "register", "--name", "x", "--pid", "0"],
        &["work", "status", ""],
        &["project", "status", ""],
    ] {
        assert_eq!(scratch.run(call).code, 2, "{call:?}");
    }
}
