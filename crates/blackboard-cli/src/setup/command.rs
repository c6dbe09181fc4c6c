//! Commands in the settings of agents: which of them are ours, and which parts of them.
//!
//! An entry that runs only `blackboard hook PLATFORM` or `blackboard mcp` is ours, whatever the path of the program.
//! Further arguments and members, for example another board, belong to the user and stay.

use jsonc_parser::cst::{CstInputValue, CstObject};
use serde_json::Value;

/// The members that form a command, in the order of its words.
const MEMBERS: [&str; 4] = ["command", "exec", "bash", "args"];

/// The name of our program in every command.
const PROGRAM: &str = "blackboard";

/// The suffix of a command for agents that stop if a hook fails.
const ENDS_WELL: [&str; 2] = ["; exit 0", " || true"];

/// What a template does with an existing member that has a different value.
#[derive(Clone, Copy, PartialEq)]
pub enum OnDifference {
    /// Overwrites it.
    Set,
    /// Keeps it, because the user may have set it.
    Keep,
}

/// Whether this object runs our program with this verb, by name or path: in one string, in two members or in a list.
pub fn runs(value: &Value, verb: &str) -> bool {
    words(value).is_some_and(|words| runs_words(&words, verb))
}

/// The same for the words of a command.
pub fn runs_words(words: &[&str], verb: &str) -> bool {
    let [program, first, further @ ..] = words else { return false };
    let name = program.trim_matches(['"', '\'']).rsplit(['/', '\\']).next().unwrap_or_default();
    let names_a_platform =
        || further.first().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_lowercase()));
    matches!(name, "blackboard" | "blackboard.exe")
        && *first == verb
        && (verb != "hook" || names_a_platform())
}

/// The hook scripts that the documents of ivy-blackboard tell its users to install.
const PREDECESSORS: [&str; 3] =
    ["blackboard-register.ts", "blackboard-heartbeat.ts", "blackboard-deregister.ts"];

/// Whether this object runs a hook of ivy-blackboard: one of its scripts, alone or with `bun` by name or path, or its program.
pub fn is_predecessor(value: &Value) -> bool {
    let name = |word: &str| {
        let word = word.trim_matches(['"', '\'']);
        word.rsplit(['/', '\\']).next().unwrap_or_default().to_owned()
    };
    match words(value).as_deref() {
        Some([script]) => PREDECESSORS.contains(&name(script).as_str()),
        Some([program, script] | [program, "run", script])
            if matches!(name(program).as_str(), "bun" | "bun.exe") =>
        {
            PREDECESSORS.contains(&name(script).as_str())
        }
        Some([program, "agent", "register" | "heartbeat" | "deregister", ..]) => {
            name(program) == "ivy-blackboard"
        }
        _ => false,
    }
}

/// Whether it has no further arguments, so that the complete command is ours.
pub fn is_plain(value: &Value, verb: &str) -> bool {
    let count = if verb == "hook" { 3 } else { 2 };
    runs(value, verb) && words(value).is_some_and(|words| words.len() == count)
}

/// Updates an entry that runs our program to its template.
pub fn update(entry: &CstObject, verb: &str, template: &CstInputValue, differing: OnDifference) {
    let CstInputValue::Object(members) = template else { return };
    let (command, others): (Vec<_>, Vec<_>) =
        members.iter().cloned().partition(|(key, _)| MEMBERS.contains(&key.as_str()));
    if entry.to_serde_value().is_some_and(|value| is_plain(&value, verb)) {
        let is_wanted = |name: &str| command.iter().any(|(key, _)| key == name);
        for member in MEMBERS.into_iter().filter(|name| !is_wanted(name)) {
            if let Some(member) = entry.get(member) {
                member.remove();
            }
        }
        put_members(entry, &command, OnDifference::Set);
    } else {
        name_program(entry);
    }
    put_members(entry, &others, differing);
}

/// Adds missing members to an object, and overwrites different ones if the template says so.
pub fn put_members(object: &CstObject, members: &[(String, CstInputValue)], differing: OnDifference) {
    for (key, value) in members {
        match object.get(key) {
            None => _ = object.append(key, value.clone()),
            Some(there) if differing == OnDifference::Set && there.to_serde_value() != Some(plain(value)) => {
                there.set_value(value.clone());
            }
            Some(_) => {}
        }
    }
}

/// Updates the program in a command, and nothing else.
fn name_program(entry: &CstObject) {
    let Some(member) = MEMBERS.into_iter().find_map(|member| entry.get(member)) else { return };
    if let Some(list) = member.array_value() {
        let program = list.elements().into_iter().next().and_then(|first| first.as_string_lit());
        if let Some(program) =
            program.filter(|program| program.decoded_value().ok().as_deref() != Some(PROGRAM))
        {
            program.replace_with(PROGRAM.into());
        }
    } else if let Some(Value::String(text)) = member.to_serde_value() {
        let program = text.split_whitespace().next().unwrap_or_default();
        if program != PROGRAM {
            member.set_value(text.replacen(program, PROGRAM, 1).into());
        }
    }
}

/// The words of the command in an object; `None` if a shell would do more than run one program.
fn words(value: &Value) -> Option<Vec<&str>> {
    let mut words = Vec::new();
    for member in MEMBERS {
        match &value[member] {
            Value::String(text) => {
                let text = ENDS_WELL.into_iter().find_map(|end| text.strip_suffix(end)).unwrap_or(text);
                if text.contains([';', '&', '|', '<', '>', '(', ')', '`', '\n', '\r']) {
                    return None;
                }
                words.extend(text.split_whitespace());
            }
            Value::Array(list) => words.extend(list.iter().filter_map(Value::as_str)),
            _ => {}
        }
    }
    Some(words)
}

/// The template as a value, for comparison.
fn plain(value: &CstInputValue) -> Value {
    match value {
        CstInputValue::Null => Value::Null,
        CstInputValue::Bool(value) => Value::Bool(*value),
        CstInputValue::Number(number) => serde_json::from_str(number).unwrap_or_default(),
        CstInputValue::String(text) => Value::String(text.clone()),
        CstInputValue::Array(list) => list.iter().map(plain).collect(),
        CstInputValue::Object(members) => {
            members.iter().map(|(key, value)| (key.clone(), plain(value))).collect()
        }
    }
}
