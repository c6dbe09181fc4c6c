//! Claims of work items within the quota.
//!
//! With `enforce: deny`, the estimate of an item is reserved before the claim, in one transaction of the ledger: of many
//! claims only as many succeed as fit together. The reservation is short until the item is claimed, so that a process that
//! ends between the two keeps nothing from others for long. With `warn`, the claim comes first and always succeeds.
//!
//! Without a configured quota there is no [`ItemQuota`], and no function here does more than the verb of the board.

use std::time::Duration;

use blackboard::quota::{Check, Enforcement, Ledger, Reason, Reservation, Reserved, TokenRequest};
use blackboard::text::grouped;
use blackboard::work::{Claim, ClaimNext, Claimed, WorkItem};
use blackboard::{Board, Code, Error, Refusal, Result, duration};

use super::ended::{OwnBoard, release_ended};
use super::item_tokens::{AddedTokens, ClaimCheck};
use super::ledger_location::LedgerLocation;
use super::{does_not_fit, fold, refusal_of};
use crate::context::Context;
use crate::location;
use crate::open::ResolvedBoard;

/// How long the tokens of a claimed item are reserved.
const TTL: Duration = Duration::from_hours(24);

/// How long they are reserved until the item is claimed.
const BEFORE_CLAIM: Duration = Duration::from_mins(1);

/// How often a claim of the next item is tried while other sessions claim and reserve.
const MOST_ATTEMPTS: usize = 100;

/// The quota as claims on one board use it.
pub struct ItemQuota {
    pub(super) location: LedgerLocation,
    /// The name of the board in the ledger.
    pub(super) board: String,
}

/// What is held for a claim: with each provider that its session may use.
struct Held {
    /// The check that leaves least.
    check: Check,
    /// Empty if the tokens do not fit, or if there is nothing to hold.
    reservations: Vec<Reservation>,
}

/// Claims an item. With `deny`, refuses an item that does not fit.
pub fn claim(quota: Option<&ItemQuota>, board: &Board, claim: &Claim) -> Result<(Claimed, AddedTokens)> {
    let Some(quota) = quota else { return Ok((board.work().claim(claim)?, None)) };
    let (claimed, check) = match quota.location.config().enforcement() {
        Enforcement::Warn => quota.report(board, board.work().claim(claim)?),
        Enforcement::Deny => quota.claim_if_it_fits(board, claim)?,
    };
    let tokens = quota.tokens_of(board, &claimed.item, check);
    Ok((claimed, Some(Box::new(tokens))))
}

/// Claims the next item. With `deny`, skips items that do not fit.
pub fn claim_next(
    quota: Option<&ItemQuota>,
    board: &Board,
    next: &ClaimNext,
) -> Result<(Claimed, AddedTokens)> {
    let Some(quota) = quota else { return Ok((board.work().claim_next(next)?, None)) };
    let (claimed, check) = match quota.location.config().enforcement() {
        Enforcement::Warn => quota.report(board, board.work().claim_next(next)?),
        Enforcement::Deny => quota.claim_next_that_fits(board, next)?,
    };
    let tokens = quota.tokens_of(board, &claimed.item, check);
    Ok((claimed, Some(Box::new(tokens))))
}

/// Releases what is reserved for items that no session works on any more. A failure is left to the end of the session or of
/// the reservation: what the command did is done.
pub fn release_items<'i>(quota: Option<&ItemQuota>, items: impl IntoIterator<Item = &'i str>) {
    let Some(quota) = quota else { return };
    if let Ok(Some(ledger)) = quota.location.open() {
        for item in items {
            let _ = ledger.release_item(&quota.board, item);
        }
    }
}

/// Releases what a session has reserved for an item that it has released. Another session may hold the item already, and keeps
/// its own reservation. A failure is left to the end of the session, as in [`release_items`].
pub fn release_claim(quota: Option<&ItemQuota>, session: &str, item: &str) {
    let Some(quota) = quota else { return };
    if let Ok(Some(ledger)) = quota.location.open() {
        let _ = ledger.release_claim(&quota.board, session, item);
    }
}

/// Releases what sessions that have ended have reserved. A failure is left to the next check, as in [`release_items`].
pub fn release_sessions<'s>(quota: Option<&ItemQuota>, sessions: impl IntoIterator<Item = &'s str>) {
    let Some(quota) = quota else { return };
    if let Ok(Some(ledger)) = quota.location.open() {
        for session in sessions {
            let _ = ledger.release_session(&quota.board, session);
        }
    }
}

impl ItemQuota {
    /// The quota of a command, if one is configured.
    pub fn of(context: &Context) -> Result<Option<ItemQuota>> {
        let resolved = context.resolve()?;
        Ok(ItemQuota::on(resolved, || context.request()))
    }

    /// The quota of a claim. A quota that would deny claims and is not valid denies all of them.
    pub fn of_claim(context: &Context) -> Result<Option<ItemQuota>> {
        ItemQuota::of_claim_on(context.resolve()?, || context.request())
    }

    /// The same for a located board.
    pub fn of_claim_on(
        resolved: &ResolvedBoard,
        request: impl FnOnce() -> location::Request,
    ) -> Result<Option<ItemQuota>> {
        match &resolved.config.invalid_quota {
            Some(invalid) if invalid.denies => Err(refusal_of(invalid)),
            _ => Ok(ItemQuota::on(resolved, request)),
        }
    }

    /// The quota for a located board.
    pub fn on(resolved: &ResolvedBoard, request: impl FnOnce() -> location::Request) -> Option<ItemQuota> {
        let location = LedgerLocation::of(&resolved.config, request)?.beside_the_board();
        let board = location.board_names().of(&resolved.engine.name());
        Some(ItemQuota { location, board })
    }

    /// Checks and reserves after a claim, which stands in any case. An item that the session held already may be without a
    /// reservation: its process was killed after the claim, or the item was reassigned.
    fn report(&self, board: &Board, claimed: Claimed) -> (Claimed, Option<ClaimCheck>) {
        if claimed.already_held && claimed.item.estimate().is_none() {
            return (claimed, None);
        }
        let reserve = || {
            let ledger = self.location.create()?;
            if claimed.already_held && self.is_reserved(&ledger, &claimed.item)? {
                return Ok(None);
            }
            let requests = self.of_each_provider(&ledger, &self.request_of(&claimed.item))?;
            let held = self.reserve(&ledger, board, &requests, TTL)?;
            Ok(Some(ClaimCheck::Checked(held.check)))
        };
        let check = reserve()
            .unwrap_or_else(|error| Some(ClaimCheck::Unknown { error: self.unusable(error).to_string() }));
        (claimed, check)
    }

    /// Whether the tokens of a claimed item are kept for its holder.
    fn is_reserved(&self, ledger: &Ledger, item: &WorkItem) -> Result<bool> {
        let is_kept = |held: &Reservation| {
            held.board == self.board
                && held.item == item.item_id
                && item.is_held_by(&held.session)
                && held.expires_at > held.created_at.plus(BEFORE_CLAIM)
        };
        Ok(ledger.reservations()?.iter().any(is_kept))
    }

    fn claim_if_it_fits(&self, board: &Board, claim: &Claim) -> Result<(Claimed, Option<ClaimCheck>)> {
        let unusable = |error| self.unusable(error);
        let item = match board.work().show(&claim.id) {
            Err(error) if error.code() == Code::WorkNotFound && claim.create.is_some() => None,
            item => Some(item?),
        };
        if item.as_ref().is_some_and(|item| item.is_held_by(&claim.session)) {
            return Ok(self.report(board, board.work().claim(claim)?));
        }
        let ledger = self.ledger_with_spool()?;
        let estimate = match &item {
            Some(item) => item.estimate(),
            None => claim.create.as_ref().and_then(|create| create.estimate),
        };
        // A session that is registered with the claim has no id yet, and is one more agent.
        let session = match &claim.register {
            Some(_) => format!("starting in process {}", std::process::id()),
            None => claim.session.clone(),
        };
        let request = self.request(&session, Some(claim.id.clone()), estimate.unwrap_or(0));
        let requests = self.of_each_provider(&ledger, &request).map_err(unusable)?;
        let held = self.reserve(&ledger, board, &requests, BEFORE_CLAIM).map_err(unusable)?;
        if !held.check.fits {
            // Tokens would not help with an item that the session cannot have.
            if item.is_some() {
                board.work().check_claimable(&claim.id)?;
            }
            return Err(refusal(&ledger, &claim.id, &held.check));
        }
        match board.work().claim(claim) {
            Ok(claimed) => Ok(self.keep(&ledger, claimed, held)),
            Err(error) => {
                give_up(&ledger, &held.reservations);
                Err(error)
            }
        }
    }

    /// Reserves the estimate of the item that is next, and claims the first item that needs no more than that. Usually these
    /// are the same; if another session was faster, it is one that fits into the same tokens.
    fn claim_next_that_fits(&self, board: &Board, next: &ClaimNext) -> Result<(Claimed, Option<ClaimCheck>)> {
        let unusable = |error| self.unusable(error);
        let ledger = self.ledger_with_spool()?;
        let requests = |tokens, item| {
            let request = self.request(&next.session, item, tokens);
            self.of_each_provider(&ledger, &request).map_err(unusable)
        };
        let any = requests(0, None)?;
        let mut has_released = false;
        for _ in 0..MOST_ATTEMPTS {
            let caps = self.check(&ledger, board, &any).map_err(unusable)?;
            let is_full = matches!(caps.reason, Some(Reason::Window { .. }));
            if !caps.fits && !is_full {
                return Err(refusal(&ledger, "", &caps));
            }
            let most_tokens = most_tokens(&ledger, &any).map_err(unusable)?;
            let first = match board.work().next(&ClaimNext { most_tokens, ..next.clone() }) {
                Ok(item) if is_full => return Err(refusal(&ledger, &item.item_id, &caps)),
                Ok(item) => Some(item),
                // The claim looks for items of processes that are gone.
                Err(error) if error.code() == Code::NothingAvailable && !is_full => None,
                Err(error) if error.code() == Code::QuotaExceeded && !has_released => {
                    has_released = true;
                    self.release_ended(&ledger, board, Some(&next.session)).map_err(unusable)?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let tokens = first.as_ref().and_then(WorkItem::estimate).unwrap_or(0);
            let requests = requests(tokens, first.as_ref().map(|item| item.item_id.clone()))?;
            let held = self.reserve(&ledger, board, &requests, BEFORE_CLAIM).map_err(unusable)?;
            if !held.check.fits {
                continue;
            }
            match board.work().claim_next(&ClaimNext { most_tokens: Some(tokens), ..next.clone() }) {
                Ok(claimed) => return Ok(self.keep(&ledger, claimed, held)),
                Err(error) => {
                    give_up(&ledger, &held.reservations);
                    let is_lost = match error.code() {
                        Code::QuotaExceeded => true,
                        Code::NothingAvailable => first.is_some(),
                        _ => false,
                    };
                    if !is_lost {
                        return Err(error);
                    }
                }
            }
        }
        Err(Refusal::new(Code::Conflict, "other sessions claimed every item first").hint("retry").into())
    }

    /// Checks the requests, and reserves their tokens if all fit.
    fn reserve(
        &self,
        ledger: &Ledger,
        board: &Board,
        requests: &[TokenRequest],
        ttl: Duration,
    ) -> Result<Held> {
        let (mut checks, mut reservations) = (Vec::new(), Vec::new());
        for request in requests {
            let reserved = self.reserve_with_provider(ledger, board, request, ttl);
            let reserved = reserved.inspect_err(|_| give_up(ledger, &reservations))?;
            reservations.extend(reserved.reservation);
            if !reserved.check.fits {
                give_up(ledger, &reservations);
                return Ok(Held { check: reserved.check, reservations: Vec::new() });
            }
            checks.push(reserved.check);
        }
        Ok(Held { check: tightest(checks)?, reservations })
    }

    /// The same for one provider. An item without an estimate reserves nothing, unless its session has to be counted.
    fn reserve_with_provider(
        &self,
        ledger: &Ledger,
        board: &Board,
        request: &TokenRequest,
        ttl: Duration,
    ) -> Result<Reserved> {
        let provider = self.location.config().providers.get(&request.provider);
        let counts_agents =
            provider.is_some_and(|provider| provider.reservation.agents.max_concurrent.is_some());
        if request.tokens == 0 && !counts_agents {
            let check = self.check(ledger, board, std::slice::from_ref(request))?;
            return Ok(Reserved { check, reservation: None });
        }
        let reserved = ledger.reserve_for_claim(request, ttl)?;
        if !reserved.check.fits && self.release_ended(ledger, board, request.session.as_deref())? > 0 {
            return ledger.reserve_for_claim(request, ttl);
        }
        Ok(reserved)
    }

    /// The first check that fails, or the one that leaves least.
    fn check(&self, ledger: &Ledger, board: &Board, requests: &[TokenRequest]) -> Result<Check> {
        let mut checks = Vec::new();
        for request in requests {
            let mut check = ledger.check(request)?;
            if !check.fits && self.release_ended(ledger, board, request.session.as_deref())? > 0 {
                check = ledger.check(request)?;
            }
            if !check.fits {
                return Ok(check);
            }
            checks.push(check);
        }
        tightest(checks)
    }

    /// The request for each provider that its session may use. A session that has not used any yet may use all of them, unless
    /// the configuration has a default: not to know it must not let a claim pass.
    fn of_each_provider(&self, ledger: &Ledger, request: &TokenRequest) -> Result<Vec<TokenRequest>> {
        let session = request.session.as_deref().unwrap_or_default();
        let providers = ledger.providers_of_session(&self.board, session)?.into_iter();
        Ok(providers.map(|provider| TokenRequest { provider, ..request.clone() }).collect())
    }

    /// A request whose provider is not known yet.
    fn request(&self, session: &str, item: Option<String>, tokens: u64) -> TokenRequest {
        TokenRequest {
            board: Some(self.board.clone()),
            session: Some(session.to_owned()),
            item,
            ..TokenRequest::new("", tokens)
        }
    }

    fn release_ended(&self, ledger: &Ledger, board: &Board, caller: Option<&str>) -> Result<usize> {
        let own = OwnBoard { board, name: &self.board, caller };
        release_ended(ledger, &self.location, Some(&own))
    }

    /// The ledger, with what hooks have read and no fold has counted yet.
    fn ledger_with_spool(&self) -> Result<Ledger> {
        match fold::fold_spool(&self.location) {
            Ok(Some(ledger)) => Ok(ledger),
            Ok(None) => self.location.create().map_err(|error| self.unusable(error)),
            // It says what to do.
            Err(error) if error.code() == Code::Busy => Err(error),
            Err(error) => Err(self.unusable(error)),
        }
    }

    /// Keeps the tokens of a claimed item for its session. If that fails, the claim stands, and the answer says so: the
    /// reservation expires.
    fn keep(&self, ledger: &Ledger, claimed: Claimed, held: Held) -> (Claimed, Option<ClaimCheck>) {
        let Held { mut check, reservations } = held;
        for reservation in reservations {
            let request = TokenRequest { provider: reservation.provider, ..self.request_of(&claimed.item) };
            check.tokens = request.tokens;
            if let Err(error) = ledger.keep(&reservation.id, &request, TTL) {
                let error = format!("its tokens are not reserved: {}", self.unusable(error));
                return (claimed, Some(ClaimCheck::Unknown { error }));
            }
        }
        (claimed, Some(ClaimCheck::Checked(check)))
    }

    /// The estimate of a claimed item, for its holder.
    fn request_of(&self, item: &WorkItem) -> TokenRequest {
        let session = item.claimed_by.as_deref().unwrap_or_default();
        TokenRequest {
            agent: item.claimed_by_name.clone(),
            ..self.request(session, Some(item.item_id.clone()), item.estimate().unwrap_or(0))
        }
    }

    /// The error of a ledger that cannot be used, with its file.
    fn unusable(&self, error: Error) -> Error {
        let (file, text) = (self.location.file().display().to_string(), error.to_string());
        let named = if text.contains(&file) { String::new() } else { format!(" {file}") };
        let message = format!("the token ledger{named} cannot be used: {text}");
        match error {
            Error::Refusal(refusal) => Refusal { message, age: None, ..*refusal }.into(),
            Error::Fault(fault) => blackboard::Fault { message, ..*fault }.into(),
        }
    }
}

/// The check that leaves least, of those of all providers of a session.
fn tightest(checks: Vec<Check>) -> Result<Check> {
    let least = checks.into_iter().min_by_key(|check| check.available.unwrap_or(u64::MAX));
    least.ok_or_else(|| Error::invalid("no provider is configured"))
}

/// How many tokens fit with every provider of a session.
fn most_tokens(ledger: &Ledger, requests: &[TokenRequest]) -> Result<Option<u64>> {
    let all: Vec<_> = requests.iter().map(|request| ledger.most_tokens(request)).collect::<Result<_>>()?;
    Ok(all.into_iter().flatten().min())
}

/// Releases tokens of an item that was not claimed. If that fails, the reservations expire.
fn give_up(ledger: &Ledger, reservations: &[Reservation]) {
    for reservation in reservations {
        let _ = ledger.release(&reservation.id);
    }
}

/// Why a claim does not fit, as a sentence.
pub(super) fn problem(check: &Check) -> String {
    let Check { tokens, provider, reason, .. } = check;
    let why = reason.as_ref().map(ToString::to_string).unwrap_or_default();
    match (reason, tokens) {
        (Some(Reason::Agents { .. }), _) => format!("too many agents use {provider}: {why}"),
        (_, 0) => format!("the quota of {provider} is used up: {why}"),
        (_, tokens) => {
            format!(
                "the estimate of {} tokens does not fit into the quota of {provider}: {why}",
                grouped(*tokens)
            )
        }
    }
}

/// The refusal of a claim that does not fit.
fn refusal(ledger: &Ledger, item: &str, check: &Check) -> Error {
    let what = if item.is_empty() { "a work item" } else { item };
    let hint = match (&check.reason, check.fits_at) {
        (_, Some(moment)) => {
            format!("it fits in {}, if nothing else is used", duration::human(moment.since(ledger.now())))
        }
        (Some(Reason::Session { cap, .. }), None) if check.tokens > *cap => {
            format!(
                "it does not fit into any session (maxPerAgent is {cap}): split the item, or change its estimate"
            )
        }
        (Some(Reason::Session { .. }), None) => {
            "complete or release other items of this session, or continue in a new session".to_owned()
        }
        (Some(Reason::Agents { .. }), None) => "retry when another agent has ended".to_owned(),
        (Some(Reason::Window { .. }) | None, None) => {
            "it does not fit at any time: split the item, or change its estimate".to_owned()
        }
    };
    does_not_fit(format!("cannot claim {what}: {}", problem(check)), check).hint(hint).into()
}
