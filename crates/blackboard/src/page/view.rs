//! The pages that a caller sees.
//!
//! A caller whom the rules of a scope restrict sees the pages of the entries that it may read, packed as if there were
//! no others. So neither a number nor a hash depends on what it may not read.

use std::collections::BTreeMap;

use super::pack::{PackedPage, pack};
use super::state::PageState;
use crate::error::Result;
use crate::scope::Guard;

/// The pages of a state for the caller of the guard.
pub(super) fn visible_pages(state: PageState, guard: &Guard<'_>) -> Result<Vec<PackedPage>> {
    let PageState { map, pages, .. } = state;
    let mut is_hidden = false;
    let mut groups: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for page in &pages {
        let group = groups.entry(page.locality.clone()).or_default();
        for entry in &page.entries {
            if guard.may_read(&map.scope, &entry.key)? {
                group.push(entry.clone());
            } else {
                is_hidden = true;
            }
        }
    }
    if !is_hidden {
        return Ok(pages);
    }
    let packed = groups.into_iter().map(|(locality, entries)| {
        // Pages of a group are in the order of their keys, and so are the entries of a page.
        pack(&map.scope, &locality, map.max_tokens, entries)
    });
    Ok(packed.flatten().collect())
}

/// The name of a page: `bb:SCOPE:LOCALITY:HASH`.
pub(super) fn id_of(scope: &str, page: &PackedPage) -> String {
    format!("{PREFIX}{scope}:{}:{}", page.locality, page.hash)
}

/// How the name of a page begins.
const PREFIX: &str = "bb:";

/// The page of a scope that has this name: a complete name, a hash, or the name of a group with one page.
pub(super) fn named<'p>(name: &str, scope: &str, pages: &'p [PackedPage]) -> Option<&'p PackedPage> {
    let group = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix(scope)?.strip_prefix(':'));
    let mut of_group = pages.iter().filter(|page| group == Some(page.locality.as_str()));
    match (of_group.next(), of_group.next()) {
        (Some(only), None) => Some(only),
        _ => pages.iter().find(|page| page.hash == name || id_of(scope, page) == name),
    }
}

/// Whether a page of this scope may have a name.
pub(super) fn may_be_of(name: &str, scope: &str) -> bool {
    match name.strip_prefix(PREFIX) {
        Some(rest) => rest.strip_prefix(scope).is_some_and(|rest| rest.starts_with(':')),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_is_named_by_scope_group_and_hash() {
        let page = |locality: &str, hash: &str| PackedPage {
            locality: locality.to_owned(),
            hash: hash.to_owned(),
            entries: Vec::new(),
            tokens: 0,
        };
        let pages = [page("a", "0123"), page("b", "4567"), page("b", "89ab")];
        for (name, expected) in [
            ("bb:team:a:0123", Some("0123")),
            ("bb:team:b:89ab", Some("89ab")),
            ("89ab", Some("89ab")),
            ("bb:team:a", Some("0123")),
            // It has two pages.
            ("bb:team:b", None),
            ("bb:team:a:4567", None),
            ("bb:other:a:0123", None),
            ("bb:team:", None),
            ("a", None),
            ("", None),
        ] {
            let found = named(name, "team", &pages).map(|page| page.hash.as_str());
            assert_eq!(found, expected, "{name}");
        }
        for (name, scopes) in [
            ("bb:team:1:auth+login:0123", &["team", "team:1"][..]),
            ("0123", &["team", "team:1", "x"]),
            ("bb:", &[]),
        ] {
            let found: Vec<_> =
                ["team", "team:1", "x"].into_iter().filter(|scope| may_be_of(name, scope)).collect();
            assert_eq!(found, scopes, "{name}");
        }
    }
}
