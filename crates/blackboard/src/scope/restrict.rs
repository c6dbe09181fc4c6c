//! Who may begin to restrict the callers of a scope: policies that lock out others are not for every session.

use super::{Policies, ScopePolicies};
use crate::entry::{DEFAULT_SCOPE, Entry, EntryEditor};
use crate::error::{Code, Error, Refusal, Result};
use crate::store::{Key, Prefetch, Range, Tx};

/// How many entries a scope may have so that a session may restrict its callers: their authors are compared in one commit.
const MOST_ENTRIES: usize = 100;

/// How many entries are read at a time.
const AT_ONCE: usize = 10;

/// Refuses policies with which a session would take entries away from others: of the default scope, and of a scope with entries
/// of other authors. The operator may set them.
pub(super) fn check_restriction(
    tx: &dyn Tx,
    editor: &EntryEditor<'_>,
    scope: &str,
    before: Option<&ScopePolicies>,
    policies: &Policies,
) -> Result<()> {
    let begins = policies.restrict_callers() && before.is_none_or(|before| !before.is_restricted());
    if !begins || editor.is_called_by_operator()? {
        return Ok(());
    }
    if scope == DEFAULT_SCOPE {
        return Err(refused(scope, "is for every caller"));
    }
    let range = Range::entries(scope, "");
    tx.prefetch(&[Prefetch::Heads(range.clone(), MOST_ENTRIES + 1)])?;
    let heads = tx.heads(&range, MOST_ENTRIES + 1)?;
    if heads.len() > MOST_ENTRIES {
        return Err(refused(scope, &format!("has more than {MOST_ENTRIES} entries")));
    }
    for heads in heads.chunks(AT_ONCE) {
        let keys = || heads.iter().map(|head| Key::Entry(head.scope.clone(), head.key.clone()));
        tx.prefetch(&keys().map(Prefetch::Row).collect::<Vec<_>>())?;
        for key in keys() {
            let is_own =
                |entry: Entry| entry.created_by == editor.author && entry.updated_by == editor.author;
            if !tx.row::<Entry>(&key)?.is_none_or(is_own) {
                return Err(refused(scope, "has entries of other authors"));
            }
        }
    }
    Ok(())
}

fn refused(scope: &str, why: &str) -> Error {
    let message = format!("scope {scope} {why}: only the operator may restrict its callers");
    Refusal::new(Code::NotAllowed, message)
        .hint("choose the name of a scope without entries")
        .detail("scope", scope)
        .into()
}
