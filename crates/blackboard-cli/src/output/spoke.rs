//! The files of a spoke, as human and JSON output.

use blackboard::{Code, Error, Refusal};
use serde::Serialize;

use super::{Result, Screen, escape, time};
use crate::envelope::{Answer, Failure};
use crate::outcome::Render;
use crate::spoke::status::{AgentActivity, GitStatus, TestResults};
use crate::spoke::{Manifest, OperatorFile, StatusFile};
use crate::yaml::YamlError;

/// The answer of `status --export`.
#[derive(Serialize)]
pub struct ExportedStatus {
    /// The file that was written; none if the text is printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The status.
    pub status: StatusFile,
    /// The text of the file.
    #[serde(skip)]
    pub text: String,
}

impl Render for ExportedStatus {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(self)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        let Some(file) = &self.output else {
            // Its texts are filtered, and quoted so that no character of them reaches a terminal unescaped.
            return screen.verbatim(&self.text);
        };
        let agents = match &self.status.agent_activity {
            Some(AgentActivity { active_agents, claimed_items, .. }) => {
                let agents = counted(*active_agents, "active agent", "active agents");
                format!("{agents}, {}", counted(*claimed_items, "claimed item", "claimed items"))
            }
            None => "no board".to_owned(),
        };
        screen.line(format_args!(
            "Exported status: {} ({}, {agents})",
            escape(file),
            self.status.phase.unwrap_or_default().word()
        ))
    }
}

/// A file of a spoke that was checked.
#[derive(Clone, Debug, Serialize)]
pub struct ValidatedFile {
    /// The file.
    pub file: String,
    /// Whether it has no errors.
    pub valid: bool,
    /// What is wrong with it.
    pub errors: Vec<YamlError>,
    /// What else there is to know about it.
    pub notes: Vec<YamlError>,
}

/// The files of a spoke that were checked.
#[derive(Serialize)]
pub struct ValidatedSpoke {
    /// Whether all of them are valid.
    pub valid: bool,
    /// The files.
    pub files: Vec<ValidatedFile>,
}

impl ValidatedSpoke {
    /// The code of an answer with invalid files.
    pub const INVALID: Code = Code::ProtocolMismatch;

    /// All of these files.
    pub fn new(files: Vec<ValidatedFile>) -> ValidatedSpoke {
        ValidatedSpoke { valid: files.iter().all(|file| file.valid), files }
    }
}

impl Render for ValidatedSpoke {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        match self.files.iter().filter(|file| !file.valid).count() {
            0 => answer.object(self),
            count => {
                let are = if count == 1 { "is" } else { "are" };
                let message =
                    format!("{} of the spoke {are} invalid", counted(count as u64, "file", "files"));
                let files = serde_json::to_value(&self.files).unwrap_or_default();
                let error: Error = Refusal::new(ValidatedSpoke::INVALID, message)
                    .detail("valid", false)
                    .detail("files", files)
                    .into();
                answer.raw(&Failure::new(&error, answer.timestamp()))
            }
        }
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        for ValidatedFile { file, valid, errors, notes } in &self.files {
            let file = escape(file);
            if *valid {
                screen.line(format_args!("Valid: {file}"))?;
            } else {
                screen.line(format_args!(
                    "Invalid: {file} ({})",
                    counted(errors.len() as u64, "error", "errors")
                ))?;
            }
            for (kind, problems) in [("error", errors), ("note", notes)] {
                for problem in problems {
                    screen.wrapped_line(&format!("  {kind}: "), &escape(&problem.to_string()))?;
                }
            }
        }
        Ok(())
    }
}

/// The answer of `spoke init`.
#[derive(Serialize)]
pub struct CreatedManifest {
    /// The file.
    pub file: String,
    /// What its user has to add.
    pub missing: Vec<YamlError>,
}

impl Render for CreatedManifest {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(self)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        screen.line(format_args!("Created manifest: {}", escape(&self.file)))?;
        if !self.missing.is_empty() {
            screen.line(format_args!("Complete it:"))?;
        }
        self.missing
            .iter()
            .try_for_each(|missing| screen.line(format_args!("  {}", escape(&missing.to_string()))))
    }
}

/// The answer of `spoke show`.
#[derive(Serialize)]
pub struct ShownSpoke {
    /// The directory of the files.
    pub directory: String,
    /// The manifest, if it can be read.
    pub manifest: Option<Manifest>,
    /// The status, if it can be read.
    pub status: Option<StatusFile>,
    /// The operator, if the file can be read.
    pub operator: Option<OperatorFile>,
    /// What is wrong with the files.
    pub errors: Vec<FileError>,
}

/// An error in a file.
#[derive(Clone, Debug, Serialize)]
pub struct FileError {
    /// The name of the file.
    pub file: &'static str,
    /// The error.
    #[serde(flatten)]
    pub error: YamlError,
}

impl ShownSpoke {
    /// A spoke in this directory, before its files are added.
    pub fn new(directory: String) -> ShownSpoke {
        ShownSpoke { directory, manifest: None, status: None, operator: None, errors: Vec::new() }
    }

    /// Adds the errors of a file.
    pub fn add_errors(&mut self, file: &'static str, errors: &[YamlError]) {
        self.errors.extend(errors.iter().map(|error| FileError { file, error: error.clone() }));
    }
}

impl Render for ShownSpoke {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(self)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        screen.fields([("Spoke", Some(self.directory.clone()))])?;
        if let Some(manifest) = &self.manifest {
            show_manifest(manifest, screen)?;
        }
        if let Some(status) = &self.status {
            show_status(status, screen)?;
        }
        if let Some(operator) = &self.operator {
            show_operator(operator, screen)?;
        }
        if !self.errors.is_empty() {
            section("Errors:", screen)?;
        }
        for FileError { file, error } in &self.errors {
            screen.wrapped_line(&format!("  {file}: "), &escape(&error.to_string()))?;
        }
        Ok(())
    }
}

/// A text that the file has.
fn filled(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn section(heading: &str, screen: &mut Screen<'_>) -> Result {
    screen.gap()?;
    screen.heading(heading)
}

fn show_manifest(manifest: &Manifest, screen: &mut Screen<'_>) -> Result {
    let commands = manifest.status.clone().unwrap_or_default();
    section("Manifest:", screen)?;
    screen.fields([
        ("  Name", filled(&manifest.name)),
        ("  Hub", filled(&manifest.hub)),
        ("  Project", filled(&manifest.project)),
        ("  Maintainer", filled(&manifest.maintainer)),
        ("  License", filled(&manifest.license)),
        ("  Handle", filled(&manifest.identity.handle)),
        ("  Fingerprint", manifest.identity.fingerprint.clone()),
        ("  Test command", commands.test),
        ("  Health check", commands.health_check),
    ])
}

fn show_status(status: &StatusFile, screen: &mut Screen<'_>) -> Result {
    section("Status:", screen)?;
    let now = screen.now();
    screen.fields([
        ("  Project", status.project.as_ref().map(|project| project.name.clone())),
        ("  Phase", status.phase.map(|phase| phase.word().to_owned())),
        ("  Generated", status.generated_at.map(|moment| time::detailed(moment, now))),
        ("  Tests", status.tests.as_ref().map(tests)),
        ("  Git", status.git.as_ref().map(git)),
        ("  Agents", status.agent_activity.as_ref().map(agents)),
        ("  Work", status.agent_activity.as_ref().map(work)),
        (
            "  Last activity",
            status
                .agent_activity
                .as_ref()
                .and_then(|activity| activity.last_activity.map(|moment| time::detailed(moment, now))),
        ),
    ])?;
    let activity = status.agent_activity.clone().unwrap_or_default();
    if !activity.current_work.is_empty() {
        section("Current work:", screen)?;
    }
    for work in &activity.current_work {
        screen.fitted_line(&format!("  {} -- ", escape(&work.agent)), &escape(&work.task), "")?;
    }
    if !status.recent_progress.is_empty() {
        section("Recent progress:", screen)?;
    }
    status.recent_progress.iter().try_for_each(|text| screen.fitted_line("  ", &escape(text), ""))
}

fn show_operator(operator: &OperatorFile, screen: &mut Screen<'_>) -> Result {
    let listed = |items: &[String]| (!items.is_empty()).then(|| items.join(", "));
    section("Operator:", screen)?;
    screen.fields([
        ("  Handle", filled(&operator.handle)),
        ("  Name", operator.name.clone()),
        ("  Availability", filled(&operator.availability)),
        ("  Skills", listed(&operator.skills)),
        ("  Hubs", listed(&operator.hives)),
    ])
}

fn tests(tests: &TestResults) -> String {
    let TestResults { passing, failing, coverage, .. } = tests;
    let coverage = coverage.as_ref().map(|coverage| format!(", {coverage} covered")).unwrap_or_default();
    format!("{passing} passing, {failing} failing{coverage}")
}

fn git(git: &GitStatus) -> String {
    let commit = git.commit.as_deref().map(|commit| format!(" at {}", commit.get(..10).unwrap_or(commit)));
    let dirty = if git.dirty { ", with changes" } else { "" };
    let behind = match git.behind_remote {
        0 => String::new(),
        count => format!(", {count} behind"),
    };
    format!("{}{}{dirty}{behind}", git.branch, commit.unwrap_or_default())
}

fn agents(activity: &AgentActivity) -> String {
    let AgentActivity { active_agents, idle_agents, stale_agents, .. } = activity;
    format!("{active_agents} active, {idle_agents} idle, {stale_agents} stale")
}

fn work(activity: &AgentActivity) -> String {
    let AgentActivity { claimed_items, available_items, blocked_items, .. } = activity;
    format!("{claimed_items} claimed, {available_items} available, {blocked_items} blocked")
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
