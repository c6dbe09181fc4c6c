//! Boards that cannot be used, or only be read: sealed ones, and those that are being loaded.

use super::faults::{self, ServerError};
use super::layout;
use super::pool::ServerCall;
use super::resp::{Reply, Request};
use super::{Inner, script};
use crate::error::{Code, Error, Result};
use crate::store::transfer::Hold;

impl Inner {
    /// Changes the state of the board, and waits for replicas. Returns whether it was the first state before.
    pub(super) fn set_hold(&self, name: &'static str, from: &str, to: &str, moved_to: &str) -> Result<bool> {
        let mut request = Request::default();
        let arguments = [&self.board, from, to, moved_to].map(str::as_bytes);
        script::HOLD.call(&mut request, &self.keys, &arguments);
        let mut call = self.call(self.patience);
        let was_before = call.retry(|call| {
            let parts = self.answer_of_script(call, &request)?;
            match &parts[..] {
                [Reply::Bytes(outcome), Reply::Bytes(before)] if outcome == b"ok" => {
                    Ok(before == from.as_bytes())
                }
                parts => Err(ServerError::Final(self.refusal(call, parts))),
            }
        })?;
        self.confirm(name, &mut call).map_err(|error| match error.code() {
            Code::OutcomeUnknown => error.with_hint("repeat the call: it changes nothing twice".into()),
            _ => error,
        })?;
        Ok(was_before)
    }

    /// The list that a script answers with.
    pub(super) fn answer_of_script(
        &self,
        call: &mut ServerCall<'_>,
        request: &Request,
    ) -> Result<Vec<Reply>, ServerError> {
        match self.replies_of_script(call, request)?.into_iter().next() {
            Some(Reply::List(parts)) => Ok(parts),
            _ => Err(ServerError::Final(faults::odd_reply(&self.pool.address))),
        }
    }

    /// Why a script changed nothing.
    pub(super) fn refusal(&self, call: &mut ServerCall<'_>, parts: &[Reply]) -> Error {
        match parts {
            [Reply::Bytes(outcome), ..] if outcome == b"gone" => faults::gone(&self.pool.address),
            [Reply::Bytes(outcome), Reply::Bytes(version)] if outcome == b"version" => {
                self.held(call, version)
            }
            _ => faults::odd_reply(&self.pool.address),
        }
    }

    /// The refusal of a board whose state has this version.
    pub(super) fn held(&self, call: &mut ServerCall<'_>, version: &[u8]) -> Error {
        let address = &self.pool.address;
        if version == layout::LOADING.as_bytes() {
            return faults::being_copied(address);
        }
        if !version.first().is_some_and(u8::is_ascii_digit) || version == layout::VERSION.as_bytes() {
            return faults::damaged(address, faults::NO_STATE);
        }
        if version != layout::SEALED.as_bytes() {
            return faults::newer(address);
        }
        let location = self.moved_to(call).ok().flatten();
        faults::sealed(address, location.as_deref())
    }

    /// The location that the board was sealed with, which may be empty; `None` if it is not sealed.
    pub(super) fn sealed(&self) -> Result<Option<String>> {
        if self.state()?.hold != Hold::Sealed {
            return Ok(None);
        }
        let location = self.call(self.patience).retry(|call| {
            call.connection()?;
            self.moved_to(call)
        })?;
        Ok(Some(location.unwrap_or_default()))
    }

    fn moved_to(&self, call: &mut ServerCall<'_>) -> Result<Option<String>, ServerError> {
        let mut request = Request::default();
        request.command(&[b"HGET", &self.keys.rows, layout::MOVED_TO]);
        Ok(match self.replies(call, &request)?.into_iter().next() {
            Some(Reply::Bytes(location)) => String::from_utf8(location).ok(),
            _ => None,
        })
    }
}
