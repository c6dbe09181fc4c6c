//! `file reserve`: reserves files, so that other sessions do not work on them.

use std::time::Duration;

use serde::Serialize;

use super::pattern::Steps;
use super::{
    ActiveReservation, Files, Mode, PathPattern, Reservation, Stored, check_place, every_reservation, key_of,
};
use crate::agent::{Agent, label};
use crate::entry::{Actor, EntryEditor, EventWording, FILES, Value, Write, check_ttl};
use crate::error::{AgeKind, Code, Error, Refusal, Result};
use crate::hint::Hint;
use crate::revision::{Pending, Revision};
use crate::store::{Key, Prefetch};
use crate::text::{Cleaner, Kind, TextChanges};

/// How many patterns one call may reserve or release.
pub const MAX_PATTERNS: usize = 256;

/// How many patterns one session may have reserved.
pub const MAX_PATTERNS_HELD: usize = 1024;

/// How many comparisons one call may make, because it holds the write lock meanwhile. Two patterns as agents write
/// them need less than a hundred.
const MAX_STEPS: u64 = 20_000_000;

/// The files to reserve.
#[derive(Clone, Debug, Default)]
pub struct Reserve {
    /// The session that reserves them.
    pub session: String,
    /// The common path of all worktrees of the repository: that of its main worktree.
    pub repository: String,
    /// The root of the worktree.
    pub worktree: String,
    /// The files, relative to that root; see [`PathPattern`]. All of them are reserved, or none.
    pub patterns: Vec<String>,
    /// Other sessions may reserve them too, if theirs is shared as well.
    pub shared: bool,
    /// A note. Without it an existing note stays.
    pub note: Option<String>,
    /// The time to live from now on. Without it an existing one stays.
    pub ttl: Option<Duration>,
}

impl Reserve {
    /// Files of the only worktree of a repository, exclusively.
    pub fn of(worktree: &str, patterns: &[&str], session: &str) -> Reserve {
        Reserve {
            session: session.to_owned(),
            repository: worktree.to_owned(),
            worktree: worktree.to_owned(),
            patterns: patterns.iter().map(|pattern| (*pattern).to_owned()).collect(),
            ..Reserve::default()
        }
    }

    fn mode(&self) -> Mode {
        if self.shared { Mode::Shared } else { Mode::Exclusive }
    }
}

/// The result of a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reserved {
    /// Each pattern, in the order in which they were named.
    pub reservations: Vec<ReservedPattern>,
    /// The reservations of the same files in other worktrees of the repository.
    pub elsewhere: Vec<Reservation>,
    /// The changes to the note.
    #[serde(flatten)]
    pub text: TextChanges,
}

/// A pattern that the session has reserved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReservedPattern {
    /// The reservation.
    #[serde(flatten)]
    pub reservation: Reservation,
    /// Whether this call made it.
    pub reserved: bool,
    /// Whether the session had it already.
    pub already_held: bool,
    /// Whether this call changed its mode, note or time to live.
    pub renewed: bool,
}

impl Pending for ReservedPattern {
    fn resolve(&mut self, first: Revision) {
        self.reservation.resolve(first);
    }
}

impl Pending for Reserved {
    fn resolve(&mut self, first: Revision) {
        self.reservations.resolve(first);
        self.elsewhere.resolve(first);
    }
}

impl Files<'_> {
    /// Reserves files atomically. An existing reservation of the session is renewed if something about it is new. The
    /// session's reservations of other patterns do not conflict.
    ///
    /// ```
    /// # use blackboard::{Board, Code, agent::Register, file::Reserve};
    /// # let board = Board::memory();
    /// let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// let oak = board.agents().register(&Register::named("Oak"))?.agent.session_id;
    ///
    /// board.files().reserve(&Reserve::of("/home/ivy/project", &["src/store/**"], &ivy))?;
    /// let refused = board.files().reserve(&Reserve::of("/home/ivy/project", &["src/*/mod.rs"], &oak));
    /// assert_eq!(refused.unwrap_err().code(), Code::Held);
    /// board.files().reserve(&Reserve::of("/home/ivy/project", &["docs/"], &oak))?;
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn reserve(&self, reserve: &Reserve) -> Result<Reserved> {
        let settings = self.board.settings();
        check_place(&reserve.repository, &reserve.worktree)?;
        settings.text.check_unaltered([&*reserve.repository, &reserve.worktree])?;
        let patterns = parsed(&reserve.patterns, PathPattern::parse)?;
        settings.text.check_unaltered(patterns.iter().map(PathPattern::as_str))?;
        let mut cleaner = Cleaner::new(&settings.text);
        let note = cleaner.maybe("note", Kind::Field, reserve.note.as_ref())?;
        let text = cleaner.changes();
        let reserve = Reserve { note: note.filter(|note| !note.is_empty()), ..reserve.clone() };
        check_ttl(reserve.ttl)?;
        let by = Actor::session(&reserve.session);
        let keys: Vec<_> =
            patterns.iter().map(|one| key_of(&reserve.worktree, one.as_str(), &reserve.session)).collect();
        let mut prefetch =
            vec![Prefetch::Row(Key::Agent(reserve.session.clone())), Prefetch::Range(every_reservation())];
        prefetch.extend(keys.iter().map(|key| Prefetch::Entry(FILES, key)));
        self.board.commit_as(&[&reserve.session], "file reserve", &prefetch, |tx| {
            let mut editor = EntryEditor::new(self.board, tx, &by)?;
            let agent = editor.session()?;
            agent.must_be_live()?;
            let standing = ActiveReservation::all(tx)?;
            check_held(&reserve, &patterns, &standing)?;
            let steps = Steps::default();
            if let Some((pattern, other)) = first_conflict(&reserve, &patterns, &standing, &steps)? {
                let other = other.reservation.clone().with_name_of_today(tx)?;
                return Err(conflict_error(pattern, &other));
            }
            let reservations = patterns
                .iter()
                .zip(&keys)
                .map(|(pattern, key)| put(&mut editor, &agent, &reserve, (pattern, key), &standing))
                .collect::<Result<_>>()?;
            let elsewhere = elsewhere(&reserve, &patterns, &standing, &steps)?;
            Ok((editor.finish()?, Reserved { reservations, elsewhere, text: text.clone() }))
        })
    }
}

/// The patterns, each once.
pub(super) fn parsed(
    patterns: &[String],
    parse: fn(&str) -> Result<PathPattern>,
) -> Result<Vec<PathPattern>> {
    if patterns.is_empty() {
        return Err(Error::invalid("no pattern was named"));
    }
    if patterns.len() > MAX_PATTERNS {
        let message =
            format!("{} patterns are too many for one call; {MAX_PATTERNS} are allowed", patterns.len());
        return Err(Refusal::new(Code::InvalidValue, message)
            .hint("reserve a directory above, such as \"src/**\"")
            .into());
    }
    let mut parsed: Vec<PathPattern> = Vec::new();
    for pattern in patterns {
        let pattern = parse(pattern)?;
        if !parsed.contains(&pattern) {
            parsed.push(pattern);
        }
    }
    Ok(parsed)
}

/// Refuses more patterns than one session may have reserved.
fn check_held(reserve: &Reserve, patterns: &[PathPattern], standing: &[ActiveReservation]) -> Result<()> {
    let own = || standing.iter().filter(|one| one.reservation.session_id == reserve.session);
    let is_held = |pattern: &&PathPattern| {
        own().any(|one| {
            one.reservation.worktree == reserve.worktree && one.reservation.pattern == pattern.as_str()
        })
    };
    let held = own().count();
    if held + patterns.len() <= MAX_PATTERNS_HELD {
        return Ok(());
    }
    let new = patterns.len() - patterns.iter().filter(is_held).count();
    if held + new <= MAX_PATTERNS_HELD {
        return Ok(());
    }
    let message =
        format!("the session holds {held} patterns and asks for {new} more; {MAX_PATTERNS_HELD} are allowed");
    Err(Refusal::new(Code::InvalidValue, message)
        .hint("reserve a directory above, such as \"src/**\", or release patterns first")
        .into())
}

/// Whether a reservation of another session would conflict with this pattern, if both were of one worktree.
fn clashes(
    reserve: &Reserve,
    pattern: &PathPattern,
    other: &ActiveReservation,
    steps: &Steps,
) -> Result<bool> {
    if steps.count() > MAX_STEPS {
        return Err(Refusal::new(
            Code::InvalidValue,
            "these patterns take too long to compare with the patterns that other sessions have reserved",
        )
        .hint("reserve fewer patterns in one call, or a directory above, such as \"src/**\"")
        .into());
    }
    Ok(other.reservation.session_id != reserve.session
        && !(reserve.mode() == Mode::Shared && other.reservation.mode == Mode::Shared)
        && pattern.conflicts_counted(&other.pattern, steps))
}

/// The first pattern that cannot be reserved, and the conflicting reservation.
fn first_conflict<'a>(
    reserve: &Reserve,
    patterns: &'a [PathPattern],
    standing: &'a [ActiveReservation],
    steps: &Steps,
) -> Result<Option<(&'a PathPattern, &'a ActiveReservation)>> {
    for pattern in patterns {
        for other in standing.iter().filter(|other| other.reservation.worktree == reserve.worktree) {
            if clashes(reserve, pattern, other, steps)? {
                return Ok(Some((pattern, other)));
            }
        }
    }
    Ok(None)
}

/// The reservations of the same files in other worktrees of the same repository.
fn elsewhere(
    reserve: &Reserve,
    patterns: &[PathPattern],
    standing: &[ActiveReservation],
    steps: &Steps,
) -> Result<Vec<Reservation>> {
    let mut elsewhere = Vec::new();
    for other in standing.iter().filter(|other| {
        other.reservation.repository == reserve.repository && other.reservation.worktree != reserve.worktree
    }) {
        for pattern in patterns {
            if clashes(reserve, pattern, other, steps)? {
                elsewhere.push(other.reservation.clone());
                break;
            }
        }
    }
    Ok(elsewhere)
}

/// Writes one reservation, unless nothing about it is new.
fn put(
    editor: &mut EntryEditor<'_>,
    agent: &Agent,
    reserve: &Reserve,
    (pattern, key): (&PathPattern, &str),
    standing: &[ActiveReservation],
) -> Result<ReservedPattern> {
    let before = standing.iter().map(|standing| &standing.reservation).find(|reservation| {
        reservation.session_id == agent.session_id
            && reservation.worktree == reserve.worktree
            && reservation.pattern == pattern.as_str()
    });
    if let Some(before) = before.filter(|before| !is_new_about(reserve, before)) {
        let reservation = before.clone();
        return Ok(ReservedPattern { reservation, reserved: false, already_held: true, renewed: false });
    }
    let note = reserve.note.clone().or_else(|| before.and_then(|before| before.note.clone()));
    let stored = Stored {
        repository: reserve.repository.clone(),
        worktree: reserve.worktree.clone(),
        pattern: pattern.as_str().to_owned(),
        mode: reserve.mode(),
        note,
    };
    let write = Write {
        ttl: reserve.ttl,
        // Keeps the expiry of a reservation if only its note is new.
        merge: before.is_some(),
        lease: true,
        ..Write::new(key, Value::of(&stored)?)
    };
    let summary = summary(agent, before.is_some(), &stored);
    let written = editor.write(FILES, &write, EventWording::InWords(summary))?;
    let reservation = Reservation {
        pattern: stored.pattern,
        mode: stored.mode,
        note: stored.note,
        repository: stored.repository,
        worktree: stored.worktree,
        session_id: agent.session_id.clone(),
        agent_name: agent.agent_name.clone(),
        since: before.map_or_else(|| editor.now(), |before| before.since),
        expires_at: written.expires_at,
        fence: written.fence.unwrap_or(written.revision),
    };
    let already_held = before.is_some();
    Ok(ReservedPattern { reservation, reserved: !already_held, already_held, renewed: already_held })
}

/// Whether a repeated call changes something. A time to live does: it begins again.
fn is_new_about(reserve: &Reserve, before: &Reservation) -> bool {
    reserve.mode() != before.mode
        || reserve.repository != before.repository
        || reserve.ttl.is_some()
        || reserve.note.is_some() && reserve.note != before.note
}

fn summary(agent: &Agent, renewed: bool, stored: &Stored) -> String {
    let did = if renewed { "renewed the reservation of" } else { "reserved" };
    let shared = if stored.mode == Mode::Shared { " (shared)" } else { "" };
    let note = stored.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
    format!("Agent \"{}\" {did} files \"{}\"{shared}{note}", agent.agent_name, stored.pattern)
}

/// The refusal of a pattern that overlaps the reservation of another session.
fn conflict_error(pattern: &PathPattern, other: &Reservation) -> Error {
    let Reservation { agent_name: name, since, .. } = other;
    let note = other.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
    let holder = label(name, &other.session_id);
    let message = if pattern.as_str() == other.pattern {
        format!("{pattern} is reserved by {holder}")
    } else {
        format!("{pattern} overlaps {}, which {holder} has reserved", other.pattern)
    };
    let hint = match other.mode {
        Mode::Exclusive => Hint::WorkOnOtherFiles,
        Mode::Shared => Hint::ShareFiles,
    };
    let mut refusal = Refusal::new(Code::Held, message)
        .age(AgeKind::Held, Some(*since), &note)
        .hint(hint)
        .held_by(other.session_id.clone(), name.clone(), Some(*since))
        .detail("pattern", other.pattern.clone())
        .detail("mode", other.mode.as_str())
        .detail("note", other.note.clone())
        .detail("fence", other.fence.get());
    if let Some(expires) = other.expires_at {
        refusal = refusal.detail("expires_at", expires.to_string());
    }
    refusal.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;

    fn standing(session: &str, worktree: &str, pattern: &str, mode: Mode) -> ActiveReservation {
        ActiveReservation {
            pattern: PathPattern::parse(pattern).unwrap(),
            reservation: Reservation {
                pattern: pattern.to_owned(),
                mode,
                note: Some("a note".to_owned()),
                repository: "/r".to_owned(),
                worktree: worktree.to_owned(),
                session_id: session.to_owned(),
                agent_name: "Ivy".to_owned(),
                since: Timestamp::EPOCH,
                expires_at: None,
                fence: Revision::new(7),
            },
        }
    }

    #[test]
    fn reservations_conflict_only_in_one_worktree_unless_both_are_shared() {
        use Mode::{Exclusive, Shared};
        for (session, worktree, pattern, mode, shared, expected) in [
            ("other", "/w", "src/**", Exclusive, false, true),
            ("other", "/w", "src/**", Exclusive, true, true),
            ("other", "/w", "src/**", Shared, false, true),
            ("other", "/w", "src/**", Shared, true, false),
            ("other", "/w", "docs/**", Exclusive, false, false),
            ("other", "/w", "**/*.rs", Exclusive, false, true),
            ("other", "/v", "src/**", Exclusive, false, false),
            ("me", "/w", "src/**", Exclusive, false, false),
        ] {
            let reserve = Reserve { shared, ..Reserve::of("/w", &[], "me") };
            let patterns = [PathPattern::parse("src/lib.rs").unwrap()];
            let standing = [standing(session, worktree, pattern, mode)];
            let found = first_conflict(&reserve, &patterns, &standing, &Steps::default()).unwrap().is_some();
            assert_eq!(found, expected, "{pattern} of {session} in {worktree}, {mode}; shared {shared}");
        }
    }

    #[test]
    fn repeated_reservation_has_an_event_only_if_it_changes_something() {
        let before = standing("me", "/w", "src/**", Mode::Exclusive).reservation;
        let again = Reserve { repository: "/r".to_owned(), ..Reserve::of("/w", &["src/**"], "me") };
        let note = |note: &str| Reserve { note: Some(note.to_owned()), ..again.clone() };
        for (reserve, expected) in [
            (again.clone(), false),
            (note("a note"), false),
            (note("another"), true),
            (Reserve { shared: true, ..again.clone() }, true),
            (Reserve { ttl: Some(Duration::from_secs(1)), ..again.clone() }, true),
            (Reserve { repository: "/moved".to_owned(), ..again.clone() }, true),
        ] {
            assert_eq!(is_new_about(&reserve, &before), expected, "{reserve:?}");
        }
    }

    #[test]
    fn a_conflict_names_the_holder_the_pattern_and_the_note() {
        let other = standing("other", "/w", "src/**", Mode::Exclusive).reservation;
        let refused = conflict_error(&PathPattern::parse("src/lib.rs").unwrap(), &other);
        assert_eq!(refused.to_string(), "src/lib.rs overlaps src/**, which Ivy (other) has reserved: a note");
        let refused = conflict_error(&PathPattern::parse("src/").unwrap(), &other);
        assert_eq!(refused.to_string(), "src/** is reserved by Ivy (other): a note");
        let details = refused.details().unwrap();
        assert_eq!((&details["pattern"], &details["note"]), (&"src/**".into(), &"a note".into()));
    }

    #[test]
    fn patterns_are_limited_and_deduplicated() {
        let owned = |patterns: &[&str]| patterns.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let parsed = |patterns: &[String]| parsed(patterns, PathPattern::parse);
        let patterns = parsed(&owned(&["src/", "docs/*", "src/**"])).unwrap();
        assert_eq!(patterns.iter().map(PathPattern::as_str).collect::<Vec<_>>(), ["src/**", "docs/*"]);
        assert!(parsed(&[]).is_err());
        assert!(parsed(&vec!["a".to_owned(); MAX_PATTERNS + 1]).is_err());
    }

    #[test]
    fn a_session_holds_a_limited_number_of_patterns_and_may_renew_each() {
        let standing: Vec<_> = (0..MAX_PATTERNS_HELD)
            .map(|index| standing("me", "/w", &format!("src/{index}"), Mode::Exclusive))
            .collect();
        let check = |session: &str, standing: &[ActiveReservation], patterns: &[&str]| {
            let patterns: Vec<_> =
                patterns.iter().map(|pattern| PathPattern::parse(pattern).unwrap()).collect();
            check_held(&Reserve::of("/w", &[], session), &patterns, standing)
        };
        assert!(check("me", &standing, &["src/1", "src/2"]).is_ok());
        assert!(check("me", &standing[1..], &["new"]).is_ok());
        assert!(check("other", &standing, &["new"]).is_ok());
        let refused = check("me", &standing, &["src/1", "new"]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the session holds 1024 patterns and asks for 1 more; 1024 are allowed"
        );
    }

    #[test]
    fn many_wildcards_are_compared_in_a_time_that_grows_with_their_lengths() {
        testkit::limit_test();
        let stored = |index: usize| format!("{}q{index:03}", "*a".repeat(495));
        let held: Vec<_> = (0..60)
            .map(|index| {
                let mut one = standing("other", "/w", "x", Mode::Exclusive);
                one.pattern = PathPattern::parse_stored(&stored(index)).unwrap();
                one
            })
            .collect();
        let patterns: Vec<_> =
            (60..72).map(|index| PathPattern::parse_stored(&stored(index)).unwrap()).collect();
        let steps = Steps::default();
        let reserve = Reserve::of("/w", &[], "me");
        assert!(first_conflict(&reserve, &patterns, &held, &steps).unwrap().is_none());
        let longest = 2 * 1024;
        assert!(steps.count() <= 60 * 12 * longest, "{} comparisons", steps.count());
    }

    #[test]
    fn patterns_that_take_too_long_to_compare_are_refused() {
        testkit::limit_test();
        for (held_pattern, held_count, pattern, count) in [
            (format!("*{}b*", "a".repeat(500)), 1, "a".repeat(1000), 200),
            // Each comparison of two segments is short, but there are many.
            (format!("{}q*", "a/".repeat(62)), 1024, format!("**/{}z/**/x", "*/".repeat(30)), 256),
        ] {
            let parse = |text: &str| PathPattern::parse_stored(text).unwrap();
            let mut one = standing("other", "/w", "x", Mode::Exclusive);
            one.pattern = parse(&held_pattern);
            let held: Vec<_> = std::iter::repeat_n(one, held_count).collect();
            let patterns = vec![parse(&pattern); count];
            let steps = Steps::default();
            let refused =
                first_conflict(&Reserve::of("/w", &[], "me"), &patterns, &held, &steps).unwrap_err();
            assert_eq!(refused.code(), Code::InvalidValue);
            assert!(steps.count() <= MAX_STEPS + 1024 * 1024, "{} comparisons", steps.count());
        }
    }
}
