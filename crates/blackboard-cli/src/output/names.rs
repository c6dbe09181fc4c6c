//! Names of agents in tables and lists, which have no space for the session of each.

use blackboard::agent::ShortIds;

/// The agents of one output. A name that several sessions have, of these and of the active ones on the board, is shown
/// with the short id.
pub struct AgentNames<'a> {
    /// The names that several sessions have, sorted.
    shared: Vec<&'a str>,
    ids: ShortIds,
}

impl<'a> AgentNames<'a> {
    /// For these names and sessions, some of which may be equal, and for those of the active agents.
    pub fn of(
        agents: impl IntoIterator<Item = (&'a str, &'a str)>,
        active: &'a [(String, String)],
    ) -> AgentNames<'a> {
        let active = active.iter().map(|(name, session)| (name.as_str(), session.as_str()));
        let mut agents: Vec<(&str, &str)> = agents.into_iter().chain(active).collect();
        agents.sort_unstable();
        agents.dedup();
        let is_shared = |pair: &[(&'a str, &'a str)]| match pair {
            [(one, _), (other, _)] if one == other => Some(*one),
            _ => None,
        };
        let shared: Vec<_> = agents.windows(2).filter_map(is_shared).collect();
        let named = |name: &str| shared.binary_search(&name).is_ok();
        let ids = ShortIds::of(agents.iter().filter(|(name, _)| named(name)).map(|(_, session)| *session));
        AgentNames { shared, ids }
    }

    /// One of them: `Ivy`, or `Ivy (84a674b5)` if another session has the same name.
    pub fn show(&self, name: &str, session: Option<&str>) -> String {
        match session {
            Some(session) if self.shared.binary_search(&name).is_ok() => self.ids.label(name, session),
            _ => name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_several_sessions_have_get_a_short_id() {
        let [one, two, three] = ["84a674b5-9206", "84a674b5-9106", "7749a8e8-0000"];
        let names = AgentNames::of([("Ivy", one), ("Oak", three), ("Ivy", two), ("Ivy", one)], &[]);
        assert_eq!(names.show("Ivy", Some(one)), "Ivy (84a674b5-92)");
        assert_eq!(names.show("Ivy", Some(two)), "Ivy (84a674b5-91)");
        assert_eq!(names.show("Ivy", None), "Ivy");
        assert_eq!(names.show("Oak", Some(three)), "Oak");
        let names = AgentNames::of([("Ivy", one), ("Ivy", one), ("Oak", three)], &[]);
        assert_eq!(names.show("Ivy", Some(one)), "Ivy");
        // Another one is active, and not in this output.
        let active = [("Ivy".to_owned(), three.to_owned())];
        let names = AgentNames::of([("Ivy", one)], &active);
        assert_eq!(names.show("Ivy", Some(one)), "Ivy (84a674b5)");
    }
}
