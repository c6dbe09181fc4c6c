//! Imports policies of scopes and protocols, before the entries that they apply to.
//!
//! They are never changed. If the board has others, the import of the scope is refused with its entries, because they could
//! arrive in a scope that more callers may read; [`Keep::Ours`] imports them under the policies of the board.

use super::plan::PlannedTx;
use super::{DefinitionKind, ImportOutcome, ImportedDefinition, Importer, Keep, SkipReason};
use crate::error::{Code, Error, Result};
use crate::import::Definitions;
use crate::protocol::DefineProtocol;
use crate::scope::{CreateScope, Planned, Policies, Visibility};
use crate::store::Prefetch;

impl Importer<'_> {
    /// Imports the definitions of a file. The entries of a scope that is not imported are blocked.
    pub(super) fn define(&mut self, definitions: &Definitions) -> Result<Vec<ImportedDefinition>> {
        let mut imported = Vec::with_capacity(definitions.protocols.len() + definitions.scopes.len());
        for protocol in &definitions.protocols {
            let outcome = match &protocol.content {
                Ok(request) => self.outcome(|importer| importer.protocol(request))?,
                Err(problem) => unreadable(problem),
            };
            let (kind, name) = (DefinitionKind::Protocol, protocol.name.clone());
            imported.push(ImportedDefinition { kind, name, outcome });
        }
        for scope in &definitions.scopes {
            let outcome = match &scope.content {
                Ok(policies) => self.outcome(|importer| importer.scope(&scope.name, policies))?,
                Err(problem) => unreadable(problem),
            };
            let blocked = match &outcome {
                ImportOutcome::Refused { code, reason } => {
                    let reason = format!("its scope is not imported: {reason}");
                    Some(ImportOutcome::Refused { code: *code, reason })
                }
                ImportOutcome::Skipped(reason) => Some(ImportOutcome::Skipped(reason.clone())),
                _ => None,
            };
            self.blocked.extend(blocked.map(|outcome| (scope.name.clone(), outcome)));
            let (kind, name) = (DefinitionKind::Scope, scope.name.clone());
            imported.push(ImportedDefinition { kind, name, outcome });
        }
        Ok(imported)
    }

    /// What becomes of a definition. Other errors are about the caller or the board.
    fn outcome(&mut self, define: impl FnOnce(&mut Self) -> Result<ImportOutcome>) -> Result<ImportOutcome> {
        match define(self) {
            Err(error) if error.code() == Code::AlreadyExists && self.import.keep == Keep::Ours => {
                Ok(ImportOutcome::Kept)
            }
            Err(error) if is_about_definition(&error) => {
                Ok(ImportOutcome::Refused { code: error.code(), reason: error.to_string() })
            }
            outcome => outcome,
        }
    }

    fn protocol(&mut self, request: &DefineProtocol) -> Result<ImportOutcome> {
        let protocols = self.scope.board.protocols();
        let request = DefineProtocol { session: self.actor.session.clone(), ..request.clone() };
        let created = if self.import.dry_run {
            let definition = protocols.definition(&request)?;
            let mut prefetch = definition.prefetch();
            prefetch.push(Prefetch::Revision);
            let (changes, defined, revision) = self.scope.board.read(&prefetch, |tx| {
                let planned = PlannedTx::new(tx, &self.plan);
                let (changes, defined) = definition.changes(self.scope.board, &planned)?;
                Ok((changes, defined, tx.revision()?))
            })?;
            self.plan.add(changes, revision);
            defined.created
        } else {
            protocols.define(&request)?.created
        };
        Ok(if created { ImportOutcome::Created } else { ImportOutcome::Unchanged })
    }

    fn scope(&mut self, name: &str, policies: &Policies) -> Result<ImportOutcome> {
        let board = self.scope.board_of_actor();
        if policies.visibility == Visibility::Local || policies.work_item.is_some() {
            let is_same = match board.scopes().show(name) {
                Ok(scope) => scope.policies == *policies,
                Err(error) if error.code() == Code::ScopeNotFound => false,
                Err(error) => return Err(error),
            };
            let skipped = ImportOutcome::Skipped(SkipReason::ScopeEnds);
            return Ok(if is_same { ImportOutcome::Unchanged } else { skipped });
        }
        let request =
            CreateScope { session: self.actor.session.clone(), ..CreateScope::new(name, policies.clone()) };
        if !self.import.dry_run {
            let created = board.scopes().create(&request)?.created;
            return Ok(if created { ImportOutcome::Created } else { ImportOutcome::Unchanged });
        }
        let planned = Planned::new(&board, &request)?;
        let row = board.read(&planned.prefetch(), |tx| planned.row(&PlannedTx::new(tx, &self.plan)))?;
        Ok(match row {
            Some(row) => {
                self.plan.put(row);
                ImportOutcome::Created
            }
            None => ImportOutcome::Unchanged,
        })
    }
}

fn unreadable(problem: &str) -> ImportOutcome {
    ImportOutcome::Refused { code: Code::InvalidValue, reason: problem.to_owned() }
}

/// Whether a refusal is about a definition, and not about the caller or the board.
fn is_about_definition(error: &Error) -> bool {
    matches!(error, Error::Refusal(_))
        && matches!(
            error.code(),
            Code::InvalidValue
                | Code::AlreadyExists
                | Code::NotAllowed
                | Code::ProtocolNotFound
                | Code::ScopeFull
                | Code::SecretLooking
        )
}
