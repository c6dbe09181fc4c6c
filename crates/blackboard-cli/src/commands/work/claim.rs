//! `blackboard work claim`

use blackboard::work::{Claim as Claiming, ClaimNext, Priority};
use blackboard::{Board, Result};
use clap::ArgGroup;
use clap::builder::NonEmptyStringValueParser;

use super::{NewItemOptions, note_ignored, note_tokens};
use crate::commands::Run;
use crate::commands::arguments::Session;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::work::{ClaimedItem, CreatedItem};
use crate::quota::claims::{self, ItemQuota};

/// Claim a work item for this session
///
/// Exactly one session gets the item; if another session holds it, the command exits with 4 and prints the holder.
/// --next claims the first available item, P1 first, then oldest; --title creates the item if it does not exist.
/// Prints a fence token for `complete` and `release`. With --title and without any session, the item is only created.
///
/// If a token quota is configured, the estimate of the item is checked and reserved: a claim that does not fit is reported,
/// or refused (exit 4) with `enforce: deny`. --next then skips items that do not fit.
///
/// If the session's process is gone, another session can claim the item 10 s after its last heartbeat.
///
/// Examples:
///   blackboard work claim design-schema
///   blackboard work claim --next --project pai-collab
///   blackboard work claim fix-tests --title "Fix the tests" --priority P1
///   fence=$(blackboard work claim design-schema --json | jq .fence)
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
#[command(group = ArgGroup::new("which").required(true), group = ArgGroup::new("how"))]
pub struct Claim {
    /// Id of the work item
    #[arg(value_name = "ID", group = "which", value_parser = NonEmptyStringValueParser::new())]
    item: Option<String>,

    /// Same as the ID argument
    #[arg(long = "id", value_name = "ID", group = "which", alias = "task", value_parser = NonEmptyStringValueParser::new())]
    item_option: Option<String>,

    /// Claim the first available item; exits with 3 if there is none
    #[arg(long, groups = ["which", "how"], conflicts_with = "new_item")]
    next: bool,

    /// Title of the item to create if it does not exist
    #[arg(short = 't', long, value_name = "TEXT", groups = ["how", "has_title"], allow_hyphen_values = true)]
    title: Option<String>,

    /// With --next: only items of this project; with --title: project of the new item
    #[arg(short = 'P', long, requires = "how", value_name = "PROJECT")]
    project: Option<String>,

    /// With --next: only items of this priority; with --title: priority of the new item
    #[arg(short = 'p', long, requires = "how", value_name = "PRIORITY")]
    priority: Option<Priority>,

    #[command(flatten)]
    options: NewItemOptions,

    #[command(flatten)]
    session: Session,
}

impl Claim {
    /// Creates the item without claiming it, because there is no session that could hold it.
    fn create_only(self, context: &Context, board: &Board) -> Result<Outcome> {
        let (id, title) =
            (self.item.or(self.item_option).unwrap_or_default(), self.title.unwrap_or_default());
        let create = self.options.item(id, title, self.project, self.priority, None)?;
        let created = board.work().create(&create)?;
        context.note("there is no session to claim it for: the item is available");
        context.note_text(&created.text);
        Ok(Outcome::new(CreatedItem(created, None)))
    }
}

impl Run for Claim {
    fn run(self, context: &Context) -> Result<Outcome> {
        let has_title = self.title.is_some();
        let (board, session) = if has_title && self.session.named().is_none() {
            context.open(Access::act_or_register(None))?
        } else {
            let (board, session) = context.open(Access::act(self.session.named()))?;
            (board, Some(session))
        };
        let Some(session) = session else {
            return self.create_only(context, &board);
        };
        let quota = ItemQuota::of_claim(context)?;
        let Some(id) = self.item.or(self.item_option) else {
            let next =
                ClaimNext { session, project: self.project, priority: self.priority, most_tokens: None };
            let (claimed, tokens) = claims::claim_next(quota.as_ref(), &board, &next)?;
            note_tokens(context, &tokens);
            return Ok(Outcome::new(ClaimedItem(claimed, tokens)));
        };
        let new =
            |title| self.options.item(id.clone(), title, self.project, self.priority, Some(session.clone()));
        let create = self.title.map(new).transpose()?;
        let claim = Claiming { id, session, register: None, create };
        let (claimed, tokens) = claims::claim(quota.as_ref(), &board, &claim)?;
        note_ignored(context, &claimed);
        context.note_text(&claimed.text);
        note_tokens(context, &tokens);
        Ok(Outcome::new(ClaimedItem(claimed, tokens)))
    }
}
