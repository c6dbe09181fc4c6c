//! Packs the entries of a group into pages.
//!
//! The entries come by key. A page ends where the next entry would exceed the limit, and at a *boundary*: an entry whose
//! key has a small hash, if the page has a quarter of the limit by then. A boundary depends on its entry only. So an entry
//! that comes or goes changes its own page, and the pages after it only up to the next boundary; pages of a fixed
//! size would all move.

use super::PackedEntry;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::revision::Revision;

/// The most tokens of a page, if the caller names no limit.
pub const DEFAULT_TOKENS: u64 = 4096;

/// The smallest limit of tokens.
pub const MIN_TOKENS: u64 = 64;

/// The largest limit of tokens.
pub const MAX_TOKENS: u64 = 1 << 20;

/// A page has at least this part of the limit before a boundary ends it.
const LEAST_PART: u64 = 4;

/// How many boundaries there are on average among entries that fill a page.
const BOUNDARIES_PER_PAGE: u64 = 3;

/// How many characters of the digest name a page.
const HASH_CHARACTERS: usize = 16;

/// A page: some entries of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PackedPage {
    pub(super) locality: String,
    pub(super) hash: String,
    /// By key, at least one.
    pub(super) entries: Vec<PackedEntry>,
    pub(super) tokens: u64,
}

/// Refuses a limit of tokens with which nothing can be packed.
pub(super) fn check_limit(max_tokens: u64) -> Result<()> {
    if (MIN_TOKENS..=MAX_TOKENS).contains(&max_tokens) {
        return Ok(());
    }
    Err(Error::invalid(format!("a page of {max_tokens} tokens; {MIN_TOKENS} to {MAX_TOKENS} are allowed")))
}

/// Packs the entries of a group, which come by key. A page exceeds the limit only if it has one entry, which exceeds it.
pub(super) fn pack(
    scope: &str,
    locality: &str,
    max_tokens: u64,
    entries: impl IntoIterator<Item = PackedEntry>,
) -> Vec<PackedPage> {
    let (mut pages, mut open, mut tokens) = (Vec::new(), Vec::<PackedEntry>::new(), 0_u64);
    let mut end = |open: &mut Vec<PackedEntry>, tokens: &mut u64| {
        if !open.is_empty() {
            pages.push(PackedPage::new(scope, locality, std::mem::take(open), std::mem::take(tokens)));
        }
    };
    for entry in entries {
        if tokens.saturating_add(entry.tokens) > max_tokens {
            end(&mut open, &mut tokens);
        }
        tokens = tokens.saturating_add(entry.tokens);
        let is_boundary = is_boundary(&entry, max_tokens);
        open.push(entry);
        if is_boundary && tokens >= max_tokens / LEAST_PART {
            end(&mut open, &mut tokens);
        }
    }
    end(&mut open, &mut tokens);
    pages
}

impl PackedPage {
    fn new(scope: &str, locality: &str, entries: Vec<PackedEntry>, tokens: u64) -> PackedPage {
        let mut parts = String::new();
        for entry in &entries {
            parts.push_str(&entry.key);
            // No key has this character, and no number.
            parts.push('\n');
            parts.push_str(&entry.revision.to_string());
            parts.push('\n');
        }
        let digest = Fingerprint::new().text(scope).text(locality).text(&parts).to_string();
        let hash = digest.chars().take(HASH_CHARACTERS).collect();
        PackedPage { locality: locality.to_owned(), hash, entries, tokens }
    }

    /// The revision of its newest entry.
    pub(super) fn newest(&self) -> Revision {
        self.entries.iter().map(|entry| entry.revision).max().unwrap_or_default()
    }

    /// The first key, by which the pages of a group are in order.
    pub(super) fn first_key(&self) -> &str {
        self.entries.first().map_or("", |entry| entry.key.as_str())
    }
}

/// Whether a page may end after an entry. A large entry is a boundary more often, so that pages of large and of small
/// entries have about as many tokens.
fn is_boundary(entry: &PackedEntry, max_tokens: u64) -> bool {
    let part = u128::from(entry.tokens) * u128::from(BOUNDARIES_PER_PAGE);
    u128::from(hash_of(&entry.key)) * u128::from(max_tokens) < part << 64
}

/// A number that a key always has: FNV-1a, with the last step of `MurmurHash3`, so that similar keys have different ones.
fn hash_of(key: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in key.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn entry(key: &str, tokens: u64) -> PackedEntry {
        PackedEntry { key: key.to_owned(), revision: Revision::new(1), tokens }
    }

    fn packed(max_tokens: u64, entries: &BTreeMap<String, PackedEntry>) -> Vec<PackedPage> {
        pack("s", "g", max_tokens, entries.values().cloned())
    }

    #[test]
    fn pages_are_never_empty_and_exceed_the_limit_only_with_one_entry() {
        for (sizes, expected) in [
            (&[][..], &[][..]),
            (&[10], &[1]),
            (&[100, 1], &[1, 1]),
            (&[1, 100], &[1, 1]),
            (&[1_000, 1_000], &[1, 1]),
            (&[u64::MAX, u64::MAX], &[1, 1]),
        ] {
            let entries =
                sizes.iter().enumerate().map(|(place, &tokens)| entry(&format!("k{place}"), tokens));
            let pages = pack("s", "g", 100, entries);
            let counts: Vec<_> = pages.iter().map(|page| page.entries.len()).collect();
            assert_eq!(counts, expected, "{sizes:?}");
        }
    }

    #[test]
    fn equal_entries_make_equal_pages_and_another_version_another_one() {
        let first = pack("s", "g", 100, [entry("a", 10), entry("b", 10)]);
        assert_eq!(first, pack("s", "g", 100, [entry("a", 10), entry("b", 10)]));
        assert_eq!((first.len(), first[0].hash.len(), first[0].tokens), (1, 16, 20));
        let newer = PackedEntry { revision: Revision::new(2), ..entry("b", 10) };
        for other in [
            pack("s", "g", 100, [entry("a", 10), newer]),
            pack("s", "h", 100, [entry("a", 10), entry("b", 10)]),
            pack("t", "g", 100, [entry("a", 10), entry("b", 10)]),
        ] {
            assert_ne!(other[0].hash, first[0].hash);
        }
    }

    /// Figures of `docs/pages.md`.
    #[test]
    fn a_change_replaces_few_pages_and_pages_are_half_full() {
        testkit::limit_test();
        let key = |number: u64| format!("task:{:05}", number * 7919 % 100_000);
        let size = |number: u64| 20 + hash_of(&number.to_string()) % 100;
        let all: BTreeMap<_, _> =
            (0..2_000).map(|number| (key(number), entry(&key(number), size(number)))).collect();
        let before = packed(4096, &all);
        let filled: u64 = before.iter().map(|page| page.tokens).sum();
        assert!(filled / before.len() as u64 > 4096 * 2 / 5, "{filled} tokens in {} pages", before.len());
        let hashes = |pages: &[PackedPage]| pages.iter().map(|page| page.hash.clone()).collect::<Vec<_>>();
        let known = hashes(&before);
        let changed = |entries: &BTreeMap<String, PackedEntry>| {
            hashes(&packed(4096, entries)).iter().filter(|hash| !known.contains(hash)).count()
        };
        let (mut inserted, mut removed, mut largest) = (0, 0, 0);
        for number in 0..200 {
            let mut with = all.clone();
            let new = format!("task:{:05}x", number * 499);
            with.insert(new.clone(), entry(&new, 70));
            let mut without = all.clone();
            without.remove(&key(number));
            let (one, other) = (changed(&with), changed(&without));
            inserted += one;
            removed += other;
            largest = largest.max(one).max(other);
        }
        // Of more than 50.
        assert!(before.len() > 50, "{}", before.len());
        assert!(inserted < 200 * 2 && removed < 200 * 2, "{inserted} and {removed} of 200 changes");
        assert!(largest <= 8, "{largest}");
    }
}
