//! The `blackboard` command: every edge of the board that a person, a script or an agent touches.
//!
//! One call goes from argv to one row of [`commands::COMMANDS`] ([`args`]), from there to the verb of the library,
//! and its answer comes back as an [`outcome::Outcome`] that [`exit`] prints and turns into an exit code.
//! Nothing below decides a rule of the board. Each edge makes bytes of values: commands in [`output`] and [`envelope`],
//! hooks in [`platforms`], [`mcp`] in `reply.rs`, [`web`] in `reply.rs` and `feed.rs`.

#![expect(
    unreachable_pub,
    reason = "a program has no public interface: `pub` means used outside of its module"
)]
#![expect(
    clippy::doc_markdown,
    reason = "the doc comments of arguments are help texts, which people read as they are"
)]

mod args;
mod child;
#[cfg(test)]
mod cli_docs;
mod commands;
mod config;
mod context;
mod demo;
mod disk;
mod envelope;
mod environment;
mod exit;
mod git;
mod help;
mod hints;
mod hooks;
mod identity;
mod location;
mod mcp;
mod open;
mod outcome;
mod output;
mod platforms;
mod redis;
mod session;
mod setup;
mod suggest;
mod tree;
mod unreadable;
mod web;
mod zone;

use std::ffi::OsString;
use std::process::ExitCode;

use args::{Globals, Invocation};
use clap::{ArgMatches, FromArgMatches};
use commands::hook::Hook;
use commands::{Command, Run};
use context::Context;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some(hook) = Hook::of_platform(&arguments) {
        return hooks::deadline::always_exit_zero(|| answer(hook));
    }
    let invocation = args::find(&arguments);
    if invocation.path() == "hook" {
        return hooks::deadline::always_exit_zero(|| call(invocation, &arguments));
    }
    call(invocation, &arguments)
}

fn call(invocation: Invocation, arguments: &[OsString]) -> ExitCode {
    let parsed = match invocation {
        Invocation::Version => return exit::version(),
        Invocation::Help(_) if args::asks_for_json(arguments) => return exit::help_in_json(),
        Invocation::Help(topic) => return topic.print(),
        Invocation::NoCommand => return help::missing_command(),
        invocation => parse(invocation),
    };
    match parsed.and_then(run) {
        Ok(code) => code,
        Err(error) => {
            // clap repeats the words that it did not understand, and they may come from anywhere.
            let arguments = args::repeatable(arguments);
            let invocation = args::find(&arguments);
            let path = invocation.path();
            let error = parse(invocation).err().unwrap_or(error);
            exit::usage(&error, path, &arguments)
        }
    }
}

fn parse(invocation: Invocation) -> Result<(&'static Command, ArgMatches), clap::Error> {
    match invocation {
        Invocation::Leaf { leaf, arguments } => leaf.parse(&arguments).map(|matches| (leaf.command, matches)),
        Invocation::Tree(arguments) => tree::parse(&arguments),
        // These are answered before anything is parsed.
        Invocation::Version | Invocation::Help(_) | Invocation::NoCommand => tree::parse(&[]),
    }
}

/// Answers a hook that has no options.
fn answer(hook: Hook) -> ExitCode {
    let context = Context::new(Globals::default());
    let code = exit::finish(hook.run(&context), &context);
    std::mem::forget(context);
    code
}

fn run((command, mut matches): (&Command, ArgMatches)) -> Result<ExitCode, clap::Error> {
    let context = Context::new(Globals::from_arg_matches_mut(&mut matches)?);
    let outcome = command.run(&mut matches, &context)?;
    let code = exit::finish(outcome, &context);
    // The kernel closes the board faster than we could, and to the same effect: nothing is left to write.
    std::mem::forget(context);
    Ok(code)
}
