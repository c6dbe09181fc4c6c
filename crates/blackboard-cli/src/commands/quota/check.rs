//! `blackboard quota check`

use std::thread;
use std::time::{Duration, Instant};

use blackboard::quota::{Check as Checked, Ledger, Reason, Reserved, TokenRequest};
use blackboard::text::grouped;
use blackboard::{Code, Refusal, Result, duration};

use super::tokens;
use crate::commands::Run;
use crate::commands::arguments::{Session, length};
use crate::context::Context;
use crate::outcome::Outcome;
use crate::output::quota::CheckedQuota;
use crate::quota::{Caller, does_not_fit, ledger, located};

/// How long a reservation is held by default.
const TTL: Duration = Duration::from_hours(1);

/// How often a waiting call checks again: any process may release tokens.
const POLL: Duration = Duration::from_millis(500);

/// Check whether tokens fit, and reserve them
///
/// Exits with 0 if the tokens fit into every window after what is used, reserved and kept for you; otherwise exits with 4
/// and prints why, and when they would fit. --reserve holds them for the session, in one transaction, until
/// `quota release`, the end of the session or --ttl. --wait waits until they fit, and exits with 6 after --timeout.
///
/// Examples:
///   blackboard quota check --tokens 30000
///   blackboard quota check --tokens 30k --item design-schema --reserve --ttl 20m
///   blackboard quota check --tokens 30k --reserve --wait --timeout 10m
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Check {
    /// Number of tokens: 30000, 30k or 1.5M
    #[arg(long, value_name = "N", value_parser = tokens)]
    tokens: u64,

    /// Work item that they are for
    #[arg(long, value_name = "ID")]
    item: Option<String>,

    /// Provider [default: that of the model, or the only one]
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,

    /// Model that uses them
    #[arg(long, value_name = "NAME")]
    model: Option<String>,

    /// Hold the tokens for the session if they fit
    #[arg(long)]
    reserve: bool,

    /// Time to live of the reservation: 90s, 15m, 1h, 2d; a bare number is seconds [default: 1h]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, requires = "reserve")]
    ttl: Option<String>,

    /// Wait until they fit
    #[arg(long)]
    wait: bool,

    /// Give up after this long
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, requires = "wait")]
    timeout: Option<String>,

    #[command(flatten)]
    session: Session,
}

impl Run for Check {
    fn run(self, context: &Context) -> Result<Outcome> {
        let (ttl, timeout) = (length(self.ttl.as_deref())?.unwrap_or(TTL), length(self.timeout.as_deref())?);
        let caller = Caller::find(context, &self.session)?;
        let (location, ledger) = (located(context)?, ledger(context)?);
        // What the ledger says is the answer, whether or not the board can be written.
        let _ = caller.announce(context, &ledger);
        let provider = ledger.provider_for(self.provider.as_deref(), self.model.as_deref())?;
        if let Some(item) = &self.item {
            caller.note_unknown_item(context, item);
        }
        let request = TokenRequest {
            provider,
            tokens: self.tokens,
            agent: caller.agent.clone(),
            board: Some(caller.name.clone()),
            session: caller.session.clone(),
            item: self.item,
        };
        let (began, mut refused) = (Instant::now(), 0);
        loop {
            caller.release_ended(&ledger, &location)?;
            let reserved = attempt(&ledger, &request, self.reserve.then_some(ttl))?;
            if reserved.check.fits {
                return Ok(Outcome::new(CheckedQuota(reserved)));
            }
            // Nothing that leaves a window or is released would be enough.
            if !self.wait || !can_ever_fit(&ledger, &request, &reserved.check) {
                return Err(refusal(&ledger, &reserved.check, self.wait).into());
            }
            let waited = began.elapsed();
            if timeout.is_some_and(|timeout| waited >= timeout) {
                let mut refusal = refusal(&ledger, &reserved.check, true);
                refusal.code = Code::TimedOut;
                refusal.message = format!("timed out after {}: {}", duration::short(waited), refusal.message);
                return Err(refusal.into());
            }
            refused += 1;
            // A call that is about to end says so itself.
            if refused == 2 {
                context.note(&format!("waiting: {}", refusal(&ledger, &reserved.check, true).message));
            }
            thread::sleep(timeout.map_or(POLL, |timeout| POLL.min(timeout.saturating_sub(waited))));
        }
    }
}

fn attempt(ledger: &Ledger, request: &TokenRequest, ttl: Option<Duration>) -> Result<Reserved> {
    match ttl {
        Some(ttl) => ledger.reserve(request, ttl),
        None => Ok(Reserved { check: ledger.check(request)?, reservation: None }),
    }
}

/// Whether the tokens would fit if nothing else was used. What a session has used stays with it.
fn can_ever_fit(ledger: &Ledger, request: &TokenRequest, check: &Checked) -> bool {
    if let Some(Reason::Session { cap, used, .. }) = check.reason
        && used.saturating_add(request.tokens) > cap
    {
        return false;
    }
    ledger.config().providers.get(&request.provider).is_some_and(|provider| {
        let fits = |budget: u64| budget.saturating_sub(provider.operator()) >= request.tokens;
        provider.windows().iter().all(|window| fits(window.budget))
    })
}

/// Why they do not fit, and when they would.
fn refusal(ledger: &Ledger, check: &Checked, has_waited: bool) -> Refusal {
    let Checked { tokens, provider, reason, fits_at, .. } = check;
    let why = reason.as_ref().map(ToString::to_string).unwrap_or_default();
    let message = format!("{} tokens of {provider} do not fit: {why}", grouped(*tokens));
    let hint = match fits_at {
        Some(moment) => {
            let left = duration::human(moment.since(ledger.now()));
            let wait = if has_waited { "" } else { "; wait for that with --wait" };
            format!("they fit in {left}, if nothing else is used{wait}")
        }
        None => "see what is used: blackboard quota status".to_owned(),
    };
    does_not_fit(message, check).hint(hint)
}
