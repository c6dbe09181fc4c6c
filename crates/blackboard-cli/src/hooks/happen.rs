//! What happens on the board when a platform calls.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use blackboard::agent::{Agent, AgentStatus, Attendance, Register, Registered};
use blackboard::file::{Edited, Other};
use blackboard::id::session_of_hint;
use blackboard::text::visible;
use blackboard::{Board, Code, Error, Refusal, Result};

use super::call::{Call, Happening, Use};
use super::files::Files;
use super::place::{self, Place};
use super::{Deadline, LogFile, Platform, Reply, words};
use crate::config::FileGuard;
use crate::context::Context;
use crate::identity;
use crate::session::session_hint;

/// How long after a session was told everything it is not told again: one platform may call twice for one start.
const TOLD_JUST_NOW: Duration = Duration::from_secs(10);

/// How long after the end of a session the use of a tool may still be heard of that was under way then.
const LATE: Duration = Duration::from_mins(1);

/// What came of a call.
pub struct Happened {
    /// What the agent is told.
    pub reply: Reply,
    /// What can wait until that was said.
    pub afterwards: Box<dyn FnOnce()>,
}

/// One call, and everything that is known about it.
struct Hook<'a> {
    platform: &'a Platform,
    call: &'a Call,
    context: &'a Context,
    directory: Option<PathBuf>,
    place: Place,
    log: &'a Arc<LogFile>,
}

/// What was done for a call.
struct Done {
    /// What the agent is told.
    reply: Reply,
    /// Whether the board was changed.
    wrote: bool,
    /// What is worth noting once the agent was told: its answer does not wait for the board.
    to_note: Vec<Attendance>,
}

impl Done {
    fn new(reply: Reply, wrote: bool) -> Done {
        Done { reply, wrote, to_note: Vec::new() }
    }
}

/// Does what a call asks for.
pub fn happen(platform: &Platform, call: &Call, context: &Context, deadline: &Deadline) -> Result<Happened> {
    let log = &deadline.log;
    let directory = place::directory(platform, call, context.environment());
    let create = matches!(call.happening, Happening::Started { .. });
    let place = place::open(context, directory.as_deref(), create, deadline.lock(), log)?;
    let hook = Hook { platform, call, context, directory, place, log };
    let Done { reply, mut wrote, to_note } = hook.answer()?;
    let board = hook.place.board;
    let session = session_of(platform, call);
    let log = Arc::clone(log);
    let afterwards = move || {
        for attendance in to_note {
            match board.agents().attend(&attendance) {
                Ok(attended) => wrote |= attended.wrote,
                Err(error) => log.write(&format!("{}: {error}", error.code())),
            }
        }
        // Whoever wrote nothing came a moment after somebody who did, and looked after the board.
        if wrote {
            board.sweep_in_passing(Some(&session));
        }
        board.settle();
        // The kernel closes the board faster than we could, and to the same effect: nothing is left to write.
        std::mem::forget(board);
    };
    Ok(Happened { reply, afterwards: Box::new(afterwards) })
}

/// The session of a call: always the same one for the same id of the platform.
fn session_of(platform: &Platform, call: &Call) -> String {
    session_of_hint(&hint(platform, &call.session, call.delegate.as_deref()))
}

fn hint(platform: &Platform, session: &str, delegate: Option<&str>) -> String {
    session_hint(platform.id, session, delegate)
}

impl Hook<'_> {
    fn board(&self) -> &Board {
        &self.place.board
    }

    fn session(&self) -> String {
        session_of(self.platform, self.call)
    }

    fn answer(&self) -> Result<Done> {
        match &self.call.happening {
            Happening::Nothing => Ok(Done::new(Reply::Silence, false)),
            Happening::Started { forgot } => self.started(*forgot),
            Happening::Prompted => self.attend(AgentStatus::Active, None, self.platform.hears_prompts),
            Happening::Idle => self.attend(AgentStatus::Idle, None, false),
            Happening::ToolUsed(used) => self.tool_used(used),
            Happening::AboutToEdit(used) => self.about_to_edit(used),
            Happening::AboutToDelegate { kind, task } => self.about_to_delegate(kind, task),
            Happening::DelegateStarted { kind } => self.delegate_started(kind.as_deref()),
            // Without an id it is not told from its parent, which goes on.
            Happening::DelegateEnded if self.delegation().is_none() => Ok(Done::new(Reply::Silence, false)),
            Happening::DelegateEnded | Happening::Ended => self.ended(),
        }
    }

    fn started(&self, forgot: bool) -> Result<Done> {
        let Registered { agent, resumed, .. } = self.register()?;
        self.export(&agent.session_id);
        let pause = if forgot { Duration::ZERO } else { TOLD_JUST_NOW };
        let brief = self.board().brief(&agent.session_id)?;
        match self.board().note_brief(&brief, pause) {
            Ok(false) => return Ok(Done::new(Reply::Silence, true)),
            Ok(true) => {}
            // Whoever is new is told with its next prompt or tool; whoever goes on would not be told at all.
            Err(error) if resumed => self.log.write(&format!("{}: {error}", error.code())),
            Err(error) => return Err(error),
        }
        let session = Some(agent.session_id);
        Ok(Done::new(Reply::Context { text: words::brief(&brief), session }, true))
    }

    /// Registers the session that the call is about, or for which its sub-agent works.
    fn register(&self) -> Result<Registered> {
        let (context, call) = (self.context, self.call);
        let agents = self.board().agents();
        let hint = hint(self.platform, &call.session, None);
        let request = place::request(context, self.directory.as_deref());
        // Somebody's parent may have started before there were hooks, or have ended.
        let parent = match &call.parent {
            Some(parent) => agents.get(&session_of_hint(&self::hint(self.platform, parent, None)))?,
            None => None,
        };
        let parent = parent.filter(|parent| parent.status.is_live()).map(|parent| parent.session_id);
        // Who goes on without having been started again is still called what it was called.
        let known = match call.happening {
            Happening::Started { .. } => None,
            _ => agents.get(&session_of_hint(&hint))?,
        };
        // A delegate is called after its parent.
        let own_name = || {
            let given = identity::name(context.environment(), &self.place.config);
            parent.is_none().then(|| given.unwrap_or_else(|| self.platform.name.to_owned()))
        };
        agents.register(&Register {
            name: known.map(|agent| visible(&agent.agent_name)).or_else(own_name),
            project: identity::project(self.board(), &request)?,
            session_hint: Some(hint),
            pid: context.agent_pid(None)?,
            shares_process: self.platform.hosts_many || parent.is_some(),
            work: call.task.clone().filter(|_| parent.is_some()),
            parent,
            ..Register::default()
        })
    }

    /// Under which hints a sub-agent and its parent are registered, if the call is about one: a part of its parent's
    /// session, or a session of its own.
    fn delegation(&self) -> Option<(String, String)> {
        let Call { session, delegate, parent, .. } = self.call;
        let (delegate, parent) = match (delegate, parent) {
            (Some(delegate), _) => (Some(delegate.as_str()), session),
            (None, parent) => (None, parent.as_ref()?),
        };
        Some((hint(self.platform, session, delegate), hint(self.platform, parent, None)))
    }

    /// Keeps what a delegate will be asked to do: when it starts, its platform names only its kind.
    fn about_to_delegate(&self, kind: &str, task: &str) -> Result<Done> {
        let session = session_of_hint(&hint(self.platform, &self.call.session, None));
        self.board().agents().announce_task(&session, kind, task)?;
        Ok(Done::new(Reply::Silence, true))
    }

    fn delegate_started(&self, kind: Option<&str>) -> Result<Done> {
        let Some((_, parent)) = self.delegation() else {
            return Ok(Done::new(Reply::Silence, false));
        };
        let announced = || {
            let taken = self.board().agents().take_task(&session_of_hint(&parent), kind.unwrap_or_default());
            // A delegate without its task is better than none.
            taken.unwrap_or_else(|error| {
                self.log.write(&format!("{}: {error}", error.code()));
                None
            })
        };
        let task = self.call.task.clone().or_else(announced).or_else(|| kind.map(str::to_owned));
        let session = self.register_again(task.as_deref())?.agent.session_id;
        Ok(Done::new(self.brief(&session)?, true))
    }

    /// Registers whoever the call is about, a sub-agent or not.
    fn register_again(&self, task: Option<&str>) -> Result<Registered> {
        let Some((delegate, parent)) = self.delegation() else { return self.register() };
        let parent = session_of_hint(&parent);
        match self.board().agents().get(&parent)? {
            Some(agent) if agent.status.is_live() => {}
            // A session of its own goes on without a parent that is gone.
            _ if self.call.delegate.is_none() => return self.register(),
            Some(agent) if self.has_just_ended(&agent) => return Err(just_ended()),
            // Its start was missed, and its delegate proves that it lives.
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

    /// What a session should know; from here on it is told what is new.
    fn brief(&self, session: &str) -> Result<Reply> {
        let brief = self.board().brief(session)?;
        self.board().note_brief(&brief, Duration::ZERO)?;
        Ok(Reply::Context { text: words::brief(&brief), session: Some(session.to_owned()) })
    }

    /// Lets the shell commands of a session know it, where the platform has a way for that.
    fn export(&self, session: &str) {
        let environment = self.context.environment();
        let file = environment.claude_env_file.as_ref().map(Path::new);
        let Some(file) = file.filter(|file| self.platform.id == "claude" && file.is_absolute()) else {
            return;
        };
        // A session id is a UUID, and has no character that a shell would take for something else.
        let line = format!("export BLACKBOARD_SESSION_ID='{session}'\n");
        let opened = OpenOptions::new().append(true).create(true).open(file);
        if let Err(error) = opened.and_then(|mut file| file.write_all(line.as_bytes())) {
            self.log.write(&format!("CLAUDE_ENV_FILE can't be written: {}", error.kind()));
        }
    }

    fn ended(&self) -> Result<Done> {
        let ended = self.board().agents().deregister(&self.session())?;
        Ok(Done::new(Reply::Silence, !ended.already_ended))
    }

    /// Notes that the session lives and what it edited, and tells it what is new. One whose start was missed, or that goes
    /// on after its end, starts here.
    fn attend(&self, status: AgentStatus, edited: Option<Edited>, listens: bool) -> Result<Done> {
        let session = self.session();
        let attendance = Attendance { status, edited, listens, ..Attendance::of(&session) };
        let attend = || self.board().agents().attend(&attendance);
        let attended = match attend() {
            Err(error) if self.starts_after(&error, &session)? => {
                self.register_again(None)?;
                attend()?
            }
            attended => attended?,
        };
        if attended.is_new {
            return Ok(Done::new(self.brief(&session)?, true));
        }
        let reply = if attended.news.is_empty() {
            Reply::Silence
        } else {
            Reply::Context { text: words::news(&attended.news), session: None }
        };
        Ok(Done::new(reply, attended.wrote))
    }

    /// Whether a session that could not attend starts with this call: it was told what to do, or used a tool that was not
    /// already under way when it ended.
    fn starts_after(&self, error: &Error, session: &str) -> Result<bool> {
        let prompted = self.call.happening == Happening::Prompted;
        let at_work = prompted || matches!(self.call.happening, Happening::ToolUsed(_));
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

    /// Whether a session ended by itself a moment ago.
    fn has_just_ended(&self, agent: &Agent) -> bool {
        let now = self.board().clock().now();
        agent.status == AgentStatus::Completed && agent.ended_at.is_some_and(|ended| now.since(ended) < LATE)
    }

    fn tool_used(&self, used: &Use) -> Result<Done> {
        let files = self.files(used);
        let guards = self.place.config.file_guard == FileGuard::Warn && !self.platform.hears_before_tools;
        let others = if guards { files.others(self.board(), &self.session())? } else { Vec::new() };
        let mut edited = files.edited(used.tool.as_deref(), |_| true).into_iter();
        let mut done = self.attend(AgentStatus::Active, edited.next(), true)?;
        // Hardly ever does one call edit files of two repositories.
        for edited in edited {
            done.wrote |= self.attend(AgentStatus::Active, Some(edited), false)?.wrote;
        }
        if let Some(warning) = guards.then(|| warning(&others, &files, true)).flatten() {
            done.reply = match done.reply {
                Reply::Context { text, session } => {
                    Reply::Context { text: format!("{warning}\n\n{text}"), session }
                }
                _ => Reply::Context { text: warning, session: None },
            };
        }
        Ok(done)
    }

    fn about_to_edit(&self, used: &Use) -> Result<Done> {
        let guard = self.place.config.file_guard;
        let can_be_told = guard == FileGuard::Deny || self.platform.hears_before_tools;
        if guard == FileGuard::Off || !can_be_told {
            return Ok(Done::new(Reply::Silence, false));
        }
        // An edit that is not checked completely is denied: a large one would bypass the guard. The denial comes before
        // files are resolved, because the process ends when its time is over, and the edit is allowed then.
        if guard == FileGuard::Deny && Files::exceed_limits(used, &self.base()) {
            self.log.write(words::NOT_CHECKED);
            return Ok(Done::new(Reply::Deny(words::unchecked_denial()), false));
        }
        let (files, session) = (self.files(used), self.session());
        if guard == FileGuard::Deny && files.has_unchecked {
            return Ok(Done::new(Reply::Deny(words::unchecked_denial()), false));
        }
        let others = files.others(self.board(), &session)?;
        if guard == FileGuard::Warn {
            let text = warning(&others, &files, false);
            let reply = text.map_or(Reply::Silence, |text| Reply::Context { text, session: None });
            return Ok(Done::new(reply, false));
        }
        if others.is_empty() {
            return Ok(Done::new(Reply::Silence, false));
        }
        // That it waits is worth noting, but the answer does not depend on it.
        let wanted = files.edited(used.tool.as_deref(), |path| others.iter().any(|other| other.path == path));
        let to_note = wanted.into_iter().map(|edited| Attendance {
            edited: Some(Edited { denied: true, ..edited }),
            listens: false,
            ..Attendance::of(&session)
        });
        Ok(Done { to_note: to_note.collect(), ..Done::new(Reply::Deny(words::denial(&others)), false) })
    }

    fn files(&self, used: &Use) -> Files {
        let files = Files::of(used, &self.base(), self.context);
        if files.has_unchecked {
            self.log.write(words::NOT_CHECKED);
        }
        files
    }

    /// The directory at which relative paths of a call start.
    fn base(&self) -> PathBuf {
        self.call.directory.clone().or_else(|| self.directory.clone()).unwrap_or_default()
    }
}

/// What to warn of: files that others hold, and files of which that is unknown.
fn warning(others: &[Other], files: &Files, after: bool) -> Option<String> {
    let held = (!others.is_empty()).then(|| words::warning(others, after));
    let unchecked = files.has_unchecked.then(words::unchecked);
    let texts: Vec<String> = unchecked.into_iter().chain(held).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

fn just_ended() -> Error {
    Refusal::new(Code::SessionEnded, "the session has just ended").into()
}
