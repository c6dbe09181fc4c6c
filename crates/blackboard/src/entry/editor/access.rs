//! Asks the policies of scopes what the caller of a commit may do.

use super::EntryEditor;
use crate::error::{Code, Result};
use crate::scope::{AccessOperation, ScopePolicies};

impl EntryEditor<'_> {
    /// Refuses the operation on an entry, if the policies of its scope do not let the caller do it.
    pub(in crate::entry) fn check_access(
        &mut self,
        operation: AccessOperation,
        scope: &str,
        key: &str,
    ) -> Result<()> {
        self.guard.check_custom(operation, scope, key)?;
        let policies = self.policies(scope)?;
        policies.map_or(Ok(()), |policies| self.check_row(&policies, operation, key))
    }

    pub(super) fn check_row(
        &self,
        policies: &ScopePolicies,
        operation: AccessOperation,
        key: &str,
    ) -> Result<()> {
        self.guard.know(self.agent.as_ref());
        self.guard.check_row(policies, operation, key)
    }

    /// Whether the caller may read an entry.
    pub(in crate::entry) fn may_read(&mut self, scope: &str, key: &str) -> Result<bool> {
        match self.check_access(AccessOperation::Read, scope, key) {
            Ok(()) => Ok(true),
            Err(error) if error.code() == Code::NotAllowed => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Refuses to use a scope of which the caller is not a member.
    pub(crate) fn check_member(&self, policies: &ScopePolicies) -> Result<()> {
        self.guard.know(self.agent.as_ref());
        self.guard.check_member(policies)
    }

    /// The same for a scope whose policies are not known yet.
    pub(crate) fn check_member_of(&mut self, scope: &str) -> Result<()> {
        let policies = self.policies(scope)?;
        policies.map_or(Ok(()), |policies| self.check_member(&policies))
    }

    /// Refuses to change the policies of a scope, unless the caller may.
    pub(crate) fn check_owner(&self, policies: &ScopePolicies) -> Result<()> {
        self.guard.know(self.agent.as_ref());
        self.guard.check_owner(policies)
    }

    /// Whether the operator calls.
    pub(crate) fn is_called_by_operator(&self) -> Result<bool> {
        self.guard.know(self.agent.as_ref());
        self.guard.is_called_by_operator()
    }

    /// The same for a scope whose policies are not known yet.
    pub(crate) fn check_owner_of(&mut self, scope: &str) -> Result<()> {
        let policies = self.policies(scope)?;
        policies.map_or(Ok(()), |policies| self.check_owner(&policies))
    }
}
