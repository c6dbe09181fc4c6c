//! The check before a commit, as human and JSON output.
//!
//! Git shows people what a hook says on stderr, whether or not it stops the commit.

use std::io;

use blackboard::agent::short_id;
use blackboard::clock::{Clock as _, SystemClock, Timestamp};
use blackboard::file::{Checked, CheckedPath, ReservationHolder};
use blackboard::{Code, Error, MessageAge, Refusal};
use serde::Serialize;

use super::file::show_all_elsewhere;
use super::{Result, Screen, escape, time};
use crate::context::{note, warn};
use crate::envelope::{Answer, Failure};
use crate::outcome::Render;

/// The most files that a message names.
const MOST_NAMED: usize = 20;

/// The answer of `guard install`.
#[derive(Serialize)]
pub struct InstalledHook {
    /// The file.
    pub hook: String,
    /// Whether it only tells.
    pub warn: bool,
    /// Whether this call wrote it.
    pub installed: bool,
    /// Whether another hook runs first.
    pub chained: bool,
    /// What to know about the board that it uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Render for InstalledHook {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(self)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        let verb = if self.installed { "Installed commit guard" } else { "Commit guard already installed" };
        let facts: Vec<&str> =
            [self.warn.then_some("warns only"), self.chained.then_some("the previous hook runs first")]
                .into_iter()
                .flatten()
                .collect();
        let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join("; ")) };
        self.note.iter().for_each(|text| note(text));
        screen.line(format_args!("{verb}: {}{facts}", escape(&self.hook)))
    }
}

/// The answer of `guard remove`.
#[derive(Serialize)]
pub struct RemovedHook {
    /// The file.
    pub hook: String,
    /// Whether there was one of ours.
    pub removed: bool,
    /// Whether the hook from before is back.
    pub restored: bool,
}

impl Render for RemovedHook {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(self)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        if !self.removed {
            return screen.line(format_args!("No commit guard installed (nothing to remove)"));
        }
        let restored = if self.restored { " (the previous hook is restored)" } else { "" };
        screen.line(format_args!("Removed commit guard: {}{restored}", escape(&self.hook)))
    }
}

/// The answer of `guard check`, if nothing is in the way, or nothing is to be.
#[derive(Serialize)]
pub struct CheckedCommit {
    /// Whether the files were looked at.
    pub checked: bool,
    /// Whether no other session has reserved any of them.
    pub free: bool,
    /// How many files there are.
    pub staged: usize,
    /// Whether these are all of them.
    pub complete: bool,
    /// Those that another session has reserved, here or in another worktree.
    pub paths: Vec<CheckedPath>,
}

impl CheckedCommit {
    /// Warns that some files were not checked.
    fn warn_unchecked_files(&self) {
        if !self.complete {
            warn(&format!("so much is staged that only {} files were checked", self.staged));
        }
    }

    fn held(&self) -> impl Iterator<Item = &CheckedPath> {
        self.paths.iter().filter(|path| !path.free)
    }
}

impl Render for CheckedCommit {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(self)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        self.warn_unchecked_files();
        for path in self.held().take(MOST_NAMED) {
            warn(&described(path));
        }
        match self.held().count() {
            0 => {
                screen.line(format_args!("No staged file is reserved by another session."))?;
                show_all_elsewhere(&self.paths, screen)?;
            }
            count if count > MOST_NAMED => {
                warn(&format!("and so are {} more staged files", count - MOST_NAMED));
            }
            _ => {}
        }
        Ok(())
    }
}

/// The answer of `guard check`, if another session has reserved something.
pub struct RefusedCommit {
    commit: CheckedCommit,
    error: Error,
}

impl RefusedCommit {
    /// From what was found.
    pub fn new(commit: CheckedCommit) -> RefusedCommit {
        let held: Vec<CheckedPath> = commit.held().cloned().collect();
        // The id of the holder would be a way around the guard for every other agent. The holder knows it.
        let hint = "unstage it with `git restore --staged PATH`, or ask the holder; \
                    if the holder is you: BLACKBOARD_SESSION_ID=ID git commit";
        let error = match (Checked { free: held.is_empty(), paths: held }).must_be_free() {
            Err(Error::Refusal(refusal)) => without_session_id(*refusal).hint(hint).into(),
            Err(error) => error,
            // A commit without reserved files never gets here.
            Ok(_) => Refusal::new(Code::Held, "staged files are reserved").hint(hint).into(),
        };
        RefusedCommit { commit, error }
    }
}

/// The refusal whose message has the name of the holder alone.
fn without_session_id(mut refusal: Refusal) -> Refusal {
    let session = refusal.details.get("held_by").and_then(|session| session.as_str());
    if let Some(session) = session {
        let id = format!(" ({})", short_id(session));
        // The id is before the age, if the message has one.
        let end = refusal.age.map_or(refusal.message.len(), |age| age.at);
        if refusal.message[..end].ends_with(&id) {
            refusal.message.replace_range(end - id.len()..end, "");
            refusal.age = refusal.age.map(|age| MessageAge { at: age.at - id.len(), ..age });
        }
    }
    refusal
}

impl Render for RefusedCommit {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.raw(&Failure::new(&self.error, answer.timestamp()))
    }

    fn human(&self, _screen: &mut Screen<'_>) -> Result {
        crate::exit::complain(&self.error);
        self.commit.warn_unchecked_files();
        // The first one has been named.
        let mut stderr = io::stderr().lock();
        let mut screen = Screen::of_stderr(&mut stderr, Timestamp::EPOCH);
        for path in self.commit.held().skip(1).take(MOST_NAMED) {
            screen.line(format_args!("also: {}", escape(&described(path))))?;
        }
        Ok(())
    }
}

/// The answer of `guard check` if the check failed. It stops no commit.
pub struct NotChecked(pub Error);

#[derive(Serialize)]
struct WhyNot<'a> {
    checked: bool,
    reason: String,
    reason_code: &'a str,
}

impl Render for NotChecked {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        let reason_code = self.0.code().as_str();
        answer.object(&WhyNot { checked: false, reason: self.0.to_string(), reason_code })
    }

    fn human(&self, _screen: &mut Screen<'_>) -> Result {
        warn(&format!("staged files were not checked: {}", self.0));
        Ok(())
    }
}

/// Who has reserved a file.
fn described(path: &CheckedPath) -> String {
    let Some(ReservationHolder { reservation, current_work }) = path.reserved_by.first() else {
        return path.path.clone();
    };
    let note = reservation.note.as_ref().or(current_work.as_ref());
    let note = note.map(|note| format!(": {note}")).unwrap_or_default();
    let since = &time::of_day(reservation.since)[..5];
    let ago = time::age(SystemClock.now().since(reservation.since));
    let pattern =
        if path.path == reservation.pattern { String::new() } else { format!(" as {}", reservation.pattern) };
    format!(
        "{} is reserved by {} since {since} ({ago} ago){pattern}{note}",
        path.path, reservation.agent_name
    )
}
