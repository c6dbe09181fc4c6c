//! Edits: which session touched which file recently, as reported by hooks.
//!
//! A reservation is declared by an agent; an edit is observed. Edits are not shared state and have no events. They
//! are removed with their session and after a day, and appear only in the answer of [`Files::conflicts`].

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;

use super::{ActiveReservation, Check, Files, MAX_PATHS, Mode, check_place, every_reservation};
use crate::agent::{Agent, prefetch_agent};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::store::record::record;
use crate::store::{Key, Prefetch, Range, Tx};
use crate::text::{TextRules, forges};

/// How recent an edit has to be to cause a warning.
pub const JUST_NOW: Duration = Duration::from_mins(15);

/// How long an edit is kept.
pub(crate) const KEPT: Duration = Duration::from_hours(24);

/// How many edits a brief reads.
pub(crate) const MAX_EDITS: usize = 200;

/// The most bytes of a file path, and the most characters of a tool name.
const MAX_FILE_BYTES: usize = 4096;
const MAX_TOOL_LETTERS: usize = 60;

/// A file that a session edited, or tried to edit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edit {
    /// The root of the worktree.
    pub worktree: String,
    /// The path relative to it.
    pub path: String,
    /// The session.
    pub session_id: String,
    /// The tool that was used.
    pub tool: Option<String>,
    /// When it edited the file, if it did.
    pub edited_at: Option<Timestamp>,
    /// When the session was last denied the file, if it has not edited it since. The session waits for the file.
    pub denied_at: Option<Timestamp>,
}

/// Files that a session just edited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edited {
    /// The root of the worktree.
    pub worktree: String,
    /// Paths relative to it. A text that cannot be the path of a file is ignored.
    pub paths: Vec<String>,
    /// The tool that was used.
    pub tool: Option<String>,
    /// Whether the session was denied the edit.
    pub denied: bool,
}

/// Another session that has reserved or recently edited a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileConflict {
    /// The file.
    pub path: String,
    /// The session.
    pub session_id: String,
    /// The name of its agent.
    pub agent_name: String,
    /// Its current work.
    pub current_work: Option<String>,
    /// Whether it reserved or edited the file.
    #[serde(flatten)]
    pub activity: FileActivity,
    /// When it reserved or edited the file.
    pub since: Timestamp,
}

/// What a session did with a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "touch", rename_all = "lowercase")]
pub enum FileActivity {
    /// It reserved the file.
    Reserved {
        /// The pattern of the reservation.
        pattern: String,
        /// The note of the reservation.
        note: Option<String>,
    },
    /// It edited the file.
    Edited {
        /// The tool that was used.
        tool: Option<String>,
    },
}

impl Edit {
    /// When the edit was last updated.
    pub(crate) fn noted_at(&self) -> Timestamp {
        self.edited_at.max(self.denied_at).unwrap_or(Timestamp::EPOCH)
    }

    /// Merges an edit with the stored one. A session that is denied a file may have edited it before. A session that
    /// edits the file no longer waits for it.
    pub(crate) fn after(self, known: Option<Edit>) -> Edit {
        match known {
            Some(known) if self.edited_at.is_none() => Edit { denied_at: self.denied_at, ..known },
            _ => self,
        }
    }
}

record! {
    Edit in "file_edits", generation 0 {
        key { worktree, path, session_id }
        columns { tool, edited_at, denied_at }
        computed { noted_at }
    }
    indexes {
        /// The sessions that edited a file.
        OF_FILE: by (session_id) of (worktree, path);
        /// The edits of a session, by worktree and path.
        OF_SESSION: by (worktree, path) of (session_id);
        /// All edits, oldest first.
        OLDEST: by (noted_at, worktree, path, session_id);
    }
}

impl Range {
    /// The sessions that edited a file.
    pub fn edits_of_file(worktree: &str, path: &str) -> Range {
        Range::of(Edit::OF_FILE, [worktree, path])
    }

    /// The edits of a session.
    pub fn edits_of_session(session: &str) -> Range {
        Range::of(Edit::OF_SESSION, [session])
    }

    /// Edits that were made before `moment`.
    pub fn edits_before(moment: Timestamp) -> Range {
        Range::all(Edit::OLDEST).before(moment)
    }
}

impl Edited {
    /// The rows of these files. A file whose name looks like a credential has none.
    pub(crate) fn rows(&self, session: &str, now: Timestamp, rules: &TextRules) -> Vec<Edit> {
        if !can_be_stored(&self.worktree) || rules.check_unaltered([&*self.worktree]).is_err() {
            return Vec::new();
        }
        let is_stored =
            |path: &&String| can_be_stored(path) && rules.check_unaltered([path.as_str()]).is_ok();
        let tool = self.tool.as_ref().map(|tool| {
            tool.chars().filter(|letter| !forges(*letter)).take(MAX_TOOL_LETTERS).collect::<String>()
        });
        let paths: BTreeSet<_> = self.paths.iter().filter(is_stored).collect();
        let edit = |path: &String| Edit {
            worktree: self.worktree.clone(),
            path: path.clone(),
            session_id: session.to_owned(),
            tool: tool.clone(),
            edited_at: (!self.denied).then_some(now),
            denied_at: self.denied.then_some(now),
        };
        paths.into_iter().take(MAX_PATHS).map(edit).collect()
    }
}

/// Whether a path can be a part of a key.
fn can_be_stored(path: &str) -> bool {
    !path.is_empty() && path.len() <= MAX_FILE_BYTES && !path.contains(char::is_control)
}

impl Files<'_> {
    /// The live sessions that have reserved these files, or edited them in the last 15 minutes. A session does not
    /// conflict with its parent or its delegates. Every path is that of one file, whatever its name looks like.
    ///
    /// ```
    /// # use blackboard::{Board, agent::{CheckIn, Register}, file::{Check, Edited}};
    /// # let board = Board::memory();
    /// # let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// # let oak = board.agents().register(&Register::named("Oak"))?.agent.session_id;
    /// let edited = Edited {
    ///     worktree: "/home/ivy/project".to_owned(),
    ///     paths: vec!["src/lib.rs".to_owned()],
    ///     ..Edited::default()
    /// };
    /// board.agents().check_in(&CheckIn { edited: Some(edited), ..CheckIn::of(&ivy) })?;
    /// let others = board.files().conflicts(&Check::of("/home/ivy/project", &["src/lib.rs"], Some(&oak)))?;
    /// assert_eq!(others[0].agent_name, "Ivy");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn conflicts(&self, check: &Check) -> Result<Vec<FileConflict>> {
        check_place(&check.repository, &check.worktree)?;
        if check.paths.len() > MAX_PATHS {
            return Err(Error::invalid(format!("{} paths are too many", check.paths.len())));
        }
        let others = self.read_others(check)?;
        let holds = |other: &&FileConflict| matches!(other.activity, FileActivity::Reserved { .. });
        let holders = others.iter().filter(holds).map(|other| other.session_id.as_str());
        if self.board.sweep_gone(holders) { self.read_others(check) } else { Ok(others) }
    }

    fn read_others(self, check: &Check) -> Result<Vec<FileConflict>> {
        let has_edits = |path: &str| can_be_stored(path) && can_be_stored(&check.worktree);
        let mut prefetch = vec![Prefetch::Range(every_reservation())];
        prefetch.extend(prefetch_agent(check.session.as_deref()));
        let edits = check.paths.iter().filter(|path| has_edits(path));
        prefetch.extend(edits.map(|path| Prefetch::Range(Range::edits_of_file(&check.worktree, path))));
        self.board.read(&prefetch, |tx| {
            let me = match &check.session {
                Some(session) => tx.row::<Agent>(&Key::Agent(session.clone()))?,
                None => None,
            };
            let standing = ActiveReservation::all(tx)?;
            let mut others = Vec::new();
            for path in &check.paths {
                let here: Vec<_> = standing
                    .iter()
                    .filter(|one| one.reservation.worktree == check.worktree && one.pattern.covers(path))
                    .collect();
                let edits = if has_edits(path) {
                    tx.rows::<Edit>(&Range::edits_of_file(&check.worktree, path))?
                } else {
                    Vec::new()
                };
                others.extend(conflict_error(tx, path, me.as_ref(), &here, &edits)?);
            }
            Ok(others)
        })
    }
}

/// The sessions that have one file: those with a reservation first.
fn conflict_error(
    tx: &dyn Tx,
    path: &str,
    me: Option<&Agent>,
    standing: &[&ActiveReservation],
    edits: &[Edit],
) -> Result<Vec<FileConflict>> {
    let mut others: Vec<FileConflict> = Vec::new();
    let is_mine =
        |one: &&&ActiveReservation| me.is_some_and(|me| me.session_id == one.reservation.session_id);
    let shares = standing.iter().filter(is_mine).any(|one| one.reservation.mode == Mode::Shared);
    let reserved =
        standing.iter().filter(|one| !(shares && one.reservation.mode == Mode::Shared)).map(|one| {
            let reservation = &one.reservation;
            let (pattern, note) = (reservation.pattern.clone(), reservation.note.clone());
            (&reservation.session_id, FileActivity::Reserved { pattern, note }, reservation.since)
        });
    let edited = edits.iter().filter_map(|edit| {
        let when = edit.edited_at.filter(|when| tx.now().since(*when) < JUST_NOW)?;
        Some((&edit.session_id, FileActivity::Edited { tool: edit.tool.clone() }, when))
    });
    for (session, activity, since) in reserved.chain(edited) {
        if others.iter().any(|known| known.session_id == *session) {
            continue;
        }
        let key = Key::Agent(session.clone());
        tx.prefetch(&[Prefetch::Row(key.clone())])?;
        let Some(agent) = tx.row::<Agent>(&key)? else { continue };
        if agent.status.is_live() && !me.is_some_and(|me| may_share(me, &agent)) {
            others.push(FileConflict {
                path: path.to_owned(),
                session_id: agent.session_id,
                agent_name: agent.agent_name,
                current_work: agent.current_work,
                activity,
                since,
            });
        }
    }
    Ok(others)
}

/// What other sessions reserved or just edited among the files of a session: those that it edited or was denied in the
/// last day, and those that it has reserved. The caller has announced the edits of the session.
pub(crate) fn conflicts_of_session(
    tx: &dyn Tx,
    me: &Agent,
    standing: &[ActiveReservation],
) -> Result<Vec<FileConflict>> {
    let own_edits = tx.candidate_rows::<Edit>(&Range::edits_of_session(&me.session_id), MAX_EDITS)?;
    let (own, others): (Vec<_>, Vec<_>) =
        standing.iter().partition(|one| one.reservation.session_id == me.session_id);
    if own_edits.is_empty() && own.is_empty() {
        return Ok(Vec::new());
    }
    let recent = Range::all(Edit::OLDEST).from(tx.now().minus(JUST_NOW));
    tx.prefetch(&[Prefetch::Candidates(recent.clone(), MAX_EDITS)])?;
    let mut recent = tx.candidate_rows::<Edit>(&recent, MAX_EDITS)?;
    recent.retain(|edit| edit.session_id != me.session_id);
    let is_own = |edit: &Edit| {
        own_edits.iter().any(|own| own.worktree == edit.worktree && own.path == edit.path)
            || own
                .iter()
                .any(|one| one.reservation.worktree == edit.worktree && one.pattern.covers(&edit.path))
    };
    let mut files: BTreeSet<(&str, &str)> =
        own_edits.iter().map(|edit| (&*edit.worktree, &*edit.path)).collect();
    files.extend(recent.iter().filter(|edit| is_own(edit)).map(|edit| (&*edit.worktree, &*edit.path)));
    let mut conflicts = Vec::new();
    for (worktree, path) in files {
        let has_path =
            |one: &&ActiveReservation| one.reservation.worktree == worktree && one.pattern.covers(path);
        let here: Vec<_> = standing.iter().filter(has_path).collect();
        let edits = recent.iter().filter(|edit| edit.worktree == worktree && edit.path == path);
        let edits: Vec<_> = edits.cloned().collect();
        conflicts.extend(conflict_error(tx, path, Some(me), &here, &edits)?);
    }
    for one in &own {
        let overlapping = others.iter().filter(|other| {
            other.reservation.worktree == one.reservation.worktree
                && other.pattern.conflicts_with(&one.pattern)
        });
        let here: Vec<_> = overlapping.copied().chain([*one]).collect();
        conflicts.extend(conflict_error(tx, &one.reservation.pattern, Some(me), &here, &[])?);
    }
    Ok(conflicts)
}

/// Whether two sessions may work on the same file: they are the same, or one is the parent of the other. Siblings do
/// not know each other's work.
fn may_share(one: &Agent, other: &Agent) -> bool {
    one.session_id == other.session_id || one.is_related_to(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::an_agent;

    #[test]
    fn parent_and_delegate_do_not_conflict_but_siblings_do() {
        let child = |id: &str, parent: &str| Agent { parent_id: Some(parent.to_owned()), ..an_agent(id) };
        let in_process =
            |id: &str, pid, shares_process| Agent { pid: Some(pid), shares_process, ..an_agent(id) };
        for (one, other, expected) in [
            (an_agent("a"), an_agent("a"), true),
            (an_agent("a"), child("b", "a"), true),
            (child("b", "a"), an_agent("a"), true),
            (child("b", "a"), child("c", "a"), false),
            (an_agent("a"), an_agent("b"), false),
            (in_process("a", 7, false), in_process("b", 7, true), true),
            (in_process("a", 7, true), in_process("b", 7, false), true),
            (in_process("a", 7, true), in_process("b", 7, true), false),
            (in_process("a", 7, false), in_process("b", 8, true), false),
            (in_process("a", 7, false), in_process("b", 7, false), false),
        ] {
            assert_eq!(may_share(&one, &other), expected, "{} and {}", one.session_id, other.session_id);
        }
    }

    #[test]
    fn invalid_path_is_not_stored() {
        testkit::limit_test();
        let paths = ["a", "", "a\nb", "a", "\u{7f}", &"x".repeat(5000)].map(str::to_owned).to_vec();
        let tool = Some("Ed\u{1b}it".to_owned());
        let edited = Edited { worktree: "/w".to_owned(), paths, tool, denied: false };
        let rules = TextRules::default();
        let rows = edited.rows("s", Timestamp::EPOCH, &rules);
        assert_eq!((rows.len(), &*rows[0].path, rows[0].tool.as_deref()), (1, "a", Some("Edit")));
        assert!(Edited { worktree: String::new(), ..edited }.rows("s", Timestamp::EPOCH, &rules).is_empty());
    }

    #[test]
    fn file_whose_name_looks_like_a_credential_is_not_stored() {
        testkit::limit_test();
        let secret = format!("backup/ghp_{}.txt", "a1B2c3D4e5F6".repeat(3));
        let edited = Edited {
            worktree: "/w".to_owned(),
            paths: vec![secret.clone(), "a".to_owned()],
            ..Edited::default()
        };
        let paths = |rules: &TextRules| -> Vec<String> {
            edited.rows("s", Timestamp::EPOCH, rules).into_iter().map(|edit| edit.path).collect()
        };
        assert_eq!(paths(&TextRules::default()), ["a"]);
        let allowed = TextRules { allow_secret_looking: true, ..TextRules::default() };
        assert_eq!(paths(&allowed), ["a", &secret]);
        let inside = Edited { worktree: format!("/{secret}"), ..edited.clone() };
        assert!(inside.rows("s", Timestamp::EPOCH, &TextRules::default()).is_empty());
    }
}
