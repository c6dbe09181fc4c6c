//! `blackboard render`

mod file;

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use blackboard::follow::{Follow, Follower, Start};
use blackboard::swarm::{Dialect, SwarmView};
use blackboard::{Board, Code, Error, Refusal, Result, Revision};

use self::file::TargetFile;
use super::Run;
use super::arguments::{ReadAs, ScopeOption};
use super::interrupt::watch_signals;
use crate::context::{Context, warn};
use crate::envelope::Answer;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::render::RenderedFile;
use crate::output::{self, Screen};

/// The longest wait of a follower: after this time it notices that it is asked to end.
const TICK: Duration = Duration::from_millis(200);

/// How long changes are collected at most, if the board never rests.
const LONGEST_DELAY: Duration = Duration::from_secs(1);

/// How many events are read at once.
const BATCH: usize = 1000;

/// Render the board as a Markdown file for people
///
/// Writes tasks, entries, signals and recent events into FILE, a swarm-blackboard.md. Only the text between the
/// markers (<!-- blackboard:begin … -->) is replaced; the rest of the file stays byte for byte. A new file is created
/// for you alone, an existing one keeps its mode.
///
/// An empty file gets all sections. A swarm-blackboard.md of another program gets markers: its entries that the board has too
/// are then between them, the others stay and are reported. A file that does not begin with "# Swarm Blackboard" is
/// refused. So is a scope that does not exist, if the file shows entries of another one (exit 3).
///
/// --follow renders again after changes, until Ctrl+C. While the file cannot be rendered, for example because a marker is
/// missing, it warns once and waits until the file is repaired. It ends if the session may no longer read the scope.
///
/// Examples:
///   blackboard render swarm-blackboard.md
///   blackboard render swarm-blackboard.md --dialect C
///   blackboard render swarm-blackboard.md --follow
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Render {
    /// File to write
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Form of the entries: A as the Python script writes them, B and C as the TypeScript versions 2 and 5 do
    #[arg(long, value_name = "DIALECT", default_value = "A", value_parser = ["A", "B", "C"], ignore_case = true)]
    dialect: String,

    /// Render again after changes
    #[arg(long, short)]
    follow: bool,

    #[command(flatten)]
    reader: ReadAs,

    #[command(flatten)]
    scope: ScopeOption,
}

impl Run for Render {
    fn run(self, context: &Context) -> Result<Outcome> {
        let scope = context.scope(&self.scope)?;
        let dialect: Dialect = self.dialect.parse()?;
        if self.file.as_os_str() == "-" {
            return Err(Refusal::new(Code::InvalidValue, "a render goes to a file, not to standard output")
                .hint("name a file")
                .into());
        }
        // Also while a file is written: a signal then leaves no temporary file behind.
        let interrupted = watch_signals();
        let (board, caller) = context.open(Access::follow(None))?;
        let board = self.reader.apply(board)?;
        let renderer = Renderer { board, scope, dialect, target: TargetFile::new(self.file) };
        let first = renderer.write(&renderer.view()?)?;
        if !self.follow {
            if let Some(note) = first.note(|words| context.given_options().command(words)) {
                context.note(&note);
            }
            return Ok(Outcome::new(first));
        }
        let start = Start::Revision(first.revision);
        let follow = Follow { start, caller, without_values: true, ..Follow::default() };
        let follower = RefCell::new(renderer.board.follow(&follow)?);
        Ok(Outcome::new(Following { renderer, first, follower, interrupted }))
    }
}

/// A board, and the file that shows it.
struct Renderer {
    board: Board,
    scope: String,
    dialect: Dialect,
    target: TargetFile,
}

impl Renderer {
    /// What the file is to show. A refusal is about the caller or the scope.
    fn view(&self) -> Result<SwarmView> {
        self.board.swarm_view(&self.scope)
    }

    /// Writes it into the file. A refusal is about the file.
    fn write(&self, view: &SwarmView) -> Result<RenderedFile> {
        let written = self.target.write(view, self.dialect)?;
        Ok(RenderedFile {
            file: self.target.name(),
            dialect: self.dialect,
            revision: view.revision,
            entries: view.entries.len(),
            changed: written.changed,
            left: written.left,
            scope: self.scope.clone(),
        })
    }
}

/// The answer of `render --follow`, which ends with a signal.
struct Following {
    renderer: Renderer,
    first: RenderedFile,
    follower: RefCell<Follower>,
    interrupted: Arc<AtomicBool>,
}

impl Following {
    /// Reports each render.
    fn each(&self, mut show: impl FnMut(&RenderedFile) -> output::Result) -> output::Result {
        show(&self.first)?;
        // What the file does not show yet with the state of the file, and the warning about it.
        let (mut waiting, mut warned) = (None, String::new());
        while !self.is_interrupted() {
            let is_changed = self.read_to_end()?.is_some();
            if self.is_interrupted() {
                break;
            }
            let state = self.renderer.target.state();
            let view = match waiting.take() {
                _ if is_changed => self.renderer.view()?,
                Some((view, before)) if before == state => view,
                // The person is saving the file. A render of its first half would lose the second.
                Some((view, _)) => {
                    waiting = Some((view, state));
                    continue;
                }
                None => continue,
            };
            match self.renderer.write(&view) {
                Ok(rendered) => {
                    warned.clear();
                    if rendered.changed {
                        show(&rendered)?;
                    }
                }
                // A person is editing the file, which is no event of the board.
                Err(error @ Error::Refusal(_)) => {
                    let text = error.to_string();
                    if text != warned {
                        warn(&text);
                        warned = text;
                    }
                    waiting = Some((view, state));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads the event log to its end: many writes are one render. `None` if there was no event.
    fn read_to_end(&self) -> Result<Option<Revision>> {
        let mut follower = self.follower.borrow_mut();
        let (mut last, mut wait) = (None, TICK);
        let mut until = None;
        loop {
            match follower.next_batch(BATCH, wait) {
                Ok(Some(batch)) => {
                    last = Some(batch.last);
                    follower.acknowledge(batch.last)?;
                }
                Ok(None) => {}
                // Pruned events have changed the board as well.
                Err(error) if error.code() == Code::Compacted => last = Some(follower.position()),
                Err(error) if error.code() == Code::Busy => {}
                Err(error) => return Err(error),
            }
            wait = Duration::ZERO;
            let until = *until.get_or_insert_with(|| Instant::now() + LONGEST_DELAY);
            if follower.has_caught_up() || last.is_none() || Instant::now() >= until || self.is_interrupted()
            {
                return Ok(last);
            }
        }
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

impl crate::outcome::Render for Following {
    fn json(&self, answer: &mut Answer<'_>) -> output::Result {
        self.each(|rendered| answer.lines(std::slice::from_ref(rendered)))
    }

    fn human(&self, screen: &mut Screen<'_>) -> output::Result {
        let mut noted = None;
        self.each(|rendered| {
            crate::outcome::Render::human(rendered, screen)?;
            let note = rendered.note(|words| screen.command(words));
            if note != noted {
                if let Some(note) = &note {
                    crate::context::note(note);
                }
                noted = note;
            }
            screen.flush()
        })
    }
}
