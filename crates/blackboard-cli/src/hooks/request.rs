//! The input of a hook: one JSON object on standard input, of which a few fields matter.
//!
//! All platforms have the same few events. A [`PayloadFormat`] contains the names that one platform uses
//! ([`platforms`](crate::platforms)), and parses a [`HookRequest`]. Platforms change their formats, so the parser is
//! lenient: a field that is missing, unknown or of another type counts as absent. Values that do not matter (prompts,
//! file contents, tool output) are skipped without being copied.

use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::path::PathBuf;

use serde_json::value::RawValue;

use super::patch;

/// How much of standard input is read: more than any agent writes in one tool call.
const LONGEST_INPUT: u64 = 16 * 1024 * 1024;

/// The size of most calls. Longer input takes more reads.
const USUAL_INPUT: usize = 8 * 1024;

/// The maximum length of a session id, and of a path. Longer ones are ignored.
const LONGEST_ID: usize = 100;
const LONGEST_PATH: usize = 4096;

/// How many characters of a task are kept: a description has a few words, a prompt would have many lines.
const LONGEST_TASK: usize = 200;

/// The maximum number of files per call.
pub const MOST_PATHS: usize = 1000;

/// A parsed call of a platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookRequest {
    /// The platform's name of the event, which some answers repeat.
    pub event_name: String,
    /// The platform's own id of the session.
    pub session: String,
    /// The platform's own id of the subagent that the call is about.
    pub delegate: Option<String>,
    /// The platform's own id of the parent session, if subagents have their own sessions.
    pub parent: Option<String>,
    /// The task of a delegate, if the platform sends it when the delegate starts.
    pub task: Option<String>,
    /// The working directory of the session.
    pub directory: Option<PathBuf>,
    /// The event.
    pub event: HookEvent,
}

/// An event of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookEvent {
    /// A session started or resumed.
    Started {
        /// Whether its context was cleared or summarized, so that it no longer has its brief.
        forgot: bool,
    },
    /// The user sent a prompt.
    Prompted,
    /// The agent is about to edit these files.
    AboutToEdit(ToolCall),
    /// The agent used a tool, and edited these files with it.
    ToolUsed(ToolCall),
    /// The agent is about to start a delegate.
    AboutToDelegate {
        /// The kind of delegate.
        kind: String,
        /// Its task.
        task: String,
    },
    /// A subagent started.
    DelegateStarted {
        /// The kind of delegate.
        kind: Option<String>,
    },
    /// A subagent ended.
    DelegateEnded,
    /// The agent waits for its user.
    Idle,
    /// The session ended.
    Ended,
    /// An event that is not handled.
    Nothing,
}

/// A tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// The tool.
    pub tool: Option<String>,
    /// The files that it edits, as the platform names them, each once and at most [`MOST_PATHS`].
    pub paths: Vec<String>,
    /// Whether it edits files that are not in `paths`: there are more, or a path is longer than [`LONGEST_PATH`].
    pub has_unlisted: bool,
}

impl ToolCall {
    fn edits_nothing(&self) -> bool {
        self.paths.is_empty() && !self.has_unlisted
    }
}

/// The kind of an event of a platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    Started,
    Prompted,
    BeforeTool,
    AfterTool,
    DelegateStarted,
    DelegateEnded,
    Idle,
    Ended,
}

/// The names that a platform uses in its input.
#[cfg_attr(test, derive(Default))]
pub struct PayloadFormat {
    /// Its fields.
    pub fields: PayloadFields,
    /// Its events.
    pub events: &'static [(&'static str, EventKind)],
    /// Its tools that edit files.
    pub edit_tools: Names,
    /// Those of them whose input is a patch.
    pub patch_tools: Names,
    /// Its tools that start a delegate.
    pub delegate_tools: Names,
    /// The sources of a session start after which the session no longer has its brief.
    pub forgetful_sources: Names,
    /// The member of a tool's input, and its value, with which a tool that edits files only views one.
    pub view_call: Option<(&'static str, &'static str)>,
    /// The event about a subagent whose calls do not identify it.
    pub unnamed_event: Option<&'static str>,
}

/// The possible names of something, best first.
pub type Names = &'static [&'static str];

/// The fields of a platform's input. A field that it does not have has no names.
#[cfg_attr(test, derive(Default))]
pub struct PayloadFields {
    /// The event.
    pub event: Names,
    /// The platform's own id of the session.
    pub session: Names,
    /// The working directory of the session.
    pub directory: Names,
    /// A list of directories, the first of which is the working directory.
    pub roots: Names,
    /// Why a session starts.
    pub source: Names,
    /// The tool.
    pub tool: Names,
    /// The input of the tool.
    pub input: Names,
    /// In the input of a tool: the file that it edits.
    pub path: Names,
    /// In the input of a tool: the files that it edits.
    pub paths: Names,
    /// The platform's own id of the subagent that the call is about.
    pub delegate: Names,
    /// The platform's own id of the subagent's parent session.
    pub parent: Names,
    /// The kind of a subagent.
    pub kind: Names,
    /// The task of a subagent.
    pub task: Names,
}

impl PayloadFormat {
    /// Parses a call; `None` if it names no event or no session.
    pub fn read(&self, payload: &Payload<'_>) -> Option<HookRequest> {
        let fields = &self.fields;
        let (session, delegate, parent) =
            match (self.session_of(payload)?, id(payload, fields.delegate), id(payload, fields.parent)) {
                // The subagent has its own session, whichever of the two the call names.
                (_, Some(delegate), Some(parent)) => (delegate, None, Some(parent)),
                others => others,
            };
        let unnamed = self.unnamed_event.filter(|_| parent.is_some()).map(str::to_owned);
        let event_name = payload.text(fields.event).or(unnamed)?;
        let directory =
            payload.text(fields.directory).or_else(|| payload.texts(fields.roots).into_iter().next());
        let directory = directory.filter(|path| path.len() <= LONGEST_PATH).map(PathBuf::from);
        let kind = self.events.iter().find(|(name, _)| *name == event_name).map(|(_, kind)| *kind);
        let event = match kind {
            None => HookEvent::Nothing,
            Some(EventKind::Started) => {
                let source = payload.text(fields.source);
                let forgot = source.is_some_and(|source| self.forgetful_sources.contains(&source.as_str()));
                HookEvent::Started { forgot }
            }
            Some(EventKind::Prompted) => HookEvent::Prompted,
            Some(EventKind::Idle) => HookEvent::Idle,
            Some(EventKind::Ended) => HookEvent::Ended,
            Some(EventKind::DelegateStarted) => {
                HookEvent::DelegateStarted { kind: payload.text(fields.kind) }
            }
            Some(EventKind::DelegateEnded) => HookEvent::DelegateEnded,
            Some(EventKind::AfterTool) => HookEvent::ToolUsed(self.tool_call(payload)),
            Some(EventKind::BeforeTool) => match self.tool_call(payload) {
                call if self.delegates_by(&call) => self.about_to_delegate(payload),
                call if call.edits_nothing() => HookEvent::Nothing,
                call => HookEvent::AboutToEdit(call),
            },
        };
        let task = matches!(kind, Some(EventKind::Started | EventKind::DelegateStarted))
            .then(|| self.task_of(payload))
            .flatten();
        Some(HookRequest {
            session,
            task,
            delegate,
            parent,
            directory: directory.filter(|path| path.is_absolute()),
            event,
            event_name,
        })
    }

    /// The platform's own id of the session that a call is about.
    pub fn session_of(&self, payload: &Payload<'_>) -> Option<String> {
        id(payload, self.fields.session)
    }

    fn delegates_by(&self, call: &ToolCall) -> bool {
        call.tool.as_deref().is_some_and(|tool| self.delegate_tools.contains(&tool))
    }

    fn about_to_delegate(&self, payload: &Payload<'_>) -> HookEvent {
        let asked = payload.inside(self.fields.input, |input| {
            Some((input.text(self.fields.kind).unwrap_or_default(), self.task_of(input)?))
        });
        match asked.flatten() {
            Some((kind, task)) => HookEvent::AboutToDelegate { kind, task },
            None => HookEvent::Nothing,
        }
    }

    /// The task of a delegate: the first line of its description.
    fn task_of(&self, payload: &Payload<'_>) -> Option<String> {
        let text = payload.text(self.fields.task)?;
        let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
        Some(line.chars().take(LONGEST_TASK).collect())
    }

    /// The tool, and the files that it edits.
    fn tool_call(&self, payload: &Payload<'_>) -> ToolCall {
        let tool = payload.text(self.fields.tool);
        let mut files = NamedFiles::default();
        if let Some(tool) = tool.as_deref().filter(|tool| self.edit_tools.contains(tool)) {
            // The input is an object, JSON text with an object, or the patch itself.
            let object = payload.inside(self.fields.input, |input| self.files_in(input, tool));
            files = object.unwrap_or_else(|| {
                let mut files = NamedFiles::default();
                let text = payload.text(self.fields.input).unwrap_or_default();
                patch::files(&text, |file| files.add(file));
                files
            });
        }
        ToolCall { tool, paths: files.paths, has_unlisted: files.has_unlisted }
    }

    /// The files in the input of a tool: as a path, as a list of paths, or in a patch.
    fn files_in(&self, input: &Payload<'_>, tool: &str) -> NamedFiles {
        let mut files = NamedFiles::default();
        let shows_only =
            self.view_call.is_some_and(|(member, value)| input.text(&[member]).as_deref() == Some(value));
        if shows_only {
            return files;
        }
        for path in input.text(self.fields.path).into_iter().chain(input.texts(self.fields.paths)) {
            files.add(&path);
        }
        if self.patch_tools.contains(&tool) || files.paths.is_empty() {
            for text in input.all_texts() {
                patch::files(&text, |file| files.add(file));
            }
        }
        files
    }
}

fn id(payload: &Payload<'_>, names: &[&str]) -> Option<String> {
    payload.text(names).filter(|id| id.len() <= LONGEST_ID)
}

/// The files in the input of a tool, each once.
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
}

/// Reads standard input.
pub fn input() -> Result<String, String> {
    let mut bytes = Vec::with_capacity(USUAL_INPUT);
    let mut stdin = std::io::stdin().lock();
    let read = stdin.by_ref().take(LONGEST_INPUT + 1).read_to_end(&mut bytes);
    let length = read.map_err(|_| "the input cannot be read".to_owned())?;
    if length as u64 > LONGEST_INPUT {
        // The platform must not get a closed pipe.
        let _ = std::io::copy(&mut stdin, &mut std::io::sink());
        return Err("the input is too long".to_owned());
    }
    String::from_utf8(bytes).map_err(|_| "the input is not text".to_owned())
}

/// An object whose values are parsed only on demand.
pub struct Payload<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Payload<'a> {
    /// Parses the object in a text.
    pub fn parse(text: &'a str) -> Option<Payload<'a>> {
        serde_json::from_str(text).ok().map(Payload)
    }

    /// The first of these fields that is a non-empty string.
    pub fn text(&self, names: &[&str]) -> Option<String> {
        let mut texts =
            names.iter().filter_map(|name| serde_json::from_str::<String>(self.0.get(*name)?.get()).ok());
        texts.find(|text| !text.is_empty())
    }

    /// The first of these fields that is a list with strings in it.
    pub fn texts(&self, names: &[&str]) -> Vec<String> {
        let lists = names.iter().filter_map(|name| {
            let list = serde_json::from_str::<Vec<serde_json::Value>>(self.0.get(*name)?.get()).ok()?;
            Some(list.into_iter().filter_map(|value| value.as_str().map(str::to_owned)).collect::<Vec<_>>())
        });
        lists.into_iter().find(|texts| !texts.is_empty()).unwrap_or_default()
    }

    /// The texts of the values in the first of these fields that is a list.
    pub fn values(&self, names: &[&str]) -> Vec<&'a str> {
        let mut lists = names
            .iter()
            .filter_map(|name| serde_json::from_str::<Vec<&RawValue>>(self.0.get(*name)?.get()).ok());
        lists.next().unwrap_or_default().into_iter().map(RawValue::get).collect()
    }

    /// Calls `f` with the first of these fields that is an object, or JSON text with one.
    pub fn inside<T>(&self, names: &[&str], f: impl Fn(&Payload<'_>) -> T) -> Option<T> {
        names.iter().find_map(|name| {
            let raw = self.0.get(*name)?.get();
            if let Some(object) = Payload::parse(raw) {
                return Some(f(&object));
            }
            let text = serde_json::from_str::<String>(raw).ok()?;
            Payload::parse(&text).map(|object| f(&object))
        })
    }

    /// Every field that is a string, and every string in a field that is a list.
    pub fn all_texts(&self) -> Vec<String> {
        let texts = self.0.values().flat_map(|raw| match serde_json::from_str::<String>(raw.get()) {
            Ok(text) => vec![text],
            Err(_) => serde_json::from_str::<Vec<String>>(raw.get()).unwrap_or_default(),
        });
        texts.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool_call(text: &str) -> ToolCall {
        let fields = PayloadFields {
            tool: &["tool_name"],
            input: &["tool_input"],
            path: &["path"],
            ..PayloadFields::default()
        };
        let format = PayloadFormat {
            fields,
            edit_tools: &["edit"],
            view_call: Some(("command", "view")),
            ..PayloadFormat::default()
        };
        format.tool_call(&Payload::parse(text).unwrap())
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
            assert_eq!(tool_call(&text).paths, expected, "{text}");
        }
    }

    #[test]
    fn files_beyond_the_limit_are_reported_and_not_kept() {
        testkit::limit_test();
        let patch = |count: usize| {
            let lines: Vec<String> = (0..count).map(|number| format!("*** Add File: {number}")).collect();
            let lines = lines.join("\\n");
            tool_call(&format!(
                r#"{{"tool_name": "edit", "tool_input": "*** Begin Patch\n{lines}\n{lines}"}}"#
            ))
        };
        let found = patch(MOST_PATHS);
        assert_eq!((found.paths.len(), found.has_unlisted), (MOST_PATHS, false), "each file counts once");
        let found = patch(MOST_PATHS + 1);
        assert_eq!((found.paths.len(), found.has_unlisted), (MOST_PATHS, true));
        let long = format!(r#"{{"tool_name": "edit", "tool_input": {{"path": "{}"}}}}"#, "x/".repeat(3000));
        let found = tool_call(&long);
        assert_eq!((found.paths.len(), found.has_unlisted), (0, true));
    }

    #[test]
    fn fields_of_another_type_are_as_good_as_absent() {
        let text = r#"{"a": 1, "b": "", "c": "x", "d": null, "e": [1, "y"], "f": {"g": "z"}, "h": "{\"g\": \"w\"}"}"#;
        let payload = Payload::parse(text).unwrap();
        assert_eq!(payload.text(&["a", "b", "d", "missing", "c"]).as_deref(), Some("x"));
        assert_eq!(payload.text(&["a", "e", "f"]), None);
        assert_eq!(payload.texts(&["a", "e"]), ["y"]);
        assert_eq!(payload.inside(&["c", "f"], |inner| inner.text(&["g"])), Some(Some("z".to_owned())));
        assert_eq!(payload.inside(&["h"], |inner| inner.text(&["g"])), Some(Some("w".to_owned())));
        assert_eq!(payload.inside(&["a", "c"], |_| ()), None);
    }

    #[test]
    fn input_that_is_not_an_object_is_ignored() {
        testkit::limit_test();
        for text in ["", "null", "[]", "1", "\"x\"", "{", "{\"a\": }", "not json", "{\"a\":1} trailing"] {
            assert!(Payload::parse(text).is_none(), "{text}");
        }
        // A value that is not parsed may be nested to any depth.
        let deep = format!("{{\"a\": {}{}, \"b\": \"x\"}}", "[".repeat(100_000), "]".repeat(100_000));
        let payload = Payload::parse(&deep).unwrap();
        assert_eq!((payload.text(&["a", "b"]).as_deref(), payload.texts(&["a"]).len()), (Some("x"), 0));
    }
}
