use std::process::{Command, Stdio};

use crate::scratch::Scratch;
use crate::transcript;

#[test]
fn people_see_what_the_transcript_shows() {
    transcript::check("completions");
}

#[test]
fn every_shell_gets_a_script_that_knows_the_commands() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let output = Scratch::new().run(["completions", shell]).success();
        assert!(output.stdout.contains("completions"), "{shell}");
        assert!(output.stdout.contains("version"), "{shell}");
    }
}

#[test]
fn bash_accepts_its_script() {
    let scratch = Scratch::new();
    // Without the shell there is nobody to ask.
    let Ok(mut bash) = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn() else { return };
    let mut script = scratch.command(["completions", "bash"]);
    assert!(script.stdout(bash.stdin.take().unwrap()).status().unwrap().success());
    drop(script);
    assert!(bash.wait().unwrap().success());
}

#[test]
fn a_program_gets_the_script_as_a_field() {
    let json = Scratch::new().run(["completions", "fish", "--json"]).success().json();
    assert_eq!(json["shell"], "fish");
    assert!(json["script"].as_str().unwrap().contains("complete -c blackboard"));
}

#[test]
fn an_unknown_shell_is_a_mistake_that_names_the_known_ones() {
    let output = Scratch::new().run(["completions", "ksh"]);
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("bash, zsh, fish, powershell"), "{output:?}");
}
