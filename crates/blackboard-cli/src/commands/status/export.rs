//! `blackboard status --export`

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use blackboard::clock::{Clock, SystemClock};
use blackboard::project::{Activity, ProjectSelection};
use blackboard::{Code, Error, Fault, Result};
use clap::builder::PossibleValuesParser;

use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::spoke::ExportedStatus;
use crate::spoke::export::{self, Sources};
use crate::spoke::outgoing::Outgoing;
use crate::spoke::project::{self, SpokeProject};
use crate::spoke::status::{self, GitStatus, TestResults, whole_seconds};
use crate::spoke::test_report::{self, TestReport};
use crate::spoke::{DIRECTORY, Phase, StatusFile, repository};

/// The options of `status --export`.
#[derive(clap::Args, Debug)]
pub struct Export {
    /// Write .collab/status.yaml for a hub
    #[arg(long = "export", id = "export")]
    is_wanted: bool,

    /// File to write; - is standard output [default: .collab/status.yaml in the repository]
    #[arg(short = 'o', long, value_name = "FILE", requires = "export", conflicts_with = "stdout")]
    output: Option<PathBuf>,

    /// Print the YAML, and write no file
    #[arg(long, requires = "export")]
    stdout: bool,

    /// Phase of the project [default: as in the existing file, or build]
    #[arg(long, value_name = "PHASE", requires = "export", value_parser = PossibleValuesParser::new(Phase::ALL_WORDS))]
    phase: Option<String>,

    /// Report of a test run: JUnit XML, JSON, LCOV; can be repeated, for results and coverage
    #[arg(long, value_name = "FILE", requires = "export")]
    tests: Vec<PathBuf>,

    /// Include the agents and work items of all projects on the board
    #[arg(long, requires = "export")]
    all_projects: bool,
}

impl Export {
    /// Whether the call asks for an export.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Writes the status.
    pub fn run(mut self, context: &Context) -> Result<Outcome> {
        if self.output.as_deref() == Some(Path::new("-")) {
            (self.output, self.stdout) = (None, true);
        }
        let project = SpokeProject::find(&context.request());
        let now = SystemClock.now();
        let reports = self.tests.iter().map(|file| report(file)).collect::<Result<Vec<_>>>()?;
        let previous = self.previous(&project, context)?;
        let git = git_status(&project, context);
        let activity = self.activity(&project, context)?;
        let resolved = context.resolve()?;
        let phase = self.phase.as_deref().and_then(Phase::named);
        let tests = previous.as_ref().and_then(|previous| previous.tests.clone());
        let tests = if reports.is_empty() {
            tests
        } else {
            let results = test_report::combine(&reports, tests.as_ref())
                .map_err(|reason| Error::invalid(format!("--tests: {reason}")))?;
            Some(TestResults { reported_at: Some(whole_seconds(now)), ..results })
        };
        let sources = Sources {
            now,
            project: &project.name(),
            phase: phase.or(previous.and_then(|previous| previous.phase)).unwrap_or_default(),
            git,
            tests,
            activity: activity.as_ref(),
        };
        let home = context.request().environment.user_home;
        let outgoing = Outgoing::new(&resolved.settings.text, home.as_deref());
        let status = export::status(sources, &outgoing, resolved.config.redaction);
        let text = status
            .write()
            .map_err(|error| Fault::new(Code::Internal, format!("the status cannot be written: {error}")))?;
        let output = if self.stdout {
            None
        } else if let Some(file) = self.output {
            project::write(&file, &text)?;
            Some(file)
        } else {
            Some(project.write(status::FILE, &text)?)
        };
        let output = output.map(|file| file.display().to_string());
        Ok(Outcome::new(ExportedStatus { output, status, text }))
    }

    /// The status that is replaced: its phase and its test results stay.
    fn previous(&self, project: &SpokeProject, context: &Context) -> Result<Option<StatusFile>> {
        let text = match &self.output {
            Some(file) => project::read(file)?,
            None => project.read(status::FILE)?,
        };
        let Some(text) = text else { return Ok(None) };
        let previous = StatusFile::check(&text);
        if previous.value.is_none() {
            let reason = previous.errors.first().map(ToString::to_string).unwrap_or_default();
            context.note(&format!(
                "the existing status cannot be read, so its phase and tests are not kept: {reason}"
            ));
        }
        let is_kept = |message: &str| {
            let is_missing =
                ["phase: required, but missing", "tests: required, but missing"].contains(&message);
            let is_phase = message.starts_with("phase:") || message.starts_with("project.phase:");
            is_missing || !(is_phase && self.phase.is_none() || message.starts_with("tests"))
        };
        for error in
            previous.errors.iter().filter(|error| previous.value.is_some() && !is_kept(&error.message))
        {
            context.note(&format!("a value of the existing status is not kept: {error}"));
        }
        Ok(previous.value)
    }

    /// What agents do; `None` without a board.
    fn activity(&self, project: &SpokeProject, context: &Context) -> Result<Option<Activity>> {
        let board = context.open(Access::read())?;
        if context.missing_board().is_some() {
            return Ok(None);
        }
        let selection = if self.all_projects {
            ProjectSelection::All
        } else {
            ProjectSelection::One(project.identity(&context.resolve()?.engine.name()))
        };
        board.projects().activity(&selection).map(Some)
    }
}

/// What git says. Without an answer, the status is written without it.
fn git_status(project: &SpokeProject, context: &Context) -> Option<GitStatus> {
    let found = if project.is_repository {
        repository::status(&project.root, &format!("{DIRECTORY}/{}", status::FILE))
            .map_err(repository::Unknown::reason)
    } else {
        Err("this is not a git repository")
    };
    found
        .inspect_err(|reason| {
            context.note(&format!("{reason}: the status has no git section, which hubs require"));
        })
        .ok()
}

/// Reads a report of a test run.
fn report(file: &Path) -> Result<TestReport> {
    let name = file.display();
    let fault =
        |error: io::Error| Error::from(Fault::new(Code::Io, format!("{name} cannot be read")).because(error));
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(fault)?;
    opened.take(test_report::MAX_BYTES + 1).read_to_end(&mut bytes).map_err(fault)?;
    if bytes.len() as u64 > test_report::MAX_BYTES {
        return Err(Error::invalid(format!("{name} has more than {} bytes", test_report::MAX_BYTES)));
    }
    let text = String::from_utf8_lossy(&bytes);
    TestReport::read(&text).map_err(|reason| {
        Error::invalid(format!("{name} cannot be used: {}", crate::output::escape(&reason)))
    })
}
