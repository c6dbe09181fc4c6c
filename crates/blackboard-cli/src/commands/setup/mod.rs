//! `blackboard setup`

pub mod remove;
pub mod status;

use std::io::{self, BufRead, IsTerminal, Write};

use blackboard::clock::Timestamp;
use blackboard::{Code, Error, Fault, Refusal, Result};
use clap::builder::{PossibleValuesParser, TypedValueParser, ValueParser};

use super::Run;
use crate::context::Context;
use crate::outcome::Outcome;
use crate::output::Screen;
use crate::output::setup::{Done, PlatformChanges, Report};
use crate::platforms::{PLATFORMS, Platform};
use crate::setup::{self, Change, SettingsDirs, SettingsLevel, Target};

/// Connect the agents that you have to the board
///
/// Puts hooks, the MCP server and a short skill into the settings of each agent that is found here (its program on
/// the PATH, or its settings directory), or of the one that is named. From then on its sessions register themselves.
/// Shows the difference and asks before anything is written. What is not ours stays as it is, to the byte; one backup is
/// kept beside a file that was there. A file that can't be edited safely is left alone: what to add by hand is
/// printed, and the exit code is 5. docs/setup.md says what is written where.
///
/// `setup status` shows what is set up, `setup remove` undoes it.
///
/// Examples:
///   blackboard setup --dry-run
///   blackboard setup claude --yes
///   blackboard setup codex --scope project
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Setup {
    /// The agent to connect; `all` are all that are found here [default: all]
    #[arg(value_name = "AGENT", value_parser = platforms())]
    platform: Option<PlatformSelection>,

    #[command(flatten)]
    how: SetupOptions,
}

/// For whom, and whether to ask.
#[derive(clap::Args, Debug)]
pub struct SetupOptions {
    /// For whom; the project is the one that this directory is in
    #[arg(long, value_name = "SCOPE", value_enum, default_value = "user")]
    scope: SettingsLevel,

    /// Show what would be written, and write nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Do not ask, and show only which files are written
    #[arg(long)]
    yes: bool,
}

/// What a call is about.
#[derive(Clone, Copy)]
pub enum PlatformSelection {
    /// Every platform that there is a reason for.
    All,
    /// This one.
    One(&'static Platform),
}

impl Run for Setup {
    fn run(self, context: &Context) -> Result<Outcome> {
        let dirs = setup::settings_dirs(context)?;
        let chosen =
            chosen("blackboard setup", self.platform, self.how.scope, |platform| dirs.has(platform))?;
        self.how.run(context, &dirs, &chosen, Change::to_set_up, Done::SetUp)
    }
}

impl SetupOptions {
    /// Plans, shows, asks, and does it.
    fn run(
        self,
        context: &Context,
        dirs: &SettingsDirs,
        platforms: &[&'static Platform],
        plan: fn(&Target) -> Change,
        done: Done,
    ) -> Result<Outcome> {
        if platforms.is_empty() {
            return Err(nobody());
        }
        let plan_of = |platform: &&'static Platform| PlatformChanges {
            platform,
            scope: self.scope,
            changes: platform.targets_of(dirs, self.scope).iter().map(plan).collect(),
        };
        let platforms: Vec<_> = platforms.iter().map(plan_of).collect();
        let on_path = dirs.has_this_program();
        let mut report = Report { done, written: false, shown: false, on_path, platforms };
        if report.is_pending() && !self.dry_run {
            let wanted = self.yes || ask(&mut report, context)?;
            if wanted {
                for PlatformChanges { platform, changes, .. } in &mut report.platforms {
                    let keep = dirs.kept(platform);
                    for change in changes {
                        change.apply(&keep);
                    }
                }
                report.written = true;
            }
        }
        let refusal = report.refusal().map(|refusal| refusal.code);
        let outcome = Outcome::new(report);
        Ok(match refusal {
            Some(code) => outcome.that_means(code),
            None => outcome,
        })
    }
}

/// The platforms that a call is about: the one that is named, or all that `has` says yes to and that have the scope.
fn chosen(
    command: &str,
    chosen: Option<PlatformSelection>,
    scope: SettingsLevel,
    has: impl Fn(&Platform) -> bool,
) -> Result<Vec<&'static Platform>> {
    match chosen {
        Some(PlatformSelection::One(platform)) if !platform.settings.levels.contains(&scope) => {
            let (id, name, scope) = (platform.id, platform.name, scope.as_str());
            let calls = platform
                .settings
                .levels
                .iter()
                .map(|scope| format!("{command} {id} --scope {}", scope.as_str()));
            Err(Refusal::new(Code::InvalidValue, format!("{name} has no settings of the scope \"{scope}\""))
                .hint(format!("run: {}", calls.collect::<Vec<_>>().join(", or: ")))
                .into())
        }
        Some(PlatformSelection::One(platform)) => Ok(vec![platform]),
        None | Some(PlatformSelection::All) => {
            let all = PLATFORMS
                .iter()
                .filter(|platform| platform.settings.levels.contains(&scope) && has(platform));
            Ok(all.collect())
        }
    }
}

/// Shows what would be written to the person who is there, and asks.
fn ask(report: &mut Report, context: &Context) -> Result<bool> {
    let (stdin, mut stderr) = (io::stdin(), io::stderr());
    if context.json() || !stdin.is_terminal() || !stderr.is_terminal() {
        return Err(Refusal::new(
            Code::Usage,
            "nothing is written without being asked, and nobody is here to ask",
        )
        .hint("--yes writes it, --dry-run shows it")
        .into());
    }
    report.shown = true;
    let asked = report
        .show_plan(&mut Screen::of_stderr(&mut stderr, Timestamp::EPOCH))
        .and_then(|()| Ok(write!(io::stderr(), "\nWrite this? [y/N] ")?));
    let mut answer = String::new();
    asked
        .map_err(|_| cant_ask())
        .and_then(|()| stdin.lock().read_line(&mut answer).map_err(|_| cant_ask()))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn nobody() -> Error {
    let names: Vec<_> = PLATFORMS.iter().map(|platform| platform.id).collect();
    let message = "no agents were found here: neither their programs on the PATH nor their settings";
    Refusal::new(Code::NothingAvailable, message)
        .hint(format!("name one to set it up all the same: {}", names.join(", ")))
        .into()
}

fn cant_ask() -> Error {
    Fault::new(Code::Io, "the question could not be asked").hint("--yes writes without asking").into()
}

fn platforms() -> ValueParser {
    let names = PLATFORMS.iter().map(|platform| platform.id).chain(["all"]);
    PossibleValuesParser::new(names)
        .map(|name| Platform::find(&name).map_or(PlatformSelection::All, PlatformSelection::One))
        .into()
}

impl std::fmt::Debug for PlatformSelection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            PlatformSelection::All => "all",
            PlatformSelection::One(platform) => platform.id,
        })
    }
}
