//! `blackboard version`

use blackboard::Result;
use serde::Serialize;

use super::Run;
use crate::context::Context;
use crate::envelope::Answer;
use crate::outcome::{Outcome, Render};
use crate::output::{self, Screen};

/// Print the version
///
/// Examples:
///   blackboard version
///   blackboard version --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Version {}

impl Run for Version {
    fn run(self, _context: &Context) -> Result<Outcome> {
        Ok(Outcome::new(Versions { version: env!("CARGO_PKG_VERSION") }))
    }
}

#[derive(Serialize)]
struct Versions {
    version: &'static str,
}

impl Render for Versions {
    fn json(&self, answer: &mut Answer<'_>) -> output::Result {
        answer.object(self)
    }

    fn human(&self, screen: &mut Screen<'_>) -> output::Result {
        screen.line(format_args!("blackboard {}", self.version))
    }
}
