//! `blackboard export`

mod quota;
mod yaml;

use std::cell::RefCell;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use blackboard::clock::{Clock, SystemClock, Timestamp};
use blackboard::event::{Filter, Since};
use blackboard::export::Exported;
use blackboard::{Board, Code, Error, Fault, Refusal, Result, Revision};
use clap::ValueEnum;
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::Run;
use super::arguments::ReadAs;
use crate::context::Context;
use crate::disk::{self, replace};
use crate::envelope::{Answer, JsonWriter};
use crate::open::Access;
use crate::outcome::{Outcome, Render};
use crate::output::{self, Screen, escape};
use crate::unreadable::UnreadableRows;

/// Export the board or a scope as JSON or YAML
///
/// Prints agents, projects, protocols, work items, dependencies, entries and events as one JSON object, or writes it to
/// --output. With --scope, only entries, policies and events of that scope. What a scope does not let the caller read is
/// left out. `blackboard import` reads the entries.
///
/// With --what, prints one of the files agents.yaml, tasks.yaml, progress.yaml and quota.yaml. `blackboard work import --from
/// tasks` reads the tasks.
///
/// Examples:
///   blackboard export --pretty
///   blackboard export --output board.json
///   blackboard export --scope default --output entries.json
///   blackboard export --what progress
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Export {
    /// File to write to; - is standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Form of the export [default: json, with --what yaml]
    #[arg(long, value_name = "FORM", value_enum, requires_if("yaml", "what"))]
    format: Option<Format>,

    /// File of YAML to export
    #[arg(long, value_name = "NAME", value_enum, conflicts_with_all = ["scope", "pretty"])]
    what: Option<yaml::File>,

    /// Scope to export [default: the complete board]
    #[arg(short = 'S', long, value_name = "NAME")]
    scope: Option<String>,

    /// Print the JSON on several lines
    #[arg(long)]
    pretty: bool,

    #[command(flatten)]
    reader: ReadAs,
}

/// The form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The complete state and all events
    Json,
    /// One of the files agents.yaml, tasks.yaml, progress.yaml and quota.yaml
    Yaml,
}

/// The version of the format. Further fields do not change it.
const EXPORT_VERSION: u32 = 1;

impl Run for Export {
    fn run(self, context: &Context) -> Result<Outcome> {
        if self.what.is_some() && self.format == Some(Format::Json) {
            return Err(Refusal::new(Code::Usage, "--what names a file of YAML")
                .hint("leave out --format, or pass --format yaml")
                .into());
        }
        let board = self.reader.apply(context.open(Access::read())?)?;
        if let Some(file) = self.what {
            let (revision, text) = if file == yaml::File::Quota {
                (None, quota::render(context)?)
            } else {
                let state = board.export()?;
                (Some(state.revision), yaml::render(&board, &state, file)?)
            };
            return export_yaml(revision, text, self.output);
        }
        let state = match &self.scope {
            Some(scope) => board.export_scope(scope)?,
            None => board.export()?,
        };
        // A scope alone has no status.
        let status = if self.scope.is_none() { Some(status_of(&board)?) } else { None };
        let exported_at = SystemClock.now();
        let failed = RefCell::default();
        let state = WholeState { state, exported_at, status, scope: self.scope, board, failed };
        let unreadable = context.unreadable().clone();
        let Some(file) = self.output.filter(|file| file.as_os_str() != "-") else {
            return Ok(Outcome::new(Printed { state, unreadable, pretty: self.pretty }));
        };
        refuse_what_is_no_plain_file(&file, "name a plain file, or - for standard output")?;
        replace(&file, disk::Access::Private, |out| state.write(out, &unreadable, self.pretty)).map_err(
            |failure| match failure {
                output::Failure::Board(error) => error,
                output::Failure::Output(error) => not_written(&file, error),
            },
        )?;
        let (revision, left_out) = (state.state.revision, unreadable.list().len());
        let (output, export_version) = (file.display().to_string(), EXPORT_VERSION);
        let file = output.clone();
        let scope = state.scope;
        Ok(Outcome::new(Saved { output, file, export_version, revision: Some(revision), scope, left_out }))
    }
}

/// The error of a file that cannot be written.
pub(super) fn not_written(file: &Path, error: io::Error) -> Error {
    let message = format!("{} cannot be written", file.display());
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Refusal::new(Code::ReadOnly, format!("{message}: {error}"))
                .hint("check the permissions of the file and of its directory")
                .into()
        }
        _ => Fault::new(Code::Io, message).because(error).into(),
    }
}

/// Prints or writes one of the files of YAML.
fn export_yaml(revision: Option<Revision>, text: String, output: Option<PathBuf>) -> Result<Outcome> {
    let Some(path) = output.filter(|path| path.as_os_str() != "-") else {
        return Ok(Outcome::new(PrintedYaml { revision, yaml: text }));
    };
    refuse_what_is_no_plain_file(&path, "name a plain file, or - for standard output")?;
    replace(&path, disk::Access::Private, |out| out.write_all(text.as_bytes()))
        .map_err(|error| not_written(&path, error))?;
    let output = path.display().to_string();
    Ok(Outcome::new(Saved {
        file: output.clone(),
        output,
        export_version: EXPORT_VERSION,
        revision,
        scope: None,
        left_out: 0,
    }))
}

/// A file of YAML. In JSON it is a text.
#[derive(Serialize)]
struct PrintedYaml {
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<Revision>,
    yaml: String,
}

impl Render for PrintedYaml {
    fn json(&self, answer: &mut Answer<'_>) -> output::Result {
        answer.object(self)
    }

    fn human(&self, screen: &mut Screen<'_>) -> output::Result {
        screen.writer().write_all(self.yaml.as_bytes())?;
        Ok(())
    }
}

/// The summary of a board. Its size belongs to its engine, and not to its state.
fn status_of(board: &Board) -> Result<Value> {
    let mut status = serde_json::to_value(board.status()?).unwrap_or_default();
    if let Some(members) = status.as_object_mut() {
        members.remove("database_size_bytes");
    }
    Ok(status)
}

/// A file is replaced and not written through: that would be the end of a device, and not what a link is for.
pub(super) fn refuse_what_is_no_plain_file(file: &Path, hint: &'static str) -> Result<()> {
    match fs::symlink_metadata(file) {
        Ok(metadata) if !metadata.is_file() => {
            let what = if metadata.is_symlink() { "a symbolic link" } else { "not a plain file" };
            Err(Refusal::new(Code::UnsafePermissions, format!("{} is {what}", file.display()))
                .hint(hint)
                .into())
        }
        _ => Ok(()),
    }
}

/// The state with its log, which is read while it is written.
struct WholeState {
    state: Exported,
    exported_at: Timestamp,
    /// The summary of the complete board.
    status: Option<Value>,
    /// The only scope whose events are written.
    scope: Option<String>,
    board: Board,
    /// Why the log could not be read: a serializer only passes on that something failed.
    failed: RefCell<Option<Error>>,
}

impl WholeState {
    /// Writes it without the envelope of an answer.
    fn write(&self, out: &mut dyn Write, unreadable: &UnreadableRows, pretty: bool) -> output::Result {
        let document = Document { state: self, unreadable };
        let mut out = JsonWriter::new(out);
        let written = if pretty {
            serde_json::to_writer_pretty(&mut out, &document)
        } else {
            serde_json::to_writer(&mut out, &document)
        };
        self.noted_failure()?;
        written.map_err(io::Error::from)?;
        out.write_all(b"\n")?;
        Ok(out.flush()?)
    }

    /// What went wrong on the side of the board while the state was written.
    fn noted_failure(&self) -> Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }
}

/// What is written without the envelope of an answer, which reports the rows that were left out.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    state: &'a WholeState,
    /// Behind the state: its log may have more of them.
    #[serde(skip_serializing_if = "UnreadableRows::is_empty")]
    unreadable: &'a UnreadableRows,
}

impl Serialize for WholeState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Exported {
            revision,
            agents,
            projects,
            protocols,
            work_items,
            work_dependencies,
            scopes,
            page_maps,
            entries,
        } = &self.state;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("export_version", &EXPORT_VERSION)?;
        map.serialize_entry("exported_at", &self.exported_at)?;
        map.serialize_entry("revision", revision)?;
        if let Some(status) = &self.status {
            map.serialize_entry("status", status)?;
        }
        map.serialize_entry("agents", agents)?;
        map.serialize_entry("projects", projects)?;
        map.serialize_entry("protocols", protocols)?;
        map.serialize_entry("work_items", work_items)?;
        map.serialize_entry("work_dependencies", work_dependencies)?;
        map.serialize_entry("scopes", scopes)?;
        map.serialize_entry("page_maps", page_maps)?;
        map.serialize_entry("entries", entries)?;
        map.serialize_entry("events", &Log { state: self, until: *revision })?;
        map.end()
    }
}

struct Log<'a> {
    state: &'a WholeState,
    until: Revision,
}

impl Serialize for Log<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let events = self.state.board.events();
        let custom = |error: Error| {
            let failed = serde::ser::Error::custom(&error);
            self.state.failed.replace(Some(error));
            failed
        };
        let start = Since::Revision(Revision::ZERO);
        let observation = match &self.state.scope {
            Some(scope) => {
                let filter = Filter { scopes: vec![scope.clone()], ..Filter::default() };
                events.observe_filtered(&start, &[filter])
            }
            None => events.observe(&start, &[]),
        };
        let mut observation = observation.map_err(custom)?;
        observation.until = self.until;
        let mut list = serializer.serialize_seq(None)?;
        let mut after = observation.after;
        while let Some(batch) = events.next(&observation, after, 1000).map_err(custom)? {
            batch.events.iter().try_for_each(|event| list.serialize_element(event))?;
            after = batch.last;
        }
        list.end()
    }
}

struct Printed {
    state: WholeState,
    unreadable: UnreadableRows,
    pretty: bool,
}

impl Render for Printed {
    fn json(&self, answer: &mut Answer<'_>) -> output::Result {
        let written = answer.object(&self.state);
        self.state.noted_failure()?;
        written
    }

    fn human(&self, screen: &mut Screen<'_>) -> output::Result {
        self.state.write(screen.writer(), &self.unreadable, self.pretty)
    }
}

#[derive(Serialize)]
struct Saved {
    output: String,
    /// The same, under the name that other programs read.
    file: String,
    export_version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<Revision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    #[serde(skip)]
    left_out: usize,
}

impl Render for Saved {
    fn json(&self, answer: &mut Answer<'_>) -> output::Result {
        answer.object(self)
    }

    fn human(&self, screen: &mut Screen<'_>) -> output::Result {
        let left_out = match self.left_out {
            0 => String::new(),
            1 => ", without 1 row that cannot be read".to_owned(),
            count => format!(", without {count} rows that cannot be read"),
        };
        let what = self.scope.as_ref().map_or("board".to_owned(), |scope| format!("scope {}", escape(scope)));
        let file = escape(&self.output);
        match self.revision {
            Some(revision) => {
                screen.line(format_args!("Exported {what}: {file} (revision {revision}{left_out})"))
            }
            None => screen.line(format_args!("Exported quota: {file}")),
        }
    }
}
