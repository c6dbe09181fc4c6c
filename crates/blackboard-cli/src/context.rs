//! What every command is given: the global options, the environment, and the board once it is open (`open.rs`).

use std::cell::{OnceCell, RefCell};
use std::io;

use blackboard::clock::Timestamp;
use blackboard::entry::DEFAULT_SCOPE;
use blackboard::text::TextChanges;
use blackboard::{Board, Error, Result};

use crate::args::Globals;
use crate::commands::arguments::InScope;
use crate::envelope::{BoardState, Circumstances};
use crate::environment::Environment;
use crate::identity;
use crate::location;
use crate::open::ResolvedBoard;
use crate::output::{Screen, Tone, escape};

/// What a command knows beside its own arguments.
pub struct Context {
    /// The options that every command takes.
    pub globals: Globals,
    environment: Environment,
    /// The board of this call, once it was found.
    pub resolved: OnceCell<ResolvedBoard>,
    /// The board that this call has opened, and whether it writes. It is kept to the end of the process: closing a board
    /// costs as much as reading it.
    pub opened: RefCell<Option<(Board, bool)>>,
    /// What is special about this call.
    pub circumstances: RefCell<Circumstances>,
}

impl Context {
    /// The context of one call.
    pub fn new(globals: Globals) -> Context {
        Context {
            globals,
            environment: Environment::capture(),
            resolved: OnceCell::new(),
            opened: RefCell::new(None),
            circumstances: RefCell::default(),
        }
    }

    /// What this process was started with.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The scope that is named, or that of the environment, or the usual one.
    pub fn scope(&self, given: &InScope) -> Result<String> {
        match (&given.scope, &self.environment.scope) {
            (Some(scope), _) => Ok(scope.clone()),
            (None, Some(scope)) => {
                let text = scope.to_str().ok_or_else(|| Error::invalid("BLACKBOARD_SCOPE is not text"));
                text.map(str::to_owned)
            }
            (None, None) => Ok(DEFAULT_SCOPE.to_owned()),
        }
    }

    /// How many bytes the value of an entry may have.
    pub fn max_value_bytes(&self) -> Result<usize> {
        Ok(self.resolve()?.config.limits.max_value_bytes)
    }

    /// What a session is called here that was given no name.
    pub fn own_name(&self) -> Result<Option<String>> {
        Ok(identity::name(&self.environment, &self.resolve()?.config))
    }

    /// Where a session works that was started here.
    pub fn own_project(&self, board: &Board) -> Result<Option<String>> {
        identity::project(board, &self.request())
    }

    /// What the search for the board goes by.
    pub fn request(&self) -> location::Request {
        location::Request {
            db: self.globals.db.clone(),
            environment: self.environment.clone(),
            current_dir: std::env::current_dir().unwrap_or_default(),
        }
    }

    /// The tree of files that the call is made in.
    pub fn tree(&self) -> Result<location::Tree> {
        location::tree(&self.request())
    }

    /// Where the board would be, if a command looked for it and there is none.
    pub fn missing_board(&self) -> Option<String> {
        self.circumstances.borrow().board.filter(|state| *state == BoardState::Missing)?;
        self.resolved.get().map(|resolved| resolved.engine.name())
    }

    /// What is special about this call.
    pub fn circumstances(&self) -> Circumstances {
        self.circumstances.borrow().clone()
    }

    /// Prints a note in human output.
    pub fn note(&self, text: &str) {
        if !self.globals.json {
            note(text);
        }
    }

    /// Reports text that is not stored as it was given; JSON answers have it in their fields.
    pub fn note_text(&self, changes: &TextChanges) {
        if let Some(sentence) = changes.sentence() {
            self.note(&sentence);
        }
    }
}

/// Prints on stderr what a person should know beside the answer.
pub fn note(text: &str) {
    print(Tone::Plain, "note:", text);
}

/// Prints on stderr what is odd, but stops nothing.
pub fn warn(warning: &str) {
    print(Tone::Caution, "warning:", warning);
}

fn print(tone: Tone, kind: &str, text: &str) {
    let mut stderr = io::stderr().lock();
    let mut screen = Screen::of_stderr(&mut stderr, Timestamp::EPOCH);
    let styles = screen.styles();
    // There is no other place to report that this failed.
    let _ = screen.line(format_args!("{} {}", styles.paint(tone, kind), escape(text)));
}
