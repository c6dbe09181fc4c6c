//! Functions of the protocol `WorkAssignment`.

use super::{Values, built_in};
use crate::error::Result;

/// Work that a coordinator assigns to agents, and their results. All agents share the scope, so the keys name the
/// agent.
///
/// ```
/// use blackboard::protocol::WorkAssignment;
///
/// // The coordinator assigns work to an agent.
/// let key = WorkAssignment::assignment_key("worker-1", "task-42")?;
/// assert_eq!(key, "agent_id:worker-1:work_assignment:task-42");
/// // The agent writes its result.
/// let key = WorkAssignment::result_key("worker-1", "final", None)?;
/// assert_eq!(key, "agent_id:worker-1:result_type:final");
/// // The coordinator subscribes to the results of all agents.
/// assert_eq!(WorkAssignment::result_pattern(None)?, "agent_id:*:result_type:*");
/// assert_eq!(WorkAssignment::parse_result_key(&key).unwrap()["agent_id"], "worker-1");
/// # Ok::<(), blackboard::Error>(())
/// ```
#[derive(Debug)]
pub struct WorkAssignment;

impl WorkAssignment {
    /// The key of an assignment.
    pub fn assignment_key(agent: &str, id: &str) -> Result<String> {
        built_in("WorkAssignment.assignment")?.template.key(&[("agent_id", agent), ("id", id)])
    }

    /// The key of a result, of one assignment if it is named.
    ///
    /// ```
    /// # use blackboard::protocol::WorkAssignment;
    /// let key = WorkAssignment::result_key("worker-1", "final", Some("task-42"))?;
    /// assert_eq!(key, "agent_id:worker-1:result_type:final:task-42");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn result_key(agent: &str, result_type: &str, id: Option<&str>) -> Result<String> {
        let values = [("agent_id", agent), ("type", result_type)].into_iter();
        let values: Vec<_> = values.chain(id.map(|id| ("id", id))).collect();
        built_in("WorkAssignment.result")?.template.key(&values)
    }

    /// The pattern of assignments, to all agents or to one.
    ///
    /// ```
    /// # use blackboard::protocol::WorkAssignment;
    /// let pattern = WorkAssignment::assignment_pattern(Some("worker-1"))?;
    /// assert_eq!(pattern, "agent_id:worker-1:work_assignment:*");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn assignment_pattern(agent: Option<&str>) -> Result<String> {
        pattern("WorkAssignment.assignment", agent)
    }

    /// The pattern of results, of all agents or of one.
    pub fn result_pattern(agent: Option<&str>) -> Result<String> {
        pattern("WorkAssignment.result", agent)
    }

    /// The values of the key of an assignment: `agent_id` and `id`.
    ///
    /// ```
    /// # use blackboard::protocol::WorkAssignment;
    /// let values = WorkAssignment::parse_assignment_key("agent_id:worker-1:work_assignment:7").unwrap();
    /// assert_eq!(values["id"], "7");
    /// ```
    pub fn parse_assignment_key(key: &str) -> Option<Values> {
        built_in("WorkAssignment.assignment").ok()?.template.parse(key)
    }

    /// The values of the key of a result: `agent_id`, `type`, and `id` if it names an assignment.
    pub fn parse_result_key(key: &str) -> Option<Values> {
        built_in("WorkAssignment.result").ok()?.template.parse(key)
    }
}

fn pattern(reference: &str, agent: Option<&str>) -> Result<String> {
    built_in(reference)?
        .template
        .pattern(&agent.map(|agent| ("agent_id", agent)).into_iter().collect::<Vec<_>>())
}
