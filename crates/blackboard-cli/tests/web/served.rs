//! A board and the server that shows it.

use std::ops::Deref;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use testkit::server;

use crate::client::{self, Reply};
use crate::scratch::Scratch;

/// A server in the foreground, and requests to it.
pub struct Served {
    inner: server::Served,
    pub port: u16,
    /// What requests carry; empty if they need nothing.
    pub token: String,
}

impl Served {
    /// A server of a board that does not exist yet.
    pub fn new() -> Served {
        Served::of(Scratch::new(), 0)
    }

    /// A server of this board, on this port or any.
    pub fn of(scratch: Scratch, port: u16) -> Served {
        Served::from(server::Served::of(scratch, port))
    }

    /// A server that was started like this.
    pub fn by(scratch: Scratch, command: Command) -> Served {
        Served::from(server::Served::by(scratch, command))
    }

    /// The server on a board on which there is something of everything.
    pub fn furnished() -> Served {
        let scratch = Scratch::new();
        for call in [
            &["project", "register", "pai", "--name", "PAI"][..],
            &["agent", "register", "--name", "Ivy", "--session-hint", "ivy", "--project", "pai"],
            &["agent", "register", "--name", "Helper", "--session-hint", "helper", "--parent", "ivy"],
            &["agent", "register", "--name", "Gone", "--session-hint", "gone"],
            &["agent", "deregister", "gone"],
            &["work", "create", "later", "--title", "Later", "--priority", "P3"],
            &["work", "create", "first", "--title", "First", "--priority", "P1", "--project", "pai"],
            &["work", "create", "gh:o/r#7", "--title", "Odd", "--source", "github", "--source-ref", "o/r#7"],
            &["work", "claim", "mine", "--title", "Mine", "--session", "ivy"],
            &["work", "create", "waits", "--title", "Waits", "--blocked-by", "mine"],
            &["work", "claim", "done", "--title", "Done", "--session", "ivy"],
            &["work", "complete", "done", "--session", "ivy"],
            &["write", "fact", "{\"a\":1}", "--agent", "analyst"],
            &["write", "fact", "{\"a\":2}", "--agent", "analyst"],
            &["write", "task:1", "open", "--scope", "team-1"],
            &["lock", "acquire", "deploy", "--session", "ivy"],
            &["file", "reserve", "src/", "--session", "ivy"],
        ] {
            scratch.run(call).success();
        }
        Served::of(scratch, 0)
    }

    /// The answer to a request for this path.
    pub fn get(&self, path: &str) -> Reply {
        client::get(self.port, path)
    }

    /// The JSON of a path that is there.
    #[track_caller]
    pub fn json(&self, path: &str) -> Value {
        let reply = self.get(path);
        assert_eq!(reply.status, 200, "{path}: {}", String::from_utf8_lossy(&reply.body));
        reply.json()
    }

    /// The output of a command.
    #[track_caller]
    pub fn says(&self, call: &[&str]) -> Value {
        self.scratch.json(call)
    }

    /// The number of the server's process.
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Ends the server, and hands back the board.
    pub fn end(self) -> Scratch {
        self.inner.end()
    }

    /// Where the database is.
    pub fn database(&self) -> PathBuf {
        self.scratch.database()
    }
}

impl From<server::Served> for Served {
    fn from(served: server::Served) -> Served {
        let (port, token) = (client::remember(&served.server.printed), served.server.token().to_owned());
        Served { inner: served, port, token }
    }
}

impl Deref for Served {
    type Target = server::Served;

    fn deref(&self) -> &server::Served {
        &self.inner
    }
}
