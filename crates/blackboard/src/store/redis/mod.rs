//! The Redis engine: a board on a server, for agents on several machines.
//!
//! A run reads what it has announced in one round trip, from one state of the board (`fetch.rs`, `view.rs`). One script
//! validates these reads and applies the changes, rows, indexes and events together, in another round trip
//! (`commit.rs`, `scripts/commit.lua`). `layout.rs` has the three keys of a board. The time is that of the server
//! (`clock.rs`). Waiting threads share one connection that blocks on the event log (`listener.rs`).
//!
//! - Every request has a deadline, and no layer below `Lease::retry` (`pool.rs`) repeats one.
//! - A connection is not used again after a failure or an unexpected reply (`connection.rs`).
//! - A commit whose answer was lost is sent again with the same id, and never applied twice (`commit.rs`).
//! - After a restart or a failover no revision is assigned twice, although the last ones may be lost: the first commit
//!   on another process of the server skips ids (`docs/decisions/0021`).
//! - A commit never creates a board. One that is missing, or another one of the same name, is reported.
//!
//! Values are opaque to the server, and no key or pattern of a user reaches it as anything but an argument.

mod address;
mod bytes;
mod clock;
mod commit;
mod connection;
mod dump;
mod faults;
mod fetch;
mod hold;
mod layout;
mod listener;
mod load;
mod pool;
mod resp;
mod script;
mod scrub;
mod socket;
#[cfg(test)]
mod tests;
mod tls;
mod view;

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

pub use self::address::{Address, SCHEMES};
pub use self::clock::ServerClock;
use self::connection::{Connection, info_field};
use self::faults::Trouble;
use self::layout::{BoardKeys, State, StateError};
use self::listener::Listening;
pub use self::load::LoadingKeys;
use self::pool::{Lease, Pool};
use self::resp::{Reply, Request};
use self::view::View;
use super::transfer::{Hold, Recipient};
use super::{Changes, Commit, Committed, Prefetch, Store, Tx};
use crate::clock::Clock;
use crate::error::{Code, Refusal, Result};
use crate::revision::Revision;
use crate::status::SpaceUsage;

/// How often a read starts again because the board changed between its parts.
const MAX_READS: usize = 100;

/// How a board on a server is opened.
#[derive(Clone)]
pub struct RedisOptions {
    /// How long a call may take, with all its attempts.
    pub patience: Duration,
    /// How long one reply of the server may take.
    pub reply_limit: Duration,
    /// For tests: the clock of the board, instead of the server's.
    pub fixed_clock: Option<Arc<dyn Clock>>,
}

impl Default for RedisOptions {
    fn default() -> RedisOptions {
        RedisOptions {
            patience: Duration::from_secs(15),
            reply_limit: Duration::from_secs(5),
            fixed_clock: None,
        }
    }
}

/// A board on a Redis server.
pub struct Redis {
    inner: Arc<Inner>,
    is_new: bool,
    reads_only: bool,
    keeps_log: bool,
    denied: Option<String>,
}

/// What the store and its listener share.
struct Inner {
    pool: Pool,
    keys: BoardKeys,
    /// The random id of the board.
    board: String,
    patience: Duration,
    fixed_clock: Option<Arc<dyn Clock>>,
    listening: Listening,
    /// Whether the board is being loaded by this value.
    is_loading: bool,
    test_modes: TestModes,
}

/// What tests make the engine do.
#[derive(Default)]
struct TestModes {
    runs_twice: bool,
    skips_revisions: bool,
}

impl Redis {
    /// Opens the board at an address, and creates it if it does not exist.
    pub fn open(address: Address, options: &RedisOptions) -> Result<Redis> {
        let (inner, opened) = Opened::by(address, options, Creating::IfMissing)?;
        Ok(Redis::new(inner, opened))
    }

    /// Opens the board at an address, if it exists. A user without the right to write can read it.
    pub fn open_existing(address: Address, options: &RedisOptions) -> Result<Option<Redis>> {
        let (inner, opened) = Opened::by(address, options, Creating::Never)?;
        Ok((!opened.board.is_empty()).then(|| Redis::new(inner, opened)))
    }

    /// Opens the board at an address to read it, if it exists.
    pub fn open_to_read(address: Address, options: &RedisOptions) -> Result<Option<Redis>> {
        let store = Redis::open_existing(address, options)?;
        Ok(store.map(|store| Redis { reads_only: true, ..store }))
    }

    fn new(inner: Inner, opened: Opened) -> Redis {
        let Opened { board, is_new, keeps_log, denied } = opened;
        let inner = Arc::new(Inner { board, ..inner });
        Redis { inner, is_new, reads_only: false, keeps_log, denied }
    }

    /// Whether this call created the board.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Whether the board is never written.
    pub fn is_read_only(&self) -> bool {
        self.reads_only || self.denied.is_some()
    }

    /// Whether the server writes each change to a file. Otherwise it may lose changes that were acknowledged when it
    /// stops.
    pub fn keeps_log(&self) -> bool {
        self.keeps_log
    }

    /// The id of the board, which is another one if a board is created again under the same name.
    pub fn id(&self) -> &str {
        &self.inner.board
    }

    /// The board's clock: that of the server.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.inner.fixed_clock.clone().unwrap_or_else(|| self.inner.pool.clock.clone())
    }

    /// For tests: every commit loses its first run, as if another writer had been faster, and every read runs again, as if
    /// it had announced more.
    #[must_use]
    pub fn running_everything_twice(self) -> Redis {
        self.changed(|inner| inner.test_modes.runs_twice = true)
    }

    /// For tests: every commit skips ids, as the first one after a restart of the server does.
    #[must_use]
    pub fn skipping_revisions(self) -> Redis {
        self.changed(|inner| inner.test_modes.skips_revisions = true)
    }

    fn changed(mut self, change: impl FnOnce(&mut Inner)) -> Redis {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            change(inner);
        }
        self
    }
}

/// What is known of a board after it was opened.
struct Opened {
    /// Its id; empty if there is none.
    board: String,
    is_new: bool,
    keeps_log: bool,
    /// A command of every commit that the server denies this user.
    denied: Option<String>,
}

/// The first denied command of a read and of a commit, in the words of errors.
fn denied_commands(reply: Option<&Reply>) -> (Option<String>, Option<String>) {
    let Some(Reply::List(commands)) = reply else { return (None, None) };
    let text = |place: usize| match commands.get(place) {
        Some(Reply::Bytes(command)) if !command.is_empty() => {
            Some(format!("the command {}", String::from_utf8_lossy(command)))
        }
        _ => None,
    };
    (text(0), text(1))
}

/// What happens to a board that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Creating {
    Never,
    IfMissing,
    /// It is created to be loaded. One that exists is refused.
    ToLoad,
    /// The same, and one whose loading was interrupted is replaced.
    ToLoadAgain,
}

impl Opened {
    fn by(address: Address, options: &RedisOptions, creating: Creating) -> Result<(Inner, Opened)> {
        let inner = Inner {
            keys: BoardKeys::of(address.board()),
            pool: Pool::new(address, options.reply_limit),
            board: String::new(),
            patience: options.patience,
            fixed_clock: options.fixed_clock.clone(),
            listening: Listening::default(),
            test_modes: TestModes::default(),
            is_loading: creating == Creating::ToLoad || creating == Creating::ToLoadAgain,
        };
        let opened = inner.lease(options.patience).retry(|lease| inner.open_on(lease, creating))?;
        Ok((inner, opened))
    }
}

impl Inner {
    fn open_on(&self, lease: &mut Lease<'_>, creating: Creating) -> Result<Opened, Trouble> {
        let mut request = Request::default();
        request.command(&[b"HGET", &self.keys.rows, layout::STATE]).command(&[
            b"INFO",
            b"memory",
            b"persistence",
        ]);
        script::RIGHTS.call(&mut request, &self.keys, &[]);
        lease.connection()?;
        let replies = match self.replies(lease, &request) {
            Err(Trouble::UnknownScript) => {
                self.load_scripts(lease)?;
                self.replies(lease, &request)?
            }
            replies => replies?,
        };
        let (read, write) = denied_commands(replies.get(2));
        // A board that is only read needs no right to write it.
        if let Some(command) = read.or_else(|| write.clone().filter(|_| creating != Creating::Never)) {
            return Err(Trouble::Final(faults::denies(&self.pool.address, &command)));
        }
        let info = if let Some(Reply::Bytes(info)) = replies.get(1) { &info[..] } else { b"" };
        let info = String::from_utf8_lossy(info);
        // A managed server may hide its settings.
        let has_limit = info_field(&info, "maxmemory").is_some_and(|limit| limit != "0");
        if let Some(policy) =
            info_field(&info, "maxmemory_policy").filter(|policy| policy.starts_with("allkeys"))
            && has_limit
        {
            return Err(Trouble::Final(faults::evicts(&self.pool.address, policy)));
        }
        let keeps_log = info_field(&info, "aof_enabled") != Some("0");
        let (state, is_new) = match replies.into_iter().next() {
            Some(Reply::Nil) if creating == Creating::Never => (None, false),
            Some(Reply::Nil) => self.create_on(lease, creating)?,
            Some(Reply::Bytes(_)) if self.is_loading => self.create_on(lease, creating)?,
            Some(Reply::Bytes(state)) => (Some(state), false),
            _ => return Err(Trouble::Final(faults::odd_reply(&self.pool.address))),
        };
        let board = match state.map(|state| State::read(&state)).transpose() {
            Ok(Some(state)) if state.hold == Hold::Loading && !is_new => {
                return Err(Trouble::Final(faults::being_copied(&self.pool.address)));
            }
            Ok(Some(_)) if self.is_loading && !is_new => {
                return Err(Trouble::Final(faults::exists(&self.pool.address)));
            }
            Ok(state) => state.map(|state| state.board).unwrap_or_default(),
            Err(StateError::Newer) => return Err(Trouble::Final(faults::newer(&self.pool.address))),
            Err(StateError::Damaged) => return Err(Trouble::Final(faults::foreign(&self.pool.address))),
        };
        Ok(Opened { board, is_new, keeps_log, denied: write })
    }

    /// Creates the board. Returns its state, and whether this call created it.
    fn create_on(
        &self,
        lease: &mut Lease<'_>,
        creating: Creating,
    ) -> Result<(Option<Vec<u8>>, bool), Trouble> {
        let run = lease.connection()?.run.clone();
        let fixed_time = self.fixed_clock.as_ref().map(|clock| clock.now().millis().to_string());
        let fixed_time = fixed_time.unwrap_or_default();
        let id = Uuid::new_v4().simple().to_string();
        let version = if self.is_loading { layout::LOADING } else { layout::VERSION };
        let replaces = if creating == Creating::ToLoadAgain { layout::LOADING } else { "" };
        let arguments = [version, &id, &run, &fixed_time, replaces].map(str::as_bytes);
        let mut request = Request::default();
        script::CREATE.call(&mut request, &self.keys, &arguments);
        let replies = match self.replies(lease, &request) {
            Err(Trouble::UnknownScript) => {
                self.load_scripts(lease)?;
                self.replies(lease, &request)?
            }
            replies => replies?,
        };
        let Some(Reply::List(parts)) = replies.into_iter().next() else {
            return Err(Trouble::Final(faults::odd_reply(&self.pool.address)));
        };
        match &parts[..] {
            [Reply::Bytes(outcome), Reply::Bytes(state)] => Ok((Some(state.clone()), outcome == b"created")),
            [Reply::Bytes(outcome)] if outcome == b"foreign" => {
                Err(Trouble::Final(faults::foreign(&self.pool.address)))
            }
            _ => Err(Trouble::Final(faults::odd_reply(&self.pool.address))),
        }
    }

    /// One exchange whose replies are no errors.
    fn replies(&self, lease: &mut Lease<'_>, request: &Request) -> Result<Vec<Reply>, Trouble> {
        let replies = lease.exchange(request);
        let replies = replies.map_err(|broken| faults::of_connection(&self.pool.address, broken.error))?;
        match replies.iter().find(|reply| matches!(reply, Reply::Error(_))) {
            Some(Reply::Error(text)) => Err(faults::of_reply(&self.pool.address, text)),
            _ => Ok(replies),
        }
    }

    fn load_scripts(&self, lease: &mut Lease<'_>) -> Result<(), Trouble> {
        lease.connection()?;
        self.replies(lease, &script::load_all()).map(drop)
    }

    /// The process of the server that a commit names.
    fn run_of(&self, connection: &Connection) -> String {
        if self.test_modes.skips_revisions {
            Uuid::new_v4().simple().to_string()
        } else {
            connection.run.clone()
        }
    }

    fn state(&self) -> Result<State> {
        let mut request = Request::default();
        request.command(&[b"HGET", &self.keys.rows, layout::STATE]);
        let reply = self.lease(self.patience).retry(|lease| {
            lease.connection()?;
            self.replies(lease, &request)
        })?;
        match reply.first() {
            Some(Reply::Bytes(state)) => self.read_state(state),
            Some(Reply::Nil) => Err(faults::gone(&self.pool.address)),
            _ => Err(faults::odd_reply(&self.pool.address)),
        }
    }

    fn revision(&self) -> Result<Revision> {
        self.state().map(|state| state.revision)
    }

    /// The memory of each key, by an estimate of the server.
    fn memory(&self) -> Result<Vec<(&'static str, u64)>> {
        let names = ["rows", "indexes", "events"];
        let mut request = Request::default();
        for key in self.keys.all() {
            request.command(&[b"MEMORY", b"USAGE", key, b"SAMPLES", b"20"]);
        }
        let replies = self.lease(self.patience).retry(|lease| {
            lease.connection()?;
            lease.exchange(&request).map_err(|broken| faults::of_connection(&self.pool.address, broken.error))
        })?;
        // A user of the server need not have the right to know it.
        let size =
            |reply: &Reply| if let Reply::Integer(size) = reply { u64::try_from(*size).ok() } else { None };
        Ok(names.into_iter().zip(replies.iter().map(|reply| size(reply).unwrap_or(0))).collect())
    }
}

impl Store for Redis {
    fn read(&self, prefetch: &[Prefetch<'_>], f: &mut dyn FnMut(&dyn Tx) -> Result<()>) -> Result<()> {
        let (mut lease, mut wants) = (self.inner.lease(self.inner.patience), Vec::new());
        for _ in 0..MAX_READS {
            let view = View::new(&self.inner, lease, prefetch, wants, true)?;
            if self.inner.test_modes.runs_twice {
                // Only the last run counts, also if this one fails.
                let _ = f(&view);
            }
            let outcome = f(&view);
            if !view.has_changed.get() {
                return outcome;
            }
            (lease, wants) = view.into_parts();
        }
        Err(Refusal::new(Code::Conflict, "the board kept changing while it was read").into())
    }

    fn commit(
        &self,
        commit: &Commit<'_>,
        f: &mut dyn FnMut(&dyn Tx) -> Result<Changes>,
    ) -> Result<Committed> {
        if self.reads_only {
            let message = format!("{} was opened to be read", self.inner.pool.address);
            return Err(Refusal::new(Code::ReadOnly, message).into());
        }
        if let Some(command) = &self.denied {
            return Err(faults::denies(&self.inner.pool.address, command));
        }
        self.inner.commit(commit, f)
    }

    fn wait(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        self.inner.wait(after, timeout)
    }

    fn check_still_there(&self) -> Result<()> {
        self.inner.state().map(drop)
    }

    fn size(&self) -> Result<u64> {
        Ok(self.inner.memory()?.into_iter().map(|(_, size)| size).sum())
    }

    fn scrub(&self) -> Result<Vec<String>> {
        self.inner.scrub()
    }

    fn dump(&self, to: &mut dyn Recipient) -> Result<()> {
        self.inner.dump(to)
    }

    fn seal(&self, moved_to: &str) -> Result<bool> {
        self.inner.set_hold(layout::VERSION, layout::SEALED, moved_to)
    }

    fn unseal(&self) -> Result<bool> {
        self.inner.set_hold(layout::SEALED, layout::VERSION, "")
    }

    fn is_shared_by_machines(&self) -> bool {
        true
    }

    fn space_usage(&self) -> Result<Vec<SpaceUsage>> {
        let mut usage = self.inner.memory()?;
        usage.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
        Ok(usage.into_iter().map(|(name, bytes)| SpaceUsage { what: name.to_owned(), bytes }).collect())
    }
}
