//! Settings of agents, for people and for programs.

use std::path::PathBuf;

use serde::Serialize;

use super::{Cell, Column, Result, Screen, Table, Tone, escape};
use crate::envelope::Answer;
use crate::outcome::Render;
use crate::setup::{Action, Change, Part, Platform, Scope, State};

/// The answer of `setup` and `setup remove`.
pub struct Report {
    /// What was asked for.
    pub done: Done,
    /// Whether it has been done.
    pub written: bool,
    /// Whether the reader has seen the differences.
    pub shown: bool,
    /// What it is about.
    pub platforms: Vec<PlatformChanges>,
}

/// What was asked for.
#[derive(Clone, Copy, PartialEq)]
pub enum Done {
    SetUp,
    Removed,
}

/// What happens to the files of one platform.
pub struct PlatformChanges {
    pub platform: &'static Platform,
    pub scope: Scope,
    pub changes: Vec<Change>,
}

#[derive(Serialize)]
struct ReportFields<'a> {
    written: bool,
    platforms: Vec<PlatformFields<'a>>,
}

#[derive(Serialize)]
struct PlatformFields<'a> {
    platform: &'static str,
    scope: Scope,
    changes: &'a [Change],
    afterwards: &'static [&'static str],
}

impl Report {
    /// Whether anything is to be written.
    pub fn is_pending(&self) -> bool {
        self.platforms.iter().flat_map(|platform| &platform.changes).any(Change::is_pending)
    }

    /// Everything that happens.
    pub fn changes_mut(&mut self) -> impl Iterator<Item = &mut Change> {
        self.platforms.iter_mut().flat_map(|platform| &mut platform.changes)
    }

    /// The differences.
    pub fn show_changes(&self, screen: &mut Screen<'_>) -> Result {
        let diffs = self
            .platforms
            .iter()
            .flat_map(|platform| &platform.changes)
            .filter_map(|change| change.diff.as_deref());
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

    /// What is still to be done, if anything was.
    fn afterwards(&self, platform: &PlatformChanges) -> &'static [&'static str] {
        let is_set_up = self.written && self.done == Done::SetUp;
        if is_set_up { (platform.platform.afterwards)(platform.scope) } else { &[] }
    }

    fn verb(&self, action: Action) -> &'static str {
        match (action, self.written, self.done) {
            (Action::Create, true, _) => "created",
            (Action::Create, false, _) => "would create",
            (Action::Change, true, _) => "changed",
            (Action::Change, false, _) => "would change",
            (Action::Delete, true, _) => "deleted",
            (Action::Delete, false, _) => "would delete",
            (Action::None, _, Done::SetUp) => "already set up",
            (Action::None, _, Done::Removed) => "not set up",
            (Action::Refused, ..) => "left alone",
        }
    }
}

impl Render for Report {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        let platforms = self.platforms.iter().map(|platform| PlatformFields {
            platform: platform.platform.name,
            scope: platform.scope,
            changes: &platform.changes,
            afterwards: self.afterwards(platform),
        });
        let platforms = platforms.collect();
        answer.object(&ReportFields { written: self.written, platforms })
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        if self.platforms.is_empty() {
            return screen.line(format_args!(
                "No agents were found here: neither their programs on the PATH nor their settings. Name one to set it up all the same."
            ));
        }
        if !self.shown && self.has_differences() {
            self.show_changes(screen)?;
            screen.gap()?;
        }
        let is_of_interest = |platform: &&PlatformChanges| {
            let nothing = platform.changes.iter().all(|change| change.action == Action::None);
            !(nothing && self.done == Done::Removed && self.platforms.len() > 1)
        };
        if !self.platforms.iter().any(|platform| is_of_interest(&platform)) {
            return screen.line(format_args!("Nothing is set up."));
        }
        for platform in self.platforms.iter().filter(is_of_interest) {
            screen.heading(&format!("{} ({})", platform.platform.title, platform.scope.as_str()))?;
            for change in &platform.changes {
                self.show(change, screen)?;
            }
            for step in self.afterwards(platform) {
                screen.line(format_args!("  Still to do: {step}."))?;
            }
        }
        if self.is_pending() && !self.written {
            screen.line(format_args!("Nothing was written."))?;
        }
        Ok(())
    }
}

impl Report {
    fn has_differences(&self) -> bool {
        self.platforms.iter().flat_map(|platform| &platform.changes).any(|change| change.diff.is_some())
    }

    fn show(&self, change: &Change, screen: &mut Screen<'_>) -> Result {
        let (verb, part) = (self.verb(change.action), change.part.as_str());
        let file = change.file.display().to_string();
        let reason = change.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        screen.line(format_args!("  {verb:14}  {} ({part}){}", escape(&file), escape(&reason)))?;
        if let (Some(backup), true) = (&change.backup, self.written) {
            screen.line(format_args!("  {:14}  {} has the text from before", "", escape(backup)))?;
        }
        if let Some(by_hand) = &change.by_hand {
            screen.line(format_args!("  {:14}  Nothing of it was changed. Add this by hand:", ""))?;
            for line in by_hand.lines() {
                screen.line(format_args!("    {}", escape(line)))?;
            }
        } else if change.action == Action::Refused && self.done == Done::Removed {
            screen.line(format_args!(
                "  {:14}  If anything in it runs `blackboard`, take it out by hand.",
                ""
            ))?;
        }
        Ok(())
    }
}

/// The answer of `setup status`.
pub struct SetupStatus(pub Vec<PlatformStatus>);

/// What is known about one platform.
pub struct PlatformStatus {
    pub platform: &'static Platform,
    pub installed: bool,
    pub targets: Vec<TargetStatus>,
}

/// What is known about one of its files.
pub struct TargetStatus {
    pub scope: Scope,
    pub part: Part,
    pub file: PathBuf,
    /// Whether our part is in it, or why that can't be told.
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
    scope: Scope,
    part: Part,
    file: String,
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a String>,
}

impl Render for SetupStatus {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        let platforms = self.0.iter().map(|status| StatusFields {
            platform: status.platform.name,
            title: status.platform.title,
            installed: status.installed,
            files: status.targets.iter().map(TargetStatus::fields).collect(),
        });
        answer.list(&platforms.collect::<Vec<_>>())
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        let mut table = Table::new([
            Column::fixed("agent"),
            Column::fixed("installed"),
            Column::fixed("scope"),
            Column::fixed("part"),
            Column::fixed("state"),
            Column::wrapping("file"),
        ]);
        let mut others = Vec::new();
        for platform in &self.0 {
            let installed = if platform.installed { "yes" } else { "no" };
            let is_shown = |target: &&TargetStatus| {
                target.state != Ok(State::Missing) || (platform.installed && target.scope == Scope::User)
            };
            if !platform.targets.iter().any(|target| is_shown(&target)) {
                others.push(platform.platform.title);
            }
            for target in platform.targets.iter().filter(is_shown) {
                let unknown =
                    target.state.as_ref().err().map(|reason| format!(" ({reason})")).unwrap_or_default();
                table.row([
                    Cell::new(platform.platform.name),
                    Cell::new(installed),
                    Cell::new(target.scope.as_str()),
                    Cell::new(target.part.as_str()),
                    Cell::new(target.word()),
                    Cell::new(format!("{}{unknown}", target.file.display())),
                ]);
            }
        }
        if others.len() < self.0.len() {
            screen.table(&table)?;
        }
        if !others.is_empty() {
            screen.line(format_args!("Neither installed nor set up: {}", others.join(", ")))?;
        }
        Ok(())
    }
}
