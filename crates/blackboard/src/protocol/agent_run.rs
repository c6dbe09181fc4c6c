//! Functions of the protocol `AgentRun`.

use super::{Values, built_in};
use crate::error::Result;

/// Requests to an agent, their results and streamed events. The scope is the agent's mailbox.
///
/// The namespace names the capability of the agent that handles the request. It may be missing if the agent has one
/// capability, or if its scope belongs to the capability.
///
/// ```
/// use blackboard::protocol::AgentRun;
///
/// let key = AgentRun::request_key("req_abc123", Some("compliance"))?;
/// assert_eq!(key, "request:run:compliance:req_abc123");
/// let key = AgentRun::result_key("req_abc123", Some("compliance"))?;
/// assert_eq!(key, "result:run:compliance:req_abc123");
///
/// assert_eq!(AgentRun::request_pattern(Some("compliance"))?, "request:run:compliance:*");
/// assert_eq!(AgentRun::result_pattern(Some("compliance"))?, "result:run:compliance:*");
///
/// // Without a namespace.
/// assert_eq!(AgentRun::request_pattern(None)?, "request:run:*");
/// let values = AgentRun::parse_request_key("request:run:req_abc").unwrap();
/// assert_eq!((values["id"].as_str(), values.get("ns")), ("req_abc", None));
/// # Ok::<(), blackboard::Error>(())
/// ```
#[derive(Debug)]
pub struct AgentRun;

impl AgentRun {
    /// The key of a request.
    pub fn request_key(id: &str, namespace: Option<&str>) -> Result<String> {
        key("AgentRun.request", &[("id", id)], namespace)
    }

    /// The key of the result of a request. To wait for one result, use its key and not a pattern.
    pub fn result_key(id: &str, namespace: Option<&str>) -> Result<String> {
        key("AgentRun.result", &[("id", id)], namespace)
    }

    /// The key of an event of a request.
    ///
    /// ```
    /// # use blackboard::protocol::AgentRun;
    /// assert_eq!(AgentRun::event_key("7", "progress", Some("ns"))?, "event:run:ns:7:progress");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn event_key(id: &str, name: &str, namespace: Option<&str>) -> Result<String> {
        key("AgentRun.event", &[("id", id), ("name", name)], namespace)
    }

    /// The pattern of requests.
    pub fn request_pattern(namespace: Option<&str>) -> Result<String> {
        pattern("AgentRun.request", None, namespace)
    }

    /// The pattern of results.
    pub fn result_pattern(namespace: Option<&str>) -> Result<String> {
        pattern("AgentRun.result", None, namespace)
    }

    /// The pattern of events, of all requests or of one.
    ///
    /// ```
    /// # use blackboard::protocol::AgentRun;
    /// assert_eq!(AgentRun::event_pattern(Some("7"), Some("ns"))?, "event:run:ns:7:*");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn event_pattern(id: Option<&str>, namespace: Option<&str>) -> Result<String> {
        pattern("AgentRun.event", id, namespace)
    }

    /// The values of the key of a request: `id`, and `ns` if it has a namespace.
    pub fn parse_request_key(key: &str) -> Option<Values> {
        built_in("AgentRun.request").ok()?.template.parse(key)
    }

    /// The values of the key of a result: `id`, and `ns` if it has a namespace.
    ///
    /// ```
    /// # use blackboard::protocol::AgentRun;
    /// assert_eq!(AgentRun::parse_result_key("result:run:compliance:7").unwrap()["ns"], "compliance");
    /// assert_eq!(AgentRun::parse_result_key("result:q4"), None);
    /// ```
    pub fn parse_result_key(key: &str) -> Option<Values> {
        built_in("AgentRun.result").ok()?.template.parse(key)
    }

    /// The values of the key of an event: `id`, `name`, and `ns` if it has a namespace.
    ///
    /// ```
    /// # use blackboard::protocol::AgentRun;
    /// assert_eq!(AgentRun::parse_event_key("event:run:ns:7:progress").unwrap()["name"], "progress");
    /// ```
    pub fn parse_event_key(key: &str) -> Option<Values> {
        built_in("AgentRun.event").ok()?.template.parse(key)
    }
}

fn key(reference: &str, values: &[(&str, &str)], namespace: Option<&str>) -> Result<String> {
    let values: Vec<_> = values.iter().copied().chain(namespace.map(|namespace| ("ns", namespace))).collect();
    built_in(reference)?.template.key(&values)
}

fn pattern(reference: &str, id: Option<&str>, namespace: Option<&str>) -> Result<String> {
    let id = id.map(|id| ("id", id));
    let values: Vec<_> = id.into_iter().chain(namespace.map(|namespace| ("ns", namespace))).collect();
    built_in(reference)?.template.pattern(&values)
}
