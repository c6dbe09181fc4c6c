//! [`Fingerprint`]: a digest of a request in 32 characters, which distinguishes a repeated call from another one.

use std::fmt;

use uuid::Uuid;

/// The start of every fingerprint. It never changes: boards store values that are derived from it.
const START: Uuid = Uuid::from_u128(0x6b0d_52e7_1c94_4e3f_b4a8_0f97_d3c1_58aa);

/// A digest of a request, part by part: only the same parts in the same order make the same digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint(Uuid);

impl Fingerprint {
    /// An empty fingerprint.
    pub(crate) fn new() -> Fingerprint {
        Fingerprint(START)
    }

    /// Adds a text.
    #[must_use]
    pub(crate) fn text(self, text: &str) -> Fingerprint {
        Fingerprint(Uuid::new_v5(&self.0, text.as_bytes()))
    }

    /// The digest as a number.
    pub(crate) fn number(self) -> u128 {
        self.0.as_u128()
    }

    /// Adds a value with a canonical text.
    #[must_use]
    pub(crate) fn of(self, what: impl fmt::Display) -> Fingerprint {
        self.text(&what.to_string())
    }

    /// Adds an optional value.
    #[must_use]
    pub(crate) fn maybe(self, what: Option<impl fmt::Display>) -> Fingerprint {
        match what {
            Some(what) => self.of(true).of(what),
            None => self.of(false),
        }
    }

    /// Adds each item of a list.
    #[must_use]
    pub(crate) fn each<T>(self, list: &[T], add: impl Fn(Fingerprint, &T) -> Fingerprint) -> Fingerprint {
        list.iter().fold(self.of(list.len()), add)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.simple().fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprint_distinguishes_parts_with_the_same_joined_text() {
        let new = Fingerprint::new;
        let nothing: Option<&str> = None;
        let all = [
            new(),
            new().text(""),
            new().text("ab"),
            new().text("a").text("b"),
            new().text("b").text("a"),
            new().maybe(nothing),
            new().maybe(Some("")),
            new().each(&["a"], |so_far, part| so_far.text(part)).each::<&str>(&[], |so_far, _| so_far),
            new().each::<&str>(&[], |so_far, _| so_far).each(&["a"], |so_far, part| so_far.text(part)),
        ];
        for (place, one) in all.iter().enumerate() {
            assert!(!all[..place].contains(one), "{place}");
        }
    }

    #[test]
    fn fingerprint_is_stable_across_versions() {
        assert_eq!(Fingerprint::new().text("write").of(7).to_string(), "a2b261d069505199a7c7c257fb3e6fc9");
    }
}
