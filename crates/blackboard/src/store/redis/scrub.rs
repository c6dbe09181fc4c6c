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

impl Inner {
    /// Returns whether nothing is left.
    pub(super) fn scrub(&self) -> Result<bool> {
        let info = self.info()?;
        let end = Instant::now() + LIMIT;
        let has_replicas = info_field(&info, "connected_slaves") != Some("0");
        let has_log = info_field(&info, "aof_enabled") != Some("0");
        // A server that hides its settings may make snapshots.
        let settings = self.answer(&[b"CONFIG", b"GET", b"save"])?;
        let has_snapshots =
            !matches!(&settings, Some(Reply::List(parts)) if parts.last() == Some(&Reply::Bytes(Vec::new())));
        let rewritten =
            !has_log || self.rewrite(&[b"BGREWRITEAOF"], "aof_rewrite", "aof_last_bgrewrite_status", end)?;
        let snapshotted =
            !has_snapshots || self.rewrite(&[b"BGSAVE"], "rdb_bgsave", "rdb_last_bgsave_status", end)?;
        Ok(rewritten && snapshotted && !has_replicas)
    }

    /// Starts to write a file again, and waits until it is done. Returns whether it was.
    fn rewrite(&self, command: &[&[u8]], what: &str, status: &str, end: Instant) -> Result<bool> {
        let in_progress = format!("{what}_in_progress");
        // One that runs already may have begun before the data was removed.
        if !self.wait_for_end(&in_progress, end)? || self.answer(command)?.is_none() {
            return Ok(false);
        }
        let is_done = self.wait_for_end(&in_progress, end)?;
        Ok(is_done && info_field(&self.info()?, status) == Some("ok"))
    }

    /// Waits until nothing is in progress; returns whether that is so.
    fn wait_for_end(&self, in_progress: &str, end: Instant) -> Result<bool> {
        loop {
            let info = self.info()?;
            let is_scheduled = info_field(&info, "aof_rewrite_scheduled") == Some("1");
            if info_field(&info, in_progress) == Some("0") && !is_scheduled {
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
        let mut request = Request::default();
        request.command(command);
        let replies = self.lease(self.patience).retry(|lease| {
            lease.connection()?;
            lease.exchange(&request).map_err(|broken| faults::of_connection(&self.pool.address, broken.error))
        })?;
        Ok(replies.into_iter().next().filter(|reply| !matches!(reply, Reply::Error(_))))
    }
}
