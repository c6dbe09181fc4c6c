//! The one algorithm behind patterns of keys and of paths.

/// Whether tokens, each of which takes one item, and tokens that take any number of items, together take all of them.
///
/// It takes at most as many steps as there are tokens and items, multiplied, and no stack: when an item does not fit,
/// only the last token for any number takes one more. The earlier ones need no second try, for whatever they could
/// leave to the rest, the last one can leave to it as well.
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
