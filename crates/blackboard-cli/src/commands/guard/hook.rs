//! The pre-commit hook of a repository: what is there, and what becomes of it.
//!
//! Another hook is never changed. It is set aside under another name, where ours runs it first, and comes back
//! under its own name when ours goes: the same file, so that it is the same byte for byte. Whatever is not clearly one or the
//! other is left alone, and its owner is told what to do.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use blackboard::{Code, Error, Fault, Refusal, Result};

use crate::disk::{self, Access};
use crate::git::{self, Hooks};
use crate::location::other_owner;

/// What git calls the hook.
const NAME: &str = "pre-commit";

/// What a hook is called that was there before ours.
pub const SET_ASIDE: &str = "pre-commit.before-blackboard";

/// What everything begins with that we have written, whatever became of it since.
const MARK: &str = "#!/bin/sh\n# Written by `blackboard guard install`";

/// How often a call looks at what is there, if another process changes it each time.
const MOST_LOOKS: u32 = 100;

/// What the hook does about files that others have reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It stops the commit.
    Refuse,
    /// It only tells.
    Warn,
}

/// What is at the place of the hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Present {
    Nothing,
    /// Ours, as we wrote it.
    Ours(Mode),
    /// Ours, and changed since.
    Changed,
    /// Not ours.
    Theirs,
    /// Nothing that can be set aside: why, and what to do.
    Odd(&'static str, &'static str),
}

/// What has been set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aside {
    Nothing,
    /// What is at the place of the hook now, as if the installation had been interrupted.
    Same,
    /// Another hook.
    Other,
}

/// How a hook is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Installing {
    /// It is there.
    Nothing,
    Write,
    /// First what is there gets another name.
    SetAsideAndWrite,
}

/// How a hook is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Removing {
    /// There is none of ours.
    Nothing,
    Delete,
    /// What was set aside gets its name back.
    Restore,
}

/// The place of the pre-commit hook of the repository around the working directory.
pub struct HookPaths {
    /// The file.
    pub hook: PathBuf,
    set_aside: PathBuf,
}

/// What an installation did.
pub struct Installed {
    /// Whether it changed anything.
    pub changed: bool,
    /// Whether there is another hook, which runs first.
    pub chained: bool,
}

/// What a removal did.
pub struct Removed {
    /// Whether there was a hook of ours.
    pub changed: bool,
    /// Whether the hook from before is back.
    pub restored: bool,
}

impl HookPaths {
    /// Finds it, to write there. Refused if git looks elsewhere, because another program manages the hooks there.
    pub fn to_install() -> Result<HookPaths> {
        if git::is_bare()? {
            return Err(Refusal::new(Code::InvalidValue, "nothing is committed in a bare repository")
                .hint("change into a worktree of it first: the hook is for all of them")
                .into());
        }
        let Hooks { directory, usual } = git::hooks()?;
        let is_link = fs::symlink_metadata(&usual).is_ok_and(|metadata| metadata.is_symlink());
        if is_link || !is_same(&directory, &usual) {
            return Err(looked_after(&directory));
        }
        Ok(HookPaths::inside(&usual))
    }

    /// Finds it, to take ours away, also if git has been told since to look elsewhere.
    pub fn to_remove() -> Result<HookPaths> {
        Ok(HookPaths::inside(&git::hooks()?.usual))
    }

    fn inside(hooks: &Path) -> HookPaths {
        HookPaths { hook: hooks.join(NAME), set_aside: hooks.join(SET_ASIDE) }
    }

    /// Puts our hook there. For one that is there already, nothing changes.
    pub fn install(&self, mode: Mode) -> Result<Installed> {
        for _ in 0..MOST_LOOKS {
            let (present, aside) = self.look()?;
            if let Some(installed) = self.install_over(present, aside, mode)? {
                return Ok(installed);
            }
        }
        Err(self.refusal("other processes keep changing it", "install again when they have finished"))
    }

    /// Does it for what was seen; `None` if that is not there any more.
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

    /// Takes our hook away, and gives the one from before its name back.
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

    /// Reads what is there. A state that another process changes while it is read is read again.
    fn look(&self) -> Result<(Present, Aside)> {
        for _ in 0..MOST_LOOKS {
            let present = present(&self.hook)?;
            let aside = self.look_aside(present)?;
            if self::present(&self.hook)? == present {
                return Ok((present, aside));
            }
        }
        Err(self.refusal("other processes keep changing it", "try again when they have finished"))
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

    /// Gives the other hook its new name, unless another installation was faster. Where a file can have two
    /// names, no commit meanwhile goes without it.
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
            // Under this name it would call itself for ever.
            Present::Ours(_) => {
                fs::remove_file(&self.set_aside).map_err(|error| failed(&self.set_aside, error))?;
                Ok(false)
            }
            Present::Nothing | Present::Changed | Present::Odd(..) => Err(self.refusal(
                "it was changed during the installation",
                &format!("look at what is there and in {SET_ASIDE} beside it, and install again"),
            )),
        }
    }

    /// Puts our hook at its place, all of it at once.
    fn write(&self, mode: Mode) -> Result<()> {
        fs::create_dir_all(self.hook.parent().unwrap_or(Path::new(".")))
            .and_then(|()| {
                disk::replace(&self.hook, Access::Program, |out| out.write_all(script(mode).as_bytes()))
            })
            .map_err(|error| failed(&self.hook, error))
    }

    fn refusal(&self, reason: &str, hint: &str) -> Error {
        let hook = self.hook.display();
        Refusal::new(Code::AlreadyExists, format!("{hook} is left alone: {reason}"))
            .hint(hint.to_owned())
            .detail("hook", hook.to_string())
            .into()
    }
}

/// Why something is left alone, and what to do.
type Reason = (String, String);

fn decide_install(present: Present, aside: Aside, mode: Mode) -> Result<Installing, Reason> {
    match (present, aside) {
        (Present::Ours(known), _) if known == mode => Ok(Installing::Nothing),
        (Present::Ours(_) | Present::Nothing, _) => Ok(Installing::Write),
        (Present::Theirs, Aside::Nothing | Aside::Same) => Ok(Installing::SetAsideAndWrite),
        (Present::Theirs, Aside::Other) => Err((
            format!("{SET_ASIDE} beside it is taken, as by an installation that something else has replaced"),
            format!("put what you need of {SET_ASIDE} into {NAME}, delete it, and install again"),
        )),
        (Present::Changed, _) => Err(changed()),
        (Present::Odd(reason, hint), _) => Err((reason.to_owned(), hint.to_owned())),
    }
}

fn decide_remove(present: Present, aside: Aside) -> Result<Removing, Reason> {
    match (present, aside) {
        (Present::Changed, _) => Err(changed()),
        (Present::Ours(_), Aside::Nothing) => Ok(Removing::Delete),
        // Also if ours was deleted by hand: the one from before belongs there.
        (Present::Ours(_) | Present::Nothing, Aside::Same | Aside::Other) => Ok(Removing::Restore),
        (Present::Nothing | Present::Theirs | Present::Odd(..), _) => Ok(Removing::Nothing),
    }
}

fn changed() -> Reason {
    (
        "it was changed after the installation".to_owned(),
        format!("take out what is not yours by hand; if there is a {SET_ASIDE}, it was there before"),
    )
}

/// What is there.
fn present(hook: &Path) -> Result<Present> {
    let metadata = match fs::symlink_metadata(hook) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Present::Nothing),
        Err(error) => return Err(failed(hook, error)),
    };
    if metadata.is_symlink() {
        return Ok(Present::Odd(
            "it is a symbolic link, so that something else looks after it",
            "add `blackboard guard check` to what it leads to",
        ));
    }
    if !metadata.is_file() {
        return Ok(Present::Odd("it is no plain file", "move it out of the way, and install again"));
    }
    if other_owner(&metadata).is_some() {
        return Ok(Present::Odd(
            "it belongs to another user",
            "ask that user to install it, or to add `blackboard guard check` to it",
        ));
    }
    let content = fs::read(hook).map_err(|error| failed(hook, error))?;
    let ours = [Mode::Refuse, Mode::Warn].into_iter().find(|mode| content == script(*mode).as_bytes());
    Ok(match ours {
        Some(mode) => Present::Ours(mode),
        None if content.starts_with(MARK.as_bytes()) => Present::Changed,
        None if !is_executable(&metadata) => Present::Odd(
            "it is not executable, so that git does not run it",
            "make it executable if it is meant to run, or move it out of the way, and install again",
        ),
        None => Present::Theirs,
    })
}

#[cfg(unix)]
fn is_executable(metadata: &fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0
}

/// Where no file is marked as executable, git runs every hook.
#[cfg(not(unix))]
fn is_executable(_metadata: &fs::Metadata) -> bool {
    true
}

/// The hook. Only a refusal of the check stops a commit: not a board that is broken, nor a program that is gone.
fn script(mode: Mode) -> String {
    let check = match mode {
        Mode::Refuse => "blackboard guard check",
        Mode::Warn => "blackboard guard check --warn",
    };
    format!(
        "{MARK}; `blackboard guard remove` takes it away.\n\
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

fn looked_after(directory: &Path) -> Error {
    let directory = directory.display();
    let message =
        format!("git looks for hooks in {directory}, where something else looks after them (core.hooksPath)");
    Refusal::new(Code::AlreadyExists, message)
        .hint("add this line to the pre-commit hook there, or to what makes it (husky, lefthook): blackboard guard check")
        .detail("hooks", directory.to_string())
        .into()
}

fn failed(path: &Path, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Refusal::new(Code::ReadOnly, format!("{} can't be read or written", path.display()))
                .hint("ask the owner of the repository")
                .into()
        }
        _ => {
            let message = format!("{} can't be read or written", path.display());
            Fault::new(Code::Io, message).because(error).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ODD: Present = Present::Odd("it is odd", "do something");

    #[test]
    fn a_hook_is_installed_beside_what_is_there_or_not_at_all() {
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
    fn only_ours_is_removed_and_what_was_there_before_comes_back() {
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
    fn what_another_installation_has_done_meanwhile_is_seen_before_anything_is_set_aside() {
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
        // Another process may remove the hook meanwhile, but does not install ours.
        fs::remove_file(&place.set_aside).unwrap();
        assert!(place.install_over(present, aside, Mode::Refuse).unwrap().is_none());
        assert!(!place.set_aside.exists());
    }

    #[test]
    fn the_modes_differ_in_the_line_that_checks_alone() {
        let (refuse, warn) = (script(Mode::Refuse), script(Mode::Warn));
        assert_eq!(refuse, warn.replace(" --warn", ""));
        assert_ne!(refuse, warn);
    }
}
