//! The files beside a database: the sidecars of its board, and those of SQLite.

use std::io;
use std::path::{Path, PathBuf};

use crate::store::{Sidecar, Sidecars, create_private_directory};

/// The sidecars of a board in a file, for example `local.db-serve`. The hook log is `hook.log` in the same directory,
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
    /// The sidecars of the board in this database file, which may not exist.
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
        if is_named_after_database(sidecar) {
            continued(&self.database, &["-", sidecar.name()])
        } else {
            self.database.with_file_name(sidecar.name())
        }
    }

    fn create_directory(&self) -> io::Result<()> {
        self.database.parent().map_or(Ok(()), |directory| create_private_directory(directory).map(drop))
    }
}

/// The file beside the database with this ending.
pub(super) fn beside(database: &Path, ending: &str) -> PathBuf {
    continued(database, &[ending])
}

/// The endings of all files that a board may have beside its database. The database itself has the empty ending.
pub(super) fn endings() -> impl Iterator<Item = String> {
    let sidecars = Sidecar::ALL.into_iter().filter(|sidecar| is_named_after_database(*sidecar));
    let sidecars = sidecars.map(|sidecar| format!("-{}", sidecar.name()));
    // The index is a database with files of its own.
    let of_index = SQLITE_ENDINGS.into_iter().chain(["-lock"]).filter(|ending| !ending.is_empty());
    let of_index = of_index.map(|ending| format!("-{}{ending}", Sidecar::SearchIndex.name()));
    SQLITE_ENDINGS.into_iter().map(str::to_owned).chain(sidecars).chain(of_index)
}

/// The endings of the database, of SQLite's files beside it, and of the files that an interrupted open leaves there.
const SQLITE_ENDINGS: [&str; 6] = ["", "-wal", "-journal", "-shm", "-new", "-wal-orphaned"];

fn is_named_after_database(sidecar: Sidecar) -> bool {
    match sidecar {
        Sidecar::HookLog => false,
        Sidecar::ServerRegistration
        | Sidecar::DashboardLink
        | Sidecar::WriterQueue
        | Sidecar::WakeWord
        | Sidecar::Maintenance
        | Sidecar::SearchIndex => true,
    }
}

fn continued(database: &Path, ending: &[&str]) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    for part in ending {
        path.push(part);
    }
    PathBuf::from(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sidecar_names_are_stable_across_versions() {
        let sidecars = SqliteSidecars::new(Path::new("/b/local.db"));
        let names = Sidecar::ALL.map(|sidecar| sidecars.path(sidecar));
        let expected = [
            "/b/local.db-serve",
            "/b/local.db-serve.html",
            "/b/hook.log",
            "/b/local.db-lock",
            "/b/local.db-wake",
            "/b/local.db-maintenance",
            "/b/local.db-search",
        ];
        assert_eq!(names, expected.map(PathBuf::from));
        let endings: Vec<_> = endings().collect();
        for name in expected.iter().filter_map(|name| name.strip_prefix("/b/local.db")) {
            assert!(endings.iter().any(|ending| ending == name), "git may publish {name}");
        }
    }
}
