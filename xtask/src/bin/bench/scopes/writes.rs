//! Writes into a scope with access rules, a JSON Schema and a limit, against writes into a scope without policies.

use std::time::Instant;

use blackboard::Board;
use blackboard::entry::{Actor, Value, Write};
use blackboard::protocol::Schema;
use blackboard::scope::{AccessRule, AccessRules, CreateScope, Effect, Policies, ValueRule, ValueRules};

use crate::boards::Scratch;
use crate::report::Line;
use crate::{Result, Scale};

/// A typical value: about a hundred bytes.
const VALUE: &str =
    r#"{"status":"in_progress","assigned_to":"data_analyst","started_at":"2026-02-04T10:00:00Z","step":17}"#;

/// What it matches.
const SCHEMA: &str = r#"{
    "type": "object",
    "required": ["status", "assigned_to", "started_at"],
    "properties": {
        "status": {"enum": ["pending", "in_progress", "completed", "failed"]},
        "assigned_to": {"type": "string"},
        "started_at": {"type": "string"},
        "step": {"type": "integer", "minimum": 0}
    }
}"#;

/// How many keys are written in turn.
const KEYS: usize = 1000;

/// Writes per second.
pub fn writing(scale: &Scale) -> Result<Vec<Line>> {
    let writes = scale.of(10_000, 500);
    let schema = ValueRule::schema("task:*", Schema::parse(SCHEMA)?);
    let rules = [(Effect::Allow, "analyst:write:task:*"), (Effect::Deny, "guest:read,write,delete")];
    let rules = rules.map(|(effect, rule)| AccessRule::parse(effect, rule));
    let policies = Policies {
        access: AccessRules::new(rules.into_iter().collect::<blackboard::Result<_>>()?),
        max_entries: Some(100_000),
        validation: ValueRules::new(vec![schema]),
        ..Policies::default()
    };
    let (mut governed, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        governed.push(per_second(writes, |board| {
            board.scopes().create(&CreateScope::new("team", policies.clone()))?;
            Ok(())
        })?);
        plain.push(per_second(writes, |_| Ok(()))?);
    }
    let what =
        "`write` into a scope with access rules, a JSON Schema and `max_entries` 10⁵ against a plain scope";
    Ok(vec![Line::rate(what, 0.6, "writes", &governed, ("plain", &plain))])
}

fn per_second(writes: usize, govern: impl Fn(&Board) -> Result) -> Result<f64> {
    let scratch = Scratch::new()?;
    let board = scratch.open()?;
    govern(&board)?;
    let scope = board.scope("team").acting_as(Actor::author("analyst"));
    let value = Value::parse(VALUE, 1024)?;
    let start = Instant::now();
    for number in 0..writes {
        scope.write(&Write::new(&format!("task:{:04}", number % KEYS), value.clone()))?;
    }
    Ok(writes as f64 / start.elapsed().as_secs_f64())
}
