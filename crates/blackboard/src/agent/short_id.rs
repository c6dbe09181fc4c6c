//! How session ids and agents are displayed. Every text that names an agent gets its form from here.

/// How many characters of a session id are displayed, unless more are needed to distinguish it.
pub(crate) const SHORT_ID: usize = 8;

/// Shortens the session ids of one text to the same length: 8 characters, or as many as distinguish them. Commands accept
/// a short id wherever they accept an id.
///
/// ```
/// use blackboard::agent::ShortIds;
///
/// let [ivy, oak] = ["84a674b5-9206-49e4-9c01-f0c80facf64f", "84a674b5-9106-49e4-9c01-f0c80facf64f"];
/// let ids = ShortIds::of([ivy, oak]);
/// assert_eq!(ids.label("Ivy", ivy), "Ivy (84a674b5-92)");
/// assert_eq!(ids.shorten(oak), "84a674b5-91");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ShortIds {
    /// In characters.
    length: usize,
}

impl ShortIds {
    /// For the ids of a text that names one session.
    pub const DEFAULT: ShortIds = ShortIds { length: SHORT_ID };

    /// For these ids, some of which may be equal.
    pub fn of<'a>(ids: impl IntoIterator<Item = &'a str>) -> ShortIds {
        let mut ids: Vec<&str> = ids.into_iter().collect();
        ids.sort_unstable();
        ids.dedup();
        let common = |pair: &[&str]| match pair {
            [one, other] => one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count(),
            _ => 0,
        };
        let distinct = ids.windows(2).map(|pair| common(pair) + 1).max().unwrap_or(0);
        ShortIds { length: distinct.max(SHORT_ID) }
    }

    /// The short form of one of them.
    pub fn shorten(self, id: &str) -> &str {
        id.char_indices().nth(self.length).map_or(id, |(end, _)| &id[..end])
    }

    /// An agent as messages name it: `Ivy (84a674b5)`.
    pub fn label(self, name: &str, session: &str) -> String {
        format!("{name} ({})", self.shorten(session))
    }
}

/// The short form of the only session id in a text.
///
/// ```
/// assert_eq!(blackboard::agent::short_id("84a674b5-9206-49e4-9c01-f0c80facf64f"), "84a674b5");
/// ```
pub fn short_id(session: &str) -> &str {
    ShortIds::DEFAULT.shorten(session)
}

/// The only agent of a text as messages name it.
///
/// ```
/// assert_eq!(blackboard::agent::label("Ivy", "84a674b5-9206-49e4-9c01-f0c80facf64f"), "Ivy (84a674b5)");
/// ```
pub fn label(name: &str, session: &str) -> String {
    ShortIds::DEFAULT.label(name, session)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_as_long_as_distinguishes_them() {
        let [a, b, c] = ["84a674b5-9206-49e4", "84a674b5-9106-49e4", "7749a8e8-0000-0000"];
        for (ids, id, expected) in [
            (&[a, c][..], a, "84a674b5"),
            (&[a, a], a, "84a674b5"),
            (&[a, b, c], a, "84a674b5-92"),
            (&[a, b, c], c, "7749a8e8-00"),
            (&["ivy", a], a, "84a674b5"),
            (&[], a, "84a674b5"),
        ] {
            assert_eq!(ShortIds::of(ids.iter().copied()).shorten(id), expected, "{ids:?}");
        }
    }
}
