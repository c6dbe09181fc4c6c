//! Warnings of the quota: an event for readers of the board, and one line for each agent that it concerns.
//!
//! The ledger decides what is announced, once for all processes ([`Ledger::take_crossings`]). The line of an agent is a small file,
//! which the next hook of its session takes. A hook that finds none has made one system call.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use blackboard::agent::label;
use blackboard::event::QuotaWarning;
use blackboard::quota::{Crossing, Ledger, Provider, SessionOfProvider, WindowStatus};
use blackboard::store::{SidecarDirectory, Sidecars};
use blackboard::{Board, Result};

use crate::disk::{self, Access};
use crate::output::quota::{clock_time, compact, percent};

/// The directory of lines in the home of boards: a file per session.
const DIRECTORY: &str = "quota-notices";

/// Held by a process that leaves a line, and for how long another one waits for it.
const LOCK: &str = "quota-notices.lock";
const PATIENCE: Duration = Duration::from_secs(1);

/// After this time a line says nothing about now.
const OUTDATED: Duration = Duration::from_hours(6);

/// The maximum size of a file.
const LARGEST: u64 = 4096;

/// The most lines that wait for a session.
const MOST_LINES: usize = 4;

const LONGEST_SESSION: usize = 64;

/// What an agent does about it.
const ADVICE: &str = "Finish the current step, then ask the operator before you start more work.";

/// Announces the thresholds that were passed since the last call of any process: one event each on the board with this name in
/// the ledger, and a line for each session that uses the provider. To be called after usage was recorded. Returns how many.
pub fn announce(ledger: &Ledger, board: &Board, name: &str, home: &Path) -> Result<usize> {
    let crossings = ledger.take_crossings(name)?;
    if !crossings.is_empty() {
        remove_outdated(&home.join(DIRECTORY));
    }
    let mut outcome = Ok(());
    for crossing in &crossings {
        let (summary, line, sessions) = describe(crossing, ledger);
        let mut notified = Vec::new();
        for session in sessions.iter().filter(|session| is_listening(session, board, name)) {
            // A warning is still an event if the line cannot be written.
            if leave(home, &session.session, &line).is_ok() && session.board == name {
                notified.push(session.session.clone());
            }
        }
        let warning = QuotaWarning { summary, notified, ..QuotaWarning::default() };
        let warning = match crossing {
            Crossing::Window { provider, window, threshold, .. } => QuotaWarning {
                provider: provider.clone(),
                window: Some(window.window.clone()),
                threshold: Some(*threshold),
                ..warning
            },
            Crossing::Session { provider, session, .. } => {
                QuotaWarning { provider: provider.clone(), session: Some(session.session.clone()), ..warning }
            }
        };
        // The others are announced in any case.
        outcome = outcome.and(board.events().warn_of_quota(&warning).map(drop));
    }
    outcome.map(|()| crossings.len())
}

/// The text of the event, the line for agents, and the sessions that get it.
fn describe<'c>(crossing: &'c Crossing, ledger: &Ledger) -> (String, String, &'c [SessionOfProvider]) {
    match crossing {
        Crossing::Window { provider, window, sessions, .. } => {
            let WindowStatus { window: length, used, budget, frees_at, .. } = &**window;
            let percent = percent(window);
            let frees = frees_at.map(|at| format!(", frees up at {}", clock_time(at, ledger.now())));
            let frees = frees.unwrap_or_default();
            let operator = ledger.config().providers.get(provider).map_or(0, Provider::operator);
            let (left, rest) = match budget.saturating_sub(*used) {
                0 => (String::new(), ", and nothing is left"),
                rest if rest <= operator => (
                    format!(", only {} kept for you are left", compact(rest)),
                    ", and nothing is left for agents: the rest is kept for the operator",
                ),
                _ => (String::new(), ""),
            };
            let (used, budget) = (compact(*used), compact(*budget));
            let summary = format!(
                "Quota: {length} window of {provider} is at {percent}% ({used} of {budget}){left}{frees}"
            );
            let line =
                format!("Token quota: the {length} window of {provider} is at {percent}%{rest}. {ADVICE}");
            (summary, line, sessions)
        }
        Crossing::Session { provider, session, used, cap } => {
            let (used, cap) = (compact(*used), compact(*cap));
            let name = if session.agent.is_empty() { "session" } else { &session.agent };
            let name = label(name, &session.session);
            let summary = format!("Quota: {name} has used {used} tokens of {provider}, its cap is {cap}");
            let line = format!(
                "Token quota: you have used {used} tokens of {provider}, and your cap is {cap}. {ADVICE}"
            );
            (summary, line, std::slice::from_ref(session))
        }
    }
}

/// Whether a session may have a next hook. Those of other boards are not known here.
fn is_listening(session: &SessionOfProvider, board: &Board, name: &str) -> bool {
    session.board != name
        || matches!(board.agents().get(&session.session), Ok(Some(agent)) if agent.status.is_live())
}

/// The file of a session, unless its id could be another path.
fn file_of(home: &Path, session: &str) -> Option<PathBuf> {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_name = (1..=LONGEST_SESSION).contains(&session.len()) && session.bytes().all(is_valid);
    is_name.then(|| home.join(DIRECTORY).join(session))
}

/// Leaves a line for the next hook of a session, after those that wait.
fn leave(home: &Path, session: &str, line: &str) -> io::Result<()> {
    let file = file_of(home, session).ok_or(io::ErrorKind::InvalidInput)?;
    SidecarDirectory::new(&home.join(DIRECTORY)).create_directory()?;
    let _lock = disk::lock_within(&home.join(LOCK), PATIENCE)?;
    // A hook that takes them at this moment shows them, and then they are not shown again.
    let earlier = take(home, session).unwrap_or_default();
    let lines: Vec<&str> = earlier.lines().chain([line]).collect();
    let kept = lines.iter().skip(lines.len().saturating_sub(MOST_LINES));
    disk::replace(&file, Access::Private, |out| kept.into_iter().try_for_each(|line| writeln!(out, "{line}")))
}

/// Takes the lines for a session. Of several callers, one gets them.
pub fn take(home: &Path, session: &str) -> Option<String> {
    let file = file_of(home, session)?;
    let own = file.with_extension(std::process::id().to_string());
    // Nearly always there is none.
    fs::rename(&file, &own).ok()?;
    let text = read(&own);
    let _ = fs::remove_file(&own);
    text.ok().flatten()
}

fn read(file: &Path) -> io::Result<Option<String>> {
    let file = disk::own_file(file, false)?;
    let is_outdated = file.metadata()?.modified()?.elapsed().is_ok_and(|age| age > OUTDATED);
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text)?;
    let text = text.trim();
    Ok((!is_outdated && !text.is_empty()).then(|| text.to_owned()))
}

/// Removes files that no hook has taken. What cannot be removed stays: it does no harm.
fn remove_outdated(directory: &Path) {
    let Ok(files) = fs::read_dir(directory) else { return };
    for file in files.flatten() {
        let modified = file.metadata().and_then(|metadata| metadata.modified());
        if modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > OUTDATED)) {
            let _ = fs::remove_file(file.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_once_and_lines_of_two_warnings_together() {
        testkit::limit_test();
        let home = testkit::tempdir().unwrap();
        assert_eq!(take(home.path(), "s"), None);
        leave(home.path(), "s", "first").unwrap();
        leave(home.path(), "s", "second").unwrap();
        leave(home.path(), "t", "other").unwrap();
        assert_eq!(take(home.path(), "s").as_deref(), Some("first\nsecond"));
        assert_eq!(take(home.path(), "s"), None);
        let files = fs::read_dir(home.path().join(DIRECTORY)).unwrap().count();
        assert_eq!(files, 1);
    }

    #[test]
    fn one_of_many_threads_takes_a_line() {
        testkit::limit_test();
        let home = testkit::tempdir().unwrap();
        leave(home.path(), "s", "line").unwrap();
        let taken: usize = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| usize::from(take(home.path(), "s").is_some()))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(taken, 1);
    }

    #[test]
    fn an_id_that_is_a_path_has_no_file() {
        testkit::limit_test();
        for session in ["", "..", "../s", "a/b", "a.b", "a\0b", &"x".repeat(65)] {
            assert_eq!(file_of(Path::new("/home"), session), None, "{session}");
        }
        assert!(file_of(Path::new("/home"), "84a674b5-96cc-48d9-8f28-05b81429eb63").is_some());
    }

    #[test]
    fn outdated_lines_are_removed_and_never_shown() {
        testkit::limit_test();
        let home = testkit::tempdir().unwrap();
        for session in ["s", "t"] {
            leave(home.path(), session, "line").unwrap();
            let file = disk::own_file(&file_of(home.path(), session).unwrap(), false).unwrap();
            file.set_modified(std::time::SystemTime::now() - OUTDATED - Duration::from_mins(1)).unwrap();
        }
        assert_eq!(take(home.path(), "s"), None);
        remove_outdated(&home.path().join(DIRECTORY));
        assert_eq!(fs::read_dir(home.path().join(DIRECTORY)).unwrap().count(), 0);
    }
}
