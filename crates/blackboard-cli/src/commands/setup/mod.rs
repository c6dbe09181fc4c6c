//! `blackboard setup`

pub mod remove;
pub mod status;

use std::io::{self, BufRead, IsTerminal, Write};

use blackboard::clock::Timestamp;
use blackboard::{Code, Error, Fault, Refusal, Result};
use clap::builder::{PossibleValuesParser, TypedValueParser, ValueParser};

use super::{Run, upgrade};
use crate::context::Context;
use crate::location::{self, no_home};
use crate::outcome::Outcome;
use crate::output::Screen;
use crate::output::setup::{BoardChange, PlatformChanges, Report, SetupAction};
use crate::platforms::{PLATFORMS, Platform, listed};
use crate::setup::{self, BoardLocation, Change, CreatedDirectories, SettingsDirs, SettingsLevel, Target};

#[derive(clap::Args, Debug)]
#[command(about = SUMMARY, long_about = long_help())]
pub struct Setup {
    /// Platform to connect [default: all that are found]
    #[arg(value_name = "PLATFORM", value_parser = platforms())]
    platform: Option<PlatformSelection>,

    #[command(flatten)]
    how: SetupOptions,
}

const SUMMARY: &str = "Connect Claude Code, Codex and other agents";

fn long_help() -> String {
    let has_local = |platform: &&Platform| platform.settings.levels.contains(&SettingsLevel::Local);
    let local = listed(PLATFORMS.iter().filter(has_local).map(|platform| platform.name), "and");
    let notes: Vec<_> = PLATFORMS.iter().filter_map(|platform| platform.settings.note).collect();
    format!(
        "{SUMMARY}\n\n\
         Adds hooks, the MCP server and a skill to the settings of every platform found on this machine, or of the one you\n\
         name. Shows a diff and asks before writing. `setup remove` restores every file byte for byte, if you have not\n\
         changed it since; otherwise it removes what setup added.\n\n\
         With --db and the URL of a server, also makes that the board of this user, in config.json of BLACKBOARD_HOME, which\n\
         hooks, the MCP server and all other commands read. The password is not written: set BLACKBOARD_REDIS_PASSWORD or\n\
         BLACKBOARD_REDIS_PASSWORD_FILE where the agents run.\n\n\
         Platforms with local settings: {local}. {}\n\n\
         Examples:\n  \
         blackboard setup --dry-run\n  \
         blackboard setup claude --yes\n  \
         blackboard setup codex --settings project --dry-run\n  \
         blackboard setup --db 'redis://ivy@example.com?board=team' --dry-run",
        notes.join(" ")
    )
}

/// For whom, and whether to ask.
#[derive(clap::Args, Debug)]
pub struct SetupOptions {
    /// Settings to change: user, project (shared through the repository) or local [default: user]
    #[arg(long, value_name = "LEVEL", value_enum, default_value = "user", alias = "scope")]
    #[arg(hide_possible_values = true, hide_default_value = true)]
    settings: SettingsLevel,

    /// Show what would change, and change nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,

    /// Do not ask
    #[arg(short = 'y', long)]
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
        upgrade::offer(context, self.how.yes, self.how.dry_run)?;
        let dirs = setup::settings_dirs(context)?;
        let board = BoardLocation::named(context, self.how.settings)?;
        let chosen =
            chosen("blackboard setup", self.platform, self.how.settings, |platform| dirs.has(platform))?;
        let report = self.how.run(context, &dirs, &chosen, board, Change::to_set_up, SetupAction::SetUp)?;
        Ok(report.into_outcome())
    }
}

impl SetupOptions {
    /// Plans, shows, asks, and does it.
    fn run(
        self,
        context: &Context,
        dirs: &SettingsDirs,
        platforms: &[&'static Platform],
        board: Option<BoardLocation>,
        plan: fn(&Target) -> Change,
        done: SetupAction,
    ) -> Result<Report> {
        if platforms.is_empty() && board.is_none() {
            return Err(no_platforms());
        }
        let plan_of = |platform: &&'static Platform| PlatformChanges {
            platform,
            scope: self.settings,
            changes: platform.targets_of(dirs, self.settings).iter().map(plan).collect(),
        };
        let platforms: Vec<_> = platforms.iter().map(plan_of).collect();
        let on_path = dirs.has_this_program();
        let board = board.map(|location| BoardChange { change: plan(&location.target()), location });
        let (still_set_up, board_kept) = (Vec::new(), None);
        let mut report = Report {
            done,
            written: false,
            shown: false,
            on_path,
            platforms,
            board,
            still_set_up,
            board_kept,
        };
        if report.is_pending() && !self.dry_run {
            let wanted = self.yes || ask(&mut report, context)?;
            if wanted {
                let home = location::home(&context.request()).ok_or_else(no_home)?;
                let mut directories = CreatedDirectories::recorded_in(&home);
                if report.board.as_ref().is_some_and(|board| board.change.is_pending()) {
                    // If that fails, the change reports it.
                    let _ = directories.create_home();
                }
                for change in report.changes_mut() {
                    change.apply(&mut directories);
                }
                if done == SetupAction::Removed {
                    let files = report.changes().map(|change| change.file.as_path());
                    setup::forget_directories(&mut directories, files, dirs);
                }
                directories.save();
                report.written = true;
            }
        }
        Ok(report)
    }
}

impl Report {
    /// The outcome of the call: it fails if a file was left alone.
    fn into_outcome(self) -> Outcome {
        let refusal = self.refusal().map(|refusal| refusal.code);
        let outcome = Outcome::new(self);
        match refusal {
            Some(code) => outcome.that_means(code),
            None => outcome,
        }
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
                .map(|scope| format!("{command} {id} --settings {}", scope.as_str()));
            Err(Refusal::new(Code::InvalidValue, format!("{name} has no {scope} settings"))
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

/// Shows the changes and asks the user.
fn ask(report: &mut Report, context: &Context) -> Result<bool> {
    let (stdin, mut stderr) = (io::stdin(), io::stderr());
    if context.json() || !stdin.is_terminal() || !stderr.is_terminal() {
        return Err(Refusal::new(
            Code::Usage,
            "cannot ask before writing: standard input or output is not a terminal",
        )
        .hint("pass --yes to write, or --dry-run to show the changes")
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

fn no_platforms() -> Error {
    let names: Vec<_> = PLATFORMS.iter().map(|platform| platform.id).collect();
    let message = "no agents were found here: neither their programs on the PATH nor their settings";
    Refusal::new(Code::NothingAvailable, message)
        .hint(format!("name one to set it up anyway: {}", names.join(", ")))
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
