//! `blackboard serve`

use std::sync::Arc;

use blackboard::{Code, Result};

use super::Run;
use super::arguments::port;
use crate::context::{Context, warn};
use crate::engine::Mode;
use crate::outcome::Outcome;
use crate::output::serve::{Background, ServerStatus, Serving, Stopped};
use crate::quota::QuotaReader;
use crate::web::{self, Listening, Options};

/// Serve a live dashboard for your browser
///
/// Serves a read-only page on this machine with agents, work, entries, locks and events as they change. Runs until
/// Ctrl+C, or in the background with --background. There is one server per board. Listens on 127.0.0.1 only, and needs
/// the token in the printed address.
///
/// Examples:
///   blackboard serve
///   blackboard serve --background
///   blackboard serve --status
///   blackboard serve --stop
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct Serve {
    /// Port; 0 means any free one [default: webServer.port of the configuration, or 3141]
    #[arg(long, value_name = "PORT", value_parser = port)]
    port: Option<u16>,

    /// Run in the background
    #[arg(long)]
    background: bool,

    /// Open the page in your browser
    #[arg(long)]
    open: bool,

    /// Accept requests without the token, also from other users of this machine
    #[arg(long)]
    no_token: bool,

    /// Stop the server of this board
    #[arg(long, conflicts_with_all = ["port", "background", "open", "no_token", "status"])]
    stop: bool,

    /// Print the address of the running server; exits with 3 if there is none
    #[arg(long, conflicts_with_all = ["port", "background", "open", "no_token"])]
    status: bool,

    /// Leave the terminal that it was started from
    #[arg(long, hide = true)]
    detached: bool,
}

impl Run for Serve {
    fn run(self, context: &Context) -> Result<Outcome> {
        let resolved = context.resolve()?;
        let sidecars = resolved.engine.sidecars();
        if self.stop {
            return Ok(Outcome::new(Stopped(web::stop(sidecars)?)));
        }
        if self.status {
            let running = web::find(sidecars);
            let outcome = Outcome::new(ServerStatus(running.clone()));
            return Ok(if running.is_some() { outcome } else { outcome.that_means(Code::NotRunning) });
        }
        let port = self.port.unwrap_or(resolved.config.web_server.port);
        // What cannot be shown is better said here than on a page.
        resolved.open(context.opening(Mode::ReadOnly))?;
        if self.no_token && !self.detached {
            warn("without a token every user of this machine can read this board");
        }
        if self.background {
            let started = web::start_in_background(context, port, !self.no_token)?;
            let (running, engine) = (started.clone(), Arc::clone(&resolved.engine));
            let outcome = Outcome::new(Background { running: started, opens: self.open });
            // The server removes what leads the browser to it.
            let open = move || web::open(&running, engine.sidecars()).keep();
            return Ok(if self.open { outcome.after_flush(open) } else { outcome });
        }
        if self.detached {
            web::detach();
        }
        let host = resolved.config.web_server.host;
        let options = Options { host, port, to_be_found: self.detached, token: !self.no_token };
        let quota = QuotaReader::of(&resolved.config, || context.request());
        let listening = Listening::bind(resolved.clone(), context.db().is_some(), options)?.with_quota(quota);
        Ok(Outcome::new(Serving::new(listening, Arc::clone(&resolved.engine), self.open)))
    }
}
