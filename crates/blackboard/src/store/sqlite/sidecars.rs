//! The files beside a database: the sidecars of its board, and those that SQLite itself keeps there.

use std::io;
use std::path::{Path, PathBuf};

use super::directory::create_private_directory;
use crate::store::{Sidecar, Sidecars};

/// The sidecars of a board in a file: `local.db-serve` and its like. The hook log is `hook.log` in the same directory,
/// one for all boards there.
///
/// ```
/// use std::path::Path;
/// use blackboard::store::{Sidecar, Sidecars, sqlite::SqliteSidecars};
///
/// let sidecars = SqliteSidecars::new(Path::new("/repo/.blackboard/local.db"));
/// let registration = sidecars.path(Sidecar::ServerRegistration);
/// assert_eq!(registration, Path::new("/repo/.blackboard/local.db-serve"));
/// assert_eq!(sidecars.path(Sidecar::HookLog), Path::new("/repo/.blackboard/hook.log"));
/// ```
#[derive(Clone, Debug)]
pub struct SqliteSidecars {
    database: PathBuf,
}

impl SqliteSidecars {
    /// The sidecars of the board in this database file, whether or not that exists.
    pub fn new(database: &Path) -> SqliteSidecars {
        SqliteSidecars { database: database.to_owned() }
    }

    /// The database file.
    pub fn database(&self) -> &Path {
        &self.database
    }
}

impl Sidecars for SqliteSidecars {
    fn path(&self, sidecar: Sidecar) -> PathBuf {
        path_of(&self.database, sidecar)
    }

    fn create_directory(&self) -> io::Result<()> {
        self.database.parent().map_or(Ok(()), |directory| create_private_directory(directory).map(drop))
    }
}

/// The path of one sidecar of the database.
pub(super) fn path_of(database: &Path, sidecar: Sidecar) -> PathBuf {
    match sidecar {
        Sidecar::HookLog => database.with_file_name(sidecar.name()),
        Sidecar::ServerRegistration | Sidecar::DashboardLink | Sidecar::WriterQueue | Sidecar::WakeWord => {
            let mut path = database.as_os_str().to_owned();
            path.push("-");
            path.push(sidecar.name());
            PathBuf::from(path)
        }
    }
}

/// The file beside the database with this ending.
pub(super) fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(ending);
    PathBuf::from(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sidecars_have_the_names_that_other_versions_look_for() {
        let sidecars = SqliteSidecars::new(Path::new("/b/local.db"));
        let names = Sidecar::ALL.map(|sidecar| sidecars.path(sidecar));
        let expected = [
            "/b/local.db-serve",
            "/b/local.db-serve.html",
            "/b/hook.log",
            "/b/local.db-lock",
            "/b/local.db-wake",
        ];
        assert_eq!(names, expected.map(PathBuf::from));
    }
}
