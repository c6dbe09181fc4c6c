//! [`Sidecars`]: where the small files are that programs keep for a board, beside what the board itself stores.
//!
//! Nothing of the board is in them: a deleted sidecar loses no state. The engine says where they are, so that a board
//! without a file of its own has them too, in a directory. Their creator makes them private to the user.

use std::io;
use std::path::{Path, PathBuf};

use super::create_private_directory;

/// One of the files that programs keep for a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sidecar {
    /// Which process serves the dashboard of the board, where, and with which token.
    ServerRegistration,
    /// The page that leads a browser to that dashboard.
    DashboardLink,
    /// One line for each hook that failed.
    HookLog,
    /// What writers of several processes queue on. SQLite boards note here which index of git was checked, too.
    WriterQueue,
    /// What processes sleep on until the board changes.
    WakeWord,
}

impl Sidecar {
    /// Every sidecar.
    pub const ALL: [Sidecar; 5] = [
        Sidecar::ServerRegistration,
        Sidecar::DashboardLink,
        Sidecar::HookLog,
        Sidecar::WriterQueue,
        Sidecar::WakeWord,
    ];

    /// Its name in a directory that belongs to one board.
    pub const fn name(self) -> &'static str {
        match self {
            Sidecar::ServerRegistration => "serve",
            Sidecar::DashboardLink => "serve.html",
            Sidecar::HookLog => "hook.log",
            Sidecar::WriterQueue => "lock",
            Sidecar::WakeWord => "wake",
        }
    }
}

/// Where the sidecars of one board are.
pub trait Sidecars: Send + Sync {
    /// The path of a sidecar, whether or not it exists.
    fn path(&self, sidecar: Sidecar) -> PathBuf;

    /// Creates the directory of the sidecars, private to the user, if it does not exist.
    fn create_directory(&self) -> io::Result<()>;
}

/// Sidecars in a directory that has no other content of this kind, each under its own name.
///
/// ```
/// use std::path::Path;
/// use blackboard::store::{Sidecar, SidecarDirectory, Sidecars};
///
/// let sidecars = SidecarDirectory::new(Path::new("/home/ivy/.pai/blackboard"));
/// assert_eq!(sidecars.path(Sidecar::HookLog), Path::new("/home/ivy/.pai/blackboard/hook.log"));
/// ```
#[derive(Clone, Debug)]
pub struct SidecarDirectory {
    directory: PathBuf,
}

impl SidecarDirectory {
    /// The sidecars in this directory.
    pub fn new(directory: &Path) -> SidecarDirectory {
        SidecarDirectory { directory: directory.to_owned() }
    }
}

impl Sidecars for SidecarDirectory {
    fn path(&self, sidecar: Sidecar) -> PathBuf {
        self.directory.join(sidecar.name())
    }

    fn create_directory(&self) -> io::Result<()> {
        create_private_directory(&self.directory).map(drop)
    }
}
