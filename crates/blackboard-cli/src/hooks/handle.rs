//! Handles a hook call on the board.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use blackboard::agent::{Agent, AgentStatus, CheckIn, Register, Registered};
use blackboard::brief::Brief;
use blackboard::clock::{Clock as _, SystemClock};
use blackboard::file::{Edited, FileConflict};
use blackboard::id::session_id_from_hint;
use blackboard::search::IndexLocation;
use blackboard::{Board, Code, Error, Refusal, Result};

use super::deadline::Deadline;
use super::files::Files;
use super::log::HookLog;
use super::maintenance;
use super::messages;
use super::request::{HookEvent, HookRequest, ToolCall};
use crate::config::{Config, FileGuard};
use crate::context::Context;
use crate::engine::{Engine, HookEnd, Opening};
use crate::environment::Environment;
use crate::identity;
use crate::location;
use crate::notify::Notifier;
use crate::open::ResolvedBoard;
use crate::platforms::{Platform, Reply};
use crate::quota::collect::UsageCall;
use crate::quota::{LedgerLocation, OwnBoard, QuotaReader, notices, release_after_hook};
use crate::unreadable::{UnreadableRows, sentences};

/// How long after its brief a session gets no second one: a platform may call twice for one start.
const TOLD_JUST_NOW: Duration = Duration::from_secs(10);

/// How long after the end of a session a platform may still report a tool call that was running then.
const LATE: Duration = Duration::from_mins(1);

/// How long a hook waits for the ledger of tokens.
const QUOTA_WAIT: Duration = Duration::from_millis(50);

/// The answer of a hook, and its work after the answer.
pub struct HookOutcome {
    /// The reply to the agent.
    pub reply: Reply,
    /// Work that can wait until the reply is sent.
    pub afterwards: Box<dyn FnOnce()>,
}

/// One call, with everything that it needs.
struct HookHandler<'a> {
    platform: &'a Platform,
    request: &'a HookRequest,
    context: &'a Context,
    directory: Option<PathBuf>,
    board: Board,
    config: Config,
    /// Where the search index of the board is.
    index: IndexLocation,
    /// The home of boards, which has the notices of the token quota, if that is configured.
    notices: Option<PathBuf>,
    log: &'a Arc<HookLog>,
}

/// The board of a call.
struct HookBoard {
    board: Board,
    engine: Arc<dyn Engine>,
    config: Config,
    index: IndexLocation,
    notifier: Option<Arc<Notifier>>,
    notices: Option<PathBuf>,
}

/// The result of a call.
struct Handled {
    /// The reply to the agent.
    reply: Reply,
    /// Whether the board was changed.
    wrote: bool,
    /// What is recorded after the reply, which does not wait for the board.
    to_note: Vec<CheckIn>,
}

impl Handled {
    fn new(reply: Reply, wrote: bool) -> Handled {
        Handled { reply, wrote, to_note: Vec::new() }
    }
}

/// Handles a call.
pub fn handle(
    platform: &'static Platform,
    request: &HookRequest,
    input: &str,
    context: &Context,
    deadline: &Deadline,
) -> Result<HookOutcome> {
    let log = &deadline.log;
    let directory = directory(platform, request, context.environment());
    let starts_session = matches!(request.event, HookEvent::Started { .. });
    let unreadable = UnreadableRows::default();
    let opened = open(context, directory.as_deref(), starts_session, deadline, &unreadable)?;
    let HookBoard { board, engine, config, index, notifier, notices } = opened;
    let has_swept = Arc::new(AtomicBool::new(false));
    let board = match &config.quota {
        Some(_) => {
            let observed = Arc::clone(&has_swept);
            board.with_sweep_observer(move |swept| {
                observed.fetch_or(!swept.stale_agents.is_empty(), Ordering::Relaxed);
            })
        }
        None => board,
    };
    let handler = HookHandler { platform, request, context, directory, board, config, index, notices, log };
    let answer = handler.answer().map(|handled| handler.with_quota_notice(handled));
    engine.note_hook_end(answer.as_ref().map_or_else(HookEnd::Failed, |_| HookEnd::Answered));
    for sentence in sentences(&unreadable.list()) {
        log.write(&sentence);
    }
    let Handled { reply, mut wrote, to_note } = match answer {
        Ok(done) => done,
        Err(error) => {
            // It may have committed events before it failed.
            if let Some(notifier) = &notifier {
                notifier.start();
            }
            return Err(error);
        }
    };
    let session = handler.session();
    // Without a quota, this is all that a hook does about it.
    let ledger = LedgerLocation::of(&handler.config, || context.request_in(handler.directory.as_deref()));
    let usage = ledger
        .clone()
        .and_then(|ledger| UsageCall::new(platform, request, context, ledger, engine.name(), input));
    let ends_session = matches!(request.event, HookEvent::Ended | HookEvent::DelegateEnded);
    let board = handler.board;
    let log = Arc::clone(log);
    let afterwards = move || {
        for check_in in to_note {
            match board.agents().check_in(&check_in) {
                Ok(checked_in) => wrote |= checked_in.wrote,
                Err(error) => {
                    engine.note_hook_end(HookEnd::Failed(&error));
                    log.write(&format!("{}: {error}", error.code()));
                }
            }
        }
        // A call that wrote nothing follows shortly after one that did, and that one has swept the board.
        if wrote {
            board.try_sweep(Some(&session));
            maintenance::start_if_overdue(&*engine);
        }
        if let Some(error) = usage.and_then(|usage| usage.collect(&board).err()) {
            log.write(&format!("usage was not read: {error}"));
        }
        if let Some(ledger) = ledger.filter(|_| ends_session || has_swept.load(Ordering::Relaxed)) {
            let name = ledger.board_names().of(&engine.name());
            let own = OwnBoard { board: &board, name: &name, caller: None };
            if let Err(error) = release_after_hook(&ledger.within(QUOTA_WAIT), &own) {
                log.write(&format!("reserved tokens were not released: {}: {error}", error.code()));
            }
        }
        board.maintain();
        if let Some(notifier) = &notifier {
            notifier.start();
        }
        // The kernel closes the board faster than we could, with the same effect: nothing is left to write.
        std::mem::forget(board);
    };
    Ok(HookOutcome { reply, afterwards: Box::new(afterwards) })
}

/// Opens the board of a call that is made in this directory, and finds the hook log. Refuses a missing board. Its lists leave
/// out rows that cannot be read: one bad row of another agent must not stop the hooks of all.
fn open(
    context: &Context,
    directory: Option<&Path>,
    starts_session: bool,
    deadline: &Deadline,
    unreadable: &UnreadableRows,
) -> Result<HookBoard> {
    let request = context.request_in(directory);
    let location = location::find(&request).inspect_err(|_| deadline.log.locate(&request))?;
    deadline.log.locate_at(&location);
    // Commands that people run print warnings about the configuration.
    let resolved = context.resolve_at(&location, |_| {})?;
    deadline.uses(&resolved.engine);
    let opened = resolved.open(Opening::hook(starts_session, deadline.lock()))?;
    let board = opened.existing().ok_or_else(|| Refusal::new(Code::AgentNotFound, "no board here"))?;
    let index = resolved.search_index();
    let ResolvedBoard { engine, config, notifier, .. } = resolved;
    let notices = config.quota.as_ref().and(location.home);
    Ok(HookBoard { board: unreadable.observe(board), engine, config, index, notifier, notices })
}

/// The directory of a call: where the session was started, if the platform says so, otherwise its working directory. A
/// session that changes into another repository stays on its board.
fn directory(platform: &Platform, request: &HookRequest, environment: &Environment) -> Option<PathBuf> {
    let started = platform.exceptions.start_directory.and_then(|name| environment.variable(name));
    let started = started.map(PathBuf::from).filter(|path| path.is_absolute() && path.is_dir());
    // Without links, like a working directory.
    started
        .or_else(|| request.directory.clone())
        .and_then(|path| path.canonicalize().ok())
        .filter(|path| path.is_dir())
}

impl HookHandler<'_> {
    fn board(&self) -> &Board {
        &self.board
    }

    /// The session of the call: the same platform id always gets the same session.
    fn session(&self) -> String {
        self.session_of(&self.request.session, self.request.delegate.as_deref())
    }

    fn session_of(&self, session: &str, delegate: Option<&str>) -> String {
        session_id_from_hint(&self.platform.session_hint(session, delegate))
    }

    fn answer(&self) -> Result<Handled> {
        match &self.request.event {
            HookEvent::Nothing => Ok(Handled::new(Reply::Silence, false)),
            HookEvent::Started { forgot } => self.started(*forgot),
            HookEvent::Prompted => {
                self.check_in(AgentStatus::Active, None, self.platform.replies.takes_context_on_prompt)
            }
            HookEvent::Idle => self.check_in(AgentStatus::Idle, None, false),
            HookEvent::ToolUsed(used) => self.tool_used(used),
            HookEvent::AboutToEdit(used) => self.about_to_edit(used),
            HookEvent::AboutToDelegate { kind, task } => self.about_to_delegate(kind, task),
            HookEvent::DelegateStarted { kind } => self.delegate_started(kind.as_deref()),
            // Without an id it cannot be distinguished from its parent, which continues.
            HookEvent::DelegateEnded if self.delegation().is_none() => {
                Ok(Handled::new(Reply::Silence, false))
            }
            HookEvent::DelegateEnded | HookEvent::Ended => self.ended(),
        }
    }

    /// Adds the lines that the token quota has for the session, if the platform shows them to its agent.
    fn with_quota_notice(&self, handled: Handled) -> Handled {
        let Some(home) = &self.notices else { return handled };
        let is_shown = match &self.request.event {
            HookEvent::Started { .. } | HookEvent::ToolUsed(_) => true,
            HookEvent::Prompted => self.platform.replies.takes_context_on_prompt,
            HookEvent::Nothing
            | HookEvent::Idle
            | HookEvent::AboutToEdit(_)
            | HookEvent::AboutToDelegate { .. }
            | HookEvent::DelegateStarted { .. }
            | HookEvent::DelegateEnded
            | HookEvent::Ended => false,
        };
        if !is_shown {
            return handled;
        }
        match notices::take(home, &self.session()) {
            Some(lines) => Handled { reply: handled.reply.after(messages::quota_notice(&lines)), ..handled },
            None => handled,
        }
    }

    fn started(&self, forgot: bool) -> Result<Handled> {
        let Registered { agent, resumed, .. } = self.register()?;
        self.export(&agent.session_id);
        let pause = if forgot { Duration::ZERO } else { TOLD_JUST_NOW };
        let brief = self.brief_of(&agent.session_id)?;
        match self.board().record_brief(&brief, pause) {
            Ok(false) => return Ok(Handled::new(Reply::Silence, true)),
            Ok(true) => {}
            // A new session gets its brief with its next prompt or tool. A resumed one would not get it at all.
            Err(error) if resumed => self.log.write(&format!("{}: {error}", error.code())),
            Err(error) => return Err(error),
        }
        let session = Some(agent.session_id);
        Ok(Handled::new(Reply::Context { text: self.brief_text(&brief), session }, true))
    }

    /// Registers the session of the call, or the parent session of its subagent.
    fn register(&self) -> Result<Registered> {
        let (context, request) = (self.context, self.request);
        let agents = self.board().agents();
        let hint = self.platform.session_hint(&request.session, None);
        let location = context.request_in(self.directory.as_deref());
        // The parent may have started before hooks were set up, or may have ended.
        let parent = match &request.parent {
            Some(parent) => agents.get(&self.session_of(parent, None))?,
            None => None,
        };
        let parent = parent.filter(|parent| parent.status.is_live()).map(|parent| parent.session_id);
        // A resumed session keeps its name, and a delegate is named after its parent.
        let starts = matches!(request.event, HookEvent::Started { .. });
        let is_named = parent.is_some() || (!starts && agents.get(&session_id_from_hint(&hint))?.is_some());
        agents.register(&Register {
            configured_name: if is_named {
                None
            } else {
                identity::name(context.environment(), &self.config)
            },
            name_base: parent.is_none().then(|| identity::name_base(self.platform.id)),
            project: identity::project(self.board(), &location)?,
            session_hint: Some(hint),
            pid: context.agent_pid(None)?,
            shares_process: self.platform.process.hosts_many || parent.is_some(),
            work: request.task.clone().filter(|_| parent.is_some()),
            parent,
            ..Register::default()
        })
    }

    /// The session hints of a subagent and its parent, if the call is about one: a part of its parent's session, or its
    /// own session.
    fn delegation(&self) -> Option<(String, String)> {
        let HookRequest { session, delegate, parent, .. } = self.request;
        let (delegate, parent) = match (delegate, parent) {
            (Some(delegate), _) => (Some(delegate.as_str()), session),
            (None, parent) => (None, parent.as_ref()?),
        };
        Some((self.platform.session_hint(session, delegate), self.platform.session_hint(parent, None)))
    }

    /// Stores the task of a delegate: when the delegate starts, its platform names only its kind.
    fn about_to_delegate(&self, kind: &str, task: &str) -> Result<Handled> {
        let session = self.session_of(&self.request.session, None);
        self.board().agents().announce_task(&session, kind, task)?;
        Ok(Handled::new(Reply::Silence, true))
    }

    fn delegate_started(&self, kind: Option<&str>) -> Result<Handled> {
        let Some((_, parent)) = self.delegation() else {
            return Ok(Handled::new(Reply::Silence, false));
        };
        let announced = || {
            let taken =
                self.board().agents().take_task(&session_id_from_hint(&parent), kind.unwrap_or_default());
            // A delegate without its task is better than none.
            taken.unwrap_or_else(|error| {
                self.log.write(&format!("{}: {error}", error.code()));
                None
            })
        };
        let task = self.request.task.clone().or_else(announced).or_else(|| kind.map(str::to_owned));
        let session = self.register_again(task.as_deref())?.agent.session_id;
        Ok(Handled::new(self.brief(&session)?, true))
    }

    /// Registers the session or the subagent of the call.
    fn register_again(&self, task: Option<&str>) -> Result<Registered> {
        let Some((delegate, parent)) = self.delegation() else { return self.register() };
        let parent = session_id_from_hint(&parent);
        match self.board().agents().get(&parent)? {
            Some(agent) if agent.status.is_live() => {}
            // A subagent with its own session continues without a parent that is gone.
            _ if self.request.delegate.is_none() => return self.register(),
            Some(agent) if self.has_just_ended(&agent) => return Err(just_ended()),
            // The start of the parent was missed, and its delegate proves that it is alive.
            _ => drop(self.register()?),
        }
        self.board().agents().register(&Register {
            work: task.map(str::to_owned),
            session_hint: Some(delegate),
            pid: self.context.agent_pid(None)?,
            shares_process: true,
            parent: Some(parent),
            ..Register::default()
        })
    }

    /// The brief of a session. Updates start after it.
    fn brief(&self, session: &str) -> Result<Reply> {
        let brief = self.brief_of(session)?;
        self.board().record_brief(&brief, Duration::ZERO)?;
        Ok(Reply::Context { text: self.brief_text(&brief), session: Some(session.to_owned()) })
    }

    /// The brief of a session, with what is remembered. A memory that cannot be read does not change the rest.
    fn brief_of(&self, session: &str) -> Result<Brief> {
        let mut brief = self.board().brief(session)?;
        match self.board().memories().for_brief(&brief, &self.index) {
            Ok(memory) => brief.memory = memory,
            Err(error) => self.log.write(&format!("{}: {error}", error.code())),
        }
        Ok(brief)
    }

    fn brief_text(&self, brief: &Brief) -> String {
        messages::brief(brief, &self.quota_line().unwrap_or_default())
    }

    /// The line about the token quota, if it is configured. A ledger that cannot be read does not delay or change the rest.
    fn quota_line(&self) -> Option<String> {
        let request = || self.context.request_in(self.directory.as_deref());
        let reader = QuotaReader::of(&self.config, request)?.within(QUOTA_WAIT);
        match reader.status() {
            Ok(status) => Some(messages::quota_line(&status, SystemClock.now())),
            Err(error) => {
                self.log.write(&format!("the token quota is not shown: {}: {error}", error.code()));
                None
            }
        }
    }

    /// Lets the shell commands of a session know it, where the platform runs a script before each of them.
    fn export(&self, session: &str) {
        let Some(variable) = self.platform.exceptions.shell_script else { return };
        let file = self.context.environment().variable(variable).map(Path::new);
        let Some(file) = file.filter(|file| file.is_absolute()) else { return };
        // A session id is a UUID, and contains no character that is special in a shell.
        let line = format!("export BLACKBOARD_SESSION_ID='{session}'\n");
        let opened = OpenOptions::new().append(true).create(true).open(file);
        if let Err(error) = opened.and_then(|mut file| file.write_all(line.as_bytes())) {
            self.log.write(&format!("{variable} cannot be written: {}", error.kind()));
        }
    }

    fn ended(&self) -> Result<Handled> {
        let ended = self.board().agents().deregister(&self.session())?;
        Ok(Handled::new(Reply::Silence, !ended.already_ended))
    }

    /// Records a heartbeat and the edited files, and returns updates. A session whose start was missed, or that
    /// continues after its end, starts here.
    fn check_in(&self, status: AgentStatus, edited: Option<Edited>, listens: bool) -> Result<Handled> {
        let session = self.session();
        let check_in = CheckIn { status, edited, listens, ..CheckIn::of(&session) };
        let send = || self.board().agents().check_in(&check_in);
        let checked_in = match send() {
            Err(error) if self.starts_after(&error, &session)? => {
                self.register_again(None)?;
                send()?
            }
            checked_in => checked_in?,
        };
        if checked_in.is_new {
            return Ok(Handled::new(self.brief(&session)?, true));
        }
        let reply = if checked_in.updates.is_empty() {
            Reply::Silence
        } else {
            Reply::Context { text: messages::updates(&checked_in.updates, &session), session: None }
        };
        Ok(Handled::new(reply, checked_in.wrote))
    }

    /// Whether a session that could not check in starts with this call: it got a prompt, or used a tool that was not
    /// already running when it ended.
    fn starts_after(&self, error: &Error, session: &str) -> Result<bool> {
        let prompted = self.request.event == HookEvent::Prompted;
        let at_work = prompted || matches!(self.request.event, HookEvent::ToolUsed(_));
        Ok(at_work
            && match error.code() {
                Code::AgentNotFound => true,
                Code::SessionEnded if prompted => true,
                Code::SessionEnded => {
                    let agent = self.board().agents().get(session)?;
                    !agent.is_some_and(|agent| self.has_just_ended(&agent))
                }
                _ => false,
            })
    }

    /// Whether a session ended normally a moment ago.
    fn has_just_ended(&self, agent: &Agent) -> bool {
        let now = self.board().clock().now();
        agent.status == AgentStatus::Completed && agent.ended_at.is_some_and(|ended| now.since(ended) < LATE)
    }

    fn tool_used(&self, used: &ToolCall) -> Result<Handled> {
        let files = self.files(used);
        let guards =
            self.config.file_guard == FileGuard::Warn && !self.platform.replies.takes_context_before_tools;
        let others = if guards { files.others(self.board(), &self.session())? } else { Vec::new() };
        let mut edited = files.edited(used.tool.as_deref(), |_| true).into_iter();
        let mut done = self.check_in(AgentStatus::Active, edited.next(), true)?;
        // A call rarely edits files of two repositories.
        for edited in edited {
            done.wrote |= self.check_in(AgentStatus::Active, Some(edited), false)?.wrote;
        }
        if let Some(warning) = guards.then(|| warning(&others, &files, true)).flatten() {
            done.reply = done.reply.after(warning);
        }
        Ok(done)
    }

    fn about_to_edit(&self, used: &ToolCall) -> Result<Handled> {
        let guard = self.config.file_guard;
        let can_be_told = guard == FileGuard::Deny || self.platform.replies.takes_context_before_tools;
        if guard == FileGuard::Off || !can_be_told {
            return Ok(Handled::new(Reply::Silence, false));
        }
        // An edit that is not checked completely is denied: otherwise a large edit would bypass the file guard. The
        // denial comes before files are resolved, because a process that runs out of time allows the edit.
        if guard == FileGuard::Deny && Files::exceed_limits(used, &self.base()) {
            self.log.write(messages::NOT_CHECKED);
            return Ok(Handled::new(Reply::Deny(messages::unchecked_denial()), false));
        }
        let (files, session) = (self.files(used), self.session());
        if guard == FileGuard::Deny && files.has_unchecked {
            return Ok(Handled::new(Reply::Deny(messages::unchecked_denial()), false));
        }
        let others = files.others(self.board(), &session)?;
        if guard == FileGuard::Warn {
            let text = warning(&others, &files, false);
            let reply = text.map_or(Reply::Silence, |text| Reply::Context { text, session: None });
            return Ok(Handled::new(reply, false));
        }
        if others.is_empty() {
            return Ok(Handled::new(Reply::Silence, false));
        }
        // Only a session that is registered can be notified. Its next tool call or prompt registers this one.
        let is_registered = self.board().agents().get(&session)?.is_some_and(|agent| agent.status.is_live());
        // That the agent waits is recorded, but the answer does not depend on it.
        let wanted = files.edited(used.tool.as_deref(), |path| others.iter().any(|other| other.path == path));
        let to_note = wanted.into_iter().map(|edited| CheckIn {
            edited: Some(Edited { denied: true, ..edited }),
            listens: false,
            ..CheckIn::of(&session)
        });
        Ok(Handled {
            to_note: to_note.collect(),
            ..Handled::new(Reply::Deny(messages::deny_message(&others, is_registered)), false)
        })
    }

    fn files(&self, used: &ToolCall) -> Files {
        let files = Files::of(used, &self.base(), self.context);
        if files.has_unchecked {
            self.log.write(messages::NOT_CHECKED);
        }
        files
    }

    /// The directory at which relative paths of a call start.
    fn base(&self) -> PathBuf {
        self.request.directory.clone().or_else(|| self.directory.clone()).unwrap_or_default()
    }
}

/// The files to warn about: those that others hold, and those that were not checked.
fn warning(others: &[FileConflict], files: &Files, after: bool) -> Option<String> {
    let held = (!others.is_empty()).then(|| messages::warning(others, after));
    let unchecked = files.has_unchecked.then(messages::unchecked);
    let texts: Vec<String> = unchecked.into_iter().chain(held).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

fn just_ended() -> Error {
    Refusal::new(Code::SessionEnded, "the session has just ended").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::request::Payload;

    #[test]
    fn the_directory_in_which_a_session_was_started_comes_before_its_current_one() {
        let scratch = testkit::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let (started, current) = (root.join("started"), root.join("current"));
        for directory in [&started, &current] {
            std::fs::create_dir(directory).unwrap();
        }
        let input =
            serde_json::json!({"hook_event_name": "Stop", "session_id": "1", "cwd": current}).to_string();
        for (id, named, expected) in [
            ("claude", started.as_path(), &started),
            ("claude", Path::new("started"), &current),
            ("claude", &root.join("missing"), &current),
            ("codex", &started, &current),
        ] {
            let platform = Platform::find(id).unwrap();
            let request = platform.payload.read(&Payload::parse(&input).unwrap()).unwrap();
            let environment = Environment {
                platform_variables: vec![("CLAUDE_PROJECT_DIR", named.into())],
                ..Environment::default()
            };
            assert_eq!(
                directory(platform, &request, &environment).as_ref(),
                Some(expected),
                "{id} {named:?}"
            );
        }
    }
}
