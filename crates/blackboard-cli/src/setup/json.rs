//! Our entries in a JSON settings file, possibly with comments: added and removed in place.
//!
//! Everything else in the file stays unchanged: comments, order, indentation, line endings. If that is not certain (a
//! syntax error, a duplicate key, an unexpected structure), the result is an [`EditError`].

use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde_json::Value;

use super::command::{self, OnDifference};
use super::content::{EditError, Removal};
use crate::config::JSON_WITH_COMMENTS;

/// What setup writes into a file.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// Event handlers: `hooks.EVENT` is a list, and one element of it is ours.
    Hooks(Vec<(&'static str, CstInputValue)>),
    /// One member, by its path, that starts our MCP server.
    Server(Vec<String>, CstInputValue),
    /// One member, by its path, with exactly this text.
    Text(&'static [&'static str], String),
    /// A member that the format requires, for example its version: added if it is missing, otherwise kept.
    Format(&'static str, CstInputValue),
}

/// The key of the event handlers on every platform.
const HOOKS: &str = "hooks";

/// The text of a new file.
const NEW: &str = "{\n}\n";

/// The text with our entries; the same text if it already has them.
pub fn with(wanted: &[Wanted], text: Option<&str>) -> Result<String, EditError> {
    let text = text.unwrap_or(NEW);
    let (mark, json) = without_mark(text);
    let root = parse(json)?;
    let object = match root.value() {
        None => {
            let end_of_file = if json.is_empty() || json.ends_with('\n') { "" } else { "\n" };
            return with(wanted, Some(&format!("{mark}{json}{end_of_file}{NEW}")));
        }
        Some(value) => value.as_object().ok_or_else(|| EditError::shape("the file is not an object"))?,
    };
    for one in wanted {
        match one {
            Wanted::Format(key, value) => {
                if only(&object, key)?.is_none() {
                    object.append(key, value.clone());
                }
            }
            Wanted::Text(path, text) => put_text(&object, path, text)?,
            Wanted::Server(path, value) => put_server(&object, path, value)?,
            Wanted::Hooks(events) => put_hooks(&object, events)?,
        }
    }
    Ok(format!("{mark}{root}"))
}

/// The text without our entries. Lists and objects that become empty are removed, unless they were empty `before`.
pub fn without(wanted: &[Wanted], text: &str, before: Option<&str>) -> Result<Removal, EditError> {
    let (mark, json) = without_mark(text);
    let root = parse(json)?;
    let Some(value) = root.value() else { return Ok(Removal::nothing_of_ours(text)) };
    let object = value.as_object().ok_or_else(|| EditError::shape("the file is not an object"))?;
    let before = before.and_then(|text| parse(without_mark(text).1).ok());
    let before = before.map(|root| root.to_serde_value().unwrap_or_default());
    let mut removed = false;
    for one in wanted {
        removed |= match one {
            Wanted::Format(..) => false,
            Wanted::Text(path, text) => {
                let path: Vec<_> = path.iter().map(|&name| name.to_owned()).collect();
                take_member(&object, &path, before.as_ref(), |value| value.as_str() == Some(text.as_str()))?
            }
            Wanted::Server(path, _) => {
                take_member(&object, path, before.as_ref(), |value| command::runs(value, "mcp"))?
            }
            Wanted::Hooks(_) => take_hooks(&object, before.as_ref())?,
        };
    }
    if !removed {
        return Ok(Removal::nothing_of_ours(text));
    }
    let formats =
        || wanted.iter().filter_map(|one| if let Wanted::Format(key, _) = one { Some(*key) } else { None });
    // What was not in the backup was added by us. Without a backup that is unknown.
    for key in
        formats().filter(|key| before.is_some() && was(before.as_ref(), &[(*key).to_owned()]).is_none())
    {
        if let Some(property) = only(&object, key)? {
            property.remove();
        }
    }
    let names = object.properties().into_iter().filter_map(|property| property.decoded_name());
    let says_nothing = names.into_iter().all(|name| formats().any(|key| key == name));
    // A comment counts as content.
    let squeezed: String = root.to_string().split_whitespace().collect();
    let said = root.to_serde_value().map(|value| value.to_string());
    let is_empty = says_nothing && said == Some(squeezed);
    Ok(Removal { text: format!("{mark}{root}"), is_empty })
}

/// Whether our server is there but disabled.
pub fn is_switched_off(wanted: &[Wanted], text: &str) -> Result<bool, EditError> {
    let root = parse(without_mark(text).1)?.to_serde_value();
    Ok(wanted.iter().any(|one| {
        let Wanted::Server(path, _) = one else { return false };
        let server = was(root.as_ref(), path);
        server.is_some_and(|server| server["enabled"] == false || server["disabled"] == true)
    }))
}

/// The same server at its other paths in a text: for the user, and for each project of the user.
pub fn others_in(wanted: &[Wanted], text: &str) -> Vec<Vec<Wanted>> {
    let [Wanted::Server(path, server)] = wanted else { return Vec::new() };
    let [.., servers, name] = &path[..] else { return Vec::new() };
    let Some(root) = parse(without_mark(text).1).ok().and_then(|root| root.to_serde_value()) else {
        return Vec::new();
    };
    let projects = root["projects"].as_object().into_iter().flat_map(|projects| projects.keys());
    let places = projects.map(|project| vec!["projects".to_owned(), project.clone()]).chain([Vec::new()]);
    let paths = places.map(|place| [place, vec![servers.clone(), name.clone()]].concat());
    let is_there = |other: &Vec<String>| was(Some(&root), other).is_some_and(|it| command::runs(it, "mcp"));
    let others = paths.filter(|other| other != path && is_there(other));
    others.map(|other| vec![Wanted::Server(other, server.clone())]).collect()
}

fn put_server(root: &CstObject, path: &[String], value: &CstInputValue) -> Result<(), EditError> {
    let [parents @ .., name] = path else { return Ok(()) };
    let mut object = root.clone();
    for parent in parents {
        object = match only(&object, parent)? {
            Some(property) => object_of(&property, parent)?,
            None => object.object_value_or_set(parent),
        };
    }
    match only(&object, name)? {
        None => {
            object.append(name, value.clone());
        }
        Some(property) => {
            let there = property.to_serde_value().unwrap_or_default();
            if !command::runs(&there, "mcp") {
                return Err(EditError::taken(&path.join(".")));
            }
            command::update(&object_of(&property, name)?, "mcp", value, OnDifference::Keep);
        }
    }
    Ok(())
}

/// Adds a text. Another text at its path is the user's own.
fn put_text(root: &CstObject, path: &[&str], text: &str) -> Result<(), EditError> {
    let [parents @ .., name] = path else { return Ok(()) };
    let mut object = root.clone();
    for parent in parents {
        object = match only(&object, parent)? {
            Some(property) => object_of(&property, parent)?,
            None => object.object_value_or_set(parent),
        };
    }
    match only(&object, name)? {
        None => {
            object.append(name, text.into());
            Ok(())
        }
        Some(property) if property.to_serde_value().unwrap_or_default().as_str() == Some(text) => Ok(()),
        Some(_) => {
            Err(EditError::shape(&format!("\"{}\" has another value: change or remove that", path.join("."))))
        }
    }
}

/// Removes a member that is ours, and objects that become empty, unless they were empty `before`.
fn take_member(
    root: &CstObject,
    path: &[String],
    before: Option<&Value>,
    is_ours: impl Fn(&Value) -> bool,
) -> Result<bool, EditError> {
    let [parents @ .., name] = path else { return Ok(false) };
    let mut chain = Vec::new();
    let mut object = root.clone();
    for parent in parents {
        let Some(property) = only(&object, parent)? else { return Ok(false) };
        object = object_of(&property, parent)?;
        chain.push((property, object.clone()));
    }
    let Some(property) = only(&object, name)? else { return Ok(false) };
    if !is_ours(&property.to_serde_value().unwrap_or_default()) {
        return Ok(false);
    }
    property.remove();
    for (depth, (property, object)) in chain.into_iter().enumerate().rev() {
        if !object.properties().is_empty() || was_empty(before, &parents[..=depth]) {
            break;
        }
        property.remove();
    }
    Ok(true)
}

fn put_hooks(root: &CstObject, events: &[(&'static str, CstInputValue)]) -> Result<(), EditError> {
    let hooks = match only(root, HOOKS)? {
        Some(property) => object_of(&property, HOOKS)?,
        None => root.object_value_or_set(HOOKS),
    };
    take_predecessors(&hooks);
    // Events that an older version hooked and this one does not.
    for property in hooks.properties() {
        let name = property.decoded_name().unwrap_or_default();
        if !events.iter().any(|(event, _)| *event == name) {
            take_event(&property, &name, None);
        }
    }
    for (event, wanted) in events {
        let list = match only(&hooks, event)? {
            Some(property) => array_of(&property, event)?,
            None => hooks.array_value_or_set(event),
        };
        put_handler(&list, wanted);
    }
    Ok(())
}

/// Ensures that one element is ours and up to date. Others in the same group stay. If there are two, the one with the
/// user's own arguments stays unchanged.
fn put_handler(list: &CstArray, wanted: &CstInputValue) {
    let (group, handler) = parts_of(wanted);
    let mut found = false;
    for (node, is_whole) in ours_in(list) {
        let Some(object) = node.as_object() else { continue };
        let inside = object.array_value(HOOKS);
        let has_form = !is_whole || inside.is_some() == group.is_some();
        let handlers = inside.map_or_else(|| vec![node.clone()], |inside| inside.elements());
        let is_plain =
            |node: &CstNode| node.to_serde_value().is_some_and(|it| command::is_plain(&it, "hook"));
        if handlers.iter().all(is_plain) && (found || !has_form || handlers.len() > 1) {
            if found {
                node.remove();
            } else {
                object.replace_with(wanted.clone());
            }
            found = true;
        } else if has_form {
            if let Some(group) = group.as_ref().filter(|_| is_whole) {
                command::put_members(&object, group, OnDifference::Set);
            }
            for one in handlers.iter().filter_map(CstNode::as_object) {
                command::update(&one, "hook", handler, OnDifference::Set);
            }
            found = true;
        }
    }
    if !found {
        list.append(wanted.clone());
    }
}

fn take_hooks(root: &CstObject, before: Option<&Value>) -> Result<bool, EditError> {
    let Some(property) = only(root, HOOKS)? else { return Ok(false) };
    let hooks = object_of(&property, HOOKS)?;
    let mut removed = false;
    for event in hooks.properties() {
        let name = event.decoded_name().unwrap_or_default();
        removed |= take_event(&event, &name, before);
    }
    if removed && hooks.properties().is_empty() && !was_empty(before, &[HOOKS.to_owned()]) {
        property.remove();
    }
    Ok(removed)
}

fn take_event(property: &CstObjectProp, name: &str, before: Option<&Value>) -> bool {
    // A value that is not a list contains nothing of ours.
    let Some(list) = property.array_value() else { return false };
    let ours = ours_in(&list);
    let removed = !ours.is_empty();
    for (node, _) in ours {
        node.remove();
    }
    if removed && list.elements().is_empty() && !was_empty(before, &[HOOKS.to_owned(), name.to_owned()]) {
        property.clone().remove();
    }
    removed
}

/// The text without the hooks of ivy-blackboard, which ours replace.
pub fn without_predecessors(text: &str) -> Result<String, EditError> {
    let (mark, json) = without_mark(text);
    let root = parse(json)?;
    let object = root.value().and_then(|value| value.as_object());
    if let Some(property) = object.as_ref().and_then(|object| object.get(HOOKS))
        && let Some(hooks) = property.object_value()
    {
        take_predecessors(&hooks);
        if hooks.properties().is_empty() {
            property.remove();
        }
    }
    Ok(format!("{mark}{root}"))
}

/// Removes the hooks of ivy-blackboard, and events that have no others.
fn take_predecessors(hooks: &CstObject) {
    for property in hooks.properties() {
        let Some(list) = property.array_value() else { continue };
        let found = handlers_in(&list, command::is_predecessor);
        let removed = !found.is_empty();
        for (node, _) in found {
            node.remove();
        }
        if removed && list.elements().is_empty() {
            property.remove();
        }
    }
}

/// Which parts of a list of handlers are ours: complete elements (`true`), or handlers in a group with others.
fn ours_in(list: &CstArray) -> Vec<(CstNode, bool)> {
    handlers_in(list, |value| command::runs(value, "hook"))
}

/// The same for handlers of another kind.
fn handlers_in(list: &CstArray, is_wanted: impl Fn(&Value) -> bool) -> Vec<(CstNode, bool)> {
    let is_ours = |node: &CstNode| node.to_serde_value().is_some_and(|value| is_wanted(&value));
    let mut ours = Vec::new();
    for element in list.elements() {
        if is_ours(&element) {
            ours.push((element, true));
            continue;
        }
        let group = element.as_object().and_then(|object| object.array_value(HOOKS));
        let handlers = group.map(|group| group.elements()).unwrap_or_default();
        let inside: Vec<_> = handlers.iter().filter(|handler| is_ours(handler)).cloned().collect();
        if !inside.is_empty() && inside.len() == handlers.len() {
            ours.push((element, true));
        } else {
            ours.extend(inside.into_iter().map(|handler| (handler, false)));
        }
    }
    ours
}

/// The parts of an element: the members of its group, if it is one, and the handler.
fn parts_of(wanted: &CstInputValue) -> (Option<Vec<(String, CstInputValue)>>, &CstInputValue) {
    let CstInputValue::Object(members) = wanted else { return (None, wanted) };
    let inside = members.iter().find_map(|(key, value)| match value {
        CstInputValue::Array(handlers) if key == HOOKS => handlers.first(),
        _ => None,
    });
    let others = || members.iter().filter(|(key, _)| key != HOOKS).cloned().collect();
    inside.map_or((None, wanted), |handler| (Some(others()), handler))
}

fn was<'a>(before: Option<&'a Value>, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(before?, |value, key| value.as_object()?.get(key))
}

/// Whether a list or an object existed before, and was empty.
fn was_empty(before: Option<&Value>, path: &[String]) -> bool {
    match was(before, path) {
        Some(Value::Array(list)) => list.is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
        _ => false,
    }
}

/// The member with this name. Programs disagree about which one of two counts.
fn only(object: &CstObject, name: &str) -> Result<Option<CstObjectProp>, EditError> {
    let mut found =
        object.properties().into_iter().filter(|property| property.decoded_name().as_deref() == Some(name));
    let first = found.next();
    if found.next().is_some() {
        return Err(EditError::shape(&format!("\"{name}\" occurs more than once")));
    }
    Ok(first)
}

fn object_of(property: &CstObjectProp, name: &str) -> Result<CstObject, EditError> {
    property.object_value().ok_or_else(|| EditError::shape(&format!("\"{name}\" is not an object")))
}

fn array_of(property: &CstObjectProp, name: &str) -> Result<CstArray, EditError> {
    property.array_value().ok_or_else(|| EditError::shape(&format!("\"{name}\" is not a list")))
}

fn parse(text: &str) -> Result<CstRootNode, EditError> {
    if is_too_deep(text) {
        return Err(EditError::shape("it is nested too deeply"));
    }
    CstRootNode::parse(text, &JSON_WITH_COMMENTS)
        .map_err(|error| EditError::syntax("JSON", &error.to_string()))
}

/// The tree is built and dropped recursively. Brackets in strings and comments count too, which does no harm.
fn is_too_deep(text: &str) -> bool {
    const DEEPEST: i32 = 200;
    let mut depth = 0;
    text.bytes().any(|byte| {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth -= 1,
            _ => {}
        }
        depth > DEEPEST
    })
}

/// Some editors write a byte order mark.
fn without_mark(text: &str) -> (&str, &str) {
    match text.strip_prefix('\u{feff}') {
        Some(rest) => (&text[..text.len() - rest.len()], rest),
        None => ("", text),
    }
}
