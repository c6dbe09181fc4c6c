//! Steps on the policies of scopes.

use std::time::Duration;

use blackboard::protocol::Schema;
use blackboard::scope::{
    AccessRule, AccessRules, CreateScope, DeleteScope, Effect, Eviction, Policies, SetScope, ValueRule,
    ValueRules, Visibility,
};
use blackboard::{Board, Result};
use proptest::option;
use proptest::prelude::*;

use crate::world::{item, session};

/// A step on the policies of a scope. The session acts, or the operator.
#[derive(Clone, Debug)]
pub enum ScopeStep {
    Create(Governed, Option<u8>),
    Set(Governed, Option<u8>),
    Delete { entries: bool, who: Option<u8> },
    Look,
}

/// Policies.
#[derive(Clone, Debug)]
pub struct Governed {
    visibility: Visibility,
    members: Vec<usize>,
    work_item: Option<u8>,
    ttl: Option<u64>,
    max_entries: Option<u64>,
    eviction: Eviction,
    rule: Option<usize>,
    access: Option<usize>,
}

const RULES: usize = 4;
const ACCESS: [(Effect, &str); 3] = [
    (Effect::Deny, "analyst:write,delete:a*"),
    (Effect::Allow, "analyst:read,write"),
    (Effect::Deny, "*:read:a*"),
];
/// How many members a shared scope may have: three sessions, and an author.
const MEMBERS: usize = 4;

fn rule(number: usize) -> ValueRule {
    match number {
        0 => "a*=int".parse().unwrap(),
        1 => "*=array".parse().unwrap(),
        2 => ValueRule::schema("a:*", Schema::parse(r#"{"enum": [1, null, []]}"#).unwrap()),
        _ => ValueRule::protocol("*", "q0"),
    }
}

fn member(number: usize) -> String {
    match u8::try_from(number) {
        Ok(who) if number + 1 < MEMBERS => session(who),
        _ => "analyst".to_owned(),
    }
}

pub fn scope_step() -> BoxedStrategy<ScopeStep> {
    let who = || option::of(0..4_u8);
    prop_oneof![
        4 => (governed(), who()).prop_map(|(governed, who)| ScopeStep::Create(governed, who)),
        3 => (governed(), who()).prop_map(|(governed, who)| ScopeStep::Set(governed, who)),
        1 => (any::<bool>(), who()).prop_map(|(entries, who)| ScopeStep::Delete { entries, who }),
        1 => Just(ScopeStep::Look),
    ]
    .boxed()
}

fn governed() -> BoxedStrategy<Governed> {
    let visibility = prop_oneof![
        7 => Just((Visibility::Global, Vec::new())),
        1 => Just((Visibility::Persistent, Vec::new())),
        2 => Just((Visibility::Local, Vec::new())),
        2 => prop::collection::vec(0..MEMBERS, 1..3).prop_map(|members| (Visibility::Shared, members)),
    ];
    (
        visibility,
        option::weighted(0.1, 0..5_u8),
        option::weighted(0.3, prop::sample::select(vec![1, 60, 3600])),
        option::weighted(0.8, 1..5_u64),
        prop_oneof![3 => Just(Eviction::Lru), 2 => Just(Eviction::Lfu), 1 => Just(Eviction::Refuse)],
        option::weighted(0.2, 0..RULES),
        option::weighted(0.2, 0..ACCESS.len()),
    )
        .prop_map(|((visibility, members), work_item, ttl, max_entries, eviction, rule, access)| Governed {
            visibility,
            members,
            work_item,
            ttl,
            max_entries,
            eviction,
            rule,
            access,
        })
        .boxed()
}

impl Governed {
    fn policies(&self) -> Policies {
        Policies {
            visibility: self.visibility,
            members: self.members(),
            work_item: self.work_item.map(item),
            ttl: self.ttl.map(Duration::from_secs),
            max_entries: self.max_entries,
            eviction: self.eviction,
            validation: self.validation(),
            access: AccessRules::new(self.access().collect()),
            ..Policies::default()
        }
    }

    fn change(&self, name: &str) -> SetScope {
        let (allow, deny) = self.access().partition(|rule| rule.effect == Effect::Allow);
        SetScope {
            visibility: Some(self.visibility),
            members: Some(self.members()).filter(|members| !members.is_empty()),
            ttl: Some(self.ttl.map(Duration::from_secs)),
            max_entries: Some(self.max_entries),
            eviction: Some(self.eviction),
            validation: Some(self.validation()),
            allow: Some(AccessRules::new(allow)),
            deny: Some(AccessRules::new(deny)),
            ..SetScope::of(name)
        }
    }

    fn members(&self) -> Vec<String> {
        self.members.iter().map(|&number| member(number)).collect()
    }

    fn validation(&self) -> ValueRules {
        ValueRules::new(self.rule.into_iter().map(rule).collect())
    }

    fn access(&self) -> impl Iterator<Item = AccessRule> {
        self.access.into_iter().map(|number| {
            let (effect, rule) = ACCESS[number];
            AccessRule::parse(effect, rule).unwrap()
        })
    }
}

/// Takes the step, and shows its answer.
pub fn take(board: &Board, name: &str, step: &ScopeStep) -> Result<String> {
    let scopes = board.scopes();
    match step {
        ScopeStep::Create(governed, who) => {
            let create =
                CreateScope { session: who.map(session), ..CreateScope::new(name, governed.policies()) };
            scopes.create(&create).map(|answer| format!("{answer:?}"))
        }
        ScopeStep::Set(governed, who) => {
            let set = SetScope { session: who.map(session), ..governed.change(name) };
            scopes.set(&set).map(|answer| format!("{answer:?}"))
        }
        ScopeStep::Delete { entries, who } => {
            let delete = DeleteScope { name: name.to_owned(), entries: *entries, session: who.map(session) };
            scopes.delete(&delete).map(|answer| format!("{answer:?}"))
        }
        ScopeStep::Look => Ok(format!("{:?} {:?}", scopes.list()?, scopes.show(name).ok())),
    }
}
