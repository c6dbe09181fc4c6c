//! `blackboard run`

use std::ffi::OsString;

use blackboard::agent::{Heartbeat, Register};
use blackboard::store::CallLimit;
use blackboard::work::{Claim, Create, WorkItem};
use blackboard::{Board, Code, Result};
use clap::builder::NonEmptyStringValueParser;

use super::Run as RunCommand;
use super::work::{note_ignored, note_tokens};
use crate::child::{self, IfKilled, Signals};
use crate::context::{Context, warn};
use crate::open::Access;
use crate::outcome::Outcome;
use crate::quota::claims::{self, ItemQuota, release_sessions};

/// Run a command as an agent session
///
/// Registers a session, claims --work-item if given, runs the command with BLACKBOARD_SESSION_ID set, and ends the
/// session when the command exits. If the item cannot be claimed, also because of a token quota, the command is not started (exit 4). Exits with the
/// command's exit code.
///
/// Examples:
///   blackboard run -- ./agent.sh
///   blackboard run --name Elm --work-item design-schema -- ./agent.sh
///   blackboard run --work-item docs --title "Write docs" -- ./agent.sh
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Run {
    /// Agent name [default: agent.name of the configuration, or the name of the command]
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    name: Option<String>,

    /// Project of the session, and of an item that is created [default for a delegate: that of its parent]
    #[arg(short = 'P', long, value_name = "PROJECT")]
    project: Option<String>,

    /// Work item to claim
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    work_item: Option<String>,

    /// Title of the item to create if it does not exist
    #[arg(short = 't', long, value_name = "TEXT", requires = "work_item", allow_hyphen_values = true)]
    title: Option<String>,

    /// Current work, shown to other agents [default: the title of the item]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    work: Option<String>,

    /// Command and its arguments, after --
    #[arg(value_name = "COMMAND", last = true, required = true)]
    command: Vec<OsString>,
}

impl RunCommand for Run {
    fn run(self, context: &Context) -> Result<Outcome> {
        let signals = child::catch_signals()?;
        let board = context.open(Access::unswept())?;
        let Started { session, fence } = self.start(context, &board)?;
        let ran = self.run_as(&board, &session, fence, &signals);
        child::end(&board, &session);
        release_sessions(ItemQuota::of(context)?.as_ref(), [session.as_str()]);
        ran.map(|(outcome, _limit)| outcome)
    }
}

/// A session that has started, with its item if it was to claim one.
struct Started {
    session: String,
    /// The fence token of the item, as `--fence` takes it.
    fence: Option<String>,
}

impl Run {
    /// Starts a session of this process alone, as a delegate if there is one around it.
    fn start(&self, context: &Context, board: &Board) -> Result<Started> {
        let parent = context.parent_session(board)?;
        board.try_sweep(parent.as_deref());
        let request = Register {
            name: self.name.clone(),
            name_base: Some(child::name_base(&self.command)),
            project: self.project.clone(),
            work: self.work.clone(),
            pid: Some(std::process::id()),
            ..Register::default()
        };
        if parent.is_some() {
            match self.start_with(context, board, Register { parent, ..request.clone() }) {
                Err(error) if matches!(error.code(), Code::SessionStale | Code::SessionEnded) => {
                    warn(&format!("{error}; continuing without a parent"));
                }
                started => return started,
            }
        }
        let name = self.name.clone().map_or_else(|| context.own_name(), |name| Ok(Some(name)))?;
        let project = match &self.project {
            Some(project) => Some(project.clone()),
            None => context.own_project(board)?,
        };
        self.start_with(context, board, Register { name, project, ..request })
    }

    /// Registers the session, in one commit with the claim: a refusal leaves no session behind.
    fn start_with(&self, context: &Context, board: &Board, register: Register) -> Result<Started> {
        let Some(item) = &self.work_item else {
            let registered = board.agents().register(&register)?;
            context.note_text(&registered.text);
            return Ok(Started { session: registered.agent.session_id, fence: None });
        };
        let create = self
            .title
            .as_ref()
            .map(|title| Create { project: self.project.clone(), ..Create::new(item, title) });
        let claim = Claim { create, ..Claim::registering(item, register) };
        let (claimed, tokens) = claims::claim(ItemQuota::of_claim(context)?.as_ref(), board, &claim)?;
        note_ignored(context, &claimed);
        context.note_text(&claimed.text);
        note_tokens(context, &tokens);
        let WorkItem { claimed_by, fence, revision, .. } = claimed.item;
        let fence = format!("work:{item}={}", fence.unwrap_or(revision));
        Ok(Started { session: claimed_by.unwrap_or_default(), fence: Some(fence) })
    }

    /// Runs the command. What is left to do has a limit.
    fn run_as(
        &self,
        board: &Board,
        session: &str,
        fence: Option<String>,
        signals: &Signals,
    ) -> Result<(Outcome, CallLimit)> {
        if self.work.is_some() && fence.is_some() {
            // A claim sets the current work to the title of the item; what the caller named comes before that.
            board.agents().heartbeat(&Heartbeat { work: self.work.clone(), ..Heartbeat::of(session) })?;
        }
        let variables: Vec<_> = fence.map(|fence| ("BLACKBOARD_FENCE", fence)).into_iter().collect();
        let (ended, limit) =
            child::run(&self.command, &variables, board, session, signals, IfKilled::Continues);
        Ok((ended.outcome(&self.command, "its session has ended"), limit))
    }
}
