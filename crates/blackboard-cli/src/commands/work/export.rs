//! `blackboard work export`

use std::io::Write as _;
use std::path::PathBuf;

use blackboard::work::{ExportItems, OutsideItem};
use blackboard::{Code, Error, Fault, Result};
use clap::ValueEnum;
use serde::Serialize;

use crate::commands::Run;
use crate::commands::export::{not_written, refuse_what_is_no_plain_file};
use crate::context::Context;
use crate::disk::{self, replace};
use crate::envelope::Answer;
use crate::open::Access;
use crate::outcome::{Outcome, Render};
use crate::output::{self, Screen, escape};
use crate::trackers::{jsonl, markdown};

/// Export work items as JSON lines or a Markdown task list
///
/// Prints the open items by id, or writes them to --output. `work import` reads them as the same items: claims are not
/// exported.
///
/// Examples:
///   blackboard work export --to markdown --output TODO.md
///   blackboard work export --to jsonl --all
///   blackboard work export --to jsonl --project pai-collab
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Export {
    /// Form of the items
    #[arg(long, value_name = "FORM", value_enum)]
    to: Form,

    /// File to write to; - is standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Only items of this project
    #[arg(short = 'P', long, value_name = "PROJECT")]
    project: Option<String>,

    /// Include completed items
    #[arg(short = 'a', long)]
    all: bool,
}

/// The form of the items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// One JSON object per line
    Jsonl,
    /// A Markdown task list
    Markdown,
}

impl Run for Export {
    fn run(self, context: &Context) -> Result<Outcome> {
        let board = context.open(Access::read())?;
        let items = board.work().export(&ExportItems { project: self.project, with_closed: self.all })?;
        let text = match self.to {
            Form::Jsonl => jsonl::write(&items),
            Form::Markdown => markdown::write(&items),
        };
        let text = text.map_err(|error| {
            Error::from(Fault::new(Code::Internal, "work items cannot be written as text").because(error))
        })?;
        let Some(file) = self.output.filter(|file| file.as_os_str() != "-") else {
            return Ok(Outcome::new(Printed { text, items }));
        };
        refuse_what_is_no_plain_file(&file, "name a plain file, or - for standard output")?;
        let written = replace(&file, disk::Access::Private, |out| out.write_all(text.as_bytes()));
        written.map_err(|error| not_written(&file, error))?;
        Ok(Outcome::new(Saved { output: file.display().to_string(), count: items.len() }))
    }
}

struct Printed {
    text: String,
    items: Vec<OutsideItem>,
}

impl Render for Printed {
    fn json(&self, answer: &mut Answer<'_>) -> output::Result {
        #[derive(Serialize)]
        struct Items<'a> {
            count: usize,
            items: Vec<jsonl::Line<'a>>,
        }
        let items: Vec<_> = self.items.iter().map(jsonl::Line::of).collect();
        answer.object(&Items { count: items.len(), items })
    }

    fn human(&self, screen: &mut Screen<'_>) -> output::Result {
        screen.writer().write_all(self.text.as_bytes())?;
        Ok(())
    }
}

#[derive(Serialize)]
struct Saved {
    output: String,
    count: usize,
}

impl Render for Saved {
    fn json(&self, answer: &mut Answer<'_>) -> output::Result {
        answer.object(self)
    }

    fn human(&self, screen: &mut Screen<'_>) -> output::Result {
        let items =
            if self.count == 1 { "1 work item".to_owned() } else { format!("{} work items", self.count) };
        screen.line(format_args!("Exported: {} ({items})", escape(&self.output)))
    }
}
