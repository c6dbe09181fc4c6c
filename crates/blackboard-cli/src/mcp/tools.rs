//! The table of tools. Each is a struct of arguments whose doc comments the model reads, with its [`Tool`]
//! implementation.
//!
//! Models read the complete list at the start of every session, so it is short: eleven tools, a sentence or two each.

use std::pin::Pin;
use std::sync::Arc;

use blackboard::{Board, Code, Error, Refusal, Result};
use rmcp::RoleServer;
use rmcp::model::{CallToolResult, JsonObject, Tool as ToolInfo, ToolAnnotations};
use rmcp::schemars::JsonSchema;
use rmcp::service::RequestContext;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::reply::{Reply, failed, misunderstood};
use super::session::Caller;
use super::state::{ServerState, blocking};
use super::{agent, entry, event, hold, memory, schema, wait, work};
use crate::unreadable::UnreadableRows;

/// Every tool, in the order of the list.
pub const TOOLS: &[ToolEntry] = &[
    row::<agent::Who>(),
    row::<work::Find>(),
    row::<work::Claim>(),
    row::<work::Update>(),
    row::<entry::Read>(),
    row::<entry::Write>(),
    row::<entry::Query>(),
    row::<memory::Recall>(),
    row::<event::Observe>(),
    row::<hold::Hold>(),
    waiting::<wait::Wait>(),
];

/// One call of a tool.
#[derive(Clone)]
pub struct Call {
    /// What all calls share.
    pub state: Arc<ServerState>,
    /// The caller.
    pub caller: Caller,
    /// The request.
    pub context: RequestContext<RoleServer>,
    /// The rows that its lists left out.
    pub unreadable: UnreadableRows,
}

impl Call {
    /// The board to read, and the caller's session: see [`ServerState::reading`].
    pub fn reading(&self) -> Result<(Board, Option<String>)> {
        let (board, session) = self.state.reading(&self.caller)?;
        Ok((self.unreadable.observe(board), session))
    }

    /// The board to change, and the session that acts: see [`ServerState::acting`].
    pub fn acting(&self) -> Result<(Board, String)> {
        let (board, session) = self.state.acting(&self.caller)?;
        Ok((self.unreadable.observe(board), session))
    }

    /// Whether the client canceled the call.
    pub fn is_canceled(&self) -> bool {
        self.context.ct.is_cancelled()
    }
}

/// The arguments of a tool. The doc comment is its description.
pub trait Arguments: DeserializeOwned + JsonSchema + Send + 'static {
    /// Its name.
    const NAME: &'static str;
    /// Whether it is read-only: it registers no session and creates no board.
    const READS: bool;
    /// Whether it can delete what other agents wrote. Clients ask their user before they call such a tool, and some refuse it
    /// if no user can answer.
    const DESTROYS: bool = false;
}

/// A tool that does not wait.
pub trait Tool: Arguments + Clone {
    /// Runs it, and again if its board is gone.
    fn call(self, call: &Call) -> Result<Reply>;
}

/// A tool that may wait.
pub trait WaitingTool: Arguments {
    /// Runs it.
    fn call(self, call: Call) -> impl Future<Output = Result<Reply>> + Send;
}

type Answering = Pin<Box<dyn Future<Output = CallToolResult> + Send>>;

/// An entry of the table.
pub struct ToolEntry {
    /// The name of the tool.
    pub name: &'static str,
    reads: bool,
    destroys: bool,
    schema: fn() -> (JsonObject, String),
    answer: fn(JsonObject, Call) -> Answering,
}

const fn row<T: Tool>() -> ToolEntry {
    ToolEntry {
        name: T::NAME,
        reads: T::READS,
        destroys: T::DESTROYS,
        schema: schema::of::<T>,
        answer: answer::<T>,
    }
}

const fn waiting<T: WaitingTool>() -> ToolEntry {
    ToolEntry {
        name: T::NAME,
        reads: T::READS,
        destroys: T::DESTROYS,
        schema: schema::of::<T>,
        answer: answer_waiting::<T>,
    }
}

impl ToolEntry {
    /// Its entry in the list of tools.
    pub fn listed(&self) -> ToolInfo {
        let (schema, description) = (self.schema)();
        let listed = ToolInfo::new(self.name, description, schema);
        // Without these annotations, a client assumes that the tool is destructive and acts outside of this machine.
        match (self.reads, self.destroys) {
            (true, _) => listed.with_annotations(ToolAnnotations::new().read_only(true)),
            (false, true) => listed,
            (false, false) => {
                listed.with_annotations(ToolAnnotations::new().destructive(false).open_world(false))
            }
        }
    }

    /// Runs it.
    pub fn answer(&self, arguments: Option<JsonObject>, call: Call) -> Answering {
        (self.answer)(arguments.unwrap_or_default(), call)
    }
}

fn answer<T: Tool>(arguments: JsonObject, call: Call) -> Answering {
    Box::pin(async move {
        match understood::<T>(arguments) {
            Ok(tool) => {
                let answered = blocking(move || {
                    // The call may have waited a long time for a thread.
                    if call.is_canceled() {
                        return Err(given_up());
                    }
                    let run = || tool.clone().call(&call)?.without_unreadable(&call.unreadable.list());
                    call.state.on_current_board(run)
                });
                result(answered.await)
            }
            Err(misunderstanding) => misunderstanding,
        }
    })
}

fn answer_waiting<T: WaitingTool>(arguments: JsonObject, call: Call) -> Answering {
    Box::pin(async move {
        match understood::<T>(arguments) {
            Ok(tool) => result(tool.call(call).await),
            Err(misunderstanding) => misunderstanding,
        }
    })
}

fn understood<T: Arguments>(arguments: JsonObject) -> Result<T, CallToolResult> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        misunderstood(format!("{}: {error}", T::NAME), "see the schema of the tool's arguments")
    })
}

fn result(outcome: Result<Reply>) -> CallToolResult {
    outcome.map_or_else(|error| failed(&error), Reply::result)
}

/// The error for a call that the client canceled.
pub fn given_up() -> Error {
    Refusal::new(Code::TimedOut, "canceled: the client canceled the call or disconnected").into()
}

/// An argument that only some actions of a tool use.
pub struct ActionArgument<'a, A> {
    /// Its name.
    pub name: &'static str,
    /// Whether the call has it.
    pub is_given: bool,
    /// The actions that use it.
    pub used_by: &'a [A],
    /// The actions that require it.
    pub needed_by: &'a [A],
}

/// Refuses arguments that the action would ignore, and missing ones.
pub fn check_arguments<A: PartialEq>(action: &A, arguments: &[ActionArgument<'_, A>]) -> Result<()> {
    for ActionArgument { name, is_given, used_by, needed_by } in arguments {
        if *is_given && !used_by.contains(action) {
            let hint = "omit it, or see the schema";
            return Err(wrong(&format!("this action does not accept {name}"), hint));
        }
        if !is_given && needed_by.contains(action) {
            return Err(wrong(&format!("{name} is missing"), "this action needs it"));
        }
    }
    Ok(())
}

/// A usage error that the schema cannot express.
pub fn wrong(message: &str, hint: &str) -> Error {
    Refusal::new(Code::Usage, message).hint(hint.to_owned()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_short() {
        let list: Vec<_> = TOOLS.iter().map(ToolEntry::listed).collect();
        let text = serde_json::to_string(&list).unwrap();
        assert!(list.len() <= 11 && text.len() < 6_500, "{} bytes: {text}", text.len());
    }

    #[test]
    fn arguments_are_refused_that_an_action_ignores_or_lacks() {
        for (action, is_given, expected) in [
            ("lock", true, Ok(())),
            ("lock", false, Err("name is missing")),
            ("renew", true, Ok(())),
            ("renew", false, Ok(())),
            ("check", true, Err("this action does not accept name")),
            ("check", false, Ok(())),
        ] {
            let (used_by, needed_by) = (&["lock", "renew"][..], &["lock"][..]);
            let name = ActionArgument { name: "name", is_given, used_by, needed_by };
            let checked = check_arguments(&action, &[name]).map_err(|error| error.to_string());
            assert_eq!(checked, expected.map_err(str::to_owned), "{action} {is_given}");
        }
    }

    #[test]
    fn only_entry_write_requires_confirmation() {
        // Codex uses this rule to decide whether to ask its user. In a run without a user, it refuses the call.
        let asks = |row: &&ToolEntry| {
            let annotations = row.listed().annotations.unwrap_or_default();
            annotations.read_only_hint != Some(true)
                && (annotations.destructive_hint != Some(false) || annotations.open_world_hint != Some(false))
        };
        let asked: Vec<_> = TOOLS.iter().filter(asks).map(|row| row.name).collect();
        assert_eq!(asked, ["entry_write"]);
    }

    #[test]
    fn schemas_are_plain() {
        for row in TOOLS {
            let listed = row.listed();
            let text = serde_json::to_string(&listed.input_schema).unwrap();
            assert_eq!(listed.input_schema["type"], "object", "{}", row.name);
            for word in ["null", "$ref", "$defs", "anyOf", "oneOf", ":true"] {
                assert!(!text.contains(word), "{word} in {}: {text}", row.name);
            }
            assert!(listed.description.is_some_and(|text| text.len() > 20 && !text.contains('\n')));
        }
    }
}
