//! Every argument that takes a session accepts the name of an agent and a short id.
//!
//! The arguments come from the help of every command: options with the value `<SESSION>`, `--session <ID>`, and a positional
//! `SESSION`. A new command is covered as soon as it has a call in `CALLS`.

use blackboard::Code;

use super::calls::CALLS;
use super::stage::{Stage, has_git};
use crate::scratch::{Output, Scratch, commands, with_options};
use testkit::process::RunToEnd as _;

testkit::on_each_engine![every_session_argument_accepts_names_and_short_ids,];

/// The name that two agents of the stage have.
const AMBIGUOUS: &str = "Twin";

/// An argument that takes a session.
#[derive(Debug, PartialEq)]
enum Argument {
    Option(String),
    Positional,
}

/// The arguments of a command that take a session.
fn session_arguments(command: &str) -> Vec<Argument> {
    let help = Scratch::new().run(command.split(' ').chain(["--help"])).success().stdout;
    let mut arguments = Vec::new();
    for line in help.lines().map(str::trim) {
        if line == "[SESSION]" || line == "<SESSION>" {
            arguments.push(Argument::Positional);
        }
        let Some((_, option)) = line.split_once("--") else { continue };
        match option.split_once(" <") {
            Some((name, "SESSION>")) => arguments.push(Argument::Option(format!("--{name}"))),
            Some(("session", "ID>")) => arguments.push(Argument::Option("--session".to_owned())),
            _ => {}
        }
    }
    arguments
}

/// The call of a command in which this argument names this session.
fn call(command: &str, argument: &Argument, session: &str) -> Vec<String> {
    let valid = CALLS.iter().find(|(path, _)| *path == command).map(|(_, arguments)| *arguments);
    let valid = valid.or_else(|| command.starts_with("guard ").then_some(&[][..]));
    let valid = valid.unwrap_or_else(|| panic!("`{command}` takes a session and has no call in CALLS"));
    let mut arguments: Vec<String> = valid.iter().map(|&word| word.to_owned()).collect();
    let takes_positional = session_arguments(command).contains(&Argument::Positional);
    if takes_positional {
        // The same session, named in the other way.
        arguments.clear();
    }
    match argument {
        Argument::Positional => arguments.push(session.to_owned()),
        Argument::Option(option) => match arguments.iter().position(|word| word == option) {
            Some(position) => session.clone_into(&mut arguments[position + 1]),
            None => arguments = with_options(arguments, [option.clone(), session.to_owned()]),
        },
    }
    command.split(' ').map(str::to_owned).chain(arguments).collect()
}

fn every_session_argument_accepts_names_and_short_ids() {
    let stage = Stage::new();
    let run = |call: &[String]| Output::of(stage.start(call, true).run_to_end());
    let mut found = 0;
    for command in commands() {
        if command.starts_with("guard ") && !has_git() {
            continue;
        }
        for argument in session_arguments(&command) {
            found += 1;
            for by_name in [true, false] {
                // The call may end the session, so each gets its own.
                let name = format!("Elm-{found}-{by_name}");
                let agent = stage.scratch.json(["agent", "register", "--name", &name]);
                let id = agent["session_id"].as_str().unwrap()[..8].to_owned();
                let call = call(&command, &argument, if by_name { &name } else { &id });
                let output = run(&call);
                for code in [Code::AgentNotFound, Code::AmbiguousSession, Code::Usage, Code::InvalidValue] {
                    let code = format!("\"code\":\"{code}\"");
                    assert!(!output.stdout.contains(&code), "{call:?}: {output:?}");
                }
            }
            // Without this, a call could be refused before it looks for the session.
            run(&call(&command, &argument, "Unknown")).refused(Code::AgentNotFound);
            let ambiguous = call(&command, &argument, AMBIGUOUS);
            let refused = run(&ambiguous).refused(Code::AmbiguousSession);
            let error = refused["error"].as_str().unwrap();
            assert!(error.starts_with("\"Twin\" matches 2 sessions: Twin ("), "{ambiguous:?}: {error}");
            assert_eq!(error.matches("), active").count(), 2, "{ambiguous:?}: {error}");
            for session in refused["sessions"].as_array().unwrap() {
                let short = &session.as_str().unwrap()[..8];
                assert!(error.contains(&format!("Twin ({short}")), "{ambiguous:?}: {error}");
            }
            let human = Output::of(stage.start(&ambiguous, false).run_to_end());
            assert_eq!(human.code, i32::from(Code::AmbiguousSession.exit_code()), "{ambiguous:?}");
            assert!(human.stderr.starts_with(&format!("error: {error}\n")), "{ambiguous:?}: {human:?}");
        }
    }
    assert!(found > 25, "the help of {found} arguments says that they take a session");
}
