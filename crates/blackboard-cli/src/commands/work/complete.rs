//! `blackboard work complete`

use blackboard::work::{Complete as Completion, Completed, CompletedProject, ForceComplete};
use blackboard::{Board, Code, Error, Refusal, Result};
use clap::ArgGroup;
use clap::builder::NonEmptyStringValueParser;

use crate::commands::Run;
use crate::commands::arguments::{FenceArgument, Session, confirm, fence};
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::work::{CompletedItem, CompletedItems};
use crate::quota::claims::{ItemQuota, release_items};
use crate::quota::item_tokens::tokens_of;

/// Complete a work item
///
/// Only the session that holds the item can complete it. Items that were blocked only by this one become available in
/// the same transaction. With --fence, exits with 4 if the session has lost the claim.
///
/// With --force, completes the item whatever its holder, status and blockers, also without a session. With --all and
/// --project, does so for all open items of a project.
///
/// Examples:
///   blackboard work complete design-schema
///   blackboard work complete design-schema --summary "Five tables"
///   blackboard work complete design-schema --force
///   blackboard work complete --all --project pai-collab --yes
///   fence=$(blackboard work claim design-schema --json | jq .fence)
///   blackboard work complete design-schema --fence "$fence"
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
#[command(group = ArgGroup::new("which").required(true))]
pub struct Complete {
    /// Id of the work item
    #[arg(value_name = "ID", group = "which", value_parser = NonEmptyStringValueParser::new())]
    item: Option<String>,

    /// Same as the ID argument
    #[arg(long = "id", value_name = "ID", group = "which", alias = "task", value_parser = NonEmptyStringValueParser::new())]
    item_option: Option<String>,

    /// Complete all open items of the project in --project
    #[arg(short = 'a', long, group = "which", requires = "project", conflicts_with_all = ["fence", "summary"])]
    all: bool,

    /// With --all: the project
    #[arg(short = 'P', long, requires = "all", value_name = "PROJECT")]
    project: Option<String>,

    /// With --all: do not ask
    #[arg(short = 'y', long, requires = "all")]
    yes: bool,

    /// Complete it even if another session or none holds it, or it is blocked
    #[arg(long, conflicts_with = "fence")]
    force: bool,

    /// Fence token printed by `work claim`, or $BLACKBOARD_FENCE
    #[arg(long, value_name = "N", value_parser = fence)]
    fence: Option<FenceArgument>,

    /// Result, shown with the item
    #[arg(short = 'm', long, value_name = "TEXT", allow_hyphen_values = true)]
    summary: Option<String>,

    #[command(flatten)]
    session: Session,
}

impl Run for Complete {
    fn run(self, context: &Context) -> Result<Outcome> {
        let Some(id) = self.item.or(self.item_option) else {
            return complete_project(context, &self.project.unwrap_or_default(), self.yes, &self.session);
        };
        if self.force {
            let (board, session) = context.open(Access::change(self.session.named()))?;
            let force = ForceComplete { id, session, summary: self.summary };
            let completed = board.work().force_complete(&force)?;
            return finished(context, &board, completed);
        }
        let fence = self.fence.map(|fence| fence.of_work(&id)).transpose()?;
        let (board, session) = context.open(Access::act(self.session.named()))?;
        let completed = board.work().complete(&Completion { id, session, fence, summary: self.summary })?;
        finished(context, &board, completed)
    }
}

/// The answer, with what the item has used. Its tokens are no longer reserved.
fn finished(context: &Context, board: &Board, completed: Completed) -> Result<Outcome> {
    context.note_text(&completed.text);
    let quota = ItemQuota::of(context)?;
    release_items(quota.as_ref(), [completed.item.item_id.as_str()]);
    let mut tokens = tokens_of(quota.as_ref(), board, &completed.item);
    if let Some(tokens) = &mut tokens {
        tokens.estimate_from_similar = None;
    }
    Ok(Outcome::new(CompletedItem(completed, tokens)))
}

fn complete_project(context: &Context, project: &str, yes: bool, session: &Session) -> Result<Outcome> {
    let question = format!("Complete all open work items of project {project}?");
    if !yes && !confirm(context, &question)?.ok_or_else(cannot_ask)? {
        let declined = CompletedProject { project_id: project.to_owned(), ..CompletedProject::default() };
        return Ok(Outcome::new(CompletedItems(declined)));
    }
    let (board, session) = context.open(Access::change(session.named()))?;
    let completed = board.work().complete_project(project, session.as_deref())?;
    let items = completed.items.iter().filter(|item| item.error.is_none());
    release_items(ItemQuota::of(context)?.as_ref(), items.map(|item| item.item_id.as_str()));
    Ok(Outcome::new(CompletedItems(completed)))
}

fn cannot_ask() -> Error {
    Refusal::new(Code::Usage, "cannot ask: standard input or output is not a terminal")
        .hint("pass --yes to complete all of them")
        .into()
}
