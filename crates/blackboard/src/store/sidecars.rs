//! [`Sidecars`]: the location of small files that programs keep for a board, outside its storage.
//!
//! They contain nothing of the board: a deleted sidecar loses no state. The engine decides their location, so that a
//! board without its own file has them too, in a directory. Their creator makes them private to the user.

use std::io;
use std::path::{Path, PathBuf};

use super::create_private_directory;

/// One of the files that programs keep for a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sidecar {
    /// The process that serves the dashboard of the board, with its address and token.
    ServerRegistration,
    /// The page that redirects a browser to that dashboard.
    DashboardLink,
    /// One line for each hook that failed.
    HookLog,
    /// The file on which writers of several processes queue. SQLite boards also record here which git index was
    /// checked.
    WriterQueue,
    /// The word that processes sleep on until the board changes.
    WakeWord,
    /// The process that maintains the board for hooks, which must not take so long. Its time is that of the last start.
    Maintenance,
    /// The search index, a database that can be made again from the board.
    SearchIndex,
}

impl Sidecar {
    /// Every sidecar.
    pub const ALL: [Sidecar; 7] = [
        Sidecar::ServerRegistration,
        Sidecar::DashboardLink,
        Sidecar::HookLog,
        Sidecar::WriterQueue,
        Sidecar::WakeWord,
        Sidecar::Maintenance,
        Sidecar::SearchIndex,
    ];

    /// Its name in a directory that belongs to one board.
    pub const fn name(self) -> &'static str {
        match self {
            Sidecar::ServerRegistration => "serve",
            Sidecar::DashboardLink => "serve.html",
            Sidecar::HookLog => "hook.log",
            Sidecar::WriterQueue => "lock",
            Sidecar::WakeWord => "wake",
            Sidecar::Maintenance => "maintenance",
            Sidecar::SearchIndex => "search",
        }
    }
}

/// The location of the sidecars of one board.
pub trait Sidecars: Send + Sync {
    /// The path of a sidecar, whether or not it exists.
    fn path(&self, sidecar: Sidecar) -> PathBuf;

    /// Creates the directory of the sidecars, private to the user, if it does not exist.
    fn create_directory(&self) -> io::Result<()>;
}

/// Sidecars in a directory without other files of this kind, each under its own name.
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
