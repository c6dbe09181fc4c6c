//! A board on a Redis server, which this version finds but cannot open.
//!
//! Such a board has no file, so its sidecars have a directory of their own in the home of boards. Its name is made from the
//! URL without the login, which may have a password in it.

use std::path::Path;

use blackboard::store::{SidecarDirectory, Sidecars};
use blackboard::{Code, Refusal, Result};
use uuid::Uuid;

use super::{Engine, OpenStore, Opening};
use crate::config::Database;

/// The directory in the home of boards with a directory for each board without a file.
const DIRECTORY: &str = "remote";

/// The name space of those directories. It never changes: a running server is found by it.
const BOARDS: Uuid = Uuid::from_u128(0x2f8c_91d4_7a3e_4b60_8d15_c2e7_09ab_f346);

/// A board on a Redis server.
pub struct RedisServer {
    /// The URL without its login.
    name: String,
    sidecars: SidecarDirectory,
}

impl RedisServer {
    /// The board at this URL.
    pub fn new(url: &str, home: &Path) -> RedisServer {
        let name = without_login(url);
        let directory = Uuid::new_v5(&BOARDS, name.as_bytes()).simple().to_string();
        RedisServer { name, sidecars: SidecarDirectory::new(&home.join(DIRECTORY).join(directory)) }
    }
}

impl Engine for RedisServer {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn exists(&self) -> bool {
        false
    }

    fn identity(&self) -> Option<String> {
        None
    }

    fn sidecars(&self) -> &dyn Sidecars {
        &self.sidecars
    }

    fn open(&self, _: &Database, _: Opening) -> Result<Option<OpenStore>> {
        Err(Refusal::new(Code::InvalidValue, "this version has no Redis engine yet")
            .hint("name a file with --db or BLACKBOARD_DB")
            .into())
    }
}

/// The server and the database of a URL. A password may contain any character, also a slash, so the login ends at the last
/// `@`. Options are removed too: they may contain a password, and do not identify the board.
fn without_login(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("redis", url));
    let address = rest.rsplit_once('@').map_or(rest, |(_, address)| address);
    let address = address.split(['?', '#']).next().unwrap_or_default();
    format!("{scheme}://{address}")
}

#[cfg(test)]
mod tests {
    use blackboard::store::Sidecar;

    use super::*;

    #[test]
    fn a_url_is_shown_without_its_login() {
        for (url, expected) in [
            ("redis://localhost:6379/0", "redis://localhost:6379/0"),
            ("rediss://ivy:secret@host/1", "rediss://host/1"),
            ("redis://:secret@host", "redis://host"),
            ("redis://secret@host", "redis://host"),
            ("redis://:se/cr@et?#@host/1", "redis://host/1"),
            ("redis://host/1?password=secret", "redis://host/1"),
        ] {
            assert_eq!(without_login(url), expected, "{url}");
        }
    }

    #[test]
    fn sidecars_of_a_board_do_not_depend_on_the_login() {
        let path = |url| {
            let board = RedisServer::new(url, Path::new("/home/ivy/.pai/blackboard"));
            board.sidecars().path(Sidecar::ServerRegistration)
        };
        let expected = "/home/ivy/.pai/blackboard/remote/b17a8fafd73854ef9640814c28532458/serve";
        assert_eq!(path("redis://host/1"), Path::new(expected));
        assert_eq!(path("redis://ivy:secret@host/1"), path("redis://host/1"));
        assert_ne!(path("redis://host/2"), path("redis://host/1"));
    }
}
