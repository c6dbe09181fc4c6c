//! `blackboard copy`

use std::ffi::OsString;

use blackboard::copy::{Copied, copy};
use blackboard::store::{LoadingBoard, Store};
use blackboard::{Code, Error, Refusal, Result};
use serde::Serialize;

use super::Run;
use crate::context::{Context, warn};
use crate::engine::{Mode, OpenStore, Opening};
use crate::envelope::Answer;
use crate::location::{self, Request};
use crate::open::ResolvedBoard;
use crate::outcome::{Outcome, Render};
use crate::output::progress::ProgressBar;
use crate::output::{self, Screen, escape};

/// Copy a complete board to another location
///
/// Copies rows, events, versions and remembered calls with their revisions, so fence tokens and cursors stay valid. FROM
/// and TO are files or redis:// URLs, as for --db. TO has no board, and cannot be used until it was compared with FROM.
///
/// Examples:
///   blackboard copy .blackboard/local.db backup.db
///   blackboard copy .blackboard/local.db moved.db --seal --json
///   blackboard copy --unseal .blackboard/local.db
///   blackboard copy .blackboard/local.db redis://host/0?board=team --seal
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Copy {
    /// Location of the board
    #[arg(value_name = "FROM")]
    from: OsString,

    /// Location of the copy
    #[arg(value_name = "TO", required_unless_present = "unseal")]
    to: Option<OsString>,

    /// Make FROM refuse changes, before it is copied
    #[arg(long)]
    seal: bool,

    /// Replace an interrupted copy at TO
    #[arg(long)]
    replace: bool,

    /// Let a sealed board accept changes again, and copy nothing
    #[arg(long, conflicts_with_all = ["to", "seal", "replace"])]
    unseal: bool,
}

impl Run for Copy {
    fn run(self, context: &Context) -> Result<Outcome> {
        let source = resolve(context, self.from, "FROM")?;
        let from = source.engine.name();
        let OpenStore { store, .. } = open_source(&source)?;
        let Some(to) = self.to.filter(|_| !self.unseal) else {
            let unsealed = store.unseal()?;
            return Ok(Outcome::new(Unsealed { from, unsealed }));
        };
        let target = resolve(context, to, "TO")?;
        let to = target.engine.name();
        let mut loading = target.engine.create_to_load(&target.config.database, self.replace)?;
        let sealing = if self.seal { Some(Sealing::of(&*store, &to)?) } else { None };
        let copied = copy_showing_progress(context, &*store, &mut *loading);
        let copied = match (copied, &sealing) {
            (Err(error), Some(sealing)) => return Err(sealing.undo_after(error)),
            (copied, _) => copied?,
        };
        if let Err(error) = loading.open() {
            if sealing.is_some() {
                warn(&format!("{from} stays sealed, because the copy may be complete"));
            }
            return Err(error);
        }
        Ok(Outcome::new(CopiedBoard { from, to, sealed: self.seal, copied }))
    }
}

fn resolve(context: &Context, board: OsString, argument: &str) -> Result<ResolvedBoard> {
    let location = location::find_named(&Request { db: Some(board), ..context.request() }, argument)?;
    context.resolve_at(&location, warn)
}

fn open_source(source: &ResolvedBoard) -> Result<OpenStore> {
    let opened = source.engine.open(&source.config.database, Opening::new(Mode::Existing))?;
    opened.ok_or_else(|| {
        Refusal::new(Code::BoardNotFound, format!("no board at {}", source.engine.name()))
            .hint("check the location of the board to copy")
            .into()
    })
}

fn copy_showing_progress(
    context: &Context,
    source: &dyn Store,
    target: &mut dyn LoadingBoard,
) -> Result<Copied> {
    let mut bar = ProgressBar::on_terminal(context.json());
    copy(source, target, &mut |progress| {
        let what = if progress.is_comparing { "Comparing" } else { "Copying" };
        bar.show(what, progress.done, progress.total);
    })
}

/// A source that was sealed for the copy.
struct Sealing<'a> {
    source: &'a dyn Store,
    is_ours: bool,
}

impl<'a> Sealing<'a> {
    fn of(source: &'a dyn Store, moved_to: &str) -> Result<Sealing<'a>> {
        Ok(Sealing { source, is_ours: source.seal(moved_to)? })
    }

    /// Lets the source accept changes again, because there is no copy.
    fn undo_after(&self, error: Error) -> Error {
        if self.is_ours
            && let Err(failed) = self.source.unseal()
        {
            warn(&format!("the source stays sealed: {failed}"));
        }
        error
    }
}

#[derive(Serialize)]
struct CopiedBoard {
    from: String,
    to: String,
    sealed: bool,
    #[serde(flatten)]
    copied: Copied,
}

impl CopiedBoard {
    fn count(&self, table: &str) -> u64 {
        self.copied.copied.get(table).copied().unwrap_or(0)
    }
}

impl Render for CopiedBoard {
    fn json(&self, answer: &mut Answer<'_>) -> output::Result {
        answer.object(self)
    }

    fn human(&self, screen: &mut Screen<'_>) -> output::Result {
        screen.line(format_args!(
            "Copied board: {} to {} (revision {})",
            escape(&self.from),
            escape(&self.to),
            self.copied.revision
        ))?;
        let rows: u64 =
            self.copied.copied.iter().filter(|(table, _)| is_rows(table)).map(|(_, count)| count).sum();
        let (events, versions) = (self.count("events"), self.count("entry_versions"));
        screen.line(format_args!(
            "Rows: {rows}, events: {events}, versions of entries: {versions}. Both boards are equal."
        ))?;
        if self.sealed {
            screen.line(format_args!("{} refuses changes from now on", escape(&self.from)))?;
        }
        Ok(())
    }
}

fn is_rows(table: &str) -> bool {
    !["events", "entry_versions"].contains(&table)
}

#[derive(Serialize)]
struct Unsealed {
    from: String,
    unsealed: bool,
}

impl Render for Unsealed {
    fn json(&self, answer: &mut Answer<'_>) -> output::Result {
        answer.object(self)
    }

    fn human(&self, screen: &mut Screen<'_>) -> output::Result {
        let from = escape(&self.from);
        if self.unsealed {
            screen.line(format_args!("Unsealed board: {from}"))
        } else {
            screen.line(format_args!("{from} was not sealed"))
        }
    }
}
