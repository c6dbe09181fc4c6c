//! `memory define`: makes a scope a level, or changes the rules of one.

use std::collections::BTreeMap;

use serde::Serialize;

use super::levels::{Level, ListedLevel, scope_of};
use super::rules::{LevelRules, MAX_LEVELS, check_no_cycle};
use super::{Memories, seed};
use crate::agent::prefetch_agent;
use crate::entry::{Actor, EntryEditor};
use crate::error::{Error, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::revision::{Pending, Revision};
use crate::scope::{Policies, ScopePolicies, described};
use crate::store::{Changes, Key, Prefetch, Range};

/// A level to define.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Define {
    /// Its name.
    pub name: String,
    /// All of its rules, in place of earlier ones.
    pub rules: LevelRules,
    /// The session that acts.
    pub session: Option<String>,
}

/// The result of a definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Defined {
    /// The levels, in the order of the request.
    pub levels: Vec<DefinedLevel>,
}

/// A level that was defined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DefinedLevel {
    /// The level.
    #[serde(flatten)]
    pub level: ListedLevel,
    /// Whether this call created or changed it.
    pub changed: bool,
    /// Levels that its rules name and that do not exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

impl Pending for Defined {
    fn resolve(&mut self, _first: Revision) {}
}

/// A level that a call defines.
struct Wanted {
    name: String,
    rules: LevelRules,
    /// Whether a level with other rules stays as it is.
    keeps: bool,
}

impl Memories<'_> {
    /// Makes a scope a level, or changes the rules of a level. Records stay as they are, and later calls obey the new rules.
    /// Rules whose levels would lead back to each other are refused.
    ///
    /// ```
    /// # use blackboard::{Board, Code, memory::{Define, LevelRules}};
    /// # let board = Board::memory();
    /// let to = |next: &str| LevelRules { next: vec![next.to_owned()], ..LevelRules::default() };
    /// let define = |name: &str, rules| Define { name: name.to_owned(), rules, session: None };
    /// board.memories().define(&define("ideas", to("plans")))?;
    /// let refused = board.memories().define(&define("plans", to("ideas"))).unwrap_err();
    /// assert_eq!(refused.code(), Code::DependencyCycle);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn define(&self, request: &Define) -> Result<Defined> {
        let Define { name, rules, session } = request;
        rules.check(name)?;
        let wanted = Wanted { name: name.clone(), rules: rules.clone(), keeps: false };
        self.define_levels(&[wanted], session.as_deref())
    }

    /// Creates the levels of the design that this follows ([`SEED_LEVELS`](super::SEED_LEVELS)). A level that exists stays as
    /// it is.
    ///
    /// ```
    /// # use blackboard::Board;
    /// # let board = Board::memory();
    /// assert!(board.memories().define_seed(None)?.levels.iter().all(|level| level.changed));
    /// assert!(board.memories().define_seed(None)?.levels.iter().all(|level| !level.changed));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn define_seed(&self, session: Option<&str>) -> Result<Defined> {
        let wanted: Vec<_> = seed::levels()
            .into_iter()
            .map(|(name, rules)| Wanted { name: name.to_owned(), rules, keeps: true })
            .collect();
        self.define_levels(&wanted, session)
    }

    fn define_levels(self, wanted: &[Wanted], session: Option<&str>) -> Result<Defined> {
        let texts = wanted.iter().flat_map(|wanted| {
            let LevelRules { patterns, without_tags, .. } = &wanted.rules;
            patterns.iter().chain(without_tags).map(String::as_str).chain([wanted.name.as_str()])
        });
        self.board.settings().text.check_unaltered(texts)?;
        let mut prefetch = vec![Prefetch::Range(Range::scope_policies())];
        prefetch.extend(prefetch_agent(session));
        let keys: Vec<_> = wanted.iter().map(|wanted| Key::ScopePolicies(scope_of(&wanted.name))).collect();
        prefetch.extend(keys.iter().cloned().map(Prefetch::Row));
        let actor = Actor { session: session.map(str::to_owned), ..Actor::default() };
        self.board.commit_as(session.as_slice(), "memory define", &prefetch, |tx| {
            let mut editor = EntryEditor::new(self.board, tx, &actor)?;
            let rows: BTreeMap<_, _> = tx
                .rows::<ScopePolicies>(&Range::scope_policies())?
                .into_iter()
                .map(|row| (row.scope.clone(), row))
                .collect();
            for key in &keys {
                // A row has to be read by its key before it is written.
                if let Some(before) = &tx.row::<ScopePolicies>(key)? {
                    editor.check_owner(before)?;
                    before.check_not_ended()?;
                }
            }
            let (author, now) = (editor.author.clone(), tx.now());
            let circumstances = Circumstances { rows: &rows, author: &author, session, now };
            let defined = decide(wanted, &circumstances, &mut editor.changes)?;
            Ok((editor.finish()?, defined))
        })
    }
}

/// What a definition depends on.
struct Circumstances<'a> {
    rows: &'a BTreeMap<String, ScopePolicies>,
    author: &'a str,
    session: Option<&'a str>,
    now: crate::clock::Timestamp,
}

fn decide(wanted: &[Wanted], circumstances: &Circumstances<'_>, changes: &mut Changes) -> Result<Defined> {
    let Circumstances { rows, author, session, now } = *circumstances;
    let before: BTreeMap<_, _> =
        rows.values().filter_map(Level::of).map(|level| (level.name, level.rules)).collect();
    let mut after = before.clone();
    for Wanted { name, rules, keeps } in wanted {
        if !(*keeps && after.contains_key(name)) {
            after.insert(name.clone(), rules.clone());
        }
    }
    if after.len() > MAX_LEVELS {
        return Err(Error::invalid(format!("a board has at most {MAX_LEVELS} memory levels")));
    }
    check_no_cycle(&after)?;
    let mut levels = Vec::with_capacity(wanted.len());
    for Wanted { name, .. } in wanted {
        let Some(rules) = after.get(name) else { continue };
        let is_changed = before.get(name) != Some(rules);
        let scope = scope_of(name);
        let missing = rules.targets().filter(|target| !after.contains_key(*target)).map(str::to_owned);
        let missing = missing.collect();
        if is_changed {
            let is_new = !before.contains_key(name);
            let old = rows.get(&scope);
            let policies = Policies {
                ttl: rules.ttl_of_entries(),
                level: Some(rules.clone()),
                status: crate::scope::ScopeStatus::Live,
                ..old.map(|row| row.policies.clone()).unwrap_or_default()
            };
            let (event_type, verb) = match old.filter(|row| row.is_live()) {
                Some(_) => (EventType::ScopeUpdated, if is_new { "defined" } else { "changed" }),
                None => (EventType::ScopeCreated, "defined"),
            };
            let summary = format!("Agent \"{author}\" {verb} memory level \"{name}\"");
            let event = NewEvent::new(event_type, TargetType::Scope, &scope, summary).by(session);
            let revision = changes.event(event.with_all(described(&policies)));
            let row = match old {
                Some(old) => ScopePolicies {
                    policies,
                    updated_at: now,
                    updated_by: author.to_owned(),
                    revision,
                    ..old.clone()
                },
                None => ScopePolicies {
                    scope: scope.clone(),
                    policies,
                    entries: None,
                    created_at: now,
                    created_by: author.to_owned(),
                    updated_at: now,
                    updated_by: author.to_owned(),
                    revision,
                    evicting_since: revision,
                },
            };
            changes.put(row);
        }
        let level = ListedLevel { level: name.clone(), scope, rules: rules.clone() };
        levels.push(DefinedLevel { level, changed: is_changed, missing });
    }
    Ok(Defined { levels })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::error::Code;
    use crate::store::Row;

    fn wanted(name: &str, next: &[&str], keeps: bool) -> Wanted {
        let next = next.iter().map(|name| (*name).to_owned()).collect();
        Wanted { name: name.to_owned(), rules: LevelRules { next, ..LevelRules::default() }, keeps }
    }

    #[test]
    fn definitions_change_only_what_differs_and_refuse_cycles() {
        use EventType::{ScopeCreated, ScopeUpdated};

        let mut rows = BTreeMap::new();
        let mut define = |wanted: &[Wanted]| {
            let mut changes = Changes::new();
            let circumstances =
                Circumstances { rows: &rows, author: "Ivy", session: None, now: Timestamp::EPOCH };
            let defined = decide(wanted, &circumstances, &mut changes).map_err(|error| error.code())?;
            let events: Vec<_> = changes.events.iter().map(|event| event.event_type.clone()).collect();
            for row in changes.put {
                if let Row::ScopePolicies(row) = row {
                    rows.insert(row.scope.clone(), row);
                }
            }
            let levels = defined.levels.into_iter().map(|level| (level.changed, level.missing));
            Ok::<_, Code>((events, levels.collect::<Vec<_>>()))
        };
        let missing = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let two = [wanted("a", &["b"], true), wanted("b", &[], true)];
        assert_eq!(
            define(&two),
            Ok((vec![ScopeCreated, ScopeCreated], vec![(true, missing(&[])), (true, missing(&[]))]))
        );
        assert_eq!(define(&two), Ok((vec![], vec![(false, missing(&[])), (false, missing(&[]))])));
        assert_eq!(define(&[wanted("b", &["a"], false)]), Err(Code::DependencyCycle));
        assert_eq!(
            define(&[wanted("b", &["x"], false)]),
            Ok((vec![ScopeUpdated], vec![(true, missing(&["x"]))]))
        );
        // A level that exists keeps its rules if the call creates only what is missing.
        assert_eq!(define(&two), Ok((vec![], vec![(false, missing(&[])), (false, missing(&["x"]))])));
        let many: Vec<_> = (0..=MAX_LEVELS).map(|number| wanted(&format!("l{number}"), &[], true)).collect();
        assert_eq!(define(&many), Err(Code::InvalidValue));
    }
}
