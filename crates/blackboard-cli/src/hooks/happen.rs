//! What happens on the board when a platform calls.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use blackboard::agent::{Agent, AgentStatus, Attendance, READER, Register};
use blackboard::event::Since;
use blackboard::file::{Check, Edited, Other};
use blackboard::id::session_of_hint;
use blackboard::{Board, Code, Refusal, Result};

use super::call::{Call, Happening, Use};
use super::place::{self, Place};
use super::{Deadline, Log, Platform, Reply, words};
use crate::config::FileGuard;
use crate::context::Context;
use crate::identity;
use crate::location;

/// How long after a session was told everything it is not told again: one platform may call twice for one start.
const TOLD_JUST_NOW: Duration = Duration::from_secs(10);

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
    deadline: &'a Deadline,
    log: &'a Log,
}

/// Does what a call asks for.
pub fn happen(
    platform: &Platform,
    call: &Call,
    context: &Context,
    deadline: &Deadline,
    log: &Log,
) -> Result<Happened> {
    let directory = place::directory(platform, call, context.environment());
    let create = call.happening == Happening::Started;
    let place = place::open(context, directory.as_deref(), create, deadline.lock(), log)?;
    let hook = Hook { platform, call, context, directory, place, deadline, log };
    let (reply, wrote) = hook.answer()?;
    let board = hook.place.board;
    let session = session_of(platform, call);
    let afterwards = move || {
        // Whoever wrote nothing came a moment after somebody who did, and looked after the board.
        if wrote {
            board.sweep_in_passing(Some(&session));
            board.settle();
        }
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
    match delegate {
        Some(delegate) => format!("{}:{session}/{delegate}", platform.id),
        None => format!("{}:{session}", platform.id),
    }
}

impl Hook<'_> {
    fn board(&self) -> &Board {
        &self.place.board
    }

    fn session(&self) -> String {
        session_of(self.platform, self.call)
    }

    /// What the agent is told, and whether the board was changed.
    fn answer(&self) -> Result<(Reply, bool)> {
        match &self.call.happening {
            Happening::Nothing => Ok((Reply::Silence, false)),
            Happening::Started => self.started(),
            Happening::Prompted => self.attend(AgentStatus::Active, None, self.platform.hears_prompts),
            Happening::Idle => self.attend(AgentStatus::Idle, None, false),
            Happening::ToolUsed(used) => self.tool_used(used),
            Happening::AboutToEdit(used) => self.about_to_edit(used),
            Happening::DelegateStarted { task } => self.delegate_started(task.as_deref()),
            // Without an id it is not told from its parent, which goes on.
            Happening::DelegateEnded if self.delegation().is_none() => Ok((Reply::Silence, false)),
            Happening::DelegateEnded | Happening::Ended => self.ended(),
        }
    }

    fn started(&self) -> Result<(Reply, bool)> {
        self.deadline.watch();
        let (context, call) = (self.context, self.call);
        let request = place::request(context, self.directory.as_deref());
        let parent = call.parent.as_deref().map(|parent| session_of_hint(&hint(self.platform, parent, None)));
        // Somebody's parent may have started before there were hooks.
        let parent = parent.filter(|parent| self.board().agents().show(parent).is_ok());
        // A delegate is called after its parent.
        let name = parent.is_none().then(|| {
            let given = identity::name(context.environment(), &self.place.config);
            given.unwrap_or_else(|| self.platform.name.to_owned())
        });
        let registered = self.board().agents().register(&Register {
            name,
            project: identity::project(self.board(), &request)?,
            session_hint: Some(hint(self.platform, &call.session, None)),
            pid: context.agent_pid(None)?,
            shares_process: self.platform.hosts_many,
            parent,
            ..Register::default()
        })?;
        let session = &registered.agent.session_id;
        if registered.resumed && self.was_just_told(&registered.agent) {
            return Ok((Reply::Silence, true));
        }
        self.export(session);
        Ok((Reply::Context { text: self.brief(session)?, session: Some(session.clone()) }, true))
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

    fn delegate_started(&self, task: Option<&str>) -> Result<(Reply, bool)> {
        let Some((delegate, parent)) = self.delegation() else { return Ok((Reply::Silence, false)) };
        self.deadline.watch();
        let registered = self.board().agents().register(&Register {
            work: task.map(str::to_owned),
            session_hint: Some(delegate),
            pid: self.context.agent_pid(None)?,
            shares_process: true,
            parent: Some(session_of_hint(&parent)),
            ..Register::default()
        })?;
        let session = registered.agent.session_id;
        Ok((Reply::Context { text: self.brief(&session)?, session: Some(session) }, true))
    }

    /// What a session should know; from here on it is told what is new.
    fn brief(&self, session: &str) -> Result<String> {
        let brief = self.board().brief(session)?;
        if let Err(error) = self.board().events().advance(session, READER, brief.revision) {
            self.log.write(&format!("{}: {error}", error.code()));
        }
        Ok(words::brief(&brief))
    }

    /// Whether the session was told everything a moment ago, since it started.
    fn was_just_told(&self, agent: &Agent) -> bool {
        let since = Since::Cursor { session: agent.session_id.clone(), reader: READER.to_owned() };
        let Ok(observation) = self.board().events().observe(&since, &[]) else { return false };
        let told = observation.since.filter(|_| observation.after >= agent.joined);
        told.is_some_and(|told| self.board().clock().now().since(told) < TOLD_JUST_NOW)
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

    fn ended(&self) -> Result<(Reply, bool)> {
        self.deadline.watch();
        let ended = self.board().agents().deregister(&self.session())?;
        Ok((Reply::Silence, !ended.already_ended))
    }

    fn attend(&self, status: AgentStatus, edited: Option<Edited>, listens: bool) -> Result<(Reply, bool)> {
        let attendance = Attendance { status, edited, listens, ..Attendance::of(&self.session()) };
        let attended = self.board().agents().attend_prepared(&attendance, || self.deadline.watch())?;
        let reply = if attended.news.is_empty() {
            Reply::Silence
        } else {
            Reply::Context { text: words::news(&attended.news), session: None }
        };
        Ok((reply, attended.wrote))
    }

    fn tool_used(&self, used: &Use) -> Result<(Reply, bool)> {
        let trees = self.trees(used);
        let guards = self.place.config.file_guard == FileGuard::Warn && !self.platform.hears_before_tools;
        let others = if guards { self.others(&trees)? } else { Vec::new() };
        let mut edited = trees.into_iter().map(|(worktree, tree)| Edited {
            worktree,
            paths: tree.paths,
            tool: used.tool.clone(),
            denied: false,
        });
        let (mut reply, mut wrote) = self.attend(AgentStatus::Active, edited.next(), true)?;
        // Hardly ever does one call edit files of two repositories.
        for edited in edited {
            wrote |= self.attend(AgentStatus::Active, Some(edited), false)?.1;
        }
        if !others.is_empty() {
            let warning = words::warning(&others, true);
            let text = match reply {
                Reply::Context { text, .. } => format!("{warning}\n\n{text}"),
                _ => warning,
            };
            reply = Reply::Context { text, session: None };
        }
        Ok((reply, wrote))
    }

    fn about_to_edit(&self, used: &Use) -> Result<(Reply, bool)> {
        let guard = self.place.config.file_guard;
        let can_be_told = guard == FileGuard::Deny || self.platform.hears_before_tools;
        if guard == FileGuard::Off || !can_be_told {
            return Ok((Reply::Silence, false));
        }
        // Whoever is not on this board is warned by nobody, and so is nobody warned of it.
        if self.board().agents().show(&self.session()).is_err() {
            return Err(Refusal::new(Code::AgentNotFound, "there is no such session").into());
        }
        let trees = self.trees(used);
        let others = self.others(&trees)?;
        if others.is_empty() {
            return Ok((Reply::Silence, false));
        }
        if guard == FileGuard::Warn {
            return Ok((Reply::Context { text: words::warning(&others, false), session: None }, false));
        }
        for (worktree, tree) in trees {
            let paths = tree.paths.into_iter().filter(|path| others.iter().any(|other| other.path == *path));
            let tool = used.tool.clone();
            let edited = Edited { worktree, paths: paths.collect(), tool, denied: true };
            // That it waits is worth noting, but the answer does not depend on it.
            if let Err(error) = self.attend(AgentStatus::Active, Some(edited), false) {
                self.log.write(&format!("{}: {error}", error.code()));
            }
        }
        Ok((Reply::Deny(words::denial(&others)), true))
    }

    /// Who else has these files.
    fn others(&self, trees: &BTreeMap<String, Tree>) -> Result<Vec<Other>> {
        let mut others = Vec::new();
        for (worktree, Tree { repository, paths }) in trees {
            others.extend(self.board().files().who_else(&Check {
                session: Some(self.session()),
                repository: repository.clone(),
                worktree: worktree.clone(),
                paths: paths.clone(),
            })?);
        }
        Ok(others)
    }

    /// The files of a call by the worktree that they are in, whichever that is: a path from its root on.
    fn trees(&self, used: &Use) -> BTreeMap<String, Tree> {
        let mut trees: BTreeMap<String, Tree> = BTreeMap::new();
        let base = self.call.directory.clone().or_else(|| self.directory.clone()).unwrap_or_default();
        for path in &used.paths {
            let path = base.join(path);
            let Some(directory) = path.ancestors().skip(1).find(|directory| directory.is_dir()) else {
                continue;
            };
            // Everybody else finds the tree from a working directory, which never goes through a link.
            let Ok(real) = directory.canonicalize() else { continue };
            let path = path.strip_prefix(directory).map(|inside| real.join(inside)).unwrap_or(path.clone());
            let Some(text) = path.to_str() else { continue };
            let request = place::request(self.context, Some(&real));
            let Ok(tree) = location::tree(&request) else { continue };
            // What is no file, or has characters that no path on the board has, can't be held by anybody.
            if let Ok(path) = tree.path(text)
                && !path.ends_with(['/', '*'])
            {
                let known = trees.entry(tree.worktree).or_insert_with(|| Tree::new(tree.repository));
                known.paths.push(path);
            }
        }
        trees
    }
}

/// Files of one worktree.
struct Tree {
    repository: String,
    paths: Vec<String>,
}

impl Tree {
    fn new(repository: String) -> Tree {
        Tree { repository, paths: Vec::new() }
    }
}
