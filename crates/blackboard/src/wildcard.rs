//! The matching algorithm for patterns of keys and of paths.

/// Whether a sequence of tokens matches all items. A token matches one item or any number of items.
///
/// It takes at most as many steps as there are tokens and items, multiplied, and no stack. When an item does not
/// match, only the last token for any number of items takes one more. Earlier tokens need no retry: the last one can
/// leave the same rest.
pub(crate) fn matches<T, I>(
    tokens: &[T],
    takes_any_number: impl Fn(&T) -> bool,
    items: I,
    takes: impl Fn(&T, I::Item) -> bool,
) -> bool
where
    I: Iterator + Clone,
{
    let (mut tokens, mut items) = (tokens, items);
    let mut last_any: Option<(&[T], I)> = None;
    loop {
        match tokens.split_first() {
            Some((token, behind)) if takes_any_number(token) => {
                if behind.is_empty() {
                    return true;
                }
                tokens = behind;
                last_any = Some((behind, items.clone()));
                continue;
            }
            Some((token, behind)) => {
                let mut ahead = items.clone();
                if ahead.next().is_some_and(|item| takes(token, item)) {
                    (tokens, items) = (behind, ahead);
                    continue;
                }
            }
            None if items.clone().next().is_none() => return true,
            None => {}
        }
        let Some((behind_any, from)) = &mut last_any else { return false };
        if from.next().is_none() {
            return false;
        }
        (tokens, items) = (behind_any, from.clone());
    }
}

/// Whether two sequences of tokens can match the same items. `fit` tells whether two tokens for one item can match the
/// same one. It is not called with tokens for any number of items. Each token matches at least one item.
///
/// If both sequences have a token for any number, only their ends matter: the tokens before the first such token and
/// after the last one. The parts between these ends can follow one after the other: while one sequence matches its own
/// part, a token for any number of the other matches that part as well. So this takes as many steps as there are
/// tokens. If a sequence has no such token, its tokens are the items, as in [`matches`].
pub(crate) fn overlap<T>(
    ours: &[T],
    theirs: &[T],
    takes_any_number: impl Fn(&T) -> bool,
    fit: impl Fn(&T, &T) -> bool,
) -> bool {
    let ends = |tokens: &[T]| {
        let first = tokens.iter().position(&takes_any_number)?;
        let last = tokens.iter().rposition(&takes_any_number)?;
        Some((first, last + 1))
    };
    match (ends(ours), ends(theirs)) {
        (Some((our_first, our_rest)), Some((their_first, their_rest))) => {
            let fit = |(our, their): (&T, &T)| fit(our, their);
            ours[..our_first].iter().zip(&theirs[..their_first]).all(fit)
                && ours[our_rest..].iter().rev().zip(theirs[their_rest..].iter().rev()).all(fit)
        }
        (_, None) => matches(ours, takes_any_number, theirs.iter(), fit),
        (None, Some(_)) => matches(theirs, takes_any_number, ours.iter(), |their, our| fit(our, their)),
    }
}
