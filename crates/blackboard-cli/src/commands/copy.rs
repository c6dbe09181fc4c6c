//! `blackboard copy`

mod interruption;

use blackboard::copy::{Copied, copy};
use blackboard::store::{LoadingBoard, Store};
use blackboard::text::shell_word;
use blackboard::{Code, Refusal, Result};
use serde::Serialize;

use self::interruption::{Interruptible, Interruption};
use super::Run;
use crate::context::{Context, warn};
use crate::engine::{Mode, OpenStore};
use crate::envelope::Answer;
use crate::location::{self, BoardName, Request, without_password};
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
///   blackboard copy .blackboard/local.db 'redis://host/0?board=team' --seal
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Copy {
    /// Location of the board
    #[arg(value_name = "FROM")]
    from: BoardName,

    /// Location of the copy
    #[arg(value_name = "TO", required_unless_present = "unseal")]
    to: Option<BoardName>,

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
        let words = |name: &BoardName| shell_word(&without_password(&name.to_string_lossy())).into_owned();
        let (from_word, to_word) = (words(&self.from), self.to.as_ref().map(words).unwrap_or_default());
        let source = resolve(context, self.from, "FROM")?;
        let target = self.to.map(|to| resolve(context, to, "TO")).transpose()?;
        let from = source.engine.name();
        let OpenStore { store, .. } = open_source(context, &source)?;
        let Some(target) = target else {
            let unsealed = store.unseal()?;
            return Ok(Outcome::new(Unsealed { from, unsealed }));
        };
        let to = target.engine.name();
        let mut loading = target.engine.create_to_load(
            &target.config.database,
            context.opening(Mode::Create),
            self.replace,
        )?;
        let interruption = if self.seal { Interruption::watch() } else { Interruption::default() };
        let copy_again = format!("To copy again: blackboard copy {from_word} {to_word} --seal --replace");
        let sealing = self.seal.then(|| Sealing::of(&*store, &to)).transpose().inspect_err(|_| {
            warn(&format!("{to} is an empty copy that cannot be used. {copy_again}"));
        })?;
        let mut target = Interruptible { target: &mut *loading, interruption: &interruption };
        let copied = copy_showing_progress(context, &*store, &mut target);
        let unseal = format!("blackboard copy --unseal {from_word}");
        let copied = match (copied, &sealing) {
            (Err(error), Some(sealing)) => {
                let is_sealed = sealing.undo();
                if let Some(reason) = &is_sealed {
                    warn(&format!("{from} stays sealed: {reason}. To unseal it: {unseal}"));
                }
                if interruption.is_requested() {
                    let state = if is_sealed.is_some() { "" } else { "the source accepts changes; " };
                    warn(&format!("interrupted: {state}{to} is an incomplete copy. {copy_again}"));
                    interruption.end_process();
                }
                return Err(error);
            }
            (copied, _) => copied?,
        };
        if let Err(error) = loading.open() {
            if sealing.is_some() {
                warn(&format!(
                    "{from} stays sealed, because the copy may be complete. To unseal it: {unseal}"
                ));
            }
            return Err(error);
        }
        Ok(Outcome::new(CopiedBoard { from, to, sealed: self.seal, copied }))
    }
}

fn resolve(context: &Context, board: BoardName, argument: &str) -> Result<ResolvedBoard> {
    let location = location::find_named(&Request { db: Some(board), ..context.request() }, argument)?;
    context.note_password_in_arguments(&location);
    context.resolve_at(&location, warn)
}

fn open_source(context: &Context, source: &ResolvedBoard) -> Result<OpenStore> {
    let opened = source.engine.open(&source.config.database, context.opening(Mode::Existing))?;
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

    /// Lets the source accept changes again, because there is no copy. Returns why it stays sealed, if it does.
    fn undo(&self) -> Option<String> {
        if self.is_ours {
            self.source.unseal().err().map(|error| error.to_string())
        } else {
            Some("it was sealed before".to_owned())
        }
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
