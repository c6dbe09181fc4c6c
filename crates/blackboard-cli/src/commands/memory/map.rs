//! `blackboard memory map`

use blackboard::Result;

use crate::commands::Run;
use crate::commands::arguments::ReadAs;
use crate::context::Context;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::memory::ShownMap;

/// Show levels of memory, what is in them, and their edges
///
/// Prints the number of records and tokens of each level, the levels to which its records move, and levels that an edge
/// names and that do not exist.
///
/// Examples:
///   blackboard memory map
///   blackboard memory map --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Map {
    #[command(flatten)]
    reader: ReadAs,
}

impl Run for Map {
    fn run(self, context: &Context) -> Result<Outcome> {
        let board = self.reader.apply(context.open(Access::read())?)?;
        Ok(Outcome::new(ShownMap(board.memories().map()?)))
    }
}
