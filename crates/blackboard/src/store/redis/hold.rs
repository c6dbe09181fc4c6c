//! Boards that cannot be used, or only be read: sealed ones, and those that are being loaded.

use super::faults::{self, Trouble};
use super::layout;
use super::pool::Lease;
use super::resp::{Reply, Request};
use super::{Inner, script};
use crate::error::{Error, Result};

impl Inner {
    /// Changes the state of the board. Returns whether it was the first one before.
    pub(super) fn set_hold(&self, from: &str, to: &str, moved_to: &str) -> Result<bool> {
        let mut request = Request::default();
        let arguments = [&self.board, from, to, moved_to].map(str::as_bytes);
        script::HOLD.call(&mut request, &self.keys, &arguments);
        let mut was_before = None;
        self.lease(self.patience).retry(|lease| {
            let parts = self.answer_of_script(lease, &request)?;
            match &parts[..] {
                [Reply::Bytes(outcome), Reply::Bytes(before)] if outcome == b"ok" => {
                    // A second attempt finds what the first one has done.
                    Ok(*was_before.get_or_insert(before == from.as_bytes()))
                }
                parts => Err(Trouble::Final(self.refusal(lease, parts))),
            }
        })
    }

    /// The list that a script answers with.
    pub(super) fn answer_of_script(
        &self,
        lease: &mut Lease<'_>,
        request: &Request,
    ) -> Result<Vec<Reply>, Trouble> {
        lease.connection()?;
        let replies = match self.replies(lease, request) {
            Err(Trouble::UnknownScript) => {
                self.load_scripts(lease)?;
                self.replies(lease, request)?
            }
            replies => replies?,
        };
        match replies.into_iter().next() {
            Some(Reply::List(parts)) => Ok(parts),
            _ => Err(Trouble::Final(faults::odd_reply(&self.pool.address))),
        }
    }

    /// Why a script changed nothing.
    pub(super) fn refusal(&self, lease: &mut Lease<'_>, parts: &[Reply]) -> Error {
        match parts {
            [Reply::Bytes(outcome), ..] if outcome == b"gone" => faults::gone(&self.pool.address),
            [Reply::Bytes(outcome), Reply::Bytes(version)] if outcome == b"version" => {
                self.held(lease, version)
            }
            _ => faults::odd_reply(&self.pool.address),
        }
    }

    /// The refusal of a board whose state has this version.
    pub(super) fn held(&self, lease: &mut Lease<'_>, version: &[u8]) -> Error {
        let address = &self.pool.address;
        if version == layout::LOADING.as_bytes() {
            return faults::being_copied(address);
        }
        if version != layout::SEALED.as_bytes() {
            return faults::newer(address);
        }
        let mut request = Request::default();
        request.command(&[b"HGET", &self.keys.rows, layout::MOVED_TO]);
        let location = match self.replies(lease, &request).ok().and_then(|replies| replies.into_iter().next())
        {
            Some(Reply::Bytes(location)) => String::from_utf8(location).ok(),
            _ => None,
        };
        faults::sealed(address, location.as_deref())
    }
}
