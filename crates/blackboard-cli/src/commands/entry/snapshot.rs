//! `blackboard snapshot`

use blackboard::Result;

use super::Matching;
use crate::commands::Run;
use crate::commands::arguments::ScopeOption;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::entry::WholeScope;

/// Show every entry of a scope as one JSON object, by key
///
/// All of them as they were at one moment. The answer is always JSON; with --json it stands on one line.
///
/// Examples:
///   blackboard snapshot > entries.json
///   blackboard snapshot --prefix task: | jq '.[].value.status'
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Snapshot {
    #[command(flatten)]
    which: Matching,

    /// Keys that fit this pattern: * is any characters, ? is one, [abc] is one of these
    #[arg(long, value_name = "GLOB")]
    pattern: Option<String>,

    #[command(flatten)]
    scope: ScopeOption,
}

impl Run for Snapshot {
    fn run(self, context: &Context) -> Result<Outcome> {
        let name = context.scope(&self.scope)?;
        let query = self.which.query(self.pattern)?;
        Ok(Outcome::new(WholeScope(context.open(Access::read())?.scope(&name).snapshot(&query)?.entries)))
    }
}
