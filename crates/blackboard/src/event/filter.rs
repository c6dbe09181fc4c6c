//! [`Filter`]: conditions for events.
//!
//! All conditions of a filter have to hold. Of several filters one has to match, and an event is returned once.
//! Conditions on the stored event are checked first, so that values are read only for events that may match.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::change::Versions;
use super::{Event, EventType, TargetType, names};
use crate::agent::Agent;
use crate::entry::{FILES, Glob, LOCKS, check_known_scope, check_known_tag, check_pattern};
use crate::error::{Code, Error, Refusal, Result};
use crate::hint::Hint;
use crate::store::{Key, Tx};
use crate::text::shown;
use crate::unreadable::if_readable;

/// A condition in the caller's code.
pub type Custom = Arc<dyn Fn(&Event) -> bool + Send + Sync>;

/// Conditions for events. An empty one matches everything; all others have to hold.
///
/// ```
/// use blackboard::event::Filter;
///
/// let urgent_tasks = Filter {
///     keys: vec!["task:*".to_owned()],
///     types: vec!["write".parse()?],
///     tags: vec!["urgent".to_owned()],
///     ..Filter::default()
/// };
/// assert!(!urgent_tasks.wants_everything());
/// # Ok::<(), blackboard::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Filter {
    /// Patterns of keys, see [`Glob`]: any of them. Only an event of one entry has a key.
    pub keys: Vec<String>,
    /// Names of scopes: any of them. Only an event of entries has one.
    pub scopes: Vec<String>,
    /// Types of events: any of these.
    pub types: Vec<EventKind>,
    /// Agents: any of these, each an author, an agent name or a session id. An event about an agent also counts as
    /// one by that agent.
    pub agents: Vec<String>,
    /// Tags of the entry: all of them.
    pub tags: Vec<String>,
    /// A condition in the caller's code. It is checked last, on events that match everything else, and without a lock
    /// on the board.
    pub custom: Option<Custom>,
}

impl Filter {
    /// Only these types.
    pub fn of_types(types: impl IntoIterator<Item = EventType>) -> Filter {
        Filter { types: types.into_iter().map(EventKind::Of).collect(), ..Filter::default() }
    }

    /// Only events of entries whose keys match the pattern.
    pub fn of_keys(pattern: &str) -> Filter {
        Filter { keys: vec![pattern.to_owned()], ..Filter::default() }
    }

    /// Whether it matches every event.
    pub fn wants_everything(&self) -> bool {
        let Filter { keys, scopes, types, agents, tags, custom } = self;
        keys.is_empty()
            && scopes.is_empty()
            && types.is_empty()
            && agents.is_empty()
            && tags.is_empty()
            && custom.is_none()
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Filter { keys, scopes, types, agents, tags, custom } = self;
        formatter
            .debug_struct("Filter")
            .field("keys", keys)
            .field("scopes", scopes)
            .field("types", types)
            .field("agents", agents)
            .field("tags", tags)
            .field("custom", &custom.is_some())
            .finish()
    }
}

/// A type of event, or a kind of entry change, as a filter names it.
///
/// ```
/// use blackboard::event::{EventKind, EventType};
///
/// assert_eq!("entry_expired".parse::<EventKind>()?, "expire".parse()?);
/// assert_eq!("write".parse::<EventKind>()?, EventKind::Of(EventType::EntryWritten));
/// assert_eq!("update".parse::<EventKind>()?, EventKind::EntryUpdated);
/// # Ok::<(), blackboard::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Every event of this type.
    Of(EventType),
    /// An entry was written that did not exist before.
    EntryCreated,
    /// An entry was written that existed.
    EntryUpdated,
    /// A session acquired or renewed a lock.
    LockAcquired,
    /// A lock was released, or expired.
    LockReleased,
    /// A session reserved files, or renewed a reservation.
    FilesReserved,
    /// A file reservation was released, or expired.
    FilesReleased,
}

/// The short names, in addition to those of the event log.
const SHORT_NAMES: &[(&str, EventKind)] = &[
    ("write", EventKind::Of(EventType::EntryWritten)),
    ("create", EventKind::EntryCreated),
    ("update", EventKind::EntryUpdated),
    ("delete", EventKind::Of(EventType::EntryDeleted)),
    ("expire", EventKind::Of(EventType::EntryExpired)),
    ("evict", EventKind::Of(EventType::EntryEvicted)),
    ("purge", EventKind::Of(EventType::EntryPurged)),
    ("clear", EventKind::Of(EventType::EntriesCleared)),
    (names::LOCK_ACQUIRED, EventKind::LockAcquired),
    (names::LOCK_RELEASED, EventKind::LockReleased),
    (names::FILES_RESERVED, EventKind::FilesReserved),
    (names::FILES_RELEASED, EventKind::FilesReleased),
    (names::PROGRESS, EventKind::Of(EventType::HeartbeatReceived)),
];

static WRITTEN: [EventType; 1] = [EventType::EntryWritten];
static REMOVED: [EventType; 2] = [EventType::EntryDeleted, EventType::EntryExpired];

impl EventKind {
    /// The types in the event log that it selects, and what their events have to say about an entry.
    fn rule(&self) -> KindRule<'_> {
        let rule = |types, op, scope| KindRule { types, op, scope };
        match self {
            EventKind::Of(event_type) => rule(std::slice::from_ref(event_type), None, None),
            EventKind::EntryCreated => rule(&WRITTEN, Some("create"), None),
            EventKind::EntryUpdated => rule(&WRITTEN, Some("update"), None),
            EventKind::LockAcquired => rule(&WRITTEN, None, Some(LOCKS)),
            EventKind::LockReleased => rule(&REMOVED, None, Some(LOCKS)),
            EventKind::FilesReserved => rule(&WRITTEN, None, Some(FILES)),
            EventKind::FilesReleased => rule(&REMOVED, None, Some(FILES)),
        }
    }

    fn fits(&self, event: &Event, facts: &Facts) -> bool {
        let KindRule { types, op, scope } = self.rule();
        types.contains(&event.event_type)
            && op.is_none_or(|op| facts.op.as_deref() == Some(op))
            && scope.is_none_or(|scope| facts.scope.as_deref() == Some(scope))
    }
}

/// Which events an [`EventKind`] selects.
struct KindRule<'a> {
    types: &'a [EventType],
    /// The kind of the write; any if `None`.
    op: Option<&'static str>,
    /// The scope of the entry; any if `None`.
    scope: Option<&'static str>,
}

/// Parses the name of an event type, or one of the short names `write`, `create`, `update`, `delete`, `expire` and
/// `clear`, or a name of [`Event::shown_type`].
impl FromStr for EventKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<EventKind> {
        let name = text.trim();
        if let Some((_, kind)) = SHORT_NAMES.iter().find(|(short, _)| *short == name) {
            return Ok(kind.clone());
        }
        match EventType::from_name(name) {
            EventType::Other(_) => {
                let message = format!("unknown event type \"{}\"", shown(name));
                Err(Refusal::new(Code::InvalidValue, message).hint(Hint::ListEventTypes).into())
            }
            known => Ok(EventKind::Of(known)),
        }
    }
}

/// Checked and prepared filters: an event matches if one of them matches, or if there is none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filters {
    filters: Arc<[Prepared]>,
    /// The types that an engine has to read; all if empty.
    types: Vec<EventType>,
}

#[derive(Debug)]
struct Prepared {
    filter: Filter,
    keys: Vec<Glob>,
}

/// What the metadata of an event contains about an entry.
#[derive(Default)]
struct Facts {
    scope: Option<String>,
    op: Option<String>,
}

/// The names of agents, each looked up once.
pub(super) type Names = RefCell<HashMap<String, Option<String>>>;

impl Filters {
    /// Checks and prepares filters.
    pub(crate) fn new(filters: &[Filter]) -> Result<Filters> {
        let all = filters.iter().any(|filter| filter.types.is_empty());
        let mut types: Vec<EventType> = Vec::new();
        let kinds = filters.iter().filter(|_| !all).flat_map(|filter| &filter.types);
        for event_type in kinds.flat_map(|kind| kind.rule().types) {
            if !types.contains(event_type) {
                types.push(event_type.clone());
            }
        }
        // A filter that matches everything makes the others pointless.
        let prepared = if filters.iter().any(Filter::wants_everything) {
            Vec::new()
        } else {
            filters.iter().map(Prepared::new).collect::<Result<_>>()?
        };
        Ok(Filters { filters: prepared.into(), types })
    }

    /// Whether every event matches.
    pub(super) fn want_everything(&self) -> bool {
        self.filters.is_empty()
    }

    /// The types that an engine has to read; all if empty.
    pub(super) fn types(&self) -> &[EventType] {
        &self.types
    }

    /// Whether the types alone decide.
    pub(super) fn want_all_of_types(&self) -> bool {
        self.filters.iter().all(|prepared| prepared.filter.is_only_of_types())
    }

    /// An event, with the filters that may match it.
    pub(super) fn look_at(&self, event: Event) -> Line<'_> {
        let facts = Facts::of(&event);
        let possible = self.filters.iter().filter(|prepared| prepared.may_want(&event, &facts)).collect();
        Line { event, possible }
    }
}

/// An event, and the filters that may match it.
pub(super) struct Line<'a> {
    pub(super) event: Event,
    possible: Vec<&'a Prepared>,
}

impl Line<'_> {
    /// An event that its reader may not read: no filter matches it.
    pub(super) fn hidden(event: Event) -> Line<'static> {
        Line { event, possible: Vec::new() }
    }

    /// Whether some filter may match it.
    pub(super) fn is_possible(&self) -> bool {
        !self.possible.is_empty()
    }

    /// The agents whose names decide whether a filter matches it.
    pub(super) fn names(&self) -> impl Iterator<Item = Key> {
        let by_agent = self.possible.iter().any(|prepared| !prepared.filter.agents.is_empty());
        let sessions = [self.event.actor_id.as_ref(), agent_of(&self.event)].into_iter().flatten();
        sessions.filter(move |_| by_agent).map(|session| Key::Agent(session.clone()))
    }

    /// The event with its entry change, if it matches everything but perhaps a condition in the caller's code. The
    /// names of agents are announced by then.
    pub(super) fn take(
        self,
        tx: &dyn Tx,
        versions: &mut Versions,
        names: &Names,
    ) -> Result<Option<PossibleMatch>> {
        let Line { mut event, possible } = self;
        if possible.is_empty() {
            return Ok(None);
        }
        event.entry = versions.take(&event).map(Box::new);
        let mut conditions = Vec::new();
        for prepared in possible {
            if prepared.wants(&event, tx, names)? {
                match &prepared.filter.custom {
                    Some(custom) => conditions.push(Custom::clone(custom)),
                    None => return Ok(Some(PossibleMatch { event, conditions: Vec::new() })),
                }
            }
        }
        Ok((!conditions.is_empty()).then_some(PossibleMatch { event, conditions }))
    }
}

/// An event that matches if one of these conditions holds, or if there is none. They are the caller's code and run
/// without a lock on the board.
pub(super) struct PossibleMatch {
    pub(super) event: Event,
    pub(super) conditions: Vec<Custom>,
}

impl Filter {
    fn is_only_of_types(&self) -> bool {
        let only_types = Filter { types: Vec::new(), ..self.clone() }.wants_everything();
        only_types && self.types.iter().all(|kind| matches!(kind, EventKind::Of(_)))
    }
}

impl Prepared {
    fn new(filter: &Filter) -> Result<Prepared> {
        filter.scopes.iter().try_for_each(|scope| check_known_scope(scope))?;
        filter.tags.iter().try_for_each(|tag| check_known_tag(tag))?;
        for pattern in &filter.keys {
            // Without a scope, only the prefix that no scope allows is refused.
            check_pattern("polymathera", pattern)?;
            filter.scopes.iter().try_for_each(|scope| check_pattern(scope, pattern))?;
        }
        if filter.agents.iter().any(String::is_empty) {
            return Err(Error::invalid("the name of an agent is empty"));
        }
        let keys = filter.keys.iter().map(|pattern| Glob::new(pattern)).collect();
        Ok(Prepared { filter: filter.clone(), keys })
    }

    /// Whether the stored event may match.
    fn may_want(&self, event: &Event, facts: &Facts) -> bool {
        let Filter { scopes, types, tags, .. } = &self.filter;
        let key = event.target_id.as_deref().filter(|_| event.target_type == Some(TargetType::Entry));
        (types.is_empty() || types.iter().any(|kind| kind.fits(event, facts)))
            && (self.keys.is_empty() || key.is_some_and(|key| self.keys.iter().any(|glob| glob.matches(key))))
            && (scopes.is_empty() || facts.scope.as_ref().is_some_and(|scope| scopes.contains(scope)))
            && (tags.is_empty() || key.is_some())
    }

    /// Whether an event that may match does match, except for conditions in the caller's code.
    fn wants(&self, event: &Event, tx: &dyn Tx, names: &Names) -> Result<bool> {
        let Filter { agents, tags, .. } = &self.filter;
        let tags_of_entry = event.entry.as_ref().map(|change| change.tags.as_slice()).unwrap_or_default();
        Ok(tags.iter().all(|tag| tags_of_entry.contains(tag))
            && (agents.is_empty() || is_by(agents, event, tx, names)?))
    }
}

/// Whether one of these is the author, or the agent that the event is about.
fn is_by(agents: &[String], event: &Event, tx: &dyn Tx, names: &Names) -> Result<bool> {
    let author = event.entry.as_ref().map(|change| change.author.as_str());
    if author.is_some_and(|author| agents.iter().any(|agent| agent == author)) {
        return Ok(true);
    }
    for session in [event.actor_id.as_ref(), agent_of(event)].into_iter().flatten() {
        if agents.contains(session) {
            return Ok(true);
        }
        // An entry change has its author's name already, which may differ from that of the session.
        if author.is_none() && name_of(session, tx, names)?.is_some_and(|name| agents.contains(&name)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The session that an event is about.
fn agent_of(event: &Event) -> Option<&String> {
    event.target_id.as_ref().filter(|_| event.target_type == Some(TargetType::Agent))
}

/// The name of a session's agent, if the session still exists and its row can be read.
fn name_of(session: &str, tx: &dyn Tx, names: &Names) -> Result<Option<String>> {
    if let Some(known) = names.borrow().get(session) {
        return Ok(known.clone());
    }
    let agent = if_readable(tx.peek_row::<Agent>(&Key::Agent(session.to_owned())))?;
    let name = agent.map(|agent| agent.agent_name);
    names.borrow_mut().insert(session.to_owned(), name.clone());
    Ok(name)
}

impl Facts {
    fn of(event: &Event) -> Facts {
        match event.target_type {
            Some(TargetType::Entry) => {
                let mut map = event.metadata.as_ref().map(crate::Metadata::to_map).unwrap_or_default();
                let mut text = |name: &str| match map.remove(name) {
                    Some(serde_json::Value::String(text)) => Some(text),
                    _ => None,
                };
                Facts { scope: text("scope"), op: text("op") }
            }
            Some(TargetType::Scope) => Facts { scope: event.target_id.clone(), op: None },
            Some(TargetType::Agent | TargetType::WorkItem | TargetType::Project | TargetType::Protocol)
            | None => Facts::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_type_and_short_name_is_parsed() {
        for event_type in EventType::ALL {
            assert_eq!(event_type.as_str().parse::<EventKind>().unwrap(), EventKind::Of(event_type.clone()));
        }
        for (name, kind) in SHORT_NAMES {
            assert_eq!(&format!(" {name}").parse::<EventKind>().unwrap(), kind);
        }
        let error = "moon_landed".parse::<EventKind>().unwrap_err();
        assert_eq!(error.to_string(), "unknown event type \"moon_landed\"");
        assert_eq!(error.hint(), Some(&Hint::ListEventTypes));
    }

    #[test]
    fn each_kind_of_entry_change_selects_its_own_events() {
        for (kind, types, op, scope) in [
            (EventKind::Of(EventType::AgentStale), &[EventType::AgentStale][..], None, None),
            (EventKind::EntryCreated, &WRITTEN, Some("create"), None),
            (EventKind::EntryUpdated, &WRITTEN, Some("update"), None),
            (EventKind::LockAcquired, &WRITTEN, None, Some("locks")),
            (EventKind::LockReleased, &REMOVED, None, Some("locks")),
            (EventKind::FilesReserved, &WRITTEN, None, Some("files")),
            (EventKind::FilesReleased, &REMOVED, None, Some("files")),
        ] {
            let rule = kind.rule();
            assert_eq!((rule.types, rule.op, rule.scope), (types, op, scope), "{kind:?}");
        }
    }

    #[test]
    fn engines_read_only_the_types_of_the_filters() {
        let types = |filters: &[Filter]| Filters::new(filters).unwrap().types;
        let written = || Filter::of_types([EventType::EntryWritten]);
        let updated = Filter { types: vec![EventKind::EntryUpdated], ..Filter::default() };
        let stale = Filter { tags: vec!["x".to_owned()], ..Filter::of_types([EventType::AgentStale]) };
        assert_eq!(types(&[]), []);
        assert_eq!(types(&[written(), updated]), [EventType::EntryWritten]);
        assert_eq!(types(&[written(), stale]), [EventType::EntryWritten, EventType::AgentStale]);
        assert_eq!(types(&[written(), Filter::of_keys("a")]), [], "the second one wants any type");
    }

    #[test]
    fn filter_for_everything_overrides_the_others() {
        assert!(Filters::new(&[]).unwrap().want_everything());
        assert!(Filters::new(&[Filter::of_keys("a"), Filter::default()]).unwrap().want_everything());
        assert!(!Filters::new(&[Filter::of_keys("a")]).unwrap().want_everything());
    }

    #[test]
    fn filter_that_cannot_match_is_refused() {
        let named = |scope: &str, pattern: &str| Filter {
            scopes: vec![scope.to_owned()],
            ..Filter::of_keys(pattern)
        };
        for filter in [
            Filter::of_keys(""),
            Filter::of_keys("polymathera:x"),
            named("team", "team:x"),
            named("team-*", "x"),
            Filter { tags: vec![String::new()], ..Filter::default() },
            Filter { agents: vec![String::new()], ..Filter::default() },
        ] {
            assert!(Filters::new(std::slice::from_ref(&filter)).is_err(), "{filter:?}");
        }
        assert!(Filters::new(&[named("team", "other:x"), Filter::of_keys("team:x")]).is_ok());
    }
}
