//! Settings of agents, as human and JSON output.

use std::path::{Path, PathBuf};

use blackboard::text::shell_word;
use blackboard::{Code, Refusal};
use serde::Serialize;
use serde_json::Value;

use super::{Cell, Column, Result, Screen, Table, Tone, escape};
use crate::envelope::{Answer, Failure};
use crate::outcome::Render;
use crate::platforms::Platform;
use crate::setup::{Action, BoardLocation, Change, Part, SettingsLevel, State};

/// The answer of `setup` and `setup remove`.
pub struct Report {
    /// What the call does.
    pub done: SetupAction,
    /// Whether it has been done.
    pub written: bool,
    /// Whether the reader has seen what is going to be done.
    pub shown: bool,
    /// Whether agents find this program.
    pub on_path: bool,
    /// What it is about.
    pub platforms: Vec<PlatformChanges>,
    /// The location of the board that it names.
    pub board: Option<BoardChange>,
    /// After a removal: the other settings levels at which a platform is still set up.
    pub still_set_up: Vec<(&'static Platform, SettingsLevel)>,
    /// After a removal: the server of the board in the home configuration, and that file.
    pub board_kept: Option<(String, PathBuf)>,
}

/// What happens to the location of the board.
pub struct BoardChange {
    pub location: BoardLocation,
    pub change: Change,
}

/// What the call does.
#[derive(Clone, Copy, PartialEq)]
pub enum SetupAction {
    SetUp,
    Removed,
}

/// What happens to the files of one platform.
pub struct PlatformChanges {
    pub platform: &'static Platform,
    pub scope: SettingsLevel,
    pub changes: Vec<Change>,
}

#[derive(Serialize)]
struct ReportFields<'a> {
    written: bool,
    program_on_path: bool,
    platforms: Vec<PlatformFields<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    board: Option<BoardFields<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    still_set_up: Option<Vec<LevelFields>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    board_kept: Option<KeptFields<'a>>,
}

#[derive(Serialize)]
struct BoardFields<'a> {
    url: &'a str,
    password_written: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    used_instead: Option<&'a str>,
    #[serde(flatten)]
    change: &'a Change,
}

#[derive(Serialize)]
struct KeptFields<'a> {
    url: &'a str,
    file: String,
}

impl<'a> KeptFields<'a> {
    fn of((url, file): &'a (String, PathBuf)) -> KeptFields<'a> {
        KeptFields { url, file: file.display().to_string() }
    }
}

#[derive(Serialize)]
struct LevelFields {
    platform: &'static str,
    scope: SettingsLevel,
}

#[derive(Serialize)]
struct PlatformFields<'a> {
    platform: &'static str,
    scope: SettingsLevel,
    changes: &'a [Change],
    afterwards: &'static [&'static str],
}

impl Report {
    /// The changes of all files.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        let platforms = self.platforms.iter().flat_map(|platform| &platform.changes);
        platforms.chain(self.board.iter().map(|board| &board.change))
    }

    /// The changes of all files.
    pub fn changes_mut(&mut self) -> impl Iterator<Item = &mut Change> {
        let platforms = self.platforms.iter_mut().flat_map(|platform| &mut platform.changes);
        platforms.chain(self.board.iter_mut().map(|board| &mut board.change))
    }

    /// Whether anything is to be written.
    pub fn is_pending(&self) -> bool {
        self.changes().any(Change::is_pending)
    }

    /// What the call means if a file was not changed.
    pub fn refusal(&self) -> Option<Refusal> {
        let refused: Vec<_> = self.changes().filter(|change| change.action == Action::Refused).collect();
        let first = refused.first()?;
        let (file, reason) = (first.file.display(), first.reason.as_deref().unwrap_or_default());
        let more = match refused.len() {
            1 => String::new(),
            2 => "; 1 more file was not changed".to_owned(),
            count => format!("; {} more files were not changed", count - 1),
        };
        let hint = match self.done {
            SetupAction::SetUp => "do what `reason` and `by_hand` of each such file say",
            SetupAction::Removed => "if anything in it runs `blackboard`, remove it by hand",
        };
        Some(Refusal::new(Code::ReadOnly, format!("{file} was not changed: {reason}{more}")).hint(hint))
    }

    /// The differences, and then the list of files, which is what is left on the screen.
    pub fn show_plan(&self, screen: &mut Screen<'_>) -> Result {
        self.show_changes(screen)?;
        screen.gap()?;
        self.show_files(screen)
    }

    /// The differences.
    fn show_changes(&self, screen: &mut Screen<'_>) -> Result {
        let diffs = self.changes().filter_map(|change| change.diff.as_deref());
        for line in diffs.flat_map(str::lines) {
            let tone = match line.as_bytes().first() {
                Some(b'+') => Tone::Good,
                Some(b'-') => Tone::Alarm,
                Some(b'@') => Tone::Faint,
                _ => Tone::Plain,
            };
            let styles = screen.styles();
            // Tabs are indentation here, and move nothing else.
            let line = line.trim_end_matches('\r').split('\t').map(escape).collect::<Vec<_>>().join("\t");
            screen.line(format_args!("{}", styles.paint(tone, &line)))?;
        }
        Ok(())
    }

    /// What only the user can do once all is set up, now or before.
    fn afterwards(&self, platform: &PlatformChanges) -> &'static [&'static str] {
        let is_set_up = self.done == SetupAction::SetUp && (self.written || !self.is_pending());
        if is_set_up { (platform.platform.settings.afterwards)(platform.scope) } else { &[] }
    }

    fn verb(&self, action: Action) -> &'static str {
        match (action, self.written, self.done) {
            (Action::Create, true, _) => "created",
            (Action::Create, false, _) => "would create",
            (Action::Change, true, _) => "changed",
            (Action::Change, false, _) => "would change",
            (Action::Delete, true, _) => "deleted",
            (Action::Delete, false, _) => "would delete",
            (Action::None, _, SetupAction::SetUp) => "already set up",
            (Action::None, _, SetupAction::Removed) => "not set up",
            (Action::Refused, ..) => "left alone",
        }
    }
}

impl Render for Report {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        let platforms = self.platforms.iter().map(|platform| PlatformFields {
            platform: platform.platform.id,
            scope: platform.scope,
            changes: &platform.changes,
            afterwards: self.afterwards(platform),
        });
        let still = self.still_set_up.iter();
        let still = still.map(|&(platform, scope)| LevelFields { platform: platform.id, scope });
        let fields = ReportFields {
            written: self.written,
            program_on_path: self.on_path,
            platforms: platforms.collect(),
            board: self.board.as_ref().map(|BoardChange { location, change }| BoardFields {
                url: &location.url,
                password_written: false,
                used_instead: location.instead.as_deref(),
                change,
            }),
            board_kept: self.board_kept.as_ref().map(KeptFields::of),
            still_set_up: (self.done == SetupAction::Removed).then(|| still.collect()),
        };
        let Some(mut refusal) = self.refusal() else { return answer.object(&fields) };
        if let Ok(Value::Object(fields)) = serde_json::to_value(&fields) {
            refusal.details.extend(fields);
        }
        answer.raw(&Failure::new(&refusal.into(), answer.timestamp()))
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        // With --yes the list of changed files is enough.
        if !self.shown && !self.written && self.has_differences() {
            self.show_plan(screen)?;
        } else {
            self.show_files(screen)?;
        }
        for (platform, level) in &self.still_set_up {
            let (name, id, level) = (platform.name, platform.id, level.as_str());
            screen.line(format_args!(
                "{name} is still set up in {level} settings: blackboard setup remove {id} --settings {level}"
            ))?;
        }
        if let Some((url, file)) = &self.board_kept {
            screen.line(format_args!(
                "The board of this user stays {} ({}): blackboard setup remove --db {}",
                escape(url),
                escape(&file.display().to_string()),
                shell_word(url)
            ))?;
        }
        if self.is_pending() && !self.written {
            screen.line(format_args!("Nothing was written."))?;
        }
        Ok(())
    }
}

impl Report {
    fn show_files(&self, screen: &mut Screen<'_>) -> Result {
        let is_of_interest = |platform: &&PlatformChanges| {
            let nothing = platform.changes.iter().all(|change| change.action == Action::None);
            !(nothing && self.done == SetupAction::Removed && self.platforms.len() > 1)
        };
        if !self.platforms.iter().any(|platform| is_of_interest(&platform)) && self.board.is_none() {
            let level = self.platforms.first().map(|platform| platform.scope.as_str());
            let level = level.filter(|_| !self.still_set_up.is_empty());
            let level = level.map(|level| format!(" in {level} settings")).unwrap_or_default();
            return screen.line(format_args!("Nothing is set up{level}."));
        }
        for platform in self.platforms.iter().filter(is_of_interest) {
            screen.heading(&format!("{} ({})", platform.platform.name, platform.scope.as_str()))?;
            for change in &platform.changes {
                self.show(change, screen)?;
            }
            let when = if self.written { "Still to do" } else { "If not done yet" };
            for step in self.afterwards(platform) {
                screen.line(format_args!("  {when}: {step}."))?;
            }
        }
        if let Some(board) = &self.board {
            self.show_board(board, screen)?;
        }
        if self.done == SetupAction::SetUp {
            if self.platforms.iter().any(|platform| platform.scope == SettingsLevel::Project) {
                screen.line(format_args!(
                    "Everyone who works here needs `blackboard` on the PATH. Without it, agents run as before; some show a \
                     hook error."
                ))?;
            }
            warn_not_on_path(self.on_path, screen)?;
        }
        Ok(())
    }

    fn show_board(&self, board: &BoardChange, screen: &mut Screen<'_>) -> Result {
        let BoardChange { location, change } = board;
        screen.heading(&format!("Board {}", location.url))?;
        self.show(change, screen)?;
        if self.done == SetupAction::SetUp && location.has_password {
            screen.line(format_args!(
                "  The password is not written: set BLACKBOARD_REDIS_PASSWORD or BLACKBOARD_REDIS_PASSWORD_FILE where the \
                 agents run."
            ))?;
        }
        if let (SetupAction::SetUp, Some(instead)) = (self.done, &location.instead) {
            screen.line(format_args!("  Commands here do not use it: {}.", escape(instead)))?;
        }
        Ok(())
    }

    fn has_differences(&self) -> bool {
        self.changes().any(|change| change.diff.is_some())
    }

    fn show(&self, change: &Change, screen: &mut Screen<'_>) -> Result {
        let (verb, part) = (self.verb(change.action), change.part.as_str());
        let file = change.file.display().to_string();
        let reason = change.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        screen.line(format_args!("  {verb:14}  {} ({part}){}", escape(&file), escape(&reason)))?;
        if let (Some(backup), true) = (&change.backup, self.written) {
            screen.line(format_args!("  {:14}  previous version: {}", "", escape(backup)))?;
        }
        if let Some(by_hand) = &change.by_hand {
            screen.line(format_args!("  {:14}  Nothing of it was changed. Add this by hand:", ""))?;
            for line in by_hand.lines() {
                screen.line(format_args!("    {}", escape(line)))?;
            }
        } else if change.action == Action::Refused && self.done == SetupAction::Removed {
            screen
                .line(format_args!("  {:14}  If anything in it runs `blackboard`, remove it by hand.", ""))?;
        }
        Ok(())
    }
}

/// Warns if agents cannot find this program on the PATH.
fn warn_not_on_path(on_path: bool, screen: &mut Screen<'_>) -> Result {
    if on_path {
        return Ok(());
    }
    let program = std::env::current_exe().ok();
    let directory = program.as_deref().and_then(Path::parent).map(|it| it.display().to_string());
    let directory = directory.map(|it| format!(": {}", escape(&it))).unwrap_or_default();
    let styles = screen.styles();
    screen.line(format_args!(
        "{} `blackboard` is not on the PATH, where agents look for it. Add its directory{directory}",
        styles.paint(Tone::Caution, "warning:")
    ))
}

/// The answer of `setup status`.
pub struct SetupStatus {
    /// Every platform.
    pub platforms: Vec<PlatformStatus>,
    /// The server of the board in the home configuration, and that file.
    pub board: Option<(String, PathBuf)>,
    /// Whether agents find this program.
    pub on_path: bool,
}

#[derive(Serialize)]
struct OnPath<'a> {
    program_on_path: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    board: Option<KeptFields<'a>>,
}

/// What is known about one platform.
pub struct PlatformStatus {
    pub platform: &'static Platform,
    pub installed: bool,
    pub targets: Vec<TargetStatus>,
}

/// What is known about one of its files.
pub struct TargetStatus {
    pub scope: SettingsLevel,
    pub part: Part,
    pub file: PathBuf,
    /// Whether our part is in it, or why that is unknown.
    pub state: std::result::Result<State, String>,
}

impl TargetStatus {
    fn fields(&self) -> TargetFields<'_> {
        TargetFields {
            scope: self.scope,
            part: self.part,
            file: self.file.display().to_string(),
            state: self.word().replace(' ', "_"),
            reason: self.state.as_ref().err(),
        }
    }

    fn word(&self) -> &'static str {
        match self.state {
            Ok(State::SetUp) => "set up",
            Ok(State::SwitchedOff) => "switched off",
            Ok(State::OutOfDate) => "out of date",
            Ok(State::Missing) => "not set up",
            Err(_) => "unknown",
        }
    }
}

#[derive(Serialize)]
struct StatusFields<'a> {
    platform: &'static str,
    title: &'static str,
    installed: bool,
    files: Vec<TargetFields<'a>>,
}

#[derive(Serialize)]
struct TargetFields<'a> {
    scope: SettingsLevel,
    part: Part,
    file: String,
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a String>,
}

impl Render for SetupStatus {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        let platforms = self.platforms.iter().map(|status| StatusFields {
            platform: status.platform.id,
            title: status.platform.name,
            installed: status.installed,
            files: status.targets.iter().map(TargetStatus::fields).collect(),
        });
        let board = self.board.as_ref().map(KeptFields::of);
        let more = OnPath { program_on_path: self.on_path, board };
        answer.list_with(&platforms.collect::<Vec<_>>(), &more)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        let mut table = Table::new([
            Column::typed("AGENT"),
            Column::fixed("INSTALLED").importance(1),
            Column::fixed("SETTINGS").importance(2),
            Column::fixed("PART").importance(4),
            Column::fixed("STATE").importance(5),
            Column::detail("FILE").importance(3),
        ]);
        let mut others = Vec::new();
        for platform in &self.platforms {
            let installed = if platform.installed { "yes" } else { "no" };
            let is_shown = |target: &&TargetStatus| {
                target.state != Ok(State::Missing)
                    || (platform.installed && target.scope == SettingsLevel::User)
            };
            if !platform.targets.iter().any(|target| is_shown(&target)) {
                others.push(platform.platform.name);
            }
            for target in platform.targets.iter().filter(is_shown) {
                let unknown =
                    target.state.as_ref().err().map(|reason| format!(" ({reason})")).unwrap_or_default();
                table.row([
                    Cell::new(platform.platform.id),
                    Cell::new(installed),
                    Cell::new(target.scope.as_str()),
                    Cell::new(target.part.as_str()),
                    Cell::new(target.word()),
                    Cell::new(format!("{}{unknown}", target.file.display())),
                ]);
            }
        }
        if others.len() < self.platforms.len() {
            screen.table(&table)?;
        }
        if !others.is_empty() {
            screen.line(format_args!("Neither installed nor set up: {}", others.join(", ")))?;
        }
        if let Some((url, file)) = &self.board {
            let file = file.display().to_string();
            screen.line(format_args!("Board of this user: {} ({})", escape(url), escape(&file)))?;
        }
        warn_not_on_path(self.on_path, screen)
    }
}

#[cfg(test)]
mod tests {
    use blackboard::clock::Timestamp;

    use super::*;
    use crate::environment::Environment;
    use crate::output::Styles;
    use crate::platforms::PLATFORMS;
    use crate::setup::SettingsDirs;

    #[test]
    fn prompt_lists_the_files_below_their_differences() {
        let home = testkit::tempdir().unwrap();
        let path = home.path().to_owned();
        let dirs = SettingsDirs::new(path.clone(), path.clone(), Environment::default(), path);
        let plan_of = |platform: &'static Platform| PlatformChanges {
            platform,
            scope: SettingsLevel::User,
            changes: (platform.settings.targets)(&dirs, SettingsLevel::User)
                .iter()
                .map(Change::to_set_up)
                .collect(),
        };
        let platforms = PLATFORMS.iter().map(plan_of).collect();
        let report = Report {
            done: SetupAction::SetUp,
            written: false,
            shown: false,
            on_path: true,
            platforms,
            board: None,
            still_set_up: Vec::new(),
            board_kept: None,
        };
        let mut bytes = Vec::new();
        let mut screen = Screen::new(&mut bytes, Styles::new(false), None, Timestamp::EPOCH);
        report.show_plan(&mut screen).unwrap();
        let shown = String::from_utf8(bytes).unwrap();
        let (differences, files) = shown.split_at(shown.find("  would create").unwrap());
        let count = report.platforms.iter().map(|platform| platform.changes.len()).sum::<usize>();
        assert_eq!(differences.matches("\n+++ ").count(), count, "{shown}");
        assert_eq!(files.matches("  would create").count(), count, "{shown}");
        assert!(!files.contains("\n+"), "{shown}");
    }
}
