//! [`find_cycle`]: handlers that would answer each other without end.

/// The members of a cycle among this many nodes, in its order; the last leads to the first.
pub(super) fn find_cycle(count: usize, leads_to: impl Fn(usize, usize) -> bool) -> Option<Vec<usize>> {
    let mut left: Vec<usize> = (0..count).collect();
    // A node that leads to none of the others is in no cycle.
    loop {
        let before = left.len();
        let kept = left.iter().filter(|from| left.iter().any(|to| leads_to(**from, *to)));
        left = kept.copied().collect();
        if left.len() == before {
            break;
        }
    }
    // Each of those that are left leads to another one, so a walk meets one twice.
    let mut walk = vec![*left.first()?];
    loop {
        let last = *walk.last()?;
        let next = *left.iter().find(|to| leads_to(last, **to))?;
        if let Some(start) = walk.iter().position(|node| *node == next) {
            return Some(walk.split_off(start));
        }
        walk.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_of_any_length_are_found() {
        testkit::limit_test();
        for (edges, expected) in [
            (&[][..], None),
            (&[(0, 1), (1, 2), (0, 2), (2, 3)], None),
            (&[(1, 1)], Some(vec![1])),
            (&[(0, 1), (1, 0)], Some(vec![0, 1])),
            (&[(0, 1), (1, 2), (2, 1)], Some(vec![1, 2])),
            (&[(0, 1), (1, 2), (2, 3), (3, 0)], Some(vec![0, 1, 2, 3])),
        ] {
            let found = find_cycle(4, |from, to| edges.contains(&(from, to)));
            assert_eq!(found, expected, "{edges:?}");
        }
    }
}
