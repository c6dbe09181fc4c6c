//! The least that a commit on a server can be: one script that sets a field of a hash and adds to a stream.

use crate::Result;
use crate::redis_server::{Client, Server};

/// A field for the row, and an event with its own id.
const SCRIPT: &str = "redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return redis.call('XADD', KEYS[2], '*', 'e', ARGV[2])";

/// As long as a stored row.
const ROW: usize = 400;

/// A connection that runs the script.
pub struct BareScript {
    client: Client,
    hash: String,
    row: String,
}

impl BareScript {
    /// The stream that it adds to.
    pub const LOG: &'static str = "{bare}log";

    /// Loads the script into a server.
    pub fn on(server: &Server) -> Result<BareScript> {
        let mut client = server.connect()?;
        let hash = client.call(&["SCRIPT", "LOAD", SCRIPT])?.concat();
        Ok(BareScript { client, hash, row: "x".repeat(ROW) })
    }

    /// Runs it once.
    pub fn run(&mut self, field: &str) -> Result {
        self.client.call(&["EVALSHA", &self.hash, "2", "{bare}rows", BareScript::LOG, field, &self.row])?;
        Ok(())
    }
}
