//! Session ids in lists.

/// As `blackboard::agent::short_id` shortens an id.
const SHORTEST: usize = 8;

/// Shortens the session ids of one list to the same length: 8 characters, or as many as distinguish them.
#[derive(Clone, Copy, Debug)]
pub struct ShortIds {
    /// In characters.
    length: usize,
}

impl ShortIds {
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
        ShortIds { length: distinct.max(SHORTEST) }
    }

    /// The short form of one of them.
    pub fn shorten(self, id: &str) -> &str {
        id.char_indices().nth(self.length).map_or(id, |(end, _)| &id[..end])
    }
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
