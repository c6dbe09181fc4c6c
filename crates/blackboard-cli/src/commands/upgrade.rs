//! `blackboard upgrade`

use blackboard::store::sqlite::Upgraded;
use blackboard::text::shell_word;
use blackboard::{Code, Error, Refusal, Result};

use super::Run;
use super::arguments::confirm;
use crate::context::Context;
use crate::engine::Mode;
use crate::envelope::BoardState;
use crate::hints;
use crate::open::ResolvedBoard;
use crate::outcome::Outcome;
use crate::output::upgrade::{UpgradedBoard, upgrade_note};

/// Upgrade a board of ivy-blackboard
///
/// Takes over all agents, projects, work items, heartbeats and events; what has no column here goes into metadata, and is
/// listed. Keeps a verified copy beside the board, and leaves the board unchanged on any error. Asks first, and needs --yes
/// where there is no terminal.
///
/// Examples:
///   blackboard upgrade
///   blackboard upgrade --yes --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Upgrade {
    /// Do not ask
    #[arg(short = 'y', long)]
    yes: bool,
}

impl Run for Upgrade {
    fn run(self, context: &Context) -> Result<Outcome> {
        let board = context.resolve()?;
        let database = board.engine.name();
        let (declined, result) = match board.open(context.opening(Mode::Existing)) {
            Ok(opened) if opened.state == Some(BoardState::Missing) => {
                return Err(Refusal::new(Code::BoardNotFound, format!("no board at {database}"))
                    .hint(hints::command("check --db, or create one: ", "init"))
                    .into());
            }
            Ok(opened) => (false, opened.upgraded.map(|upgraded| *upgraded)),
            Err(error) if error.code() == Code::UpgradeNeeded => {
                if self.yes || asked(context, board)?.ok_or_else(cannot_ask)? {
                    (false, board.upgrade()?)
                } else {
                    (true, None)
                }
            }
            Err(error) => return Err(error),
        };
        Ok(Outcome::new(UpgradedBoard { database, upgraded: result.is_some(), declined, result }))
    }
}

/// Whether a command that finds a board of ivy-blackboard upgrades it: with `--yes`, or if the user agrees.
pub fn wanted(context: &Context, board: &ResolvedBoard, yes: bool) -> Result<bool> {
    Ok(yes || asked(context, board)?.unwrap_or(false))
}

/// Upgrades the board for another command, and prints a note.
pub fn run(context: &Context, board: &ResolvedBoard) -> Result<Option<Upgraded>> {
    let upgraded = board.upgrade()?;
    if let Some(upgraded) = &upgraded {
        context.note(&upgrade_note(&board.engine.name(), upgraded));
    }
    Ok(upgraded)
}

/// Offers to upgrade the board of this call, for a command that does not need it.
pub fn offer(context: &Context, yes: bool, dry_run: bool) -> Result<()> {
    // What is wrong with the location or the configuration is reported by commands that need the board.
    let Ok(board) = context.resolve() else { return Ok(()) };
    if !board.engine.needs_upgrade(&board.config.database) {
        return Ok(());
    }
    if !dry_run && wanted(context, board, yes)? {
        return run(context, board).map(drop);
    }
    let (name, command) = (board.engine.name(), context.given_options().command("upgrade"));
    context.note(&format!("{name} is a board of ivy-blackboard; to upgrade it: {command}"));
    Ok(())
}

/// Notes that a board which this call does not use is one of ivy-blackboard.
pub fn note_if_needed(context: &Context, other: &ResolvedBoard) {
    if other.engine.needs_upgrade(&other.config.database) {
        let name = other.engine.name();
        let command = format!("blackboard upgrade --db {}", shell_word(&name));
        context.note(&format!("{name} is still a board of ivy-blackboard; to upgrade it: {command}"));
    }
}

fn cannot_ask() -> Error {
    Refusal::new(Code::Usage, "cannot ask: standard input or output is not a terminal")
        .hint("pass --yes to upgrade the board")
        .into()
}

fn asked(context: &Context, board: &ResolvedBoard) -> Result<Option<bool>> {
    let name = board.engine.name();
    confirm(context, &format!("{name} is a board of ivy-blackboard. Upgrade it, and keep a copy?"))
}
