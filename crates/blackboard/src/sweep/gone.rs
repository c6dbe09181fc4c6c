//! Sweeps the holder of a refused call if its process is provably gone.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Sweep, Swept, latest_heartbeat};
use crate::agent::Agent;
use crate::board::Board;
use crate::clock::Timestamp;
use crate::error::{Code, Error, Refusal, Result};
use crate::hint::Hint;
use crate::process::Liveness;
use crate::store::{Commit, Key, OnBusy, Prefetch};

/// How long a session whose process is gone must have sent no heartbeat of its own before a refused call sweeps it. A
/// session that still sends heartbeats has another process than the one that it was registered with.
pub(crate) const QUIET: Duration = Duration::from_secs(10);

/// The detail of a refusal whose holder's process is gone.
const HOLDER_PROCESS: &str = "holder_process";

impl Refusal {
    /// The holder, if the call is refused because of it.
    fn holder(&self) -> Option<&str> {
        let is_held =
            matches!(self.code, Code::Held | Code::AlreadyClaimed | Code::AlreadyExists | Code::InUse);
        self.details.get("held_by").and_then(serde_json::Value::as_str).filter(|_| is_held)
    }

    /// Whether the process of the holder is gone, so that waiting or asking does not help.
    pub(crate) fn holder_is_gone(&self) -> bool {
        self.details.contains_key(HOLDER_PROCESS)
    }
}

impl Board {
    /// Handles a failed commit. Returns the session that it was refused for, if that session no longer holds anything,
    /// so that the commit can be retried. Otherwise returns the error, which names the holder's process if that is
    /// gone. A holder in `tried` was a reason for a retry before.
    pub(crate) fn sweep_gone_holder(
        &self,
        error: Error,
        commit: &Commit<'_>,
        tried: &BTreeSet<String>,
    ) -> Result<String> {
        let Error::Refusal(refusal) = error else { return Err(error) };
        let Some(holder) = refusal.holder().map(str::to_owned) else { return Err(Error::Refusal(refusal)) };
        if commit.callers.contains(&&*holder) || tried.contains(&holder) {
            return Err(Error::Refusal(refusal));
        }
        // An error here does not replace the refusal.
        let Ok((agent, now)) = self.agent_row(&holder) else { return Err(Error::Refusal(refusal)) };
        match self.sweep_row_if_gone(agent.as_ref(), now, commit.on_busy) {
            Ok(true) => Ok(holder),
            _ => Err(self.add_gone_holder_hint(*refusal, agent).into()),
        }
    }

    /// Sweeps a session if its process is provably gone and it has sent no heartbeat of its own for a while. Returns
    /// whether the session no longer holds anything: it was swept by this call or another one, has ended, or does not
    /// exist.
    pub(crate) fn sweep_if_gone(&self, session: &str, on_busy: OnBusy) -> Result<bool> {
        let (agent, now) = self.agent_row(session)?;
        self.sweep_row_if_gone(agent.as_ref(), now, on_busy)
    }

    /// The same for a row that was just read, at this time.
    fn sweep_row_if_gone(&self, agent: Option<&Agent>, now: Timestamp, on_busy: OnBusy) -> Result<bool> {
        let Some(agent) = agent.filter(|agent| agent.status.is_live()) else { return Ok(true) };
        if !self.is_gone_and_quiet(agent, now) || !self.clock_can_be_trusted(&Sweep::default(), on_busy)? {
            // The threshold begins now, and not when the clock reaches the heartbeat.
            if agent.last_seen_at > latest_heartbeat(now) {
                self.set_heartbeat_to_now(agent, on_busy)?;
            }
            return Ok(false);
        }
        let stale = self.mark_stale(agent, Liveness::Dead, false, on_busy)?;
        let swept = Swept { stale_agents: stale.into_iter().collect(), ..Swept::default() };
        self.report_sweep(&swept);
        if !swept.stale_agents.is_empty() {
            return Ok(true);
        }
        // Another sweep may have been faster.
        Ok(self.agent_row(&agent.session_id)?.0.is_none_or(|agent| !agent.status.is_live()))
    }

    /// Sweeps those of the sessions whose process is provably gone and that have sent no heartbeat for a while, for a call
    /// that reads: without waiting, and without failing. Returns whether one of them no longer holds anything.
    pub fn sweep_gone<'a>(&self, sessions: impl Iterator<Item = &'a str>) -> bool {
        let sessions: BTreeSet<_> = sessions.collect();
        let mut is_any_swept = false;
        for session in sessions {
            is_any_swept |= self.sweep_if_gone(session, OnBusy::Fail).unwrap_or(false);
        }
        is_any_swept
    }

    /// Whether a refused call may sweep this session. The time is that of the read that returned it.
    pub(crate) fn is_gone_and_quiet(&self, agent: &Agent, now: Timestamp) -> bool {
        is_quiet(agent, now) && self.is_provably_gone(agent)
    }

    /// Whether the process was seen alive at registration, on this host, boot and namespace, and does not exist any
    /// more.
    pub(crate) fn is_provably_gone(&self, agent: &Agent) -> bool {
        let Some(mark) = &agent.process else { return false };
        mark.boot == self.processes().boot() && self.agents().process_of(agent) == Liveness::Dead
    }

    /// If the holder's process is gone, adds that to the refusal, with a hint how to release its holdings at once.
    fn add_gone_holder_hint(&self, refusal: Refusal, holder: Option<Agent>) -> Refusal {
        match holder.and_then(|holder| holder.pid.map(|pid| (holder, pid))) {
            Some((holder, pid)) if self.agents().process_of(&holder) == Liveness::Dead => refusal
                .hint(Hint::EndGoneHolder { session: holder.session_id, pid })
                .detail(HOLDER_PROCESS, "gone"),
            _ => refusal,
        }
    }

    /// The row of a session, and the engine's time.
    fn agent_row(&self, session: &str) -> Result<(Option<Agent>, Timestamp)> {
        let key = Key::Agent(session.to_owned());
        self.read(&[Prefetch::Row(key.clone())], |tx| Ok((tx.row::<Agent>(&key)?, tx.now())))
    }
}

/// Whether a session has sent no heartbeat of its own for a while. Other sessions refresh `last_seen_at` too. A
/// heartbeat ahead of the clock is from before the clock was set back.
fn is_quiet(agent: &Agent, now: Timestamp) -> bool {
    now.since(agent.last_beat_at) >= QUIET || agent.last_beat_at > latest_heartbeat(now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::conformance::an_agent;

    #[test]
    fn a_session_is_quiet_ten_seconds_after_its_own_last_heartbeat() {
        let at = |seconds| Timestamp::EPOCH.plus(Duration::from_secs(seconds));
        for (beat, now, expected) in [
            (100, 100, false),
            (100, 109, false),
            (100, 110, true),
            (100, 500, true),
            (130, 100, false),
            (131, 100, true),
        ] {
            // Another session saw it alive just now, which does not count.
            let agent = Agent { last_beat_at: at(beat), last_seen_at: at(now), ..an_agent("a") };
            assert_eq!(is_quiet(&agent, at(now)), expected, "beat at {beat}, now {now}");
        }
    }

    #[test]
    fn only_a_refusal_because_of_a_holder_names_one() {
        for (code, expected) in [
            (Code::Held, Some("ivy")),
            (Code::AlreadyClaimed, Some("ivy")),
            (Code::AlreadyExists, Some("ivy")),
            (Code::InUse, Some("ivy")),
            (Code::NotHolder, None),
            (Code::AlreadyCompleted, None),
            (Code::StaleFence, None),
        ] {
            let refusal = Refusal::new(code, "no").held_by("ivy", "Ivy", None);
            assert_eq!(refusal.holder(), expected, "{code}");
        }
        let no_session =
            Refusal::new(Code::AlreadyExists, "no").held_by(serde_json::Value::Null, "cli", None);
        assert_eq!(no_session.holder(), None);
    }
}
