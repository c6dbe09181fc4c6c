//! Claims of work items within the quota, and what the ledger knows about items.
//!
//! With `enforce: deny`, the estimate of an item is reserved before the claim, in one transaction of the ledger: of many
//! claims only as many succeed as fit together. The reservation is short until the item is claimed, so that a process that
//! ends between the two keeps nothing from others for long. With `warn`, the claim comes first and always succeeds.
//!
//! Without a configured quota there is no [`ItemQuota`], and no function here does more than the verb of the board.

use std::time::Duration;

use blackboard::quota::{
    Check, Enforcement, Ledger, Reason, Reservation, Reserved, SimilarEstimate, TokenRequest,
};
use blackboard::text::grouped;
use blackboard::work::{Claim, ClaimNext, Claimed, LastCompleted, WorkItem};
use blackboard::{Board, Code, Error, Refusal, Result, duration};
use serde::Serialize;

use super::ledger_location::LedgerLocation;
use super::{folded, refusal_of, release_ended, spool};
use crate::context::Context;
use crate::location;
use crate::open::ResolvedBoard;

/// How long the tokens of a claimed item are reserved.
const TTL: Duration = Duration::from_hours(24);

/// How long they are reserved until the item is claimed.
const BEFORE_CLAIM: Duration = Duration::from_mins(1);

/// How often a claim of the next item is tried while other sessions claim and reserve.
const MOST_ATTEMPTS: usize = 100;

/// How many completed items of the board are searched for similar ones, and how many of these count.
const SEARCHED: usize = 500;
const MOST_SIMILAR: usize = 50;

/// The quota as claims on one board use it.
pub struct ItemQuota {
    location: LedgerLocation,
    /// The name of the board in the ledger.
    board: String,
}

/// What the ledger adds to an answer about a work item.
#[derive(Default, Serialize)]
pub struct ItemTokens {
    /// Whether the claim fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<ClaimCheck>,
    /// What the item has used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_used: Option<u64>,
    /// What similar items have used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate_from_similar: Option<SimilarEstimate>,
}

/// Whether a claim fits into the quota.
#[derive(Serialize)]
#[serde(untagged)]
pub enum ClaimCheck {
    /// It was checked.
    Checked(Check),
    /// The ledger cannot be used.
    Unknown {
        /// Why.
        error: String,
    },
}

/// An answer with what the ledger adds to it, as JSON.
#[derive(Serialize)]
pub struct WithTokens<'a, T> {
    /// The answer.
    #[serde(flatten)]
    pub answer: &'a T,
    /// What the ledger adds.
    #[serde(flatten)]
    pub tokens: Option<&'a ItemTokens>,
}

/// What the ledger adds to an answer, if a quota is configured.
pub type AddedTokens = Option<Box<ItemTokens>>;

impl ItemTokens {
    /// What a person should know about the claim: it does not fit, or that is not known.
    pub fn note(&self) -> Option<String> {
        match self.quota.as_ref()? {
            ClaimCheck::Checked(check) if check.fits => None,
            ClaimCheck::Checked(check) => Some(problem(check)),
            ClaimCheck::Unknown { error } => Some(format!("the token quota was not checked: {error}")),
        }
    }
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

/// What an item and similar ones have used. `None` without a configured quota.
pub fn tokens_of(quota: Option<&ItemQuota>, board: &Board, item: &WorkItem) -> AddedTokens {
    quota.map(|quota| Box::new(quota.tokens_of(board, item, None)))
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
            Some(invalid) if invalid.denies => Err(refusal_of(invalid, &request())),
            _ => Ok(ItemQuota::on(resolved, request)),
        }
    }

    /// The quota for a located board.
    pub fn on(resolved: &ResolvedBoard, request: impl FnOnce() -> location::Request) -> Option<ItemQuota> {
        let location = LedgerLocation::of(&resolved.config, request)?.beside_the_board();
        Some(ItemQuota { location, board: resolved.engine.name() })
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
            let session = claimed.item.claimed_by.as_deref().unwrap_or_default();
            let Some(provider) = ledger.provider_of_session(&self.board, session)? else {
                return Ok(unknown_provider(claimed.item.estimate()));
            };
            let request = self.request_of(provider, &claimed.item);
            let reserved = self.reserve(&ledger, board, &request, TTL)?;
            Ok(Some(ClaimCheck::Checked(reserved.check)))
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
        let ledger = self.ledger_with_spool().map_err(unusable)?;
        let estimate = match &item {
            Some(item) => item.estimate(),
            None => claim.create.as_ref().and_then(|create| create.estimate),
        };
        // A session that is registered with the claim has no id yet, and is one more agent.
        let session = match &claim.register {
            Some(_) => format!("starting in process {}", std::process::id()),
            None => claim.session.clone(),
        };
        let provider = ledger.provider_of_session(&self.board, &session).map_err(unusable)?;
        let Some(provider) = provider else {
            return Ok((board.work().claim(claim)?, unknown_provider(estimate)));
        };
        let request = TokenRequest {
            board: Some(self.board.clone()),
            session: Some(session),
            item: Some(claim.id.clone()),
            ..TokenRequest::new(provider, estimate.unwrap_or(0))
        };
        let reserved = self.reserve(&ledger, board, &request, BEFORE_CLAIM).map_err(unusable)?;
        if !reserved.check.fits {
            // Tokens would not help with an item that the session cannot have.
            if item.is_some() {
                board.work().check_claimable(&claim.id)?;
            }
            return Err(refusal(&ledger, &claim.id, &reserved.check));
        }
        match board.work().claim(claim) {
            Ok(claimed) => Ok(self.keep(&ledger, claimed, reserved)),
            Err(error) => {
                give_up(&ledger, reserved.reservation.as_ref());
                Err(error)
            }
        }
    }

    /// Reserves the estimate of the item that is next, and claims the first item that needs no more than that. Usually these
    /// are the same; if another session was faster, it is one that fits into the same tokens.
    fn claim_next_that_fits(&self, board: &Board, next: &ClaimNext) -> Result<(Claimed, Option<ClaimCheck>)> {
        let unusable = |error| self.unusable(error);
        let ledger = self.ledger_with_spool().map_err(unusable)?;
        let provider = ledger.provider_of_session(&self.board, &next.session).map_err(unusable)?;
        let Some(provider) = provider else {
            let claimed = board.work().claim_next(next)?;
            let check = unknown_provider(claimed.item.estimate());
            return Ok((claimed, check));
        };
        let request = |tokens, item| TokenRequest {
            board: Some(self.board.clone()),
            session: Some(next.session.clone()),
            item,
            ..TokenRequest::new(provider.clone(), tokens)
        };
        let none = request(0, None);
        let mut has_released = false;
        for _ in 0..MOST_ATTEMPTS {
            let caps = self.check(&ledger, board, &none).map_err(unusable)?;
            if !caps.fits {
                return Err(refusal(&ledger, "", &caps));
            }
            let most_tokens = ledger.most_tokens(&none).map_err(unusable)?;
            let first = match board.work().next(&ClaimNext { most_tokens, ..next.clone() }) {
                Ok(item) => Some(item),
                // The claim looks for items of processes that are gone.
                Err(error) if error.code() == Code::NothingAvailable => None,
                Err(error) if error.code() == Code::QuotaExceeded && !has_released => {
                    has_released = true;
                    release_ended(&ledger, board, &self.board, Some(&next.session)).map_err(unusable)?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let tokens = first.as_ref().and_then(WorkItem::estimate).unwrap_or(0);
            let request = request(tokens, first.as_ref().map(|item| item.item_id.clone()));
            let reserved = self.reserve(&ledger, board, &request, BEFORE_CLAIM).map_err(unusable)?;
            if !reserved.check.fits {
                continue;
            }
            match board.work().claim_next(&ClaimNext { most_tokens: Some(tokens), ..next.clone() }) {
                Ok(claimed) => return Ok(self.keep(&ledger, claimed, reserved)),
                Err(error) => {
                    give_up(&ledger, reserved.reservation.as_ref());
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

    /// Checks the request, and reserves its tokens if they fit. An item without an estimate reserves nothing, unless its session
    /// has to be counted.
    fn reserve(
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
            return Ok(Reserved { check: self.check(ledger, board, request)?, reservation: None });
        }
        let reserved = ledger.reserve_for_claim(request, ttl)?;
        if !reserved.check.fits && self.release_ended(ledger, board, request)? > 0 {
            return ledger.reserve_for_claim(request, ttl);
        }
        Ok(reserved)
    }

    fn check(&self, ledger: &Ledger, board: &Board, request: &TokenRequest) -> Result<Check> {
        let check = ledger.check(request)?;
        if !check.fits && self.release_ended(ledger, board, request)? > 0 {
            return ledger.check(request);
        }
        Ok(check)
    }

    fn release_ended(&self, ledger: &Ledger, board: &Board, request: &TokenRequest) -> Result<usize> {
        release_ended(ledger, board, &self.board, request.session.as_deref())
    }

    /// The ledger, with what hooks have read and no fold has counted yet.
    fn ledger_with_spool(&self) -> Result<Ledger> {
        let create = || self.location.create();
        if !spool::is_used(self.location.home()) {
            return create();
        }
        folded(&self.location, || create().map(Some))?.map_or_else(create, Ok)
    }

    /// Keeps the tokens of a claimed item for its session. If that fails, the claim stands, and the answer says so: the
    /// reservation expires.
    fn keep(&self, ledger: &Ledger, claimed: Claimed, reserved: Reserved) -> (Claimed, Option<ClaimCheck>) {
        let Reserved { mut check, reservation } = reserved;
        if let Some(reservation) = reservation {
            let request = self.request_of(reservation.provider, &claimed.item);
            check.tokens = request.tokens;
            if let Err(error) = ledger.keep(&reservation.id, &request, TTL) {
                let error = format!("its tokens are not reserved: {}", self.unusable(error));
                return (claimed, Some(ClaimCheck::Unknown { error }));
            }
        }
        (claimed, Some(ClaimCheck::Checked(check)))
    }

    /// The estimate of a claimed item, for its holder.
    fn request_of(&self, provider: String, item: &WorkItem) -> TokenRequest {
        TokenRequest {
            board: Some(self.board.clone()),
            session: item.claimed_by.clone(),
            agent: item.claimed_by_name.clone(),
            item: Some(item.item_id.clone()),
            ..TokenRequest::new(provider, item.estimate().unwrap_or(0))
        }
    }

    /// What an item and similar ones have used. Without a ledger that can be read, nothing is known.
    fn tokens_of(&self, board: &Board, item: &WorkItem, quota: Option<ClaimCheck>) -> ItemTokens {
        let known = || -> Result<_> {
            let ledger = self.location.open_to_read()?;
            let used = ledger.used_by_items(&self.board, &[item.item_id.as_str()])?;
            Ok((used.into_iter().sum(), self.estimate(&ledger, board, item)?))
        };
        let (used, estimate_from_similar) = known().unwrap_or((0, None));
        ItemTokens { quota, tokens_used: (used > 0).then_some(used), estimate_from_similar }
    }

    fn estimate(&self, ledger: &Ledger, board: &Board, item: &WorkItem) -> Result<Option<SimilarEstimate>> {
        if item.labels().is_empty() {
            return Ok(None);
        }
        // With a project, the search would not end before it has found enough of them.
        let last = LastCompleted { limit: Some(SEARCHED), ..LastCompleted::default() };
        let completed = board.work().last_completed(&last)?.items;
        let similar: Vec<&str> = completed
            .iter()
            .filter(|other| is_similar(item, other))
            .map(|other| other.item_id.as_str())
            .take(MOST_SIMILAR)
            .collect();
        Ok(SimilarEstimate::of(ledger.used_by_items(&self.board, &similar)?))
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

/// The answer for an item with an estimate, if the provider of its session is not known.
fn unknown_provider(estimate: Option<u64>) -> Option<ClaimCheck> {
    estimate.map(|_| ClaimCheck::Unknown {
        error: "the session has not used any provider yet, and several are configured".to_owned(),
    })
}

/// Whether another item is of the same project and shares a label.
fn is_similar(item: &WorkItem, other: &WorkItem) -> bool {
    let labels = item.labels();
    other.item_id != item.item_id
        && other.project_id == item.project_id
        && other.labels().iter().any(|label| labels.contains(label))
}

/// Releases tokens of an item that was not claimed. If that fails, the reservation expires.
fn give_up(ledger: &Ledger, reservation: Option<&Reservation>) {
    if let Some(reservation) = reservation {
        let _ = ledger.release(&reservation.id);
    }
}

/// Why a claim does not fit, as a sentence.
fn problem(check: &Check) -> String {
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
    Refusal::new(Code::QuotaExceeded, format!("cannot claim {what}: {}", problem(check)))
        .hint(hint)
        .detail("provider", check.provider.as_str())
        .detail("tokens", check.tokens)
        .detail("available", check.available)
        .detail("reason", serde_json::to_value(&check.reason).unwrap_or_default())
        .detail("fits_at", check.fits_at.map(|moment| moment.to_string()))
        .into()
}
