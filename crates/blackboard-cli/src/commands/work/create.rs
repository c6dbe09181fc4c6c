//! `blackboard work create`

use blackboard::text::{check_id, shell_word};
use blackboard::work::Priority;
use blackboard::{Code, Refusal, Result};
use clap::ArgGroup;
use clap::builder::NonEmptyStringValueParser;

use super::NewItemOptions;
use crate::commands::Run;
use crate::commands::arguments::Session;
use crate::context::Context;
use crate::hints;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::shortened;
use crate::output::work::{CreatedItem, similar};
use crate::quota::claims::ItemQuota;
use crate::quota::item_tokens::tokens_of;

/// Create a work item
///
/// Creates an item that any agent can claim. A text with spaces is taken as a title: the id is generated from it and
/// printed. With an ID, repeating the call with the same fields changes nothing; different fields under the same id are
/// refused (exit 4).
///
/// Examples:
///   blackboard work create "Design the SQL schema"
///   blackboard work create design-schema --title "Design the SQL schema"
///   blackboard work create "Ship it" --blocked-by design-schema,run-tests
///   blackboard work create gh:o/r#78 --title "Fix the login" --source github
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
#[command(group = ArgGroup::new("which"))]
#[command(group = ArgGroup::new("given").required(true).multiple(true))]
#[command(group = ArgGroup::new("has_title").multiple(true))]
pub struct Create {
    /// Id of the work item, or without --title its title
    #[arg(value_name = "ID|TITLE", groups = ["given", "which", "has_title"], value_parser = NonEmptyStringValueParser::new())]
    item: Option<String>,

    /// Same as the ID argument
    #[arg(long = "id", value_name = "ID", groups = ["given", "which"], alias = "task", value_parser = NonEmptyStringValueParser::new())]
    item_option: Option<String>,

    /// Title of the item
    #[arg(short = 't', long, value_name = "TEXT", groups = ["given", "has_title"], allow_hyphen_values = true)]
    title: Option<String>,

    /// Registered project that the item belongs to
    #[arg(short = 'P', long, value_name = "PROJECT")]
    project: Option<String>,

    /// Priority: P1 (highest), P2 or P3 [default: P2]
    #[arg(short = 'p', long, value_name = "PRIORITY")]
    priority: Option<Priority>,

    #[command(flatten)]
    options: NewItemOptions,

    #[command(flatten)]
    session: Session,
}

impl Run for Create {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (id, title) = match (self.item.or(self.item_option), self.title) {
            (id, Some(title)) => (id, title),
            (Some(text), None) if is_title(&text) => (None, text),
            (id, None) => return Err(no_title(&id.unwrap_or_default())),
        };
        let (board, session) = context.open(Access::write(self.session.named()))?;
        let has_id = id.is_some();
        let item = self.options.item(id.unwrap_or_default(), title, self.project, self.priority, session)?;
        let created =
            if has_id { board.work().create(&item) } else { board.work().create_with_generated_id(&item) }?;
        context.note_text(&created.text);
        let quota = ItemQuota::of(context)?.filter(|_| created.item.estimate().is_none());
        let tokens = tokens_of(quota.as_ref(), &board, &created.item);
        if let Some(estimate) = tokens.as_ref().and_then(|tokens| tokens.estimate_from_similar) {
            context.note(&similar(&estimate));
        }
        Ok(Outcome::new(CreatedItem(created, tokens)))
    }
}

/// Whether the argument is a title: text with white space or letters beyond ASCII, or that cannot be an id.
fn is_title(text: &str) -> bool {
    let is_of_title =
        |character: char| character.is_whitespace() || character == ',' || !character.is_ascii();
    text.contains(is_of_title) || check_id("work item", text).is_err()
}

fn no_title(id: &str) -> blackboard::Error {
    let id = shortened(id, 100);
    Refusal::new(Code::Usage, format!("work item {id} has no title"))
        .hint(hints::acting("pass a title: ", format!("work create {} --title TEXT", shell_word(&id))))
        .into()
}
