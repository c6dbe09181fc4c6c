//! The dashboard's server, as human and JSON output.

use std::cell::RefCell;
use std::sync::Arc;

use serde::Serialize;

use super::{Result, Screen, escape, time};
use crate::engine::Engine;
use crate::envelope::Answer;
use crate::outcome::Render;
use crate::web::{self, Listening, Running};

/// A sandboxed browser (snap, Flatpak) may not read the file that leads it to the page.
const IF_NOT_OPENED: &str = "If the page does not open, use the address above.";

/// The answer of `serve`, which runs until it is stopped.
pub struct Serving {
    listening: RefCell<Option<Listening>>,
    engine: Arc<dyn Engine>,
    open: bool,
}

#[derive(Serialize)]
struct ServerView<'a> {
    #[serde(flatten)]
    running: &'a Running,
    database: String,
}

impl Serving {
    /// A server of the board of this engine that has its port. `open`: the page is opened once it answers.
    pub fn new(listening: Listening, engine: Arc<dyn Engine>, open: bool) -> Serving {
        Serving { listening: RefCell::new(Some(listening)), engine, open }
    }

    fn run(&self, say: impl FnOnce(&Running, String) -> Result) -> Result {
        let Some(listening) = self.listening.borrow_mut().take() else { return Ok(()) };
        let running = listening.running();
        say(&running, self.engine.name())?;
        // Removed when the server ends.
        let _page = self.open.then(|| web::open(&running, self.engine.sidecars()));
        Ok(listening.run()?)
    }
}

impl Render for Serving {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        self.run(|running, database| {
            answer.object(&ServerView { running, database })?;
            answer.flush()
        })
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        self.run(|running, database| {
            screen.line(format_args!("Blackboard dashboard: {}", running.url()))?;
            screen.line(format_args!("Database: {}", escape(&database)))?;
            if self.open {
                screen.line(format_args!("{IF_NOT_OPENED}"))?;
            }
            screen.line(format_args!("Press Ctrl+C to stop"))?;
            screen.flush()
        })
    }
}

/// The answer of `serve --background`.
pub struct Background {
    /// The server.
    pub running: Running,
    /// Whether the page is opened in a browser.
    pub opens: bool,
}

impl Render for Background {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(&self.running)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        let (url, pid) = (self.running.url(), self.running.pid);
        screen.line(format_args!("Blackboard dashboard running in background"))?;
        screen.line(format_args!("URL:  {url}"))?;
        screen.line(format_args!("PID:  {pid}"))?;
        let stop = screen.command("serve --stop");
        screen.line(format_args!("Stop: {} (or kill {pid})", escape(&stop)))?;
        if self.opens { screen.line(format_args!("{IF_NOT_OPENED}")) } else { Ok(()) }
    }
}

/// The answer of `serve --status`.
pub struct ServerStatus(pub Option<Running>);

#[derive(Serialize)]
struct State<'a> {
    running: bool,
    #[serde(flatten)]
    server: Option<&'a Running>,
}

impl Render for ServerStatus {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(&State { running: self.0.is_some(), server: self.0.as_ref() })
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        let Some(running) = &self.0 else {
            return screen.line(format_args!("No dashboard of this board is running."));
        };
        let since = time::ago(screen.now().since(running.started_at));
        screen.line(format_args!("Blackboard dashboard: {}", running.url()))?;
        screen.line(format_args!("PID:  {} (started {since})", running.pid))
    }
}

/// The answer of `serve --stop`.
pub struct Stopped(pub Running);

impl Render for Stopped {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        answer.object(&self.0)
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        screen.line(format_args!("Stopped dashboard: {} (PID {})", self.0.address, self.0.pid))
    }
}
