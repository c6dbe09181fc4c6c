//! The Redis engine: a board on a server, for agents on several machines.
//!
//! A run reads what it has announced in one round trip, from one state of the board (`fetch.rs`, `view.rs`); a large
//! range is read in parts (`parts.rs`). One script validates these reads and applies the changes, rows, indexes and
//! events together, in another round trip (`commit.rs`, `scripts/commit.lua`). A process that saw these rows before
//! skips the read (`last_seen.rs`). `layout.rs` has the three keys of a board. The time is that of the server
//! (`clock.rs`). Waiting threads share one connection that blocks on the event log (`listener.rs`).
//!
//! - Every request has a deadline, and no layer below `ServerCall::retry` (`pool.rs`) repeats one.
//! - A connection is not used again after a failure or an unexpected reply (`connection.rs`).
//! - A commit whose answer was lost is sent again with the same id, and never applied twice (`commit.rs`).
//! - After a restart or a failover no revision is assigned twice, although the last ones may be lost: the first commit
//!   on another process of the server skips ids (`docs/decisions/0021`).
//! - A commit never creates a board. One that is missing, or another one of the same name, is reported.
//!
//! Values are opaque to the server, and no key or pattern of a user reaches it as anything but an argument.

mod address;
mod arguments;
mod bytes;
mod clock;
mod commit;
mod connection;
mod dump;
mod faults;
mod fetch;
mod hold;
mod last_seen;
mod layout;
mod listener;
mod load;
mod parts;
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
use std::thread;
use std::time::{Duration, Instant};

use uuid::Uuid;

use self::address::Server;
pub use self::address::{Address, DEFAULT_BOARD, SCHEMES};
pub use self::clock::ServerClock;
use self::connection::{Connection, info_field};
use self::faults::{ServerError, Suspicion};
use self::last_seen::LastSeen;
use self::layout::{BoardKeys, State, StateError};
use self::listener::Listener;
pub use self::load::LoadingKeys;
pub use self::pool::WaitObserver;
use self::pool::{Pool, ServerCall};
use self::resp::{Reply, Request};
use self::socket::Socket;
use self::view::View;
use super::transfer::{Hold, Recipient};
use super::{Changes, Commit, Committed, Prefetch, Store, Tx};
use crate::clock::Clock;
use crate::error::{Code, Refusal, Result};
use crate::revision::Revision;
use crate::status::SpaceUsage;

/// How often a read starts again at once because the board changed between its parts. Then it pauses first: a process
/// that has just slept is less likely to be interrupted between two requests.
const READS_WITHOUT_PAUSE: usize = 10;

/// How long that pause is at most.
const READ_PAUSE: Duration = Duration::from_millis(4);

/// How long a call that opens a board waits for a server whose address seems to be wrong.
const MISTAKE_LIMIT: Duration = Duration::from_secs(2);

/// How a board on a server is opened.
#[derive(Clone)]
pub struct RedisOptions {
    /// How long a call waits for the server, with all its attempts. A commit that loses to others takes longer.
    pub patience: Duration,
    /// How long one reply of the server may take.
    pub reply_limit: Duration,
    /// What is told when a call has waited for the server for a second.
    pub on_wait: Option<WaitObserver>,
    /// For tests: the clock of the board, instead of the server's.
    pub fixed_clock: Option<Arc<dyn Clock>>,
    /// The id of the board ([`Redis::id`]), if it is known. If the server has no board or another one, it is refused,
    /// and none is created.
    pub board_id: Option<String>,
}

impl Default for RedisOptions {
    fn default() -> RedisOptions {
        RedisOptions {
            patience: Duration::from_secs(15),
            reply_limit: Duration::from_secs(5),
            on_wait: None,
            fixed_clock: None,
            board_id: None,
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
    denied_erasure: Option<String>,
}

/// What the store and its listener share.
struct Inner {
    pool: Pool,
    keys: BoardKeys,
    /// The random id of the board. Until it is open, the expected one, or empty.
    board: String,
    patience: Duration,
    fixed_clock: Option<Arc<dyn Clock>>,
    listener: Listener,
    last_seen: LastSeen,
    /// Whether the board is being loaded by this value.
    is_loading: bool,
    test_modes: TestModes,
}

/// What tests make the engine do.
#[derive(Default)]
struct TestModes {
    runs_twice: bool,
    skips_revisions: bool,
    reads_first: bool,
    /// How many rows of a range are read at once.
    rows_at_once: Option<usize>,
}

impl Redis {
    /// Opens the board at an address, and creates it if it does not exist.
    pub fn open(address: Address, options: &RedisOptions) -> Result<Redis> {
        let (inner, opened) = OpenedBoard::by(address, options, IfMissing::Create)?;
        Ok(Redis::new(inner, opened))
    }

    /// Opens the board at an address, if it exists. A user without the right to write can read it.
    pub fn open_existing(address: Address, options: &RedisOptions) -> Result<Option<Redis>> {
        let (inner, opened) = OpenedBoard::by(address, options, IfMissing::Report)?;
        Ok((!opened.board.is_empty()).then(|| Redis::new(inner, opened)))
    }

    /// Opens the board at an address to read it, if it exists.
    pub fn open_to_read(address: Address, options: &RedisOptions) -> Result<Option<Redis>> {
        let store = Redis::open_existing(address, options)?;
        Ok(store.map(|store| Redis { reads_only: true, ..store }))
    }

    fn new(inner: Inner, opened: OpenedBoard) -> Redis {
        let OpenedBoard { board, is_new, keeps_log, denied, denied_erasure } = opened;
        let inner = Arc::new(Inner { board, ..inner });
        Redis { inner, is_new, reads_only: false, keeps_log, denied, denied_erasure }
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

    /// For tests: every commit loses its first run, as if another writer had been faster, and every read runs again, as
    /// if it had announced more.
    #[must_use]
    pub fn running_everything_twice(self) -> Redis {
        self.changed(|inner| inner.test_modes.runs_twice = true)
    }

    /// For tests: every commit skips ids, as the first one after a restart of the server does.
    #[must_use]
    pub fn skipping_revisions(self) -> Redis {
        self.changed(|inner| inner.test_modes.skips_revisions = true)
    }

    /// For tests and measurements: every commit begins with a read, as in a process that has just started.
    #[must_use]
    pub fn reading_first(self) -> Redis {
        self.changed(|inner| inner.test_modes.reads_first = true)
    }

    /// Refuses if the server denies this user a command of every commit.
    fn check_right_to_write(&self) -> Result<()> {
        let denied = self.denied.as_ref().map(|command| faults::denies(&self.inner.pool.address, command));
        denied.map_or(Ok(()), Err)
    }

    fn changed(mut self, change: impl FnOnce(&mut Inner)) -> Redis {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            change(inner);
        }
        self
    }
}

/// What is known of a board after it was opened.
struct OpenedBoard {
    /// Its id; empty if there is none.
    board: String,
    is_new: bool,
    keeps_log: bool,
    /// A command of every commit that the server denies this user.
    denied: Option<String>,
    /// A command of an erasure that it denies.
    denied_erasure: Option<String>,
}

/// The first denied command of a read, of a commit and of an erasure, in the words of errors.
fn denied_commands(reply: Option<&Reply>) -> [Option<String>; 3] {
    let Some(Reply::List(commands)) = reply else { return [None, None, None] };
    let text = |number: usize| match commands.get(number) {
        Some(Reply::Bytes(command)) if !command.is_empty() => {
            Some(format!("the command {}", String::from_utf8_lossy(command)))
        }
        _ => None,
    };
    [0, 1, 2].map(text)
}

/// What happens to a board that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IfMissing {
    Report,
    Create,
    /// It is created to be loaded. One that exists is refused.
    CreateLoading,
    /// The same, and one whose loading was interrupted is replaced.
    ReplaceLoading,
}

impl OpenedBoard {
    fn by(address: Address, options: &RedisOptions, if_missing: IfMissing) -> Result<(Inner, OpenedBoard)> {
        let inner = Inner {
            keys: BoardKeys::of(address.board()),
            pool: Pool::new(address, options.reply_limit).observed_by(options.on_wait.clone()),
            board: options.board_id.clone().unwrap_or_default(),
            patience: options.patience,
            fixed_clock: options.fixed_clock.clone(),
            listener: Listener::default(),
            last_seen: LastSeen::default(),
            test_modes: TestModes::default(),
            is_loading: if_missing == IfMissing::CreateLoading || if_missing == IfMissing::ReplaceLoading,
        };
        let (started, mut is_tls_checked) = (Instant::now(), false);
        let opened = inner.call(options.patience).retry(|call| {
            let opened = inner.open_on(call, if_missing);
            opened.map_err(|error| inner.consider_mistake(error, started, &mut is_tls_checked))
        })?;
        Ok((inner, opened))
    }
}

impl Inner {
    /// Does not wait long for a server that is probably not the one of the address. A server that restarts refuses
    /// connections, which is no sign of a mistake.
    fn consider_mistake(
        &self,
        error: ServerError,
        started: Instant,
        is_tls_checked: &mut bool,
    ) -> ServerError {
        let address = &self.pool.address;
        match (error.suspicion(), &address.server) {
            // Sentinels may name a replica until a failover has ended.
            (Some(Suspicion::Location), Server::Tcp { .. } | Server::Unix(_))
                if started.elapsed() >= MISTAKE_LIMIT =>
            {
                error.made_final()
            }
            (Some(Suspicion::Tls), Server::Tcp { host, tls }) if !std::mem::replace(is_tls_checked, true) => {
                let limit = self.pool.limit(started + self.patience);
                match tls {
                    true if Socket::answers_without_tls(host, limit) => faults::has_no_tls(address),
                    false if Socket::expects_tls(host, limit) => faults::needs_tls(address),
                    _ => error,
                }
            }
            _ => error,
        }
    }

    fn open_on(&self, call: &mut ServerCall<'_>, if_missing: IfMissing) -> Result<OpenedBoard, ServerError> {
        let mut request = Request::default();
        request.command(&[b"HGET", &self.keys.rows, layout::STATE]).command(&[
            b"INFO",
            b"memory",
            b"persistence",
        ]);
        let replicas = self.pool.address.replicas.to_string();
        script::RIGHTS.call(&mut request, &self.keys, &[replicas.as_bytes()]);
        let replies = self.replies_of_script(call, &request)?;
        let [read, write, erasure] = denied_commands(replies.get(2));
        // A board that is only read needs no right to write it.
        if let Some(command) = read.or_else(|| write.clone().filter(|_| if_missing != IfMissing::Report)) {
            return Err(ServerError::Final(faults::denies(&self.pool.address, &command)));
        }
        let info = if let Some(Reply::Bytes(info)) = replies.get(1) { &info[..] } else { b"" };
        let info = String::from_utf8_lossy(info);
        // A managed server may hide its settings.
        let has_limit = info_field(&info, "maxmemory").is_some_and(|limit| limit != "0");
        if let Some(policy) =
            info_field(&info, "maxmemory_policy").filter(|policy| policy.starts_with("allkeys"))
            && has_limit
        {
            return Err(ServerError::Final(faults::evicts(&self.pool.address, policy)));
        }
        let keeps_log = info_field(&info, "aof_enabled") != Some("0");
        let (state, is_new) = match replies.into_iter().next() {
            Some(Reply::Nil) if !self.board.is_empty() => {
                return Err(ServerError::Final(faults::lost_board(&self.pool.address)));
            }
            Some(Reply::Nil) if if_missing == IfMissing::Report => (None, false),
            Some(Reply::Nil) => self.create_on(call, if_missing)?,
            Some(Reply::Bytes(_)) if self.is_loading => self.create_on(call, if_missing)?,
            Some(Reply::Bytes(state)) => (Some(state), false),
            _ => return Err(ServerError::Final(faults::odd_reply(&self.pool.address))),
        };
        let board = match state.map(|state| State::read(&state)).transpose() {
            Ok(Some(state)) if state.hold == Hold::Loading && !is_new => {
                return Err(ServerError::Final(faults::being_copied(&self.pool.address)));
            }
            Ok(Some(_)) if self.is_loading && !is_new => {
                return Err(ServerError::Final(faults::exists(&self.pool.address)));
            }
            Ok(Some(state)) if !self.board.is_empty() && state.board != self.board => {
                return Err(ServerError::Final(faults::another_board(&self.pool.address)));
            }
            Ok(state) => state.map(|state| state.board).unwrap_or_default(),
            Err(StateError::Newer) => return Err(ServerError::Final(faults::newer(&self.pool.address))),
            Err(StateError::Foreign) => return Err(ServerError::Final(faults::foreign(&self.pool.address))),
            Err(StateError::Damaged) => {
                return Err(ServerError::Final(faults::damaged(&self.pool.address, faults::NO_STATE)));
            }
        };
        Ok(OpenedBoard { board, is_new, keeps_log, denied: write, denied_erasure: erasure })
    }

    /// Creates the board. Returns its state, and whether this call created it.
    fn create_on(
        &self,
        call: &mut ServerCall<'_>,
        if_missing: IfMissing,
    ) -> Result<(Option<Vec<u8>>, bool), ServerError> {
        let run = call.connection()?.run.clone();
        let fixed_time = self.fixed_clock.as_ref().map(|clock| clock.now().millis().to_string());
        let fixed_time = fixed_time.unwrap_or_default();
        let id = Uuid::new_v4().simple().to_string();
        let version = if self.is_loading { layout::LOADING } else { layout::VERSION };
        let replaces = if if_missing == IfMissing::ReplaceLoading { layout::LOADING } else { "" };
        let arguments = [version, &id, &run, &fixed_time, replaces].map(str::as_bytes);
        let mut request = Request::default();
        script::CREATE.call(&mut request, &self.keys, &arguments);
        let replies = self.replies_of_script(call, &request)?;
        let Some(Reply::List(parts)) = replies.into_iter().next() else {
            return Err(ServerError::Final(faults::odd_reply(&self.pool.address)));
        };
        match &parts[..] {
            [Reply::Bytes(outcome), Reply::Bytes(state)] => Ok((Some(state.clone()), outcome == b"created")),
            [Reply::Bytes(outcome)] if outcome == b"foreign" => {
                Err(ServerError::Final(faults::foreign(&self.pool.address)))
            }
            [Reply::Bytes(outcome)] if outcome == b"leftover" => {
                Err(ServerError::Final(faults::leftover(&self.pool.address)))
            }
            _ => Err(ServerError::Final(faults::odd_reply(&self.pool.address))),
        }
    }

    /// One exchange whose replies are no errors.
    fn replies(&self, call: &mut ServerCall<'_>, request: &Request) -> Result<Vec<Reply>, ServerError> {
        let replies = call.exchange(request);
        let replies = replies.map_err(|broken| faults::of_connection(&self.pool.address, broken.error))?;
        match replies.iter().find(|reply| matches!(reply, Reply::Error(_))) {
            Some(Reply::Error(text)) => Err(faults::of_reply(&self.pool.address, text)),
            _ => Ok(replies),
        }
    }

    /// The same for a request with a script, which is loaded first if the server does not have it.
    fn replies_of_script(
        &self,
        call: &mut ServerCall<'_>,
        request: &Request,
    ) -> Result<Vec<Reply>, ServerError> {
        call.connection()?;
        match self.replies(call, request) {
            Err(ServerError::UnknownScript) => {
                self.load_scripts(call)?;
                self.replies(call, request)
            }
            replies => replies,
        }
    }

    fn load_scripts(&self, call: &mut ServerCall<'_>) -> Result<(), ServerError> {
        call.connection()?;
        self.replies(call, &script::load_all()).map(drop)
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
        let reply = self.call(self.patience).retry(|call| {
            call.connection()?;
            self.replies(call, &request)
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
        let replies = self.call(self.patience).retry(|call| {
            call.connection()?;
            call.exchange(&request).map_err(|broken| faults::of_connection(&self.pool.address, broken.error))
        })?;
        // A user of the server need not have the right to know it.
        let size =
            |reply: &Reply| if let Reply::Integer(size) = reply { u64::try_from(*size).ok() } else { None };
        Ok(names.into_iter().zip(replies.iter().map(|reply| size(reply).unwrap_or(0))).collect())
    }
}

impl Store for Redis {
    fn read(&self, prefetch: &[Prefetch<'_>], f: &mut dyn FnMut(&dyn Tx) -> Result<()>) -> Result<()> {
        let (mut call, mut wants) = (self.inner.call(self.inner.patience), Vec::new());
        for run in 0.. {
            if run > READS_WITHOUT_PAUSE {
                thread::sleep(pool::jitter(READ_PAUSE));
            }
            let view = View::new(&self.inner, call, prefetch, wants, true)?;
            if self.inner.test_modes.runs_twice {
                // Only the last run counts, also if this one fails.
                let _ = f(&view);
            }
            let outcome = f(&view);
            if !view.has_changed.get() {
                return outcome;
            }
            (call, wants) = view.into_parts();
            self.inner.renew(&mut call);
            if Instant::now() >= call.deadline {
                break;
            }
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
        self.check_right_to_write()?;
        let Some(command) = &self.denied_erasure else { return self.inner.commit(commit, f) };
        self.inner.commit(commit, &mut |tx| {
            let changes = f(tx)?;
            if changes.erase.is_empty() {
                Ok(changes)
            } else {
                Err(faults::denies(&self.inner.pool.address, command))
            }
        })
    }

    fn wait(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        self.inner.wait(after, timeout, &[]).map(|(revision, _)| revision)
    }

    fn wait_for_events(
        &self,
        after: Revision,
        timeout: Duration,
        prefetch: &[Prefetch<'_>],
        f: &mut dyn FnMut(&dyn Tx) -> Result<()>,
    ) -> Result<Revision> {
        let wants = listener::wants_of_wait(after, prefetch)?;
        let (revision, news) = self.inner.wait(after, timeout, &wants)?;
        if let Some(answers) = news {
            let call = self.inner.call(self.inner.patience);
            let view = View::of(&self.inner, call, answers, wants, true);
            let outcome = f(&view);
            if view.has_changed.get() || self.inner.test_modes.runs_twice {
                drop(view);
                return self.read(prefetch, f).map(|()| revision);
            }
            outcome?;
        }
        Ok(revision)
    }

    fn check_still_there(&self) -> Result<()> {
        self.inner.state().map(drop)
    }

    fn always_checks_still_there(&self) -> bool {
        true
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
        self.check_right_to_write()?;
        self.inner.set_hold("seal", layout::VERSION, layout::SEALED, moved_to)
    }

    fn sealed(&self) -> Result<Option<String>> {
        self.inner.sealed()
    }

    fn unseal(&self) -> Result<bool> {
        self.check_right_to_write()?;
        self.inner.set_hold("unseal", layout::SEALED, layout::VERSION, "")
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
