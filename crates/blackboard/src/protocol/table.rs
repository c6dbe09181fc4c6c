//! The table of built-in protocols.
//!
//! The first ten define how agents call, instruct and inform each other. The others are prefixes of keys that are in
//! wide use, with the form of their values and with TTLs. All of them describe entries and refuse none.

use std::sync::LazyLock;

use super::{
    Level, Message, ONLY_MESSAGE, Protocol, RecommendedTtl, Schema, Template, not_found, split_reference,
};
use crate::error::Result;

struct Row {
    name: &'static str,
    level: Level,
    summary: &'static str,
    /// The name and the template of each message.
    messages: &'static [(&'static str, &'static str)],
    /// The schema of all values.
    schema: Option<&'static str>,
    /// The shortest and the longest recommended TTL, in seconds.
    ttl: Option<(u32, u32)>,
}

const fn row(
    name: &'static str,
    level: Level,
    summary: &'static str,
    messages: &'static [(&'static str, &'static str)],
) -> Row {
    Row { name, level, summary, messages, schema: None, ttl: None }
}

const TABLE: &[Row] = &[
    row(
        "AgentRun",
        Level::Agent,
        "Requests to an agent, their results and streamed events",
        &[
            ("request", "request:run:{ns?}:{id}"),
            ("result", "result:run:{ns?}:{id}"),
            ("event", "event:run:{ns?}:{id}:{name}"),
        ],
    ),
    row(
        "WorkAssignment",
        Level::Colony,
        "Work that a coordinator assigns, and its results",
        &[
            ("assignment", "agent_id:{agent_id}:work_assignment:{id}"),
            ("result", "agent_id:{agent_id}:result_type:{type}:{id?}"),
        ],
    ),
    row(
        "LifecycleSignal",
        Level::Colony,
        "Agents that start and end",
        &[
            ("created", "agent_id:{agent_id}:scope:agent_created"),
            ("terminated", "agent_id:{agent_id}:scope:agent_terminated"),
        ],
    ),
    row(
        "GameState",
        Level::Colony,
        "States and results of games",
        &[("state", "state:{game}"), ("complete", "result:game_complete:{game}")],
    ),
    row(
        "Critique",
        Level::Colony,
        "Critique between peers, parents and children",
        &[
            ("peer_request", "critique_request_from_peer:True:requester_id:{requester_id}"),
            ("parent_request", "child_id:{child_id}:critique_request_from_parent:True"),
            ("child_request", "critique_request_from_child:True:parent_id:{parent_id}"),
            ("response", "critique_response_from:{agent_id}:requester_id:{requester_id}"),
        ],
    ),
    row(
        "ConsistencyCheck",
        Level::Colony,
        "Requests for consistency checks, and their results",
        &[("request", "consistency_check_request:{id}"), ("result", "consistency_check_result:{id}")],
    ),
    row(
        "Grounding",
        Level::Agent,
        "Claims to verify, and the results",
        &[("request", "grounding_request:{id}"), ("result", "grounding_result:{id}")],
    ),
    row(
        "GoalAlignment",
        Level::Colony,
        "Alignment of goals, and joint goals",
        &[
            ("request", "goal_alignment_request:{id}"),
            ("result", "goal_alignment_result:{id}"),
            ("registration", "joint_goal_registration:{goal}"),
            ("goal", "joint_goal:{goal}"),
        ],
    ),
    row(
        "WorkingSetState",
        Level::Colony,
        "The state of the working set of pages",
        &[("cluster", "state:working_set:cluster"), ("page_status", "state:working_set:page_status")],
    ),
    row(
        "Plan",
        Level::Colony,
        "Plans of agents, approvals and subscriptions",
        &[
            ("plan", "plan:{agent_id}"),
            ("approval_request", "plan_approval_request:{plan}"),
            ("notification", "agent_notification:{agent_id}:{timestamp}"),
            ("subscription", "plan_subscription:{plan}:{subscriber}"),
        ],
    ),
    Row {
        schema: Some(TASK),
        ttl: Some((3600, 3600)),
        ..row("Task", Level::Colony, "Status of a task", &[(ONLY_MESSAGE, "task:{id...}")])
    },
    Row {
        schema: Some(CACHE),
        ttl: Some((300, 900)),
        ..row("Cache", Level::Colony, "Cached result of a computation", &[(ONLY_MESSAGE, "cache:{id...}")])
    },
    Row {
        schema: Some(SIGNAL),
        ttl: Some((60, 120)),
        ..row(
            "Signal",
            Level::Colony,
            "Availability of an agent",
            &[(ONLY_MESSAGE, "signal:{agent}:{name?}")],
        )
    },
    Row {
        schema: Some(TRACE),
        ..row("Trace", Level::Colony, "Trace of an action", &[(ONLY_MESSAGE, "trace:{id...}")])
    },
    Row {
        ttl: Some((1800, 7200)),
        ..row("Result", Level::Colony, "Result of a completed task", &[(ONLY_MESSAGE, "result:{id...}")])
    },
    row(
        "Lock",
        Level::Colony,
        "Resource in use; a lock, which no entry can replace",
        &[(ONLY_MESSAGE, "lock:{name...}")],
    ),
];

const TASK: &str = r#"{
  "type": "object",
  "required": ["status", "assigned_to", "started_at"],
  "properties": {
    "status": {"enum": ["pending", "in_progress", "completed", "failed"]},
    "assigned_to": {"type": "string", "description": "an agent"},
    "started_at": {"type": "string", "description": "ISO 8601 timestamp"},
    "completed_at": {"type": ["string", "null"], "description": "ISO 8601 timestamp"},
    "error": {"type": ["string", "null"]},
    "result_key": {"type": ["string", "null"], "description": "the key of the result, result:ID"}
  }
}"#;

const CACHE: &str = r#"{
  "type": "object",
  "required": ["data", "computed_at", "source", "confidence"],
  "properties": {
    "data": {"description": "any structured data"},
    "computed_at": {"type": "string", "description": "ISO 8601 timestamp"},
    "source": {"type": "string", "description": "where the data comes from"},
    "confidence": {"type": "number", "minimum": 0, "maximum": 1}
  }
}"#;

const SIGNAL: &str = r#"{
  "type": "object",
  "required": ["agent_id", "status", "last_heartbeat"],
  "properties": {
    "agent_id": {"type": "string"},
    "status": {"enum": ["available", "busy", "waiting", "offline"]},
    "current_task": {"type": ["string", "null"], "description": "the key of the task, task:ID"},
    "last_heartbeat": {"type": "string", "description": "ISO 8601 timestamp"}
  }
}"#;

const TRACE: &str = r#"{
  "type": "object",
  "required": ["trace_id", "action", "params", "start_time", "status"],
  "properties": {
    "trace_id": {"type": "string"},
    "action": {"type": "string", "description": "what was done, for example delegate_task"},
    "params": {"type": "object"},
    "start_time": {"type": "string", "description": "ISO 8601 timestamp"},
    "end_time": {"type": ["string", "null"], "description": "ISO 8601 timestamp"},
    "status": {"enum": ["running", "completed", "failed"]}
  }
}"#;

static PROTOCOLS: LazyLock<Vec<Protocol>> = LazyLock::new(|| TABLE.iter().map(Row::protocol).collect());

impl Row {
    #[expect(clippy::expect_used, reason = "a test reads every row of the table")]
    fn protocol(&self) -> Protocol {
        let message = |(name, template): &(&str, &str)| Message {
            name: (*name).to_owned(),
            template: Template::new(template).expect("a template of the table"),
            value_schema: self.schema.map(|schema| Schema::parse(schema).expect("a schema of the table")),
            recommended_ttl: self
                .ttl
                .map(|(min_seconds, max_seconds)| RecommendedTtl { min_seconds, max_seconds }),
        };
        Protocol {
            name: self.name.to_owned(),
            level: self.level,
            scope_template: self.level.scope_template(),
            summary: self.summary.to_owned(),
            built_in: true,
            messages: self.messages.iter().map(message).collect(),
            defined_at: None,
            revision: None,
        }
    }
}

/// The built-in protocols, in the order of their table.
///
/// ```
/// let protocols = blackboard::protocol::built_in_protocols();
/// assert_eq!(protocols.len(), 16);
/// assert_eq!(protocols[0].name, "AgentRun");
/// ```
pub fn built_in_protocols() -> &'static [Protocol] {
    &PROTOCOLS
}

/// A message of a built-in protocol by its name. It needs no board.
///
/// ```
/// use blackboard::protocol::built_in;
///
/// let state = built_in("GameState.state")?;
/// assert_eq!(state.template.key(&[("game", "chess-1")])?, "state:chess-1");
/// assert_eq!(built_in("Task")?.template.key(&[("id", "q4_analysis")])?, "task:q4_analysis");
/// assert!(built_in("Unknown").is_err());
/// # Ok::<(), blackboard::Error>(())
/// ```
pub fn built_in(reference: &str) -> Result<&'static Message> {
    let (name, message) = split_reference(reference);
    find(name).ok_or_else(|| not_found(name))?.message(message)
}

/// The built-in protocol with this name, in any case: `agentrun` is not a second one.
pub(super) fn find(name: &str) -> Option<&'static Protocol> {
    PROTOCOLS.iter().find(|protocol| protocol.name.eq_ignore_ascii_case(name))
}

/// Whether keys of a built-in protocol begin with this word. Then a scope with the same name accepts them.
pub(crate) fn is_first_word(word: &str) -> bool {
    let mut templates = TABLE.iter().flat_map(|row| row.messages);
    templates.any(|(_, template)| template.split(':').next() == Some(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Glob, Value, check_key, check_pattern};

    /// Each template with a key of it.
    const KEYS: &[(&str, &str)] = &[
        ("AgentRun.request", "request:run:compliance:req_abc123"),
        ("AgentRun.request", "request:run:req_abc"),
        ("AgentRun.result", "result:run:compliance:req_abc123"),
        ("AgentRun.event", "event:run:compliance:req_abc123:progress"),
        ("WorkAssignment.assignment", "agent_id:worker-1:work_assignment:task-42"),
        ("WorkAssignment.result", "agent_id:worker-1:result_type:final"),
        ("WorkAssignment.result", "agent_id:worker-1:result_type:final:task-42"),
        ("LifecycleSignal.created", "agent_id:agent-xyz:scope:agent_created"),
        ("LifecycleSignal.terminated", "agent_id:agent-xyz:scope:agent_terminated"),
        ("GameState.state", "state:hypothesis-42"),
        ("GameState.complete", "result:game_complete:hypothesis-42"),
        ("Critique.peer_request", "critique_request_from_peer:True:requester_id:ivy"),
        ("Critique.parent_request", "child_id:oak:critique_request_from_parent:True"),
        ("Critique.child_request", "critique_request_from_child:True:parent_id:ivy"),
        ("Critique.response", "critique_response_from:oak:requester_id:ivy"),
        ("ConsistencyCheck.request", "consistency_check_request:1"),
        ("ConsistencyCheck.result", "consistency_check_result:1"),
        ("Grounding.request", "grounding_request:1"),
        ("Grounding.result", "grounding_result:1"),
        ("GoalAlignment.request", "goal_alignment_request:1"),
        ("GoalAlignment.result", "goal_alignment_result:1"),
        ("GoalAlignment.registration", "joint_goal_registration:g"),
        ("GoalAlignment.goal", "joint_goal:g"),
        ("WorkingSetState.cluster", "state:working_set:cluster"),
        ("WorkingSetState.page_status", "state:working_set:page_status"),
        ("Plan.plan", "plan:ivy"),
        ("Plan.approval_request", "plan_approval_request:p"),
        ("Plan.notification", "agent_notification:ivy:1770199200"),
        ("Plan.subscription", "plan_subscription:p:oak"),
        ("Task", "task:q4_analysis"),
        ("Cache", "cache:revenue_summary"),
        ("Signal", "signal:data_analyst:ready"),
        ("Signal", "signal:data_analyst"),
        ("Trace", "trace:a1b2c3d4"),
        ("Result", "result:q4_analysis"),
        ("Lock", "lock:sap_connection"),
    ];

    #[test]
    fn every_message_has_its_key_and_pattern() {
        testkit::limit_test();
        for (reference, key) in KEYS {
            let template = &built_in(reference).unwrap().template;
            let values = template.parse(key).unwrap_or_else(|| panic!("{key} is not a key of {template}"));
            let values: Vec<_> = values.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
            assert_eq!(template.key(&values).unwrap(), *key);
            assert!(Glob::new(&template.pattern(&[]).unwrap()).matches(key), "{key}");
        }
        for protocol in built_in_protocols() {
            assert!(protocol.summary.len() <= 60 && !protocol.name.contains('.'), "{}", protocol.name);
            for message in &protocol.messages {
                let reference = protocol.reference(message);
                assert!(KEYS.iter().any(|(name, _)| *name == reference), "{reference}");
            }
        }
    }

    #[test]
    fn pattern_of_a_game_matches_other_keys_that_do_not_parse() {
        let state = &built_in("GameState.state").unwrap().template;
        assert_eq!(state.pattern(&[]).unwrap(), "state:*");
        assert!(Glob::new("state:*").matches("state:working_set:cluster"));
        assert_eq!(state.parse("state:working_set:cluster"), None);
    }

    #[test]
    fn scope_with_the_name_of_a_first_word_accepts_keys_of_the_protocol() {
        for (_, key) in KEYS {
            let word = key.split(':').next().unwrap();
            assert!(is_first_word(word), "{word}");
            check_key(word, key).unwrap();
            check_pattern(word, &format!("{word}:*")).unwrap();
        }
        assert!(!is_first_word("team-1"));
        assert!(check_key("team-1", "team-1:task").is_err());
    }

    #[test]
    fn value_schemas_describe_the_documented_values() {
        let task = r#"{"status": "in_progress", "assigned_to": "data_analyst", "started_at": "2026-02-04T10:00:00Z"}"#;
        let cache =
            r#"{"data": {}, "computed_at": "2026-02-04T10:00:00Z", "source": "sales", "confidence": 0.95}"#;
        let trace = r#"{"trace_id": "u", "action": "delegate_task", "params": {}, "start_time": "2026-02-04T10:00:00Z",
                        "end_time": null, "status": "running"}"#;
        for (reference, value, matches) in [
            ("Task", task, true),
            ("Task", r#"{"status": "open"}"#, false),
            ("Cache", cache, true),
            ("Cache", r#"{"revenue": 1250000, "costs": 800000}"#, false),
            ("Trace", trace, true),
            ("Signal", r#"{"status": "available"}"#, false),
            ("Result", r#"{"summary": "Q4 revenue up 15%"}"#, true),
        ] {
            let value = Value::parse(value, 1024).unwrap();
            assert_eq!(built_in(reference).unwrap().check_value(&value).is_ok(), matches, "{value:?}");
        }
    }
}
