//! [`Level`]: which agents share the entries of a protocol, and the names of their scopes.

use serde::Serialize;

use super::{Protocol, Template};
use crate::entry::check_scope;
use crate::error::{Error, Result};

/// Which agents share the entries of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// One agent has the scope for itself: it is its mailbox, so keys need not name the agent.
    Agent,
    /// The agents of one session share the scope.
    Session,
    /// All agents share the scope, so keys name the writer or what they are about.
    Colony,
}

impl Level {
    /// All of them.
    pub const ALL: &'static [Level] = &[Level::Agent, Level::Session, Level::Colony];

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Agent => "agent",
            Level::Session => "session",
            Level::Colony => "colony",
        }
    }

    /// The form of the names of its scopes, as a [`Template`].
    pub fn scope_template(self) -> &'static str {
        match self {
            Level::Agent => "agent:{agent}:{ns?}",
            Level::Session => "session:{session}:{ns?}",
            Level::Colony => "colony:{ns?}",
        }
    }

    /// The name of a scope of this level, so that all agents find the same one. The owner is the agent or the session;
    /// the scope of all agents has none. A namespace gives a capability a scope of its own.
    ///
    /// ```
    /// use blackboard::protocol::Level;
    ///
    /// assert_eq!(Level::Agent.scope_name(Some("ivy"), None)?, "agent:ivy");
    /// assert_eq!(Level::Session.scope_name(Some("84a674b5"), Some("review"))?, "session:84a674b5:review");
    /// assert_eq!(Level::Colony.scope_name(None, Some("compliance"))?, "colony:compliance");
    /// assert!(Level::Agent.scope_name(None, None).is_err());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn scope_name(self, owner: Option<&str>, namespace: Option<&str>) -> Result<String> {
        let owner = match (self, owner) {
            (Level::Agent | Level::Session, Some(owner)) => Some((self.as_str(), owner)),
            (Level::Colony, None) => None,
            (Level::Agent | Level::Session, None) => {
                return Err(Error::invalid(format!("a scope of the level {self} needs its {self}")));
            }
            (Level::Colony, Some(_)) => {
                return Err(Error::invalid(format!("a scope of the level {self} has no owner")));
            }
        };
        let namespace = namespace.map(|namespace| ("ns", namespace));
        let values: Vec<_> = owner.into_iter().chain(namespace).collect();
        let name = Template::new(self.scope_template())?.key(&values)?;
        check_scope(&name)?;
        Ok(name)
    }
}

impl Protocol {
    /// The name of a scope for its entries: [`Level::scope_name`] of its level.
    ///
    /// ```
    /// use blackboard::protocol::built_in_protocols;
    ///
    /// let agent_run = &built_in_protocols()[0];
    /// assert_eq!(agent_run.scope_name(Some("ivy"), None)?, "agent:ivy");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn scope_name(&self, owner: Option<&str>, namespace: Option<&str>) -> Result<String> {
        self.level.scope_name(owner, namespace)
    }
}

crate::names::impl_names!(Level, "level");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    #[test]
    fn different_owners_and_namespaces_have_different_scopes() {
        testkit::limit_test();
        let texts = ["a", "b", "a:b", "", "*", "%", " a ", "agent"];
        let mut names = Vec::new();
        for level in Level::ALL {
            let owners: Vec<_> = match level {
                Level::Colony => vec![None],
                Level::Agent | Level::Session => texts.iter().copied().map(Some).collect(),
            };
            for owner in owners {
                for namespace in texts.iter().copied().map(Some).chain([None]) {
                    names.push(level.scope_name(owner, namespace).unwrap());
                }
            }
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn scope_name_needs_the_owner_of_its_level_and_is_bounded() {
        testkit::limit_test();
        let long = "x".repeat(128);
        for (level, owner, namespace) in [
            (Level::Agent, None, None),
            (Level::Session, None, Some("ns")),
            (Level::Colony, Some("ivy"), None),
            (Level::Agent, Some(long.as_str()), None),
            (Level::Colony, None, Some(long.as_str())),
        ] {
            let error = level.scope_name(owner, namespace).unwrap_err();
            assert_eq!(error.code(), Code::InvalidValue, "{level} {owner:?} {namespace:?}");
        }
    }
}
