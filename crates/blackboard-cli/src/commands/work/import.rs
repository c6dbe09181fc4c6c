//! `blackboard work import`

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use blackboard::work::ImportItems;
use blackboard::{Code, Refusal, Result};
use clap::ValueEnum;

use crate::commands::Run;
use crate::commands::arguments::{Session, at_least_one, length};
use crate::commands::entry::input::read_list;
use crate::commands::interrupt::{INTERRUPTED, watch_signals};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::{Nothing, Outcome};
use crate::output::trackers::ImportedWork;
use crate::trackers::github::Issues;
use crate::trackers::{MOST_BYTES, TrackerFile, beads, github, jsonl, list_key, markdown, tasks};

/// How long `gh` may take, unless the caller says otherwise.
const PATIENCE: Duration = Duration::from_mins(2);

/// Import work items from GitHub, a file or standard input
///
/// Creates items, and updates their fields, dependencies and closed state; a second import of the same changes nothing. Claims
/// and what agents completed stay, and items of another source are refused without --adopt. Exits with 4 if an item is refused
/// or cannot be read.
///
/// Examples:
///   blackboard work import --from github --repo mellanon/pai-collab --dry-run
///   blackboard work import --from beads .beads/issues.jsonl
///   blackboard work import --from markdown TODO.md --project pai-collab
///   blackboard work import --from jsonl --all - < items.jsonl
///   blackboard work import --from jsonl --adopt items.jsonl
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Import {
    /// Form of the items
    #[arg(long, value_name = "FORM", value_enum)]
    from: Form,

    /// File to import; - is standard input. Only github needs none, with --repo
    #[arg(value_name = "FILE", conflicts_with_all = ["repo", "limit", "timeout"], required_if_eq_any = [("from", "jsonl"), ("from", "beads"), ("from", "tasks"), ("from", "markdown")])]
    file: Option<PathBuf>,

    /// GitHub repository: OWNER/REPO, or HOST/OWNER/REPO; . is that of the current directory
    #[arg(long, value_name = "REPO")]
    repo: Option<String>,

    /// Most issues to ask GitHub for [default: 5000]
    #[arg(short = 'n', long, value_name = "N", value_parser = at_least_one)]
    limit: Option<usize>,

    /// Longest time for gh, for example 30s [default: 2m]
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,

    /// Registered project of all items
    #[arg(short = 'P', long, value_name = "PROJECT")]
    project: Option<String>,

    /// Also create items that are closed
    #[arg(short = 'a', long)]
    all: bool,

    /// Also change items that were not imported, or imported in another form
    #[arg(long)]
    adopt: bool,

    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    session: Session,
}

/// The form of the items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// GitHub issues, through gh or from its output
    Github,
    /// One JSON object per line
    Jsonl,
    /// The issues.jsonl of beads
    Beads,
    /// A tasks.yaml
    Tasks,
    /// A Markdown task list
    Markdown,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Form::Github => "github",
            Form::Jsonl => "jsonl",
            Form::Beads => "beads",
            Form::Tasks => "tasks",
            Form::Markdown => "markdown",
        }
    }
}

impl Run for Import {
    fn run(self, context: &Context) -> Result<Outcome> {
        let timeout = length(self.timeout.as_deref())?.unwrap_or(PATIENCE);
        let access = if self.dry_run { Access::plan } else { Access::write };
        let (name, file) = match (&self.file, self.from) {
            (Some(path), form) => {
                let is_standard_input = path.as_os_str() == "-";
                let name =
                    if is_standard_input { "standard input".into() } else { path.display().to_string() };
                let text = read_list(path, MOST_BYTES)?;
                let key = || {
                    let file = (!is_standard_input).then_some(path.as_path());
                    list_key(&context.request(), file, self.project.as_deref())
                };
                (name, read(form, &text, key)?)
            }
            (None, Form::Github) if self.repo.is_none() => {
                return Err(Refusal::new(Code::Usage, "--from github requires --repo or a file")
                    .hint("name the repository, for example --repo OWNER/REPO; --repo . is that of this directory")
                    .into());
            }
            (None, Form::Github) => {
                let repository = self.repo.clone().filter(|repository| repository != ".");
                let name = repository.clone().unwrap_or_else(|| "GitHub".to_owned());
                let issues = Issues { repository, limit: self.limit.unwrap_or(5000), timeout };
                let interrupted = watch_signals();
                let listed = issues.list(&interrupted)?.filter(|_| !interrupted.load(Ordering::Relaxed));
                let Some(file) = listed else {
                    return Ok(Outcome::new(Nothing).with_exit_code(INTERRUPTED));
                };
                (name, file)
            }
            (None, form) => {
                let message = format!("--repo is for GitHub, and not for {}", form.name());
                return Err(Refusal::new(Code::Usage, message)
                    .hint("name a file, or - for standard input")
                    .into());
            }
        };
        let (board, session) = context.open(access(self.session.named()))?;
        let items = board.work().import(&ImportItems {
            items: file.items.clone(),
            from: self.from.name().to_owned(),
            project: self.project,
            with_closed: self.all,
            adopt: self.adopt,
            dry_run: self.dry_run,
            session,
        })?;
        let imported = ImportedWork::new(name, self.from.name(), file, items, self.dry_run, context.json());
        let exit_code = imported.exit_code();
        Ok(Outcome::new(imported).with_exit_code(exit_code))
    }
}

/// Reads the items of a text. `key` is that of a task list.
fn read(form: Form, text: &str, key: impl FnOnce() -> String) -> Result<TrackerFile> {
    match form {
        Form::Github => github::read(text),
        Form::Jsonl => Ok(jsonl::read(text)),
        Form::Beads => Ok(beads::read(text)),
        Form::Tasks => tasks::read(text),
        Form::Markdown => Ok(markdown::read(text, &key())),
    }
}
