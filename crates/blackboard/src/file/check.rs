//! `file check`: checks whether other sessions have reserved files.

use serde::Serialize;

use super::{ActiveReservation, Files, PathPattern, Reservation, as_pattern, check_place, every_reservation};
use crate::agent::{Agent, label};
use crate::error::{AgeKind, Code, Error, Refusal, Result};
use crate::hint::Hint;
use crate::store::{Key, Prefetch, Tx};

/// How many paths one call may check.
pub(super) const MAX_PATHS: usize = 10_000;

/// The files to check.
#[derive(Clone, Debug, Default)]
pub struct Check {
    /// The session that asks. Its own reservations do not conflict.
    pub session: Option<String>,
    /// The common path of all worktrees of the repository: that of its main worktree.
    pub repository: String,
    /// The root of the worktree.
    pub worktree: String,
    /// Paths relative to that root. One that ends with `/` is a directory, with everything in it; one with `*` or `?` is
    /// a pattern.
    pub paths: Vec<String>,
}

impl Check {
    /// Paths of the only worktree of a repository.
    pub fn of(worktree: &str, paths: &[&str], session: Option<&str>) -> Check {
        Check {
            session: session.map(str::to_owned),
            repository: worktree.to_owned(),
            worktree: worktree.to_owned(),
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        }
    }
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Whether no other session has reserved any of them.
    pub free: bool,
    /// Each path, in the order in which they were named.
    pub paths: Vec<CheckedPath>,
}

/// The result for one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckedPath {
    /// The path.
    pub path: String,
    /// Whether no other session has reserved it.
    pub free: bool,
    /// Whether the session that asks has reserved it.
    pub reserved_by_you: bool,
    /// The other sessions that have reserved it.
    pub reserved_by: Vec<ReservationHolder>,
    /// The sessions that have reserved the same path in another worktree of the repository.
    pub elsewhere: Vec<ReservationHolder>,
}

/// A session that has reserved files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReservationHolder {
    /// The reservation.
    #[serde(flatten)]
    pub reservation: Reservation,
    /// The current work of the session.
    pub current_work: Option<String>,
}

impl Files<'_> {
    /// Reports which other sessions have reserved these files, exclusively or shared. A session whose process is gone
    /// is swept first, if that needs no waiting.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register, file::{Check, Reserve}};
    /// # let board = Board::memory();
    /// # let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// board.files().reserve(&Reserve::of("/home/ivy/project", &["src/**"], &ivy))?;
    /// let paths = ["src/lib.rs", "README.md"];
    /// let others = board.files().check(&Check::of("/home/ivy/project", &paths, None))?;
    /// assert_eq!(others.paths[0].reserved_by[0].reservation.agent_name, "Ivy");
    /// assert!(others.paths[1].free);
    /// let own = board.files().check(&Check::of("/home/ivy/project", &paths, Some(&ivy)))?;
    /// assert!(own.free && own.paths[0].reserved_by_you);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn check(&self, check: &Check) -> Result<Checked> {
        check_place(&check.repository, &check.worktree)?;
        if check.paths.len() > MAX_PATHS {
            let count = check.paths.len();
            return Err(Error::invalid(format!("{count} paths are too many; {MAX_PATHS} are allowed")));
        }
        let asked = check.paths.iter().map(|path| PathQuery::parse(path)).collect::<Result<Vec<_>>>()?;
        let checked = self.read_reservations(check, &asked)?;
        let reservers = checked.paths.iter().flat_map(|path| &path.reserved_by);
        let holders = reservers.map(|reserver| reserver.reservation.session_id.as_str());
        if self.board.sweep_gone(holders) { self.read_reservations(check, &asked) } else { Ok(checked) }
    }

    fn read_reservations(self, check: &Check, asked: &[PathQuery]) -> Result<Checked> {
        self.board.read(&[Prefetch::Range(every_reservation())], |tx| {
            let (own, others): (Vec<_>, Vec<_>) = ActiveReservation::all(tx)?
                .into_iter()
                .partition(|standing| Some(&standing.reservation.session_id) == check.session.as_ref());
            let holders = others.iter().map(|other| Key::Agent(other.reservation.session_id.clone()));
            tx.prefetch(&holders.map(Prefetch::Row).collect::<Vec<_>>())?;
            let mut paths = Vec::new();
            for (asked, path) in asked.iter().zip(&check.paths) {
                let (mut reserved_by, mut elsewhere) = (Vec::new(), Vec::new());
                for other in others.iter().filter(|other| asked.is_about(&other.pattern)) {
                    if other.reservation.worktree == check.worktree {
                        reserved_by.push(reserver(tx, &other.reservation)?);
                    } else if other.reservation.repository == check.repository {
                        elsewhere.push(reserver(tx, &other.reservation)?);
                    }
                }
                let reserved_by_you = own
                    .iter()
                    .any(|own| own.reservation.worktree == check.worktree && asked.is_about(&own.pattern));
                let (path, free) = (path.clone(), reserved_by.is_empty());
                paths.push(CheckedPath { path, free, reserved_by_you, reserved_by, elsewhere });
            }
            Ok(Checked { free: paths.iter().all(|path| path.free), paths })
        })
    }
}

/// How many other reserved paths a refusal names.
const MOST_NAMED: usize = 3;

impl Checked {
    /// Refuses if another session has reserved one of the files, and names it.
    ///
    /// ```
    /// # use blackboard::{Board, Code, agent::Register, file::{Check, Reserve}};
    /// # let board = Board::memory();
    /// # let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// board.files().reserve(&Reserve::of("/home/ivy/project", &["src/**"], &ivy))?;
    /// let checked = board.files().check(&Check::of("/home/ivy/project", &["src/lib.rs"], None))?;
    /// assert_eq!(checked.must_be_free().unwrap_err().code(), Code::Held);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn must_be_free(self) -> Result<Checked> {
        let taken = self.paths.iter().find_map(|path| Some((path, path.reserved_by.first()?)));
        let Some((path, ReservationHolder { reservation, current_work })) = taken else { return Ok(self) };
        let Reservation { agent_name: name, since, .. } = reservation;
        let pattern = as_pattern(&path.path, &reservation.pattern);
        let note = reservation.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
        let others: Vec<&str> =
            self.paths.iter().filter(|path| !path.free).skip(1).map(|path| path.path.as_str()).collect();
        let named = others.iter().take(MOST_NAMED).copied().collect::<Vec<_>>().join(", ");
        let more = match others.len() {
            0 => String::new(),
            1 => format!(", and so is {named}"),
            count if count <= MOST_NAMED => format!(", and so are {named}"),
            count => format!(", and so are {named} and {} more of these paths", count - MOST_NAMED),
        };
        let mut refusal = Refusal::new(
            Code::Held,
            format!("{} is reserved by {}", path.path, label(name, &reservation.session_id)),
        )
        .age(AgeKind::Held, Some(*since), &format!("{pattern}{note}{more}"))
        .hint(Hint::WorkOnOtherFiles)
        .held_by(reservation.session_id.clone(), name.clone(), Some(*since))
        .detail("path", path.path.clone())
        .detail("pattern", reservation.pattern.clone())
        .detail("mode", reservation.mode.as_str())
        .detail("note", reservation.note.clone())
        .detail("current_work", current_work.clone())
        .detail("expires_at", reservation.expires_at.map(|expires| expires.to_string()))
        .detail("fence", reservation.fence.get());
        if let Ok(paths) = serde_json::to_value(&self.paths) {
            refusal = refusal.detail("paths", paths);
        }
        Err(refusal.into())
    }
}

fn reserver(tx: &dyn Tx, reservation: &Reservation) -> Result<ReservationHolder> {
    let agent = tx.peek_row::<Agent>(&Key::Agent(reservation.session_id.clone()))?;
    let mut reservation = reservation.clone();
    let current_work = agent.and_then(|agent| {
        reservation.agent_name = agent.agent_name;
        agent.current_work
    });
    Ok(ReservationHolder { reservation, current_work })
}

/// A path to check.
enum PathQuery {
    /// One file, whatever characters its name has.
    File(String),
    /// Everything that matches.
    Pattern(PathPattern),
}

impl PathQuery {
    fn parse(path: &str) -> Result<PathQuery> {
        if path.is_empty() {
            return Err(Error::invalid("a path is empty"));
        }
        if !path.ends_with('/') && !path.contains(['*', '?']) {
            return Ok(PathQuery::File(path.to_owned()));
        }
        // Names of directories may contain characters that patterns may not contain. Matching too much is safe.
        let spelled = path.replace(['[', ']', '{', '}', '\\'], "?");
        Ok(PathQuery::Pattern(PathPattern::parse(&spelled)?))
    }

    fn is_about(&self, reserved: &PathPattern) -> bool {
        match self {
            PathQuery::File(path) => reserved.covers(path),
            PathQuery::Pattern(pattern) => reserved.conflicts_with(pattern),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_directories_and_patterns_can_be_checked() {
        for (path, reserved, expected) in [
            ("src/lib.rs", "src/**", true),
            ("src/lib.rs", "src/*.rs", true),
            ("src/lib.rs", "docs/**", false),
            // A path that does not exist may become a directory.
            ("src", "src/**", true),
            ("src", "src/lib.rs", true),
            ("src/lib.rs", "src", true),
            ("src/*.rs", "src", true),
            ("src/lib.rs", "srcs", false),
            ("src", "*/lib.rs", false),
            ("main.c", "**/*.md", false),
            ("src/lib.rs", "*", false),
            ("src/", "src/lib.rs", true),
            ("src/", "docs/lib.rs", false),
            ("src/*.rs", "src/lib.*", true),
            ("app/[id]/page.tsx", "app/**", true),
            ("app/[id]/page.tsx", "app/?id?/*", true),
            ("app/[id]/", "app/?id?/page.tsx", true),
            ("app/{id}\\x/", "app/**", true),
        ] {
            let asked = PathQuery::parse(path).unwrap();
            let is_about = asked.is_about(&PathPattern::parse(reserved).unwrap());
            assert_eq!(is_about, expected, "{path} and {reserved}");
        }
        for path in ["", "../x/", "/src/", "a**/"] {
            assert!(PathQuery::parse(path).is_err(), "{path}");
        }
    }
}
