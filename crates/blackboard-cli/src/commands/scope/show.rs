//! `blackboard scope show`

use blackboard::Result;

use crate::commands::Run;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::scope::ShownScope;

/// Show a scope and its policies
///
/// Prints the policies of a scope and its number of entries. Expired entries count until a sweep removes them.
///
/// Examples:
///   blackboard scope show cache
///   blackboard scope show default --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Show {
    /// Name of the scope
    #[arg(value_name = "NAME")]
    name: String,
}

impl Run for Show {
    fn run(self, context: &Context) -> Result<Outcome> {
        Ok(Outcome::new(ShownScope(context.open(Access::read())?.scopes().show(&self.name)?)))
    }
}
