//! What a platform calls about: the same few happenings on all of them, read by a table of names.

use std::path::PathBuf;

use super::payload::Payload;

/// Fields that platforms use for the same thing.
const EVENT: &[&str] = &["hook_event_name", "hookEventName", "event"];
const SESSION: &[&str] = &["session_id", "sessionId", "conversation_id"];
const DIRECTORY: &[&str] = &["cwd", "directory"];
const ROOTS: &[&str] = &["workspace_roots"];
const TOOL: &[&str] = &["tool_name", "toolName", "tool"];
const INPUT: &[&str] = &["tool_input", "toolArgs", "tool_args", "args"];
const DELEGATE: &[&str] = &["agent_id", "agentId", "subagent_id"];
const TASK: &[&str] = &["task", "agent_type", "agentType", "subagent_type", "agent_name", "agentName"];
const PARENT: &[&str] = &["parent_id", "parentID", "parent_session_id", "parent_agent_id"];
const PATH: &[&str] =
    &["file_path", "filePath", "path", "notebook_path", "target_file", "absolute_path", "filename"];
const PATHS: &[&str] = &["files", "file_paths", "paths"];
const SOURCE: &[&str] = &["source"];
const COMMAND: &[&str] = &["command"];

/// The longest id of a session and the longest path that are taken seriously.
const LONGEST_ID: usize = 100;
const LONGEST_PATH: usize = 4096;

/// What a platform calls about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The name of the event, which some answers repeat.
    pub event: String,
    /// The platform's own id of the session.
    pub session: String,
    /// The platform's own id of the sub-agent that it is about.
    pub delegate: Option<String>,
    /// The platform's own id of the session that this one works for, where sub-agents have sessions of their own.
    pub parent: Option<String>,
    /// Where the session is.
    pub directory: Option<PathBuf>,
    /// What happened.
    pub happening: Happening,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A session started, or goes on after a pause.
    Started {
        /// Whether it has forgotten what it was told: what it had read was cleared or summarised.
        forgot: bool,
    },
    /// Somebody told it what to do.
    Prompted,
    /// It is about to edit these files.
    AboutToEdit(Use),
    /// It used a tool, and edited these files with it.
    ToolUsed(Use),
    /// A sub-agent started.
    DelegateStarted {
        /// What it is to do.
        task: Option<String>,
    },
    /// A sub-agent ended.
    DelegateEnded,
    /// It waits for somebody.
    Idle,
    /// It ended.
    Ended,
    /// Nothing that matters here.
    Nothing,
}

/// The use of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// The tool.
    pub tool: Option<String>,
    /// The files that it edits, as the platform names them.
    pub paths: Vec<String>,
}

/// What an event of a platform means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    Started,
    Prompted,
    BeforeTool,
    AfterTool,
    DelegateStarted,
    DelegateEnded,
    Idle,
    Ended,
}

/// How a platform names things.
pub struct Dialect {
    /// Its events.
    pub events: &'static [(&'static str, Meaning)],
    /// Its tools that edit files.
    pub edit_tools: &'static [&'static str],
    /// The event about a sub-agent that does not say its name.
    pub unnamed: Option<&'static str>,
}

impl Dialect {
    /// What a call is about; `None` if it names no event or no session.
    pub fn read(&self, payload: &Payload<'_>) -> Option<Call> {
        let (session, delegate, parent) =
            match (session_of(payload)?, id(payload, DELEGATE), id(payload, PARENT)) {
                // Its sub-agent has a session of its own, whoever of the two it says that it is about.
                (_, Some(delegate), Some(parent)) => (delegate, None, Some(parent)),
                others => others,
            };
        let unnamed = self.unnamed.filter(|_| parent.is_some()).map(str::to_owned);
        let event = payload.text(EVENT).or(unnamed)?;
        let directory = payload.text(DIRECTORY).or_else(|| payload.texts(ROOTS).into_iter().next());
        let directory = directory.filter(|path| path.len() <= LONGEST_PATH).map(PathBuf::from);
        let meaning = self.events.iter().find(|(name, _)| *name == event).map(|(_, meaning)| *meaning);
        let happening = match meaning {
            None => Happening::Nothing,
            Some(Meaning::Started) => {
                let source = payload.text(SOURCE);
                Happening::Started { forgot: matches!(source.as_deref(), Some("clear" | "compact")) }
            }
            Some(Meaning::Prompted) => Happening::Prompted,
            Some(Meaning::Idle) => Happening::Idle,
            Some(Meaning::Ended) => Happening::Ended,
            Some(Meaning::DelegateStarted) => Happening::DelegateStarted { task: payload.text(TASK) },
            Some(Meaning::DelegateEnded) => Happening::DelegateEnded,
            Some(Meaning::AfterTool) => Happening::ToolUsed(self.usage(payload)),
            Some(Meaning::BeforeTool) => match self.usage(payload) {
                usage if usage.paths.is_empty() => Happening::Nothing,
                usage => Happening::AboutToEdit(usage),
            },
        };
        Some(Call {
            session,
            delegate,
            parent,
            directory: directory.filter(|path| path.is_absolute()),
            happening,
            event,
        })
    }

    /// The tool, and the files that it edits.
    fn usage(&self, payload: &Payload<'_>) -> Use {
        let tool = payload.text(TOOL);
        let edits = tool.as_deref().is_some_and(|tool| self.edit_tools.contains(&tool));
        // The input is an object, or a text that is one, or the patch itself.
        let patch = || payload.text(INPUT).map(|text| paths_of_patch(&text));
        let paths = edits.then(|| payload.inside(INPUT, paths_of).or_else(patch));
        Use { tool, paths: paths.flatten().unwrap_or_default() }
    }
}

/// The platform's own id of the session that a call is about.
pub fn session_of(payload: &Payload<'_>) -> Option<String> {
    id(payload, SESSION)
}

fn id(payload: &Payload<'_>, names: &[&str]) -> Option<String> {
    payload.text(names).filter(|id| id.len() <= LONGEST_ID)
}

/// The files that the input of a tool names: as a path, as a list of paths, or in a patch.
fn paths_of(input: &Payload<'_>) -> Vec<String> {
    // One tool of Copilot CLI both edits files and shows them.
    if input.text(COMMAND).as_deref() == Some("view") {
        return Vec::new();
    }
    let mut paths: Vec<String> = input.text(PATH).into_iter().chain(input.texts(PATHS)).collect();
    if paths.is_empty() {
        paths = input.all_texts().iter().flat_map(|text| paths_of_patch(text)).collect();
    }
    paths.retain(|path| path.len() <= LONGEST_PATH);
    paths
}

/// The files that a patch is about.
fn paths_of_patch(text: &str) -> Vec<String> {
    const HEADERS: [&str; 4] = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    if !text.contains("*** Begin Patch") {
        return Vec::new();
    }
    let paths = text.lines().filter_map(|line| {
        let path = HEADERS.iter().find_map(|header| line.strip_prefix(header))?.trim();
        (!path.is_empty()).then(|| path.to_owned())
    });
    paths.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(text: &str) -> Use {
        let dialect = Dialect { events: &[], edit_tools: &["edit"], unnamed: None };
        dialect.usage(&Payload::parse(text).unwrap())
    }

    #[test]
    fn the_input_of_a_tool_names_its_files_in_whatever_form_it_is() {
        let patch = r"*** Begin Patch\n*** Update File: a\n*** End Patch";
        for (input, expected) in [
            (r#"{"path": "a"}"#.to_owned(), vec!["a"]),
            (r#""{\"path\": \"a\"}""#.to_owned(), vec!["a"]),
            (format!(r#"{{"command": "{patch}"}}"#), vec!["a"]),
            (format!(r#""{patch}""#), vec!["a"]),
            (r#"{"command": "str_replace", "path": "a"}"#.to_owned(), vec!["a"]),
            (r#"{"command": "view", "path": "a"}"#.to_owned(), vec![]),
            (r#""a""#.to_owned(), vec![]),
        ] {
            let text = format!(r#"{{"tool_name": "edit", "tool_input": {input}}}"#);
            assert_eq!(usage(&text).paths, expected, "{text}");
        }
        let many: Vec<String> = (0..5000).map(|number| format!("*** Add File: {number}")).collect();
        let text =
            format!(r#"{{"tool_name": "edit", "tool_input": "*** Begin Patch\n{}"}}"#, many.join("\\n"));
        assert_eq!(usage(&text).paths.len(), 5000);
    }

    #[test]
    fn a_patch_names_its_files() {
        let patch = "*** Begin Patch\n*** Update File: src/a.rs\n*** Move to: src/b.rs\n@@\n-*** Add File: no\n+x\n\
                     *** Add File: new.rs\n+y\n*** Delete File: old.rs\n*** End Patch";
        assert_eq!(paths_of_patch(patch), ["src/a.rs", "src/b.rs", "new.rs", "old.rs"]);
        assert!(paths_of_patch("*** Update File: src/a.rs").is_empty());
    }
}
