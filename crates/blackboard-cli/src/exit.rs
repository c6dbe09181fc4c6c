//! The end of a call: writes its output or its error, and returns the exit code.
//!
//! Errors go to stderr in human output, and to stdout as an object in JSON output. A reader that closes the pipe early
//! (`blackboard … | head -1`) has what it wanted: the call ends with 0, because its changes remain. But actions that
//! require that the reader got everything are skipped.

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use blackboard::clock::{Clock, SystemClock, Timestamp};
use blackboard::{AgeKind, Code, Error, Fault, MessageAge, Refusal, Result, UnreadableRow};
use clap::error::ErrorKind;

use crate::args;
use crate::context::{Context, note};
use crate::envelope::{self, Answer};
use crate::hints::{self, GivenOptions};
use crate::outcome::Outcome;
use crate::output::agent::FAILS_IN_A_SHELL;
use crate::output::{self, Screen, Tone, escape, time};
use crate::suggest;
use crate::unreadable::sentences;

/// Prints the result of a command.
pub fn finish(outcome: Result<Outcome>, context: &Context) -> ExitCode {
    let json = context.json();
    context.warn_of_ignored_session(outcome.as_ref().err());
    if outcome.is_err() {
        // A refused command sweeps like others, before it reports its error.
        context.sweep_if_deferred();
    }
    let mut stdout = Stdout { inner: io::stdout().lock(), used: false };
    let delivered =
        outcome.map_err(output::Failure::Board).and_then(|outcome| deliver(outcome, context, &mut stdout));
    let code = match delivered {
        Ok(code) => ExitCode::from(code),
        Err(output::Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(output::Failure::Output(error)) => {
            let fault = Fault::new(Code::Io, "the answer could not be written to standard output")
                .hint("every change was made; only the output was lost")
                .because(error);
            report(&fault.into(), context, None)
        }
        // An incomplete list can no longer become an error object, so the error goes to stderr.
        Err(output::Failure::Board(error)) => {
            let code = report(&error, context, (json && !stdout.used).then_some(&mut stdout));
            if !json && error.code() != Code::BoardNotFound {
                note_missing_board(context);
            }
            code
        }
    };
    // Also after a refusal: otherwise a caller that loses every race would never sweep.
    context.finish();
    code
}

/// Prints the result of clap: help on stdout, or a usage error.
///
/// `command` is the command of the call, if it is known: clap does not report it for every error. The arguments
/// determine whether the output is JSON.
pub fn usage(error: &clap::Error, command: &str, arguments: &[OsString]) -> ExitCode {
    if args::asks_for_shell(arguments) && error.use_stderr() {
        // An error here cannot be reported anywhere.
        let _ = writeln!(io::stdout(), "{FAILS_IN_A_SHELL}");
    }
    if error.kind() == ErrorKind::InvalidSubcommand {
        let (message, hint) = suggest::unknown_command(arguments);
        return usage_error(message, &hint, args::asks_for_json(arguments));
    }
    if args::asks_for_json(arguments) && error.kind() == ErrorKind::DisplayHelp {
        return help_in_json();
    }
    if args::asks_for_json(arguments) && error.use_stderr() {
        let (message, hint) = in_two_parts(error, command);
        return usage_error(message, &hint, true);
    }
    let _ = error.print();
    ExitCode::from(if error.use_stderr() { Code::Usage.exit_code() } else { 0 })
}

/// Prints help as JSON.
pub fn help_in_json() -> ExitCode {
    usage_error("help has no JSON form".to_owned(), "leave out --json", true)
}

/// Reports a usage error in the form of every other error.
fn usage_error(message: String, hint: &str, json: bool) -> ExitCode {
    // An error here cannot be reported; the exit code still has it.
    let _ = if json {
        let failure = envelope::Failure::usage(message, hint, SystemClock.now());
        Answer::new(&mut io::stdout().lock(), SystemClock.now()).raw(&failure)
    } else {
        let error = Refusal::new(Code::Usage, message).hint(hint.to_owned()).into();
        explain(
            &error,
            GivenOptions::default(),
            &mut Screen::of_stderr(&mut io::stderr().lock(), Timestamp::EPOCH),
        )
    };
    ExitCode::from(Code::Usage.exit_code())
}

/// Prints the version.
pub fn version() -> ExitCode {
    let _ = io::stdout().lock().write_all(concat!(env!("CARGO_PKG_VERSION"), "\n").as_bytes());
    ExitCode::SUCCESS
}

/// Large enough that a long list needs few system calls, and still small.
const BUFFER: usize = 32 * 1024;

/// Writes the complete output, and then runs the actions that wait for it. Returns the exit code of the call.
fn deliver(outcome: Outcome, context: &Context, stdout: &mut dyn Write) -> output::Result<u8> {
    let mut out = BufWriter::with_capacity(BUFFER, stdout);
    let now = SystemClock.now();
    if outcome.answer.is_about_board() {
        context.report_home_board();
    }
    // The rows that the answer itself reports as left out.
    let mut in_answer = Vec::new();
    let (written, is_told) = if context.json() {
        let circumstances = context.circumstances();
        in_answer.clone_from(&circumstances.unreadable);
        let mut answer = Answer::new(&mut out, now).under(circumstances);
        (outcome.answer.json(&mut answer), answer.has_envelope())
    } else {
        let active_agents = || context.active_agents();
        let screen = Screen::of_stdout(&mut out, now).of_call(context.given_options());
        let mut screen = screen.with_active_agents(&active_agents);
        match context.missing_board().filter(|_| outcome.answer.is_list()) {
            Some(name) => {
                let advice = how_to_create_it(context);
                (screen.line(format_args!("No board at {} yet. {}.", escape(&name), escape(&advice))), true)
            }
            None => (outcome.answer.human(&mut screen), false),
        }
    };
    if !is_told {
        if outcome.answer.needs_board() {
            note_missing_board(context);
        }
        in_answer.clear();
    }
    note_unreadable(context, &in_answer);
    let flushed = written.and_then(|()| Ok(out.flush()?));
    // Takes the buffer from its writer, which would otherwise try again to write the rest of the output.
    drop(out.into_parts());
    flushed?;
    outcome.after_flush.into_iter().for_each(|action| action());
    let exit_code = outcome.answer.exit_code().unwrap_or(outcome.exit_code);
    if outcome.answer.is_list() {
        // The process ends now. To free the rows one by one would take longer than to check all their processes.
        std::mem::forget(outcome.answer);
    }
    Ok(exit_code)
}

/// What to do about a board that does not exist. The command creates the board that the call has looked for.
fn how_to_create_it(context: &Context) -> String {
    let is_from_environment = context.db().is_none() && context.environment().database.is_some();
    let checked = if is_from_environment { "BLACKBOARD_DB" } else { "--db" };
    format!("Create one with `{}`, or check {checked}", context.given_options().command("init"))
}

/// Reports on stderr that the board does not exist, if the output itself cannot.
fn note_missing_board(context: &Context) {
    if let Some(name) = context.missing_board() {
        note(&format!("no board at {name} yet. {}", how_to_create_it(context)));
    }
}

/// Reports the rows that were left out, if the output itself does not.
fn note_unreadable(context: &Context, in_answer: &[UnreadableRow]) {
    let mut rows = context.unreadable().list();
    rows.retain(|row| !in_answer.contains(row));
    for sentence in sentences(&rows) {
        note(&sentence);
    }
}

/// Prints an error, as an object in JSON output.
fn report(error: &Error, context: &Context, program: Option<&mut Stdout<'_>>) -> ExitCode {
    // An error here cannot be reported; the exit code still has it.
    let _ = match program {
        Some(out) => {
            let now = SystemClock.now();
            let mut failure = envelope::Failure::new(error, now).under(context.circumstances());
            failure.hint = error.hint().map(|hint| hints::as_command(hint, &context.given_options()));
            Answer::new(out, now).raw(&failure)
        }
        None => explain(
            error,
            context.given_options(),
            &mut Screen::of_stderr(&mut io::stderr().lock(), Timestamp::EPOCH),
        ),
    };
    ExitCode::from(error.code().exit_code())
}

/// Prints an error of something that has its own exit code on stderr.
pub fn complain(error: &Error) {
    let _ = explain(
        error,
        GivenOptions::default(),
        &mut Screen::of_stderr(&mut io::stderr().lock(), Timestamp::EPOCH),
    );
}

/// The error, its causes and its hint.
fn explain(error: &Error, given: GivenOptions<'_>, screen: &mut Screen<'_>) -> output::Result {
    let styles = screen.styles();
    let message = with_age(error, SystemClock.now());
    screen.line(format_args!("{} {}", styles.paint(Tone::Alarm, "error:"), escape(&message)))?;
    for cause in envelope::causes(error) {
        let text = format!("cause: {cause}");
        screen.line(format_args!("{}", styles.paint(Tone::Faint, &escape(&text))))?;
    }
    if let Some(hint) = error.hint() {
        screen.line(format_args!(
            "{} {}",
            styles.paint(Tone::Good, "hint:"),
            escape(&hints::as_command(hint, &given))
        ))?;
    }
    Ok(())
}

/// The message with the age of what it is about: since when a session holds something, or when a key was written.
fn with_age(error: &Error, now: Timestamp) -> String {
    let mut message = error.to_string();
    if let Some(MessageAge { at, moment, kind }) = error.age() {
        let ago = format!("{} ago", time::age(now.since(moment)));
        let age = match kind {
            AgeKind::Held => format!(" since {} ({ago})", &time::of_day(moment)[..5]),
            AgeKind::Written => format!(", {ago}"),
            AgeKind::Completed => format!(" ({ago})"),
        };
        message.insert_str(at, &age);
    }
    message
}

/// Splits clap's text into an error and a hint.
fn in_two_parts(error: &clap::Error, command: &str) -> (String, String) {
    let text = error.render().to_string();
    let mut paragraphs = text
        .trim()
        .split("\n\n")
        .map(|paragraph| paragraph.lines().map(str::trim).collect::<Vec<_>>().join(" "));
    let first = paragraphs.next().unwrap_or_default();
    let message = match error.kind() {
        // clap answers these with the help text, or with the names of all commands.
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            "a command is missing"
        }
        _ => first.strip_prefix("error: ").unwrap_or(&first),
    };
    let mut hint = format!("run `{} --help`", format!("blackboard {command}").trim_end());
    for paragraph in paragraphs {
        if let Some(tip) = paragraph.strip_prefix("tip: ") {
            return (message.to_owned(), tip.to_owned());
        }
        if let Some(usage) = paragraph.strip_prefix("Usage: ") {
            let words = usage.split(' ').take_while(|word| !word.starts_with(['-', '<', '[']));
            hint = format!("run `{} --help`", words.collect::<Vec<_>>().join(" "));
        }
    }
    (message.to_owned(), hint)
}

/// Standard output that records whether anything was written.
struct Stdout<'a> {
    inner: io::StdoutLock<'a>,
    used: bool,
}

impl Write for Stdout<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.used = true;
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::time::Duration;

    use super::*;
    use crate::args::Globals;
    use crate::outcome::Render;
    use crate::output::Styles;

    /// A list that fails after its first part.
    struct Torn;

    impl Render for Torn {
        fn json(&self, answer: &mut Answer<'_>) -> output::Result {
            answer.items()?.push(&1)?;
            Err(Error::from(Fault::new(Code::Corrupt, "the board broke")).into())
        }

        fn human(&self, screen: &mut Screen<'_>) -> output::Result {
            screen.line(format_args!("first"))
        }
    }

    /// An output that accepts nothing.
    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn happens_after(json: bool, out: &mut dyn Write) -> (output::Result<u8>, bool) {
        let happened = Rc::new(Cell::new(false));
        let outcome = Outcome::new(Torn).after_flush({
            let happened = Rc::clone(&happened);
            move || happened.set(true)
        });
        let context = Context::new(Globals { json, ..Globals::default() });
        (deliver(outcome, &context, out), happened.get())
    }

    #[test]
    fn deferred_work_runs_only_after_the_output() {
        let mut written = Vec::new();
        assert!(matches!(happens_after(false, &mut written), (Ok(0), true)));
        assert_eq!(written, b"first\n");
        assert!(matches!(happens_after(false, &mut Closed), (Err(output::Failure::Output(_)), false)));
        assert!(matches!(happens_after(true, &mut Vec::new()), (Err(output::Failure::Board(_)), false)));
    }

    #[test]
    fn an_answer_that_broke_before_it_left_leaves_nothing_behind() {
        let mut written = Vec::new();
        let _ = happens_after(true, &mut written);
        assert_eq!(written, b"");
    }

    fn explained(error: &Error) -> String {
        let mut bytes = Vec::new();
        explain(
            error,
            GivenOptions::default(),
            &mut Screen::new(&mut bytes, Styles::new(false), None, Timestamp::EPOCH),
        )
        .unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn an_error_says_what_happened_why_and_what_to_do() {
        let refusal = Refusal::new(Code::AlreadyClaimed, "\"Ivy\nerror: forged\" has it").hint("wait").into();
        assert_eq!(explained(&refusal), "error: \"Ivy\\nerror: forged\" has it\nhint: wait\n");
        let fault = Fault::new(Code::Io, "no answer").because(io::Error::other("disk on fire")).into();
        assert_eq!(explained(&fault), "error: no answer\ncause: disk on fire\n");
    }

    #[test]
    fn age_goes_to_its_place_whatever_the_text_around_it() {
        // A pattern that looks like its holder.
        let refusal = Refusal::new(Code::Held, "src/a by Ivy/** is reserved by Ivy")
            .age(AgeKind::Held, Some(Timestamp::EPOCH), " as src/**")
            .held_by("", "Ivy", Some(Timestamp::EPOCH));
        let now = Timestamp::EPOCH.plus(Duration::from_mins(5));
        let message = with_age(&refusal.into(), now);
        assert!(message.starts_with("src/a by Ivy/** is reserved by Ivy since "), "{message}");
        assert!(message.ends_with(" (5m ago) as src/**"), "{message}");
    }
}
