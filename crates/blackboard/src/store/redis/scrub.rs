//! Erases the remains of removed and replaced data from the files of the server.
//!
//! The append-only file is written again, and so is a snapshot if the server makes any. What cannot be reached from here
//! is not erased: backups, and the files of replicas.

use std::thread;
use std::time::{Duration, Instant};

use super::connection::info_field;
use super::resp::{Reply, Request};
use super::{Inner, faults};
use crate::error::Result;

/// How long the server may take.
const LIMIT: Duration = Duration::from_secs(10);

/// How long to wait between two checks.
const PAUSE: Duration = Duration::from_millis(20);

/// How much of an error of the server is shown.
const MAX_TEXT: usize = 100;

/// A file that the server writes again when it is told to.
struct Rewrite {
    command: &'static str,
    /// What it is, in messages.
    name: &'static str,
    /// The fields of `INFO`: whether it is being written, and whether the last time succeeded.
    in_progress: &'static str,
    status: &'static str,
}

const LOG: Rewrite = Rewrite {
    command: "BGREWRITEAOF",
    name: "the append-only file",
    in_progress: "aof_rewrite_in_progress",
    status: "aof_last_bgrewrite_status",
};

const SNAPSHOT: Rewrite = Rewrite {
    command: "BGSAVE",
    name: "the snapshot",
    in_progress: "rdb_bgsave_in_progress",
    status: "rdb_last_bgsave_status",
};

impl Inner {
    /// Returns the reasons why something may be left.
    pub(super) fn scrub(&self) -> Result<Vec<String>> {
        let info = self.info()?;
        let end = Instant::now() + LIMIT;
        let mut remains = Vec::new();
        if info_field(&info, "aof_enabled") != Some("0") {
            remains.extend(self.rewrite(&LOG, end)?);
        }
        // A server that hides its settings may make snapshots.
        let settings = self.answer(&[b"CONFIG", b"GET", b"save"])?;
        let has_none =
            matches!(&settings, Some(Reply::List(parts)) if parts.last() == Some(&Reply::Bytes(Vec::new())));
        if !has_none {
            remains.extend(self.rewrite(&SNAPSHOT, end)?);
        }
        match info_field(&info, "connected_slaves") {
            Some("0") => {}
            Some("1") => remains.push("a replica of the server has files of its own".to_owned()),
            count => remains.push(format!(
                "{} replicas of the server have files of their own",
                count.unwrap_or("an unknown number of")
            )),
        }
        Ok(remains)
    }

    /// Starts to write a file again, and waits until it is done. Returns why it was not.
    fn rewrite(&self, file: &Rewrite, end: Instant) -> Result<Option<String>> {
        let Rewrite { command, name, .. } = file;
        // One that runs already may have begun before the data was removed.
        if !self.wait_for_end(file, end)? {
            return Ok(Some(format!("the server has been rewriting {name} for too long")));
        }
        match self.start(file, end)? {
            Ok(()) => {}
            Err(text) if text.starts_with("NOPERM") => {
                return Ok(Some(format!("the server does not let this user rewrite {name} ({command})")));
            }
            Err(text) => {
                let text: String = text.chars().take(MAX_TEXT).collect();
                return Ok(Some(format!("the server did not rewrite {name} ({command}): {text}")));
            }
        }
        if !self.wait_for_end(file, end)? {
            return Ok(Some(format!("the server is still rewriting {name}")));
        }
        let is_done = info_field(&self.info()?, file.status) == Some("ok");
        Ok((!is_done).then(|| format!("the server could not rewrite {name}: look at its log")))
    }

    /// Starts to write a file again. Returns the answer of a server that refuses. It writes one file at a time, so another
    /// one may have to end first.
    fn start(&self, file: &Rewrite, end: Instant) -> Result<Result<(), String>> {
        loop {
            match self.reply(&[file.command.as_bytes()])? {
                Some(Reply::Error(text)) if is_in_progress(&text) && Instant::now() < end => {
                    thread::sleep(PAUSE);
                }
                Some(Reply::Error(text)) => return Ok(Err(text)),
                _ => return Ok(Ok(())),
            }
        }
    }

    /// Waits until the file is not being written; returns whether that is so.
    fn wait_for_end(&self, file: &Rewrite, end: Instant) -> Result<bool> {
        loop {
            let info = self.info()?;
            let is_scheduled = info_field(&info, "aof_rewrite_scheduled") == Some("1");
            if info_field(&info, file.in_progress) == Some("0") && !is_scheduled {
                return Ok(true);
            }
            if Instant::now() >= end {
                return Ok(false);
            }
            thread::sleep(PAUSE);
        }
    }

    fn info(&self) -> Result<String> {
        match self.answer(&[b"INFO", b"persistence", b"replication"])? {
            Some(Reply::Bytes(info)) => Ok(String::from_utf8_lossy(&info).into_owned()),
            _ => Ok(String::new()),
        }
    }

    /// The reply to a command; `None` if the server refuses it.
    fn answer(&self, command: &[&[u8]]) -> Result<Option<Reply>> {
        Ok(self.reply(command)?.filter(|reply| !matches!(reply, Reply::Error(_))))
    }

    /// The reply to a command.
    fn reply(&self, command: &[&[u8]]) -> Result<Option<Reply>> {
        let mut request = Request::default();
        request.command(command);
        let replies = self.call(self.patience).retry(|call| {
            call.connection()?;
            call.exchange(&request).map_err(|broken| faults::of_connection(&self.pool.address, broken.error))
        })?;
        Ok(replies.into_iter().next())
    }
}

/// Whether the server refuses to write a file because it writes this one or another one.
fn is_in_progress(text: &str) -> bool {
    text.contains("in progress") || text.contains("child process is active")
}
