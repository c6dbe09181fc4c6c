//! Installs and removes our pre-commit hook.
//!
//! An existing hook is never edited. It is renamed, and our hook runs it first. Removing our hook renames it back, so it is
//! the same file byte for byte. If we cannot tell whether a hook is ours, we leave it unchanged and print what to do.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use blackboard::{Code, Error, Fault, Refusal, Result};

use crate::disk::{self, Access};
use crate::git::{self, Hooks};
use crate::hints;
use crate::location::other_owner;

/// The file name that git expects.
const NAME: &str = "pre-commit";

/// The new name of a hook that existed before ours.
pub const SET_ASIDE: &str = "pre-commit.before-blackboard";

/// The start of every hook that we write. It also identifies one that was edited later.
const SIGNATURE: &str = "#!/bin/sh\n# Written by `blackboard guard install`";

/// How often a call reads the hook again because another process keeps changing it.
const MAX_READS: u32 = 100;

/// What the hook does when another session has reserved a staged file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Refuses the commit.
    Refuse,
    /// Prints a warning and allows the commit.
    Warn,
}

/// The state of the hook's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Present {
    Nothing,
    /// Our hook, unchanged.
    Ours(Mode),
    /// Our hook, edited after the installation.
    Changed,
    /// Another hook.
    Theirs,
    /// Something that we cannot rename: the reason, and a hint.
    Odd(&'static str, &'static str),
}

/// The state of the path to which an existing hook is renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aside {
    Nothing,
    /// A copy of the current hook: an installation was interrupted.
    Same,
    /// A different file.
    Other,
}

/// The steps of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Installing {
    /// The hook is already installed.
    Nothing,
    Write,
    /// Renames the existing hook first.
    SetAsideAndWrite,
}

/// The steps of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Removing {
    /// Our hook is not installed.
    Nothing,
    Delete,
    /// Renames the previous hook back.
    Restore,
}

/// The paths of the pre-commit hook in the current repository.
pub struct HookPaths {
    /// The hook that git runs.
    pub hook: PathBuf,
    /// The hook that existed before ours.
    set_aside: PathBuf,
}

/// The result of an installation.
pub struct Installed {
    /// Whether it changed anything.
    pub changed: bool,
    /// Whether our hook runs a previous hook first.
    pub chained: bool,
}

/// The result of a removal.
pub struct Removed {
    /// Whether our hook was installed.
    pub changed: bool,
    /// Whether the previous hook was restored.
    pub restored: bool,
}

impl HookPaths {
    /// The paths for an installation. Refuses if git runs hooks from another directory, because another tool manages them.
    pub fn to_install() -> Result<HookPaths> {
        if git::is_bare()? {
            return Err(Refusal::new(Code::InvalidValue, "a bare repository has no commits to check")
                .hint("change into one of its worktrees and install there: all worktrees share the hook")
                .into());
        }
        let Hooks { directory, usual } = git::hooks()?;
        let is_link = fs::symlink_metadata(&usual).is_ok_and(|metadata| metadata.is_symlink());
        if is_link || !is_same(&directory, &usual) {
            return Err(managed_elsewhere(&directory));
        }
        Ok(HookPaths::inside(&usual))
    }

    /// The paths for a removal, even if git now runs hooks from another directory.
    pub fn to_remove() -> Result<HookPaths> {
        Ok(HookPaths::inside(&git::hooks()?.usual))
    }

    fn inside(hooks: &Path) -> HookPaths {
        HookPaths { hook: hooks.join(NAME), set_aside: hooks.join(SET_ASIDE) }
    }

    /// Installs our hook. Changes nothing if it is already installed.
    pub fn install(&self, mode: Mode) -> Result<Installed> {
        for _ in 0..MAX_READS {
            let (present, aside) = self.look()?;
            if let Some(installed) = self.install_over(present, aside, mode)? {
                return Ok(installed);
            }
        }
        Err(self.refusal("other processes keep changing it", "retry when they have finished"))
    }

    /// Installs our hook over this state. Returns `None` if the state has changed meanwhile.
    fn install_over(&self, present: Present, aside: Aside, mode: Mode) -> Result<Option<Installed>> {
        let installing =
            decide_install(present, aside, mode).map_err(|(reason, hint)| self.refusal(&reason, &hint))?;
        match installing {
            Installing::Nothing => {}
            Installing::Write => self.write(mode)?,
            Installing::SetAsideAndWrite => {
                if aside == Aside::Nothing && !self.set_aside()? {
                    return Ok(None);
                }
                self.write(mode)?;
            }
        }
        let chained = fs::symlink_metadata(&self.set_aside).is_ok();
        Ok(Some(Installed { changed: installing != Installing::Nothing, chained }))
    }

    /// Removes our hook, and restores the previous one.
    pub fn remove(&self) -> Result<Removed> {
        let (present, aside) = self.look()?;
        let removing =
            decide_remove(present, aside).map_err(|(reason, hint)| self.refusal(&reason, &hint))?;
        match removing {
            Removing::Nothing => {}
            Removing::Delete => fs::remove_file(&self.hook).map_err(|error| failed(&self.hook, error))?,
            Removing::Restore => {
                fs::rename(&self.set_aside, &self.hook).map_err(|error| failed(&self.hook, error))?;
            }
        }
        Ok(Removed { changed: removing != Removing::Nothing, restored: removing == Removing::Restore })
    }

    /// Reads the state of both paths, again if another process changes the hook meanwhile.
    fn look(&self) -> Result<(Present, Aside)> {
        for _ in 0..MAX_READS {
            let present = present(&self.hook)?;
            let aside = self.look_aside(present)?;
            if self::present(&self.hook)? == present {
                return Ok((present, aside));
            }
        }
        Err(self.refusal("other processes keep changing it", "retry when they have finished"))
    }

    fn look_aside(&self, present: Present) -> Result<Aside> {
        match fs::symlink_metadata(&self.set_aside) {
            Ok(metadata) if metadata.is_file() && present == Present::Theirs => {
                let same = fs::read(&self.set_aside).ok() == fs::read(&self.hook).ok();
                Ok(if same { Aside::Same } else { Aside::Other })
            }
            Ok(_) => Ok(Aside::Other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Aside::Nothing),
            Err(error) => Err(failed(&self.set_aside, error)),
        }
    }

    /// Renames the existing hook. Returns false if another installation was faster. Where the file system has hard links,
    /// the hook keeps its old name until ours replaces it, so every commit runs it.
    fn set_aside(&self) -> Result<bool> {
        match disk::set_aside(&self.hook, &self.set_aside) {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => {
                return Ok(false);
            }
            Err(error) => return Err(failed(&self.set_aside, error)),
        }
        match present(&self.set_aside)? {
            Present::Theirs => Ok(true),
            // Under this name, our hook would run itself forever.
            Present::Ours(_) => {
                fs::remove_file(&self.set_aside).map_err(|error| failed(&self.set_aside, error))?;
                Ok(false)
            }
            Present::Nothing | Present::Changed | Present::Odd(..) => Err(self.refusal(
                "it was changed during the installation",
                &format!("check it and {SET_ASIDE} in the same directory, then retry"),
            )),
        }
    }

    /// Writes our hook atomically.
    fn write(&self, mode: Mode) -> Result<()> {
        fs::create_dir_all(self.hook.parent().unwrap_or(Path::new(".")))
            .and_then(|()| {
                disk::replace(&self.hook, Access::Program, |out| out.write_all(script(mode).as_bytes()))
            })
            .map_err(|error| failed(&self.hook, error))
    }

    fn refusal(&self, reason: &str, hint: &str) -> Error {
        let hook = self.hook.display();
        Refusal::new(Code::AlreadyExists, format!("{hook} was left unchanged: {reason}"))
            .hint(hint.to_owned())
            .detail("hook", hook.to_string())
            .into()
    }
}

/// Why a hook is left unchanged, and a hint.
type Reason = (String, String);

fn decide_install(present: Present, aside: Aside, mode: Mode) -> Result<Installing, Reason> {
    match (present, aside) {
        (Present::Ours(known), _) if known == mode => Ok(Installing::Nothing),
        (Present::Ours(_) | Present::Nothing, _) => Ok(Installing::Write),
        (Present::Theirs, Aside::Nothing | Aside::Same) => Ok(Installing::SetAsideAndWrite),
        (Present::Theirs, Aside::Other) => Err((
            format!("{SET_ASIDE} already exists in the same directory"),
            format!("copy what you need from {SET_ASIDE} into {NAME}, delete {SET_ASIDE}, then retry"),
        )),
        (Present::Changed, _) => Err(changed()),
        (Present::Odd(reason, hint), _) => Err((reason.to_owned(), hint.to_owned())),
    }
}

fn decide_remove(present: Present, aside: Aside) -> Result<Removing, Reason> {
    match (present, aside) {
        (Present::Changed, _) => Err(changed()),
        (Present::Ours(_), Aside::Nothing) => Ok(Removing::Delete),
        // Also if our hook was deleted by hand: git should run the previous one again.
        (Present::Ours(_) | Present::Nothing, Aside::Same | Aside::Other) => Ok(Removing::Restore),
        (Present::Nothing | Present::Theirs | Present::Odd(..), _) => Ok(Removing::Nothing),
    }
}

fn changed() -> Reason {
    (
        "it was edited after the installation".to_owned(),
        format!("remove the lines of blackboard by hand; the previous hook, if any, is {SET_ASIDE}"),
    )
}

/// The state of the hook's path.
fn present(hook: &Path) -> Result<Present> {
    let metadata = match fs::symlink_metadata(hook) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Present::Nothing),
        Err(error) => return Err(failed(hook, error)),
    };
    if metadata.is_symlink() {
        return Ok(Present::Odd(
            "it is a symbolic link, so another tool manages it",
            "add this line to its target: blackboard guard check",
        ));
    }
    if !metadata.is_file() {
        return Ok(Present::Odd("it is not a regular file", "move it elsewhere, then retry"));
    }
    if other_owner(&metadata).is_some() {
        return Ok(Present::Odd(
            "it belongs to another user",
            "ask that user to add this line to it: blackboard guard check",
        ));
    }
    let content = fs::read(hook).map_err(|error| failed(hook, error))?;
    let ours = [Mode::Refuse, Mode::Warn].into_iter().find(|mode| content == script(*mode).as_bytes());
    Ok(match ours {
        Some(mode) => Present::Ours(mode),
        None if content.starts_with(SIGNATURE.as_bytes()) => Present::Changed,
        None if !is_executable(&metadata) => Present::Odd(
            "it is not executable, so git does not run it",
            "make it executable or delete it, then retry",
        ),
        None => Present::Theirs,
    })
}

#[cfg(unix)]
fn is_executable(metadata: &fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0
}

/// On systems without an executable bit, git runs every hook.
#[cfg(not(unix))]
fn is_executable(_metadata: &fs::Metadata) -> bool {
    true
}

/// The text of our hook. Only a refusal stops a commit, not a damaged board or a missing program. An installed hook is
/// recognized by this exact text, so a change here makes every installed hook look edited.
fn script(mode: Mode) -> String {
    let check = match mode {
        Mode::Refuse => "blackboard guard check",
        Mode::Warn => "blackboard guard check --warn",
    };
    format!(
        "{SIGNATURE}; `blackboard guard remove` takes it away.\n\
         # Has another session reserved what is about to be committed? A hook that was here before runs first.\n\
         before=\"$(dirname \"$0\")/{SET_ASIDE}\"\n\
         if [ -x \"$before\" ]; then\n    \
             \"$before\" \"$@\" || exit\n\
         fi\n\
         {check} >/dev/null\n\
         if [ $? -eq 4 ]; then\n    \
             exit 1\n\
         fi\n\
         exit 0\n"
    )
}

fn is_same(directory: &Path, usual: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    directory == usual || real(directory) == real(usual)
}

fn managed_elsewhere(directory: &Path) -> Error {
    let directory = directory.display();
    let message = format!("git runs hooks from {directory}, which another tool manages (core.hooksPath)");
    Refusal::new(Code::AlreadyExists, message)
        .hint(hints::command(
            "add this line to the pre-commit hook there, or to the configuration of husky or lefthook: ",
            "guard check",
        ))
        .detail("hooks", directory.to_string())
        .into()
}

fn failed(path: &Path, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Refusal::new(Code::ReadOnly, format!("{} cannot be read or written", path.display()))
                .hint("ask the owner of the repository")
                .into()
        }
        _ => {
            let message = format!("{} cannot be read or written", path.display());
            Fault::new(Code::Io, message).because(error).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ODD: Present = Present::Odd("it is odd", "do something");

    #[test]
    fn existing_hook_is_kept_or_the_installation_is_refused() {
        use Aside::{Nothing, Other, Same};
        for (present, aside, expected) in [
            (Present::Nothing, Nothing, Some(Installing::Write)),
            (Present::Nothing, Other, Some(Installing::Write)),
            (Present::Ours(Mode::Refuse), Nothing, Some(Installing::Nothing)),
            (Present::Ours(Mode::Refuse), Other, Some(Installing::Nothing)),
            (Present::Ours(Mode::Warn), Other, Some(Installing::Write)),
            (Present::Theirs, Nothing, Some(Installing::SetAsideAndWrite)),
            (Present::Theirs, Same, Some(Installing::SetAsideAndWrite)),
            (Present::Theirs, Other, None),
            (Present::Changed, Nothing, None),
            (Present::Changed, Other, None),
            (ODD, Nothing, None),
        ] {
            assert_eq!(decide_install(present, aside, Mode::Refuse).ok(), expected, "{present:?} {aside:?}");
        }
    }

    #[test]
    fn only_our_hook_is_removed_and_the_previous_one_is_restored() {
        use Aside::{Nothing, Other, Same};
        for (present, aside, expected) in [
            (Present::Nothing, Nothing, Some(Removing::Nothing)),
            (Present::Nothing, Other, Some(Removing::Restore)),
            (Present::Ours(Mode::Refuse), Nothing, Some(Removing::Delete)),
            (Present::Ours(Mode::Warn), Nothing, Some(Removing::Delete)),
            (Present::Ours(Mode::Warn), Other, Some(Removing::Restore)),
            (Present::Theirs, Nothing, Some(Removing::Nothing)),
            (Present::Theirs, Same, Some(Removing::Nothing)),
            (Present::Theirs, Other, Some(Removing::Nothing)),
            (Present::Changed, Other, None),
            (ODD, Nothing, Some(Removing::Nothing)),
        ] {
            assert_eq!(decide_remove(present, aside).ok(), expected, "{present:?} {aside:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn installation_notices_that_another_one_was_faster() {
        use std::os::unix::fs::PermissionsExt;
        let theirs = b"#!/bin/sh\nexit 0\n";
        let directory = testkit::tempdir().unwrap();
        let place = HookPaths::inside(directory.path());
        fs::write(&place.hook, theirs).unwrap();
        fs::set_permissions(&place.hook, fs::Permissions::from_mode(0o755)).unwrap();
        let (present, aside) = place.look().unwrap();
        assert!(place.install(Mode::Refuse).unwrap().changed);
        assert!(place.install_over(present, aside, Mode::Refuse).unwrap().is_none());
        assert_eq!(fs::read(&place.set_aside).unwrap(), theirs);
        assert_eq!(fs::read(&place.hook).unwrap(), script(Mode::Refuse).as_bytes());
        // Another process may also have removed the hook without installing ours.
        fs::remove_file(&place.set_aside).unwrap();
        assert!(place.install_over(present, aside, Mode::Refuse).unwrap().is_none());
        assert!(!place.set_aside.exists());
    }

    #[test]
    fn modes_differ_only_in_the_line_that_runs_the_check() {
        let (refuse, warn) = (script(Mode::Refuse), script(Mode::Warn));
        assert_eq!(refuse, warn.replace(" --warn", ""));
        assert_ne!(refuse, warn);
    }
}
