//! Functions of the protocol `LifecycleSignal`.

use super::{Values, built_in};
use crate::error::Result;

/// Agents that start and end. Each agent has keys of its own, so that agents that end together overwrite nothing.
///
/// ```
/// use blackboard::protocol::LifecycleSignal;
///
/// let key = LifecycleSignal::terminated_key("agent-xyz")?;
/// assert_eq!(key, "agent_id:agent-xyz:scope:agent_terminated");
/// assert_eq!(LifecycleSignal::terminated_pattern()?, "agent_id:*:scope:agent_terminated");
/// assert_eq!(LifecycleSignal::parse_terminated_key(&key).unwrap()["agent_id"], "agent-xyz");
/// # Ok::<(), blackboard::Error>(())
/// ```
#[derive(Debug)]
pub struct LifecycleSignal;

impl LifecycleSignal {
    /// The key of the signal that an agent started.
    ///
    /// ```
    /// # use blackboard::protocol::LifecycleSignal;
    /// assert_eq!(LifecycleSignal::created_key("ivy")?, "agent_id:ivy:scope:agent_created");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn created_key(agent: &str) -> Result<String> {
        built_in("LifecycleSignal.created")?.template.key(&[("agent_id", agent)])
    }

    /// The key of the signal that an agent ended.
    pub fn terminated_key(agent: &str) -> Result<String> {
        built_in("LifecycleSignal.terminated")?.template.key(&[("agent_id", agent)])
    }

    /// The pattern of signals that agents started.
    ///
    /// ```
    /// # use blackboard::protocol::LifecycleSignal;
    /// assert_eq!(LifecycleSignal::created_pattern()?, "agent_id:*:scope:agent_created");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn created_pattern() -> Result<String> {
        built_in("LifecycleSignal.created")?.template.pattern(&[])
    }

    /// The pattern of signals that agents ended.
    pub fn terminated_pattern() -> Result<String> {
        built_in("LifecycleSignal.terminated")?.template.pattern(&[])
    }

    /// The value of the key of a signal that an agent started: `agent_id`.
    ///
    /// ```
    /// # use blackboard::protocol::LifecycleSignal;
    /// let values = LifecycleSignal::parse_created_key("agent_id:ivy:scope:agent_created").unwrap();
    /// assert_eq!(values["agent_id"], "ivy");
    /// ```
    pub fn parse_created_key(key: &str) -> Option<Values> {
        built_in("LifecycleSignal.created").ok()?.template.parse(key)
    }

    /// The value of the key of a signal that an agent ended: `agent_id`.
    pub fn parse_terminated_key(key: &str) -> Option<Values> {
        built_in("LifecycleSignal.terminated").ok()?.template.parse(key)
    }
}
