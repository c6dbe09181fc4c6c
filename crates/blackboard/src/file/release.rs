//! `file release`: releases file reservations.

use serde::Serialize;

use super::reserve::parsed;
use super::{ActiveReservation, Files, PathPattern, Reservation, every_reservation, key_of};
use crate::agent::Agent;
use crate::entry::{Actor, Entry, EntryEditor, EventWording, FILES, Lease};
use crate::error::{AgeKind, Code, Error, Refusal, Result};
use crate::hint::Hint;
use crate::revision::{Pending, Revision};
use crate::store::{Key, Prefetch, Range};

/// The reservations to release.
#[derive(Clone, Debug)]
pub struct Release {
    /// The session that reserved them.
    pub session: String,
    /// Which of its reservations.
    pub which: Selection,
}

/// Which reservations of a session.
#[derive(Clone, Debug)]
pub enum Selection {
    /// All of them, in every worktree.
    All,
    /// Those of these patterns.
    Patterns {
        /// The root of the worktree.
        worktree: String,
        /// The patterns, as they were reserved.
        patterns: Vec<String>,
    },
}

impl Release {
    /// All reservations of a session.
    pub fn all(session: &str) -> Release {
        Release { session: session.to_owned(), which: Selection::All }
    }

    /// Patterns of one worktree.
    pub fn of(worktree: &str, patterns: &[&str], session: &str) -> Release {
        let patterns = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        Release {
            session: session.to_owned(),
            which: Selection::Patterns { worktree: worktree.to_owned(), patterns },
        }
    }
}

/// The result of a release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReleasedFiles {
    /// The patterns that this call released.
    pub released: Vec<String>,
    /// The patterns that the session had not reserved.
    pub not_held: Vec<String>,
    /// The session that released them.
    pub released_by: String,
}

impl Pending for ReleasedFiles {
    fn resolve(&mut self, _first: Revision) {}
}

impl Files<'_> {
    /// Releases reservations. A pattern that no session has reserved stays free. A pattern that another session has
    /// reserved is refused, and nothing is released.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register, file::{Release, Reserve}};
    /// # let board = Board::memory();
    /// # let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// board.files().reserve(&Reserve::of("/home/ivy/project", &["src/**", "docs/**"], &ivy))?;
    /// let release = Release::of("/home/ivy/project", &["src/**"], &ivy);
    /// assert_eq!(board.files().release(&release)?.released, ["src/**"]);
    /// assert_eq!(board.files().release(&release)?.not_held, ["src/**"]);
    /// assert_eq!(board.files().release(&Release::all(&ivy))?.released, ["docs/**"]);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn release(&self, release: &Release) -> Result<ReleasedFiles> {
        let session = &release.session;
        let named = match &release.which {
            Selection::All => None,
            Selection::Patterns { worktree, patterns } => {
                Some(keys_of(worktree, &parsed(patterns, PathPattern::parse_stored)?, session))
            }
        };
        let mut prefetch = vec![Prefetch::Row(Key::Agent(session.clone()))];
        match &named {
            None => prefetch.push(Prefetch::Range(Range::leased_by(session))),
            Some(keys) => prefetch.extend(keys.iter().map(|(key, _)| Prefetch::Entry(FILES, key))),
        }
        let by = Actor::session(session);
        self.board.commit_as(&[session], "file release", &prefetch, |tx| {
            let mut editor = EntryEditor::new(self.board, tx, &by)?;
            let agent = editor.session()?;
            agent.must_not_be_stale()?;
            let keys = if let Some(keys) = &named {
                keys.clone()
            } else {
                let keys = reserved_by(&tx.rows::<Entry>(&Range::leased_by(session))?);
                editor.prefetch_entries(FILES, keys.iter().map(|(key, _)| key))?;
                keys
            };
            let mut released = Vec::new();
            let mut not_held: Vec<String> = Vec::new();
            for (key, pattern) in keys {
                let summary = format!("Agent \"{}\" released files \"{pattern}\"", agent.agent_name);
                match editor.delete(FILES, &key, EventWording::InWords(summary))? {
                    Some(_) => released.push(pattern),
                    None if named.is_some() => not_held.push(pattern),
                    // It has expired, and the sweep will remove it.
                    None => {}
                }
            }
            if let Selection::Patterns { worktree, .. } = &release.which
                && !not_held.is_empty()
            {
                tx.prefetch(&[Prefetch::Range(every_reservation())])?;
                let reservations = ActiveReservation::all(tx)?;
                let mut others = reservations.into_iter().map(|standing| standing.reservation);
                let is_other = |other: &Reservation| {
                    other.session_id != *session
                        && other.worktree == *worktree
                        && not_held.contains(&other.pattern)
                };
                if let Some(other) = others.find(is_other) {
                    return Err(reserved_by_another(&other.with_name_of_today(tx)?, &agent));
                }
            }
            let released_by = agent.agent_name;
            Ok((editor.finish()?, ReleasedFiles { released, not_held, released_by }))
        })
    }
}

fn reserved_by_another(other: &Reservation, agent: &Agent) -> Error {
    let (holder, you) = agent.beside_holder(&other.agent_name, &other.session_id);
    let message = format!("{} is reserved by {holder}", other.pattern);
    Refusal::new(Code::NotHolder, message)
        .age(AgeKind::Held, Some(other.since), &format!(", not by {you}"))
        .hint(Hint::ListReservations)
        .held_by(other.session_id.clone(), other.agent_name.clone(), Some(other.since))
        .detail("pattern", other.pattern.clone())
        .into()
}

fn keys_of(worktree: &str, patterns: &[PathPattern], session: &str) -> Vec<(String, String)> {
    let key = |pattern: &PathPattern| key_of(worktree, pattern.as_str(), session);
    patterns.iter().map(|pattern| (key(pattern), pattern.as_str().to_owned())).collect()
}

/// The reservations among the leased entries of a session, by pattern.
fn reserved_by(leased: &[Entry]) -> Vec<(String, String)> {
    let files = leased.iter().filter(|entry| entry.scope == FILES);
    let pattern = |entry: &Entry| Lease::of(entry).pattern.unwrap_or_else(|| entry.key.clone());
    let mut keys: Vec<_> = files.map(|entry| (entry.key.clone(), pattern(entry))).collect();
    // The order of the keys means nothing to readers.
    keys.sort_by(|(_, one), (_, other)| one.cmp(other));
    keys
}
