//! `lock release`: releases a lock.

use serde::Serialize;

use super::{Lock, Locks};
use crate::agent::Agent;
use crate::entry::{Actor, EntryEditor, EventWording, LOCKS, check_key, check_known_key, check_own_fence};
use crate::error::{AgeKind, Code, Refusal, Result};
use crate::hint::Hint;
use crate::revision::{Pending, Revision};
use crate::store::{Key, Prefetch};

/// The lock to release.
#[derive(Clone, Debug, Default)]
pub struct Release {
    /// Its name.
    pub name: String,
    /// The session that holds it.
    pub session: String,
    /// The fence token that the session expects.
    pub fence: Option<Revision>,
}

impl Release {
    /// A lock, whatever its fence token.
    pub fn of(name: &str, session: &str) -> Release {
        Release { name: name.to_owned(), session: session.to_owned(), fence: None }
    }
}

/// The result of a release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Released {
    /// Its name.
    pub name: String,
    /// Whether this call released it. `false` if it was free.
    pub released: bool,
    /// Its fence token.
    pub fence: Option<Revision>,
    /// How long it was held.
    pub held_seconds: u64,
    /// The session that released it.
    pub released_by: String,
}

impl Pending for Released {
    fn resolve(&mut self, first: Revision) {
        self.fence.resolve(first);
    }
}

impl Locks<'_> {
    /// Releases a lock. A free lock stays free.
    ///
    /// ```
    /// # use blackboard::{Board, agent::Register, lock::{Acquire, Release}};
    /// # let board = Board::memory();
    /// # let ivy = board.agents().register(&Register::named("Ivy"))?.agent.session_id;
    /// let fence = board.locks().acquire(&Acquire::of("deploy", &ivy))?.lock.fence;
    /// let release = Release { fence: Some(fence), ..Release::of("deploy", &ivy) };
    /// assert!(board.locks().release(&release)?.released);
    /// assert!(!board.locks().release(&release)?.released);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn release(&self, release: &Release) -> Result<Released> {
        let Release { name, session, fence } = release;
        check_known_key(LOCKS, name)?;
        let prefetch = [Prefetch::Row(Key::Agent(session.clone())), Prefetch::Entry(LOCKS, name)];
        let by = Actor::session(session);
        self.board.commit_as(&[session], "lock release", &prefetch, |tx| {
            let mut editor = EntryEditor::new(self.board, tx, &by)?;
            let agent = editor.session()?;
            let lock = editor.entry(LOCKS, name)?.map(|entry| Lock::of(tx, &entry)).transpose()?;
            let mut released = Released {
                name: name.clone(),
                released: decide(&agent, name, lock.as_ref(), *fence)?,
                fence: None,
                held_seconds: 0,
                released_by: agent.agent_name.clone(),
            };
            if let Some(lock) = lock {
                released.fence = Some(lock.fence);
                released.held_seconds = editor.now().since(lock.since).as_secs();
                let summary = format!("Agent \"{}\" released lock \"{name}\"", agent.agent_name);
                editor.delete(LOCKS, name, EventWording::InWords(summary))?;
            }
            Ok((editor.finish()?, released))
        })
    }
}

/// Whether there is a lock to release, and this session may release it.
fn decide(agent: &Agent, name: &str, lock: Option<&Lock>, fence: Option<Revision>) -> Result<bool> {
    let session = &agent.session_id;
    agent.must_not_be_stale()?;
    let Some(lock) = lock else { return check_key(LOCKS, name).map(|()| false) };
    if lock.session_id != *session {
        let (holder, you) = agent.beside_holder(&lock.agent_name, &lock.session_id);
        return Err(Refusal::new(Code::NotHolder, format!("lock {name} is held by {holder}"))
            .age(AgeKind::Held, Some(lock.since), &format!(", not by {you}"))
            .hint(Hint::ListLocks)
            .held_by(lock.session_id.clone(), lock.agent_name.clone(), Some(lock.since))
            .detail("fence", lock.fence.get())
            .into());
    }
    let acquired = format!("lock {name} was acquired");
    check_own_fence(&acquired, Some(lock.fence), fence, Hint::CheckLostLock)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::AgentStatus;
    use crate::clock::Timestamp;
    use crate::store::conformance::an_agent;

    #[test]
    fn lock_is_released_only_by_its_holder() {
        use AgentStatus::{Active, Completed, Stale};
        for (agent, holder, fence, expected) in [
            (Active, Some("me"), None, Ok(true)),
            (Active, Some("me"), Some(7), Ok(true)),
            (Active, Some("me"), Some(6), Err(Code::StaleFence)),
            (Active, Some("me"), Some(8), Err(Code::StaleFence)),
            (Active, None, None, Ok(false)),
            (Active, None, Some(6), Ok(false)),
            (Active, Some("other"), None, Err(Code::NotHolder)),
            (Active, Some("other"), Some(7), Err(Code::NotHolder)),
            (Completed, None, None, Ok(false)),
            (Completed, Some("other"), None, Err(Code::NotHolder)),
            (Stale, None, None, Err(Code::SessionStale)),
            (Stale, Some("other"), None, Err(Code::SessionStale)),
        ] {
            let me = Agent { status: agent, ..an_agent("me") };
            let lock = holder.map(|holder| Lock {
                name: "deploy".to_owned(),
                fence: Revision::new(7),
                session_id: holder.to_owned(),
                agent_name: "Ivy".to_owned(),
                since: Timestamp::EPOCH,
                note: None,
                expires_at: None,
            });
            let outcome =
                decide(&me, "deploy", lock.as_ref(), fence.map(Revision::new)).map_err(|error| error.code());
            assert_eq!(outcome, expected, "{agent} agent, lock of {holder:?}, fence {fence:?}");
        }
    }
}
