//! What a platform calls about: the same few happenings on all of them, read by a table of names.

use std::collections::HashSet;
use std::path::PathBuf;

use super::patch;
use super::payload::Payload;

/// Fields that platforms use for the same thing.
const EVENT: &[&str] = &["hook_event_name", "hookEventName", "event"];
const SESSION: &[&str] = &["session_id", "sessionId", "conversation_id"];
const DIRECTORY: &[&str] = &["cwd", "directory"];
const ROOTS: &[&str] = &["workspace_roots"];
const TOOL: &[&str] = &["tool_name", "toolName", "tool"];
const INPUT: &[&str] = &["tool_input", "toolArgs", "tool_args", "args"];
const DELEGATE: &[&str] = &["agent_id", "agentId", "subagent_id"];
const TASK: &[&str] = &["task", "task_description", "description"];
const KIND: &[&str] = &["agent_type", "agentType", "subagent_type", "agent_name", "agentName"];
const PARENT: &[&str] = &["parent_id", "parentID", "parent_session_id", "parent_agent_id"];
const PATH: &[&str] =
    &["file_path", "filePath", "path", "notebook_path", "target_file", "absolute_path", "filename"];
const PATHS: &[&str] = &["files", "file_paths", "paths"];
const SOURCE: &[&str] = &["source"];
const COMMAND: &[&str] = &["command"];

/// The longest id of a session and the longest path that are taken seriously.
const LONGEST_ID: usize = 100;
const LONGEST_PATH: usize = 4096;

/// How many characters of a task are kept: a description has a few words, a prompt would have many lines.
const LONGEST_TASK: usize = 200;

/// How many files of one call are looked at.
pub const MOST_PATHS: usize = 1000;

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
    /// What a delegate is asked to do, where the platform names it when the delegate starts.
    pub task: Option<String>,
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
    /// It is about to start a delegate.
    AboutToDelegate {
        /// What kind of delegate.
        kind: String,
        /// What it is asked to do.
        task: String,
    },
    /// A sub-agent started.
    DelegateStarted {
        /// What kind of delegate it is.
        kind: Option<String>,
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
    /// The files that it edits, as the platform names them, each once and at most [`MOST_PATHS`].
    pub paths: Vec<String>,
    /// Whether it edits files that are not in `paths`: there are more, or a path is longer than [`LONGEST_PATH`].
    pub has_unlisted: bool,
}

impl Use {
    fn edits_nothing(&self) -> bool {
        self.paths.is_empty() && !self.has_unlisted
    }
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
    /// Its tools that start a delegate.
    pub delegate_tools: &'static [&'static str],
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
            Some(Meaning::DelegateStarted) => Happening::DelegateStarted { kind: payload.text(KIND) },
            Some(Meaning::DelegateEnded) => Happening::DelegateEnded,
            Some(Meaning::AfterTool) => Happening::ToolUsed(self.usage(payload)),
            Some(Meaning::BeforeTool) => match self.usage(payload) {
                usage if self.delegates_by(&usage) => about_to_delegate(payload),
                usage if usage.edits_nothing() => Happening::Nothing,
                usage => Happening::AboutToEdit(usage),
            },
        };
        let task = matches!(meaning, Some(Meaning::Started | Meaning::DelegateStarted))
            .then(|| task_of(payload))
            .flatten();
        Some(Call {
            session,
            task,
            delegate,
            parent,
            directory: directory.filter(|path| path.is_absolute()),
            happening,
            event,
        })
    }

    fn delegates_by(&self, usage: &Use) -> bool {
        usage.tool.as_deref().is_some_and(|tool| self.delegate_tools.contains(&tool))
    }

    /// The tool, and the files that it edits.
    fn usage(&self, payload: &Payload<'_>) -> Use {
        let tool = payload.text(TOOL);
        let mut files = NamedFiles::default();
        if let Some(tool) = tool.as_deref().filter(|tool| self.edit_tools.contains(tool)) {
            let takes_patch = tool.contains("patch");
            // The input is an object, or a text that is one, or the patch itself.
            let object = payload.inside(INPUT, |input| {
                let mut files = NamedFiles::default();
                files.add_all_of(input, takes_patch);
                files
            });
            files = object.unwrap_or_else(|| {
                let mut files = NamedFiles::default();
                patch::files(&payload.text(INPUT).unwrap_or_default(), |file| files.add(file));
                files
            });
        }
        Use { tool, paths: files.paths, has_unlisted: files.has_unlisted }
    }
}

/// What a delegate is asked to do: the first line of its description.
fn task_of(payload: &Payload<'_>) -> Option<String> {
    let text = payload.text(TASK)?;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(LONGEST_TASK).collect())
}

fn about_to_delegate(payload: &Payload<'_>) -> Happening {
    let asked = payload.inside(INPUT, |input| Some((input.text(KIND).unwrap_or_default(), task_of(input)?)));
    match asked.flatten() {
        Some((kind, task)) => Happening::AboutToDelegate { kind, task },
        None => Happening::Nothing,
    }
}

/// The platform's own id of the session that a call is about.
pub fn session_of(payload: &Payload<'_>) -> Option<String> {
    id(payload, SESSION)
}

fn id(payload: &Payload<'_>, names: &[&str]) -> Option<String> {
    payload.text(names).filter(|id| id.len() <= LONGEST_ID)
}

/// The files that the input of a tool names, each once.
#[derive(Default)]
struct NamedFiles {
    paths: Vec<String>,
    known: HashSet<String>,
    has_unlisted: bool,
}

impl NamedFiles {
    fn add(&mut self, path: &str) {
        if path.is_empty() || self.known.contains(path) {
            return;
        }
        if path.len() > LONGEST_PATH || self.paths.len() == MOST_PATHS {
            self.has_unlisted = true;
            return;
        }
        self.known.insert(path.to_owned());
        self.paths.push(path.to_owned());
    }

    /// Adds what an input names: as a path, as a list of paths, or in a patch.
    fn add_all_of(&mut self, input: &Payload<'_>, takes_patch: bool) {
        // One tool of Copilot CLI both edits files and shows them.
        if input.text(COMMAND).as_deref() == Some("view") {
            return;
        }
        for path in input.text(PATH).into_iter().chain(input.texts(PATHS)) {
            self.add(&path);
        }
        if takes_patch || self.paths.is_empty() {
            for text in input.all_texts() {
                patch::files(&text, |file| self.add(file));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(text: &str) -> Use {
        let dialect = Dialect { events: &[], edit_tools: &["edit"], delegate_tools: &[], unnamed: None };
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
            (format!(r#"{{"command": ["apply_patch", "{patch}"]}}"#), vec!["a"]),
            (r#"{"command": "str_replace", "path": "a"}"#.to_owned(), vec!["a"]),
            (r#"{"command": "view", "path": "a"}"#.to_owned(), vec![]),
            (r#""a""#.to_owned(), vec![]),
        ] {
            let text = format!(r#"{{"tool_name": "edit", "tool_input": {input}}}"#);
            assert_eq!(usage(&text).paths, expected, "{text}");
        }
    }

    #[test]
    fn files_beyond_the_limit_are_reported_and_not_kept() {
        let patch = |count: usize| {
            let lines: Vec<String> = (0..count).map(|number| format!("*** Add File: {number}")).collect();
            let lines = lines.join("\\n");
            usage(&format!(r#"{{"tool_name": "edit", "tool_input": "*** Begin Patch\n{lines}\n{lines}"}}"#))
        };
        let found = patch(MOST_PATHS);
        assert_eq!((found.paths.len(), found.has_unlisted), (MOST_PATHS, false), "each file counts once");
        let found = patch(MOST_PATHS + 1);
        assert_eq!((found.paths.len(), found.has_unlisted), (MOST_PATHS, true));
        let long = format!(r#"{{"tool_name": "edit", "tool_input": {{"path": "{}"}}}}"#, "x/".repeat(3000));
        let found = usage(&long);
        assert_eq!((found.paths.len(), found.has_unlisted), (0, true));
    }
}
