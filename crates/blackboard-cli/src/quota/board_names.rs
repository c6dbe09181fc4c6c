//! [`BoardNames`]: the names of boards in the ledger.
//!
//! The ledger of one machine names a board by its location. Several machines may have different boards at the same path, and
//! none needs to know the paths of the others. So a shared ledger names a board of one machine by a number that is made of the
//! machine and the location.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use uuid::Uuid;

use crate::disk;

/// The number of this machine, in the home of boards.
const MACHINE: &str = "quota-machine";

/// How boards of this machine are named.
pub enum BoardNames {
    /// By their locations.
    Locations,
    /// Those of this machine by a number.
    Numbers {
        /// The number of this machine.
        machine: Uuid,
    },
}

impl BoardNames {
    /// The names in a ledger that machines share. The number of this machine is created if it has none.
    pub fn shared(home: &Path) -> BoardNames {
        BoardNames::Numbers { machine: machine(home, true) }
    }

    /// The same for a caller that never writes.
    pub fn shared_to_read(home: &Path) -> BoardNames {
        BoardNames::Numbers { machine: machine(home, false) }
    }

    /// The name of the board at this location.
    pub fn of(&self, location: &str) -> String {
        match self {
            BoardNames::Numbers { machine } if is_of_this_machine(location) => {
                format!("board-{}", Uuid::new_v5(machine, location.as_bytes()).simple())
            }
            _ => location.to_owned(),
        }
    }
}

/// Whether other machines have another board at this location: a file, or a server that is reached through one.
fn is_of_this_machine(location: &str) -> bool {
    let scheme = location.split_once("://").map(|(scheme, _)| scheme);
    Path::new(location).is_absolute() || scheme.is_some_and(|scheme| scheme.ends_with("+unix"))
}

/// The number of this machine. Without a usable file all machines have the same one, and still no path leaves them.
fn machine(home: &Path, create: bool) -> Uuid {
    let number = || -> std::io::Result<Uuid> {
        let mut file = disk::own_file(&home.join(MACHINE), create)?;
        file.lock()?;
        let mut text = String::new();
        (&file).take(64).read_to_string(&mut text)?;
        if let Ok(known) = text.trim().parse() {
            return Ok(known);
        }
        let number = Uuid::new_v4();
        if create {
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            writeln!(file, "{number}")?;
        }
        Ok(number)
    };
    number().unwrap_or(Uuid::nil())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boards_of_two_machines_at_one_path_have_different_names_without_the_path() {
        testkit::limit_test();
        let homes = [testkit::tempdir().unwrap(), testkit::tempdir().unwrap()];
        let name = |home: usize| BoardNames::shared(homes[home].path()).of("/home/ivy/board.db");
        assert_eq!(name(0), name(0));
        assert_ne!(name(0), name(1));
        assert!(!name(0).contains("ivy"), "{}", name(0));
        assert_eq!(name(0), BoardNames::shared_to_read(homes[0].path()).of("/home/ivy/board.db"));
        let url = "redis://redis.example:6379?board=x";
        assert_eq!(BoardNames::shared(homes[0].path()).of(url), url, "it is the same board on every machine");
        let socket = "redis+unix:///home/ivy/socket?board=x";
        assert!(!BoardNames::shared(homes[0].path()).of(socket).contains("ivy"));
        assert_eq!(BoardNames::Locations.of("/home/ivy/board.db"), "/home/ivy/board.db");
    }

    #[test]
    fn processes_at_the_same_time_create_one_number() {
        testkit::limit_test();
        let home = testkit::tempdir().unwrap();
        let names: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| BoardNames::shared(home.path()).of("/b"))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(names.iter().all(|name| *name == names[0]), "{names:?}");
    }
}
