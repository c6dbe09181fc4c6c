//! Our MCP server in a TOML settings file: added and removed as text, so that everything else stays unchanged. The
//! platform defines which table contains its servers.

use toml_edit::{Document, Item, TableLike};

use super::command::runs_words;
use super::content::{EditError, Removal};

/// The name of our server.
const NAME: &str = "blackboard";
const COMMAND: &str = "\"blackboard\"";
const ARGUMENTS: &str = "[\"mcp\"]";

/// The text with our table; the same text if it already has it.
pub fn with(servers: &str, text: Option<&str>) -> Result<String, EditError> {
    let text = text.unwrap_or_default();
    let document = parse(text)?;
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let changed = match server(servers, &document)? {
        Some(server) if !is_ours(server) => {
            return Err(EditError::taken(&format!("{servers}.{NAME}")));
        }
        Some(server) => updated(text, server),
        None => {
            let mut changed = text.to_owned();
            if !text.is_empty() {
                let end_of_line = if text.ends_with('\n') { "" } else { newline };
                changed.push_str(end_of_line);
                changed.push_str(newline);
            }
            for line in table(servers) {
                changed.push_str(&line);
                changed.push_str(newline);
            }
            changed
        }
    };
    // Text cannot be appended to every notation of a table.
    let is_there = parse(&changed).ok().and_then(|document| server(servers, &document).ok()?.map(is_ours));
    if is_there != Some(true) {
        let reason = format!("\"{servers}\" has a form that cannot be extended");
        return Err(EditError::shape(&reason));
    }
    Ok(changed)
}

/// The text without our table.
pub fn without(servers: &str, text: &str) -> Result<Removal, EditError> {
    let document = parse(text)?;
    let Some(server) = server(servers, &document)?.filter(|server| is_ours(server)) else {
        return Ok(Removal::nothing_of_ours(text));
    };
    let by_hand = || EditError::shape("our server has a form that cannot be removed automatically");
    let Some(table) = server.as_table().filter(|table| !table.is_dotted()) else { return Err(by_hand()) };
    let start = table.span().ok_or_else(by_hand)?.start;
    let end = last_byte(server).unwrap_or(start);
    let end = text[end..].find('\n').map_or(text.len(), |newline| end + newline + 1);
    let mut before = &text[..start];
    for blank in ["\n\n", "\r\n\r\n"] {
        if before.ends_with(blank) {
            before = &before[..before.len() - blank.len() / 2];
        }
    }
    let changed = format!("{before}{}", &text[end..]);
    let is_gone = parse(&changed).is_ok_and(|document| matches!(self::server(servers, &document), Ok(None)));
    if !is_gone {
        return Err(by_hand());
    }
    let is_empty = changed.trim().is_empty();
    Ok(Removal { text: changed, is_empty })
}

/// Whether our server is there, in any notation.
pub fn is_there(servers: &str, text: &str) -> Result<bool, EditError> {
    Ok(server(servers, &parse(text)?)?.is_some_and(is_ours))
}

/// Whether our server is there but disabled.
pub fn is_switched_off(servers: &str, text: &str) -> Result<bool, EditError> {
    let document = parse(text)?;
    let server = server(servers, &document)?.and_then(Item::as_table_like);
    Ok(server.and_then(|server| server.get("enabled")?.as_bool()) == Some(false))
}

/// What to add to this text by hand, in the notation of the other servers.
pub fn by_hand(servers: &str, text: &str) -> String {
    let table = table(servers).map(|line| line + "\n").concat();
    let Ok(document) = parse(text) else { return table };
    let inline = format!("{NAME} = {{ command = {COMMAND}, args = {ARGUMENTS} }}");
    match document.as_table().get(servers) {
        Some(inside) if inside.is_inline_table() => format!("# between the braces of {servers}\n{inline}\n"),
        _ => table,
    }
}

/// Our server as a separate table.
fn table(servers: &str) -> [String; 3] {
    [format!("[{servers}.{NAME}]"), format!("command = {COMMAND}"), format!("args = {ARGUMENTS}")]
}

fn parse(text: &str) -> Result<Document<&str>, EditError> {
    Document::parse(text).map_err(|error| EditError::syntax("TOML", error.message()))
}

/// Our entry in the table of servers, or the other entry with our name.
fn server<'a>(servers: &str, document: &'a Document<&str>) -> Result<Option<&'a Item>, EditError> {
    let Some(table) = document.as_table().get(servers) else { return Ok(None) };
    let not_a_table = || EditError::shape(&format!("\"{servers}\" is not a table"));
    Ok(table.as_table_like().ok_or_else(not_a_table)?.get(NAME))
}

fn is_ours(server: &Item) -> bool {
    let Some(table) = server.as_table_like() else { return false };
    let mut words: Vec<&str> = table.get("command").and_then(Item::as_str).into_iter().collect();
    words.extend(arguments(table));
    runs_words(&words, "mcp")
}

fn arguments(table: &dyn TableLike) -> Vec<&str> {
    let list = table.get("args").and_then(Item::as_array);
    list.map(|list| list.iter().filter_map(toml_edit::Value::as_str).collect()).unwrap_or_default()
}

/// Our table with the current program. Everything else that the user added stays.
fn updated(text: &str, server: &Item) -> String {
    let Some(command) = server.as_table_like().and_then(|table| table.get("command")) else {
        return text.to_owned();
    };
    let mut changed = text.to_owned();
    if let Some(span) = command.span().filter(|_| command.as_str() != Some("blackboard")) {
        changed.replace_range(span, COMMAND);
    }
    changed
}

/// The end of a table's last value, including its subtables.
fn last_byte(item: &Item) -> Option<usize> {
    let below = item.as_table_like().into_iter().flat_map(|table| table.iter().collect::<Vec<_>>());
    let below = below.filter_map(|(_, item)| last_byte(item)).max();
    item.span().map(|span| span.end).into_iter().chain(below).max()
}
