//! Who may read, write and delete which entries. No other module decides that.
//!
//! The identity of a caller is what it says: an author, a session, or neither. A caller that says neither is the operator,
//! who may do everything. [`refusal`] is the rule, a pure function of the policies of a scope and the caller. A [`Guard`]
//! applies it to one state of the board: every entry that a path shows, every event about an entry and every change of an
//! entry passes one.
//!
//! The rows of policies are announced with what a path reads first. The row of the session is read only if the policies of
//! a scope depend on the caller, so a plain scope costs no more than its row.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::custom::CallerPolicies;
use super::size::{policies_of, prefetch_policies};
use super::{Policies, ScopePolicies, Visibility};
use crate::agent::{Agent, AgentStatus, not_found as agent_not_found};
use crate::board::Board;
use crate::entry::{Actor, Entry, Glob, check_pattern};
use crate::error::{Code, Error, Refusal, Result};
use crate::event::{Event, TargetType};
use crate::hint::Hint;
use crate::metadata::Metadata;
use crate::names::impl_names;
use crate::store::{Key, Prefetch, Tx};
use crate::text::{escape_for_terminal, forges};

/// How many access rules a scope may have: every operation on its entries compares the caller and the key with them.
pub const MAX_ACCESS_RULES: usize = 100;

/// How many members a scope may have.
pub const MAX_MEMBERS: usize = 100;

/// How long the name of a member, or the pattern of a rule for callers, may be.
const MAX_NAME_BYTES: usize = 256;

/// What a caller does with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessOperation {
    /// It gets the value, the key or an event about it.
    Read,
    /// It writes the value.
    Write,
    /// It deletes or purges the entry.
    Delete,
}

impl AccessOperation {
    /// All of them.
    pub const ALL: &'static [AccessOperation] =
        &[AccessOperation::Read, AccessOperation::Write, AccessOperation::Delete];

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            AccessOperation::Read => "read",
            AccessOperation::Write => "write",
            AccessOperation::Delete => "delete",
        }
    }
}

impl_names!(AccessOperation, "kind of access");

/// What a rule does with the operations that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// It allows them, and no other caller has them unless another rule allows it.
    Allow,
    /// It denies them, whatever other rules allow.
    Deny,
}

impl Effect {
    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Effect::Allow => "allow",
            Effect::Deny => "deny",
        }
    }
}

/// A rule for some callers, operations and keys.
///
/// ```
/// use blackboard::scope::{AccessOperation, AccessRule, Effect};
///
/// let rule = AccessRule::parse(Effect::Allow, "analyst:read,write:result:*")?;
/// assert_eq!((&*rule.who, &*rule.keys), ("analyst", "result:*"));
/// assert_eq!(rule.operations, [AccessOperation::Read, AccessOperation::Write]);
/// # Ok::<(), blackboard::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessRule {
    /// What it does.
    pub effect: Effect,
    /// A pattern of authors, agent names and session ids; see [`Glob`].
    pub who: String,
    /// The operations, each once.
    pub operations: Vec<AccessOperation>,
    /// A pattern of keys.
    pub keys: String,
}

impl AccessRule {
    /// Parses `WHO:OPERATIONS` or `WHO:OPERATIONS:KEYS`. The operations are separated by commas; `*` means all of them. Without
    /// keys, the rule is about all. Only the keys may contain a colon: in a name, `?` matches it.
    pub fn parse(effect: Effect, text: &str) -> Result<AccessRule> {
        let wrong = || {
            let text = escape_for_terminal(text);
            Error::invalid(format!(
                "\"{text}\" is not WHO:OPERATIONS[:KEYS], for example \"analyst:read,write:result:*\""
            ))
        };
        let (who, rest) = text.split_once(':').ok_or_else(wrong)?;
        let (operations, keys) = rest.split_once(':').unwrap_or((rest, "*"));
        let operations: BTreeSet<AccessOperation> = match operations.trim() {
            "*" => AccessOperation::ALL.iter().copied().collect(),
            list => list.split(',').map(|name| name.trim().parse()).collect::<Result<_>>()?,
        };
        Ok(AccessRule {
            effect,
            who: who.to_owned(),
            operations: operations.into_iter().collect(),
            keys: keys.to_owned(),
        })
    }

    /// Whether it is about this operation of one of these names on a key.
    fn matches(&self, names: &[String], operation: AccessOperation, key: &str) -> bool {
        let who = || Glob::new(&self.who);
        self.operations.contains(&operation)
            && (self.who == "*" || names.iter().any(|name| who().matches(name)))
            && (self.keys == "*" || Glob::new(&self.keys).matches(key))
    }
}

impl fmt::Display for AccessRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operations: Vec<_> = self.operations.iter().map(|operation| operation.as_str()).collect();
        write!(formatter, "{} {}:{}:{}", self.effect.as_str(), self.who, operations.join(","), self.keys)
    }
}

/// The access rules of a scope. Their order does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AccessRules(Vec<AccessRule>);

impl AccessRules {
    /// These rules.
    pub fn new(rules: Vec<AccessRule>) -> AccessRules {
        AccessRules(rules)
    }

    /// The rules as they are stored: sorted, each once, so that the same ones are equal.
    pub(super) fn stored(&self) -> AccessRules {
        let mut rules = self.0.clone();
        rules.sort_by_key(ToString::to_string);
        rules.dedup();
        AccessRules(rules)
    }

    /// The rules.
    pub fn as_slice(&self) -> &[AccessRule] {
        &self.0
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether callers with these names may do this: no rule that matches denies it, and if rules allow the operation at all,
    /// one of them matches.
    fn allow(&self, names: &[String], operation: AccessOperation, key: &str) -> bool {
        let matches = |rule: &AccessRule| rule.matches(names, operation, key);
        let has = |effect, rule: &AccessRule| rule.effect == effect;
        let denied = self.0.iter().any(|rule| has(Effect::Deny, rule) && matches(rule));
        let mut allowing = self
            .0
            .iter()
            .filter(|rule| has(Effect::Allow, rule) && rule.operations.contains(&operation))
            .peekable();
        !denied && (allowing.peek().is_none() || allowing.any(matches))
    }
}

/// Refuses members and access rules that are too many, or that cannot match.
pub(super) fn check_access(scope: &str, policies: &Policies) -> Result<()> {
    let Policies { visibility, members, access, .. } = policies;
    let has_members = !members.is_empty();
    if *visibility == Visibility::Shared && !has_members {
        return Err(Refusal::new(Code::InvalidValue, "a shared scope needs members")
            .hint(Hint::NameMembers)
            .into());
    }
    if *visibility != Visibility::Shared && has_members {
        return Err(Error::invalid(format!("a {visibility} scope has no members; a shared one has")));
    }
    if members.len() > MAX_MEMBERS {
        let count = members.len();
        return Err(Error::invalid(format!("{count} members are too many; {MAX_MEMBERS} are allowed")));
    }
    members.iter().try_for_each(|member| check_name("member", member))?;
    let rules = access.as_slice();
    if rules.len() > MAX_ACCESS_RULES {
        let count = rules.len();
        let message = format!("{count} access rules are too many; {MAX_ACCESS_RULES} are allowed");
        return Err(Error::invalid(message));
    }
    for rule in rules {
        check_name("caller in an access rule", &rule.who)?;
        check_pattern(scope, &rule.keys)?;
        if rule.operations.is_empty() {
            return Err(Error::invalid("an access rule names no operation"));
        }
    }
    Ok(())
}

/// Names as they are stored: sorted, each once.
pub(super) fn sorted(names: &[String]) -> Vec<String> {
    names.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect()
}

fn check_name(what: &str, name: &str) -> Result<()> {
    let problem = if name.trim().is_empty() {
        "is empty"
    } else if name.len() > MAX_NAME_BYTES {
        "is too long"
    } else if name.contains(forges) {
        "contains control or invisible characters"
    } else {
        return Ok(());
    };
    Err(Error::invalid(format!("the name of a {what} {problem}")))
}

impl Policies {
    /// The same policies with their owner, which only policies have that restrict their callers.
    pub(super) fn owned_by(&self, session: Option<&str>) -> Policies {
        let owner = session.filter(|_| self.restrict_callers()).map(str::to_owned);
        let members = sorted(&self.members);
        Policies { owner, members, access: self.access.stored(), ..self.clone() }
    }

    /// Whether it matters who uses the entries.
    fn restrict_callers(&self) -> bool {
        let by_visibility = match self.visibility {
            Visibility::Global | Visibility::Persistent => false,
            Visibility::Shared | Visibility::Local => true,
        };
        by_visibility || !self.access.is_empty()
    }

    /// The texts of access rules and members, which callers write.
    pub(super) fn access_texts(&self) -> impl Iterator<Item = &str> {
        let rules = self.access.as_slice().iter().flat_map(|rule| [rule.who.as_str(), rule.keys.as_str()]);
        rules.chain(self.members.iter().map(String::as_str))
    }
}

impl ScopePolicies {
    /// Whether it matters who uses the entries.
    pub(crate) fn is_restricted(&self) -> bool {
        self.policies.restrict_callers()
    }

    fn is_owner(&self, session: Option<&str>) -> bool {
        self.policies.owner.is_some() && self.policies.owner.as_deref() == session
    }
}

/// Who uses a scope.
#[derive(Debug)]
enum Caller {
    /// A person or a script that says neither an agent nor a session: it may do everything.
    Operator,
    /// An agent: its author's name, its agent's name and its session id, as far as it has them.
    Named { names: Vec<String>, session: Option<String> },
    /// A session that has ended.
    Ended(Box<Agent>),
    /// A session that does not exist.
    Unknown(String),
}

impl Caller {
    fn of(actor: &Actor, agent: Option<Agent>) -> Caller {
        match (&actor.author, &actor.session, agent) {
            (None, None, _) => Caller::Operator,
            (_, Some(session), None) => Caller::Unknown(session.clone()),
            (_, Some(_), Some(agent)) if agent.status == AgentStatus::Completed => {
                Caller::Ended(Box::new(agent))
            }
            (author, session, agent) => {
                let names = author.iter().cloned().chain(agent.map(|agent| agent.agent_name));
                Caller::Named { names: names.chain(session.clone()).collect(), session: session.clone() }
            }
        }
    }

    /// The refusal of a session that cannot be used.
    fn unusable(&self) -> Option<Error> {
        match self {
            Caller::Operator | Caller::Named { .. } => None,
            Caller::Ended(agent) => Some(agent.has_ended()),
            Caller::Unknown(session) => Some(agent_not_found(session)),
        }
    }

    /// How a refusal names it.
    fn label(&self) -> &str {
        match self {
            Caller::Named { names, .. } => names.first().map_or("", String::as_str),
            Caller::Operator | Caller::Ended(_) | Caller::Unknown(_) => "",
        }
    }
}

/// Why a scope refuses a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Denial {
    /// It is not a member.
    NotMember,
    /// The access rules do not allow it.
    Rules,
}

/// The rule: why a caller with these names may not do this, if it may not. Without a key, it is about the scope itself.
fn refusal(
    row: &ScopePolicies,
    (names, session): (&[String], Option<&str>),
    what: Option<(AccessOperation, &str)>,
) -> Option<Denial> {
    let Policies { visibility, members, access, .. } = &row.policies;
    let is_visible = match visibility {
        Visibility::Global | Visibility::Persistent => true,
        Visibility::Shared => row.is_owner(session) || members.iter().any(|member| names.contains(member)),
        Visibility::Local => row.is_owner(session),
    };
    match what {
        _ if !is_visible => Some(Denial::NotMember),
        Some((operation, key)) if !access.allow(names, operation, key) => Some(Denial::Rules),
        _ => None,
    }
}

/// What one caller may do, in one state of the board.
pub(crate) struct Guard<'a> {
    board: &'a Board,
    tx: &'a dyn Tx,
    actor: Actor,
    /// The policies of the program that embeds the library.
    custom: CallerPolicies,
    caller: OnceCell<Caller>,
    rows: RefCell<BTreeMap<String, Option<Rc<ScopePolicies>>>>,
}

impl<'a> Guard<'a> {
    /// For an actor; for the caller of the board if the actor says neither an author nor a session.
    pub(crate) fn new(board: &'a Board, tx: &'a dyn Tx, actor: &Actor) -> Guard<'a> {
        let actor =
            Actor { author: actor.author.clone(), session: actor.session.clone(), ..Actor::default() };
        let known = board.caller().filter(|_| says_nothing(&actor)).and_then(|source| source.known.get());
        let custom = board.policies_for(known.unwrap_or(&actor));
        Guard { board, tx, actor, custom, caller: OnceCell::new(), rows: RefCell::default() }
    }

    /// For the caller of the board.
    pub(crate) fn of_board(board: &'a Board, tx: &'a dyn Tx) -> Guard<'a> {
        Guard::new(board, tx, &Actor::default())
    }

    /// Announces what a check of entries of these scopes reads: nothing for the operator.
    pub(crate) fn prefetch<'s>(
        board: &Board,
        actor: &Actor,
        scopes: impl IntoIterator<Item = &'s str>,
    ) -> Vec<Prefetch<'static>> {
        if is_operator(board, actor) {
            return Vec::new();
        }
        let scopes: BTreeSet<_> = scopes.into_iter().collect();
        scopes.into_iter().filter_map(prefetch_policies).collect()
    }

    /// The same for the caller of this guard.
    pub(crate) fn prefetch_of<'s>(
        &self,
        scopes: impl IntoIterator<Item = &'s str>,
    ) -> Vec<Prefetch<'static>> {
        Guard::prefetch(self.board, &self.actor, scopes)
    }

    /// The policies of the program for this caller.
    pub(crate) fn custom(&self) -> &CallerPolicies {
        &self.custom
    }

    /// Refuses the operation on an entry, if the access policy of the program does not allow it.
    pub(crate) fn check_custom(&self, operation: AccessOperation, scope: &str, key: &str) -> Result<()> {
        self.custom.refusal(operation, scope, key).map_or(Ok(()), Err)
    }

    /// Whether every caller may read everything: no policy of the program, and the operator calls.
    fn allows_everything(&self) -> bool {
        self.is_operator() && !self.custom.is_any()
    }

    /// Whether the caller is the operator, who may do everything that the program allows.
    pub(crate) fn is_operator(&self) -> bool {
        is_operator(self.board, &self.actor)
    }

    /// Refuses the operation on an entry, if the policies of its scope do not allow it.
    pub(crate) fn check(&self, operation: AccessOperation, scope: &str, key: &str) -> Result<()> {
        self.refused(scope, Some((operation, key)))?.map_or(Ok(()), Err)
    }

    /// Refuses to use a scope of which the caller is not a member.
    pub(crate) fn check_scope(&self, scope: &str) -> Result<()> {
        self.refused(scope, None)?.map_or(Ok(()), Err)
    }

    /// Whether the policies of its scope let the caller read an entry. Lists leave out the others.
    pub(crate) fn may_read(&self, scope: &str, key: &str) -> Result<bool> {
        Ok(self.refused(scope, Some((AccessOperation::Read, key)))?.is_none())
    }

    /// Whether the caller sees a scope.
    pub(crate) fn may_see(&self, scope: &str) -> Result<bool> {
        Ok(self.refused(scope, None)?.is_none())
    }

    /// Whether the caller sees a scope whose policies are known.
    pub(crate) fn may_see_row(&self, row: &ScopePolicies) -> Result<bool> {
        Ok(self.refused_by(row, None)?.is_none())
    }

    /// Refuses to use a scope whose policies are known, if the caller is not a member.
    pub(crate) fn check_member(&self, row: &ScopePolicies) -> Result<()> {
        self.refused_by(row, None)?.map_or(Ok(()), Err)
    }

    /// The entries that the caller may read. Their policies need not be announced.
    pub(crate) fn readable(&self, entries: Vec<Entry>) -> Result<Vec<Entry>> {
        if self.allows_everything() {
            return Ok(entries);
        }
        let next = self.prefetch_of(entries.iter().map(|entry| entry.scope.as_str()));
        if !next.is_empty() {
            self.tx.prefetch(&next)?;
        }
        let mut readable = Vec::with_capacity(entries.len());
        for entry in entries {
            if self.may_read(&entry.scope, &entry.key)? {
                readable.push(entry);
            }
        }
        Ok(readable)
    }

    /// Removes the events about entries and scopes that the caller may not read. Their policies need not be announced.
    pub(crate) fn retain_readable(&self, events: &mut Vec<Event>) -> Result<()> {
        let mut hidden = self.hidden(events)?.into_iter();
        if hidden.len() > 0 {
            events.retain(|_| !hidden.next().unwrap_or(false));
        }
        Ok(())
    }

    /// For each event, whether it is about an entry or a scope that the caller may not read. Empty if all may be read.
    pub(crate) fn hidden(&self, events: &[Event]) -> Result<Vec<bool>> {
        if self.allows_everything() {
            return Ok(Vec::new());
        }
        let subjects: Vec<_> = events.iter().map(Subject::of).collect();
        let scopes = subjects.iter().flatten().map(|subject| subject.scope.as_str());
        let next = self.prefetch_of(scopes);
        if next.is_empty() && !self.custom.is_any() {
            return Ok(Vec::new());
        }
        self.tx.prefetch(&next)?;
        let is_hidden = |subject: Option<Subject>| match subject {
            Some(Subject { scope, key: Some(key) }) => self.may_read(&scope, &key).map(|may| !may),
            Some(Subject { scope, key: None }) => self.may_see(&scope).map(|may| !may),
            None => Ok(false),
        };
        let is_hidden = |subject| match is_hidden(subject) {
            // Policies that cannot be read allow no caller anything, and stop no reader.
            Err(error) if error.is_unreadable_row() => Ok(true),
            hidden => hidden,
        };
        subjects.into_iter().map(is_hidden).collect()
    }

    /// The caller is this agent, which need not be read again.
    pub(crate) fn know(&self, agent: Option<&Agent>) {
        if let Some(agent) = agent.filter(|agent| self.actor.session.as_ref() == Some(&agent.session_id)) {
            self.caller.get_or_init(|| Caller::of(&self.actor, Some(agent.clone())));
        }
    }

    /// Refuses the operation on an entry of a scope whose policies are known.
    pub(crate) fn check_row(&self, row: &ScopePolicies, operation: AccessOperation, key: &str) -> Result<()> {
        self.refused_by(row, Some((operation, key)))?.map_or(Ok(()), Err)
    }

    /// Refuses to change the policies of a scope that restricts its callers, unless the caller is its owner or the operator.
    pub(crate) fn check_owner(&self, row: &ScopePolicies) -> Result<()> {
        if !row.is_restricted() {
            return Ok(());
        }
        let caller = self.caller()?;
        match caller {
            Caller::Operator => Ok(()),
            Caller::Named { session, .. } if row.is_owner(session.as_deref()) => Ok(()),
            Caller::Named { .. } => {
                let message = format!(
                    "only the session that created scope {} and the operator may change its policies",
                    row.scope
                );
                Err(Refusal::new(Code::NotAllowed, message).detail("scope", row.scope.clone()).into())
            }
            Caller::Ended(_) | Caller::Unknown(_) => caller.unusable().map_or(Ok(()), Err),
        }
    }

    fn refused(&self, scope: &str, what: Option<(AccessOperation, &str)>) -> Result<Option<Error>> {
        let custom = what.and_then(|(operation, key)| self.custom.refusal(operation, scope, key));
        if custom.is_some() {
            return Ok(custom);
        }
        if self.is_operator() {
            return Ok(None);
        }
        let row = self.row(scope)?;
        row.map_or(Ok(None), |row| self.refused_by(&row, what))
    }

    fn refused_by(
        &self,
        row: &ScopePolicies,
        what: Option<(AccessOperation, &str)>,
    ) -> Result<Option<Error>> {
        if self.is_operator() || !row.is_restricted() {
            return Ok(None);
        }
        let caller = self.caller()?;
        Ok(match caller {
            Caller::Operator => None,
            Caller::Named { names, session } => refusal(row, (names, session.as_deref()), what)
                .map(|denial| not_allowed(row, caller.label(), what, denial)),
            Caller::Ended(_) | Caller::Unknown(_) => caller.unusable(),
        })
    }

    fn row(&self, scope: &str) -> Result<Option<Rc<ScopePolicies>>> {
        if let Some(row) = self.rows.borrow().get(scope) {
            return Ok(row.clone());
        }
        let row = policies_of(self.tx, scope)?.map(Rc::new);
        self.rows.borrow_mut().insert(scope.to_owned(), row.clone());
        Ok(row)
    }

    /// The caller, which is looked up once.
    fn caller(&self) -> Result<&Caller> {
        if let Some(caller) = self.caller.get() {
            return Ok(caller);
        }
        let actor = match self.board.caller() {
            Some(source) if says_nothing(&self.actor) => source.actor()?,
            _ => self.actor.clone(),
        };
        let agent = match &actor.session {
            Some(session) => {
                let key = Key::Agent(session.clone());
                self.tx.prefetch(&[Prefetch::Row(key.clone())])?;
                self.tx.row::<Agent>(&key)?
            }
            None => None,
        };
        Ok(self.caller.get_or_init(|| Caller::of(&actor, agent)))
    }
}

fn says_nothing(actor: &Actor) -> bool {
    actor.author.is_none() && actor.session.is_none()
}

fn is_operator(board: &Board, actor: &Actor) -> bool {
    says_nothing(actor) && board.caller().is_none_or(|source| source.known.get().is_some_and(says_nothing))
}

/// The entry or the scope that an event is about.
struct Subject {
    scope: String,
    /// The key of an entry.
    key: Option<String>,
}

impl Subject {
    fn of(event: &Event) -> Option<Subject> {
        let target = event.target_id.clone()?;
        match event.target_type? {
            TargetType::Scope => Some(Subject { scope: target, key: None }),
            TargetType::Entry => {
                let mut metadata = event.metadata.as_ref().map(Metadata::to_map)?;
                let scope = metadata.remove("scope")?.as_str()?.to_owned();
                Some(Subject { scope, key: Some(target) })
            }
            TargetType::Agent | TargetType::WorkItem | TargetType::Project | TargetType::Protocol => None,
        }
    }
}

/// The refusal of a caller.
fn not_allowed(
    ScopePolicies { scope, policies: Policies { visibility, .. }, .. }: &ScopePolicies,
    caller: &str,
    what: Option<(AccessOperation, &str)>,
    denial: Denial,
) -> Error {
    let refusal = match (denial, what) {
        (Denial::Rules, Some((operation, key))) => {
            let message = format!("scope {scope} does not allow {caller} to {operation} {key}");
            Refusal::new(Code::NotAllowed, message)
                .hint(Hint::ShowScope(scope.clone()))
                .detail("operation", operation.as_str())
                .detail("key", key)
        }
        (Denial::Rules | Denial::NotMember, _) if *visibility == Visibility::Local => {
            Refusal::new(Code::NotAllowed, format!("scope {scope} is local to another session"))
        }
        (Denial::Rules | Denial::NotMember, _) => Refusal::new(
            Code::NotAllowed,
            format!("scope {scope} is shared with other agents, not with {caller}"),
        ),
    };
    refusal.detail("scope", scope.clone()).detail("caller", caller).into()
}

/// The caller of a board: known, or searched for when the policies of a scope depend on it.
pub(crate) struct CallerSource {
    known: OnceLock<Actor>,
    find: Option<Box<FindCaller>>,
}

/// Finds out who calls.
type FindCaller = dyn Fn(&Board) -> Result<Actor> + Send + Sync;

/// The message of the error that makes the board search for its caller. No caller sees it.
const UNIDENTIFIED: &str = "the caller is not known";

impl CallerSource {
    pub(crate) fn known(actor: Actor) -> CallerSource {
        CallerSource { known: OnceLock::from(actor), find: None }
    }

    pub(crate) fn searched_for(
        find: impl Fn(&Board) -> Result<Actor> + Send + Sync + 'static,
    ) -> CallerSource {
        CallerSource { known: OnceLock::new(), find: Some(Box::new(find)) }
    }

    /// The caller, if it is known. The board searches for it after the error, outside of the transaction.
    fn actor(&self) -> Result<Actor> {
        self.known.get().cloned().ok_or_else(|| Refusal::new(Code::NoSession, UNIDENTIFIED).into())
    }

    /// Searches for the caller, if that is the reason of an error. Then the call is repeated.
    pub(crate) fn resolve(&self, board: &Board, error: Error) -> Result<()> {
        let is_reason = error.code() == Code::NoSession && error.to_string() == UNIDENTIFIED;
        match &self.find {
            Some(find) if is_reason && self.known.get().is_none() => {
                let found = find(board)?;
                // Another thread may have found it, too.
                let _ = self.known.set(found);
                Ok(())
            }
            _ => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::revision::Revision;

    fn rules(texts: &[&str]) -> AccessRules {
        let parse = |text: &&str| match text.strip_prefix('!') {
            Some(denied) => AccessRule::parse(Effect::Deny, denied),
            None => AccessRule::parse(Effect::Allow, text),
        };
        AccessRules::new(texts.iter().map(parse).collect::<Result<_>>().unwrap())
    }

    fn row(policies: Policies) -> ScopePolicies {
        ScopePolicies {
            scope: "team".to_owned(),
            policies,
            entries: None,
            created_at: Timestamp::EPOCH,
            created_by: "Ivy".to_owned(),
            updated_at: Timestamp::EPOCH,
            updated_by: "Ivy".to_owned(),
            revision: Revision::new(1),
            evicting_since: Revision::new(1),
        }
    }

    #[test]
    fn a_rule_has_three_parts_and_only_keys_contain_colons() {
        for (text, expected) in [
            ("analyst:read,write:result:*", Ok("allow analyst:read,write:result:*")),
            ("*:delete", Ok("allow *:delete:*")),
            ("a*:*:k", Ok("allow a*:read,write,delete:k")),
            ("ivy:write, read , write:*", Ok("allow ivy:read,write:*")),
            ("ivy", Err(Code::InvalidValue)),
            ("ivy:", Err(Code::InvalidValue)),
            ("ivy:own:*", Err(Code::InvalidValue)),
        ] {
            let parsed = AccessRule::parse(Effect::Allow, text).map(|rule| rule.to_string());
            assert_eq!(parsed.map_err(|error| error.code()), expected.map(str::to_owned), "{text}");
        }
    }

    #[test]
    fn a_denial_wins_and_an_allowed_operation_is_refused_to_others() {
        use AccessOperation::{Delete, Read, Write};
        for (texts, names, operation, key, expected) in [
            (&[][..], &["ivy"][..], Write, "a", true),
            (&["ivy:write:a*"], &["ivy"], Write, "a1", true),
            (&["ivy:write:a*"], &["ivy"], Write, "b", false),
            (&["ivy:write:a*"], &["oak"], Write, "a1", false),
            // No rule allows reads to some callers only.
            (&["ivy:write:a*"], &["oak"], Read, "a1", true),
            (&["i*:read"], &["oak", "ivy-1"], Read, "x", true),
            (&["ivy:read", "oak:read"], &["oak"], Read, "x", true),
            (&["!oak:*"], &["oak"], Delete, "x", false),
            (&["!oak:*"], &["ivy"], Delete, "x", true),
            (&["*:read", "!oak:read:secret:*"], &["oak"], Read, "secret:1", false),
            (&["!oak:read:secret:*", "*:read"], &["oak"], Read, "secret:1", false),
            (&["!oak:read:secret:*", "*:read"], &["oak"], Read, "note", true),
        ] {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            let allowed = rules(texts).allow(&names, operation, key);
            assert_eq!(allowed, expected, "{texts:?}: {names:?} {operation} {key}");
        }
    }

    #[test]
    fn a_shared_scope_is_for_its_owner_and_its_members() {
        let shared = Policies {
            visibility: Visibility::Shared,
            members: vec!["Oak".to_owned(), "session-3".to_owned()],
            owner: Some("session-1".to_owned()),
            access: rules(&["!Oak:delete"]),
            ..Policies::default()
        };
        let row = row(shared);
        for (names, session, what, expected) in [
            (&["Ivy", "session-1"][..], Some("session-1"), None, None),
            (&["Oak", "session-2"], Some("session-2"), None, None),
            (&["Oak"], None, None, None),
            (&["Elm", "session-3"], Some("session-3"), None, None),
            (&["Elm", "session-4"], Some("session-4"), None, Some(Denial::NotMember)),
            (&["Oak"], None, Some((AccessOperation::Read, "a")), None),
            (&["Oak"], None, Some((AccessOperation::Delete, "a")), Some(Denial::Rules)),
            (&["Elm"], None, Some((AccessOperation::Read, "a")), Some(Denial::NotMember)),
        ] {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(refusal(&row, (&names, session), what), expected, "{names:?} {what:?}");
        }
    }

    #[test]
    fn members_belong_to_a_shared_scope_and_rules_are_limited() {
        let shared = |members: &[&str]| Policies {
            visibility: Visibility::Shared,
            members: members.iter().map(|name| (*name).to_owned()).collect(),
            ..Policies::default()
        };
        let many = |count| AccessRules::new(rules(&["a:read"]).0.into_iter().cycle().take(count).collect());
        for (policies, allowed) in [
            (shared(&["Oak"]), true),
            (shared(&[]), false),
            (shared(&["Oak", " "]), false),
            (Policies { visibility: Visibility::Global, ..shared(&["Oak"]) }, false),
            (Policies { access: many(MAX_ACCESS_RULES), ..Policies::default() }, true),
            (Policies { access: many(MAX_ACCESS_RULES + 1), ..Policies::default() }, false),
            (Policies { access: rules(&[":read"]), ..Policies::default() }, false),
            (Policies { access: rules(&["a:read:team:*"]), ..Policies::default() }, false),
        ] {
            assert_eq!(check_access("team", &policies).is_ok(), allowed, "{policies:?}");
        }
    }
}
