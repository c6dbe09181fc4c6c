//! [`Planned`]: what `scope create` would do, for a dry run that commits nothing.

use super::create::{check_fits, check_text};
use super::rules::{check_policies, check_protocols};
use super::size::{count, prefetch_count};
use super::{CreateScope, Guard, Policies, RuleProtocols, ScopePolicies, whole_milliseconds};
use crate::board::Board;
use crate::entry::{check_not_reserved, check_scope};
use crate::error::{Code, Refusal, Result};
use crate::hint::Hint;
use crate::store::{Key, Prefetch, Tx};

/// Policies that a dry run would create. Only those that end with nothing.
pub(crate) struct Planned<'a> {
    board: &'a Board,
    name: &'a str,
    policies: Policies,
}

impl<'a> Planned<'a> {
    /// Checks what needs no board.
    pub(crate) fn new(board: &'a Board, request: &'a CreateScope) -> Result<Planned<'a>> {
        let CreateScope { name, policies, session } = request;
        check_scope(name)?;
        check_not_reserved(name)?;
        check_policies(name, policies)?;
        let policies = Policies {
            ttl: policies.ttl.map(whole_milliseconds),
            validation: policies.validation.stored(),
            ..policies.owned_by(session.as_deref())
        };
        let text = &board.settings().text;
        text.check_unaltered(policies.access_texts().chain([name.as_str()]))?;
        check_text(&policies.validation, text)?;
        Ok(Planned { board, name, policies })
    }

    /// Announces what [`row`](Planned::row) reads.
    pub(crate) fn prefetch(&self) -> Vec<Prefetch<'static>> {
        let row = Prefetch::Row(Key::ScopePolicies(self.name.to_owned()));
        let protocols = RuleProtocols::prefetch(&self.policies.validation);
        [row, Prefetch::Revision].into_iter().chain(protocols).collect()
    }

    /// The row that would be created; `None` if the scope has the same policies. Other policies are refused.
    pub(crate) fn row(&self, tx: &dyn Tx) -> Result<Option<ScopePolicies>> {
        Guard::of_board(self.board, tx).check_scope(self.name)?;
        let rules = &self.policies.validation;
        check_protocols(rules, &RuleProtocols::of(tx, rules)?)?;
        if let Some(before) = tx.row::<ScopePolicies>(&Key::ScopePolicies(self.name.to_owned()))? {
            let owner = before.policies.owner.clone();
            if before.policies == (Policies { owner, ..self.policies.clone() }) {
                return Ok(None);
            }
            let message = format!("scope {} has other policies already", self.name);
            let hint = Hint::SetScope(self.name.to_owned());
            return Err(Refusal::new(Code::AlreadyExists, message).hint(hint).into());
        }
        let limit = self.policies.max_entries;
        let entries = match limit {
            Some(_) => {
                tx.prefetch(&[prefetch_count(self.name)])?;
                Some(count(tx, self.name)?)
            }
            None => None,
        };
        check_fits(self.name, limit, entries.unwrap_or_default())?;
        let (now, revision) = (tx.now(), tx.revision()?.next());
        Ok(Some(ScopePolicies {
            scope: self.name.to_owned(),
            policies: self.policies.clone(),
            entries,
            created_at: now,
            created_by: String::new(),
            updated_at: now,
            updated_by: String::new(),
            revision,
            evicting_since: revision,
        }))
    }
}
