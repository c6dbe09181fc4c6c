//! The changes that setup makes to one file: planned, shown, then applied.
//!
//! A plan never writes. Applying it reads the file again: a file that has changed meanwhile is not touched.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::content::{EditError, State};
use super::diff;
use super::directories::CreatedDirectories;
use super::files::{self, SettingsFile, backup_of};
use super::shared::{self, is_made_of, is_wholly_ours};
use super::target::{Part, Target};
use crate::config::printable;
use crate::disk::Access;

/// The planned or applied change of one file.
#[derive(Debug, Serialize)]
pub struct Change {
    /// The file.
    #[serde(serialize_with = "path_as_text")]
    pub file: PathBuf,
    /// Which part of ours it contains.
    pub part: Part,
    /// The action.
    pub action: Action,
    /// Why it was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the user has to do instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_hand: Option<String>,
    /// The diff, in the format of `diff -u`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The path of the backup.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<String>,
    #[serde(skip)]
    step: Step,
}

/// What is done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The file is created.
    Create,
    /// Our part is added, updated or removed.
    Change,
    /// The file was ours, and is deleted.
    Delete,
    /// Nothing to do.
    None,
    /// The file cannot be edited safely, and is not changed.
    Refused,
}

#[derive(Debug, Default)]
struct Step {
    before: Option<SettingsFile>,
    after: String,
    backup: Backup,
    is_private: bool,
    inside: Option<PathBuf>,
}

/// What is done to the backup.
#[derive(Debug, Default, PartialEq)]
enum Backup {
    /// It stays as it is.
    #[default]
    Leave,
    /// It is written before the file is changed.
    Make,
    /// The file has its previous content again, so the backup is deleted.
    Drop,
}

impl Change {
    /// Plans the change that sets this up.
    pub fn to_set_up(target: &Target) -> Change {
        let found = files::check_inside(&target.file, target.inside.as_ref())
            .and_then(|()| files::to_edit(&target.file));
        let planned = found.and_then(|before| {
            let after = target.content.with(before.as_ref().map(|found| found.text.as_str()))?;
            // An edit that loses another program's settings is worse than no edit.
            if let Some(found) = before.as_ref().filter(|found| found.text != after) {
                let others = target.content.without_predecessors(&found.text)?;
                let [kept, was] =
                    [&after, &others].map(|text| target.content.without(text, Some(&found.text)).ok());
                let is_kept = match (kept, was) {
                    (Some(kept), Some(was)) => says_the_same(&kept.text, &was.text),
                    (kept, was) => kept.is_none() && was.is_none(),
                };
                if !is_set_up(target.content.state(&after)?) || !is_kept {
                    return Err(EditError::shape("its format is not supported for editing"));
                }
            }
            Ok((before, after))
        });
        match planned {
            Err(trouble) => Change::refused_to_set_up(target, trouble),
            Ok((Some(found), after)) if found.text == after => Change::already_there(target, &after),
            // If the file is gone, the backup belongs to an earlier file.
            Ok((None, after)) => Change::planned(target, Action::Create, None, after, Backup::Drop),
            Ok((Some(found), after)) => {
                // The first backup is the best one, as long as nothing else has changed since.
                let kept = files::to_look_at(&backup_of(&target.file)).ok().flatten();
                let still_good = kept.is_some_and(|kept| is_made_of(&target.content, &kept, &after));
                let is_ours = is_wholly_ours(&target.content, &found.text);
                let backup = if still_good || is_ours { Backup::Leave } else { Backup::Make };
                let is_kept = still_good || backup == Backup::Make;
                let mut change = Change::planned(target, Action::Change, Some(found), after, backup);
                change.backup = is_kept.then(|| backup_of(&target.file).display().to_string());
                change
            }
        }
    }

    /// Plans the change that removes it.
    pub fn to_remove(target: &Target) -> Change {
        match files::to_look_at(&target.file).and_then(|text| match text {
            Some(text) => {
                target.content.without(&text, None).map(|without| without.text != text || without.is_empty)
            }
            None => Ok(false),
        }) {
            Ok(true) => {}
            Ok(false) => return Change::none(target),
            // A file that cannot be parsed contains nothing that we have written.
            Err(trouble) => return Change::refused(target, trouble, None),
        }
        let kept = files::to_look_at(&backup_of(&target.file)).ok().flatten();
        let is_of_use = kept.as_ref().is_some_and(|kept| !is_wholly_ours(&target.content, kept));
        let kept = kept.filter(|_| is_of_use);
        let found = files::check_inside(&target.file, target.inside.as_ref())
            .and_then(|()| files::to_edit(&target.file));
        let planned = found.and_then(|found| {
            let found = found.ok_or_else(|| EditError::shape("it was deleted"))?;
            let without = shared::without(&target.content, &found.text, kept.as_deref())?;
            Ok((found, without))
        });
        match planned {
            Err(trouble) => Change::refused(target, trouble, None),
            Ok((found, without)) if without.is_empty => {
                let backup = if is_of_use { Backup::Leave } else { Backup::Drop };
                let mut change = Change::planned(target, Action::Delete, Some(found), String::new(), backup);
                change.backup = is_of_use.then(|| backup_of(&target.file).display().to_string());
                change
            }
            Ok((found, without)) => {
                let is_as_before = kept.as_ref() == Some(&without.text);
                let backup = if is_as_before { Backup::Drop } else { Backup::Leave };
                let mut change = Change::planned(target, Action::Change, Some(found), without.text, backup);
                change.backup =
                    (kept.is_some() && !is_as_before).then(|| backup_of(&target.file).display().to_string());
                change
            }
        }
    }

    /// Applies the change. If it fails, the result is a refusal and the file is unchanged. After a deletion, empty
    /// parent directories that setup created are deleted too.
    pub fn apply(&mut self, directories: &mut CreatedDirectories) {
        let done = match self.action {
            Action::None | Action::Refused => Ok(()),
            Action::Create | Action::Change => self.write(directories),
            Action::Delete => self.delete(directories),
        };
        if let Err(trouble) = done {
            (self.action, self.reason, self.backup) = (Action::Refused, Some(trouble.0), None);
        }
    }

    /// Whether anything needs to be written.
    pub fn is_pending(&self) -> bool {
        !matches!(self.action, Action::None | Action::Refused)
    }

    fn write(&self, directories: &mut CreatedDirectories) -> Result<(), EditError> {
        self.is_as_planned()?;
        let Step { before, after, backup, is_private, .. } = &self.step;
        let new = if *is_private { Access::Private } else { Access::Usual };
        let mut write = || {
            if let Some(directory) = self.file.parent() {
                directories.create(directory)?;
            }
            let access = before.as_ref().map_or(new, |found| Access::Like(&found.permissions));
            if let (Backup::Make, Some(found)) = (backup, before) {
                // Settings contain credentials, so only the user may read the backup.
                files::replace(&backup_of(&self.file), &found.text, Access::Private)?;
            }
            files::replace(&self.file, after, access)?;
            self.drop_backup()
        };
        write().map_err(|error| cant_write(&error))
    }

    fn delete(&self, directories: &mut CreatedDirectories) -> Result<(), EditError> {
        self.is_as_planned()?;
        fs::remove_file(&self.file).and_then(|()| self.drop_backup()).map_err(|error| cant_write(&error))?;
        if let Some(directory) = self.file.parent() {
            directories.delete_empty(directory);
        }
        Ok(())
    }

    fn drop_backup(&self) -> io::Result<()> {
        if self.step.backup != Backup::Drop {
            return Ok(());
        }
        match fs::remove_file(backup_of(&self.file)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn is_as_planned(&self) -> Result<(), EditError> {
        files::check_inside(&self.file, self.step.inside.as_ref())?;
        let now = files::to_edit(&self.file)?.map(|found| found.text);
        if now.as_ref() == self.step.before.as_ref().map(|found| &found.text) {
            Ok(())
        } else {
            Err(EditError::shape("it was changed meanwhile: run the command again"))
        }
    }

    fn planned(
        target: &Target,
        action: Action,
        before: Option<SettingsFile>,
        after: String,
        backup: Backup,
    ) -> Change {
        let old = before.as_ref().map_or("", |found| found.text.as_str());
        let path = printable(&target.file);
        let from = if action == Action::Create { "/dev/null" } else { &path };
        let to = if action == Action::Delete { "/dev/null" } else { &path };
        let shown = [old, &after].map(|text| target.content.shown(text));
        let diff = diff::unified(from, to, [old, &after], [&shown[0], &shown[1]]);
        let step =
            Step { before, after, backup, is_private: target.is_private, inside: target.inside.clone() };
        Change { diff: Some(diff), step, action, ..Change::none(target) }
    }

    fn none(target: &Target) -> Change {
        Change {
            file: target.file.clone(),
            part: target.part,
            action: Action::None,
            reason: None,
            by_hand: None,
            diff: None,
            backup: None,
            step: Step::default(),
        }
    }

    /// No change, with a note if the user has disabled our entry.
    fn already_there(target: &Target, text: &str) -> Change {
        let is_off = target.content.state(text) == Ok(State::SwitchedOff);
        Change { reason: is_off.then(|| "it is disabled there".to_owned()), ..Change::none(target) }
    }

    /// A file that we may not edit may already contain what it should.
    fn refused_to_set_up(target: &Target, trouble: EditError) -> Change {
        let text = files::to_look_at(&target.file).ok().flatten();
        match &text {
            Some(text) if target.content.state(text).is_ok_and(is_set_up) => {
                Change::already_there(target, text)
            }
            _ => {
                let by_hand = (!trouble.is_taken()).then(|| target.by_hand(text.as_deref()));
                Change::refused(target, trouble, by_hand)
            }
        }
    }

    fn refused(target: &Target, trouble: EditError, by_hand: Option<String>) -> Change {
        Change { action: Action::Refused, reason: Some(trouble.0), by_hand, ..Change::none(target) }
    }
}

fn is_set_up(state: State) -> bool {
    matches!(state, State::SetUp | State::SwitchedOff)
}

/// Whether all other content is still there. White space may differ where our part was, and an empty object may have
/// been added.
fn says_the_same(kept: &str, was: &str) -> bool {
    let words = |text: &str| text.chars().filter(|character| !character.is_whitespace()).collect::<String>();
    let (kept, was) = (words(kept), words(was));
    kept == was || kept.strip_suffix("{}") == Some(&was)
}

fn cant_write(error: &io::Error) -> EditError {
    EditError(format!("it cannot be written ({error})"))
}

fn path_as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}
