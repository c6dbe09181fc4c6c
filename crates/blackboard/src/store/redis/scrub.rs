//! Erases the remains of removed and replaced data from the files of the server.
//!
//! The append-only file is written again, and so is a snapshot if the server makes any. Calls at the same time share
//! one rewrite: any that begins after the data was removed erases it. What cannot be reached from here is not erased:
//! backups, and the files of replicas.

use std::thread;
use std::time::{Duration, Instant};

use super::connection::info_field;
use super::resp::{Reply, Request};
use super::{Inner, faults};
use crate::error::Result;

/// How long the server may take: it writes its complete data, on a disk that may be busy.
const LIMIT: Duration = Duration::from_secs(30);

/// How long to wait between two checks.
const PAUSE: Duration = Duration::from_millis(20);

/// How much of an error of the server is shown.
const MAX_TEXT: usize = 100;

/// A file that the server writes again when it is told to.
struct Rewrite {
    command: &'static str,
    /// What it is, in messages.
    name: &'static str,
    /// The fields of `INFO`: whether it is being written, how often the server has begun to, and whether the last time
    /// succeeded.
    in_progress: &'static str,
    begun: &'static str,
    status: &'static str,
}

const LOG: Rewrite = Rewrite {
    command: "BGREWRITEAOF",
    name: "the append-only file",
    in_progress: "aof_rewrite_in_progress",
    begun: "aof_rewrites",
    status: "aof_last_bgrewrite_status",
};

const SNAPSHOT: Rewrite = Rewrite {
    command: "BGSAVE",
    name: "the snapshot",
    in_progress: "rdb_bgsave_in_progress",
    begun: "rdb_saves",
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

    /// Has a file written again, and waits until it is done. Returns why it was not.
    fn rewrite(&self, file: &Rewrite, end: Instant) -> Result<Option<String>> {
        let Rewrite { command, name, .. } = file;
        // One that runs already may have begun before the data was removed. A server without this count would have to
        // write the file for each call.
        let begun_before = Progress::read(&self.info()?, file).begun;
        let mut is_requested = false;
        loop {
            let progress = Progress::read(&self.info()?, file);
            let has_begun = match progress.begun.zip(begun_before) {
                Some((begun, before)) => begun > before,
                None => is_requested,
            };
            if has_begun && !progress.runs {
                let failed = format!("the server could not rewrite {name}: look at its log");
                return Ok((!progress.succeeded).then_some(failed));
            }
            if Instant::now() >= end {
                let state = if has_begun { "is still rewriting" } else { "has not begun to rewrite" };
                return Ok(Some(format!("the server {state} {name}")));
            }
            if !has_begun && !progress.runs {
                match self.reply(&[command.as_bytes()])? {
                    // It writes one file at a time, and another call may be faster.
                    Some(Reply::Error(text)) if is_in_progress(&text) => {}
                    Some(Reply::Error(text)) => return Ok(Some(self.refused_rewrite(file, &text))),
                    _ => {
                        is_requested = true;
                        continue;
                    }
                }
            }
            thread::sleep(PAUSE);
        }
    }

    /// Why the server does not write a file, for the user.
    fn refused_rewrite(&self, file: &Rewrite, text: &str) -> String {
        let Rewrite { command, name, .. } = file;
        if text.starts_with("NOPERM") {
            return format!("the server does not let this user rewrite {name} ({command})");
        }
        let text = self.pool.address.without_secrets(text).unwrap_or("it sent an error");
        let text: String = text.chars().take(MAX_TEXT).collect();
        format!("the server did not rewrite {name} ({command}): {text}")
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

/// How far the server is with a file.
struct Progress {
    /// Whether it is being written, or will be soon.
    runs: bool,
    /// How often the server has begun to, if it counts that.
    begun: Option<u64>,
    /// Whether the last time succeeded.
    succeeded: bool,
}

impl Progress {
    fn read(info: &str, file: &Rewrite) -> Progress {
        let is_scheduled = info_field(info, "aof_rewrite_scheduled") == Some("1");
        Progress {
            runs: info_field(info, file.in_progress) != Some("0") || is_scheduled,
            begun: info_field(info, file.begun).and_then(|count| count.parse().ok()),
            succeeded: info_field(info, file.status) == Some("ok"),
        }
    }
}

/// Whether the server refuses to write a file because it writes this one or another one.
fn is_in_progress(text: &str) -> bool {
    text.contains("in progress") || text.contains("child process is active")
}
