//! `blackboard serve`

use blackboard::{Code, Result};

use super::Run;
use crate::context::Context;
use crate::outcome::Outcome;
use crate::output::serve::{Background, Found, Serving, Stopped};
use crate::web::{self, Listening, Options};

/// Show the board in a browser
///
/// Serves a page on this machine alone that shows agents, work, entries, locks and what happens, live. It only shows: it
/// opens the board to read, and neither marks the dead nor removes what has expired. There is one server a board. It runs
/// until Ctrl+C, unless it is started with --background. Pages of other sites get no answer; for another machine, tunnel
/// the port with ssh. docs/dashboard.md has the API.
///
/// Examples:
///   blackboard serve
///   blackboard serve --port 8080 --open
///   blackboard serve --background
///   blackboard serve --status
///   blackboard serve --stop
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Serve {
    /// The port; 0 for any that is free [default: webServer.port of the configuration, or 3141]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,

    /// Go on in the background, and say how to stop it
    #[arg(long)]
    background: bool,

    /// Open the page in the browser
    #[arg(long)]
    open: bool,

    /// Stop the server of this board
    #[arg(long, conflicts_with_all = ["port", "background", "open", "status"])]
    stop: bool,

    /// Say whether a server of this board runs, and where; exit code 3 if not
    #[arg(long, conflicts_with_all = ["port", "background", "open"])]
    status: bool,

    /// Leave the terminal that it was started from
    #[arg(long, hide = true)]
    detached: bool,
}

impl Run for Serve {
    fn run(self, context: &Context) -> Result<Outcome> {
        let place = context.place()?;
        if self.stop {
            return Ok(Outcome::new(Stopped(web::stop(&place.file)?)));
        }
        if self.status {
            let running = web::find(&place.file);
            let outcome = Outcome::new(Found(running.clone()));
            return Ok(if running.is_some() { outcome } else { outcome.that_means(Code::NotRunning) });
        }
        let port = self.port.unwrap_or(place.config.web_server.port);
        // What can't be shown is better said here than on a page.
        context.opener()?.checking_git().open_to_read()?;
        if self.background {
            let started = web::start_in_background(context, port)?;
            let url = started.url.clone();
            let outcome =
                Outcome::new(Background { running: started, names_board: context.globals.db.is_some() });
            return Ok(if self.open { outcome.after_flush(move || web::open(&url)) } else { outcome });
        }
        if self.detached {
            web::detach();
        }
        let host = place.config.web_server.host;
        let listening = Listening::bind(context, Options { host, port, to_be_found: self.detached })?;
        Ok(Outcome::new(Serving::new(listening, place.file.clone(), self.open)))
    }
}
