//! Files that several parts of ours are in, for example the MCP servers of two settings levels.
//!
//! Each part comes and goes alone. The order is not recorded, so that every order is tried: a file that
//! is what the text from before becomes in one of them has no other changes.

use super::content::{Content, EditError, Removal};

/// With how many other parts this is tried.
const MOST_OTHERS: usize = 3;

/// Whether a text is what `before` becomes with this part and the others that are in it.
pub fn is_made_of(part: &Content, before: &str, text: &str) -> bool {
    let others = part.others_in(text);
    order(part, &others, before, text).is_some()
}

/// The text without this part; `before` is the text from before all parts. Nothing else of it changes, to the byte, if
/// it has no other changes.
pub fn without(part: &Content, text: &str, before: Option<&str>) -> Result<Removal, EditError> {
    let others = part.others_in(text);
    let made = before.and_then(|before| Some((before, order(part, &others, before, text)?)));
    let Some((before, order)) = made else { return part.without(text, before) };
    let without = part.without(before, Some(before))?;
    let left = order.into_iter().filter(|one| !std::ptr::eq(*one, part));
    let text = left.clone().try_fold(without.text, |text, one| one.with(Some(&text)))?;
    Ok(Removal { text, is_empty: without.is_empty && left.count() == 0 })
}

/// Whether there is nothing in a text but parts of ours, in whatever version.
pub fn is_wholly_ours(part: &Content, text: &str) -> bool {
    let mut text = text.to_owned();
    for one in part.others_in(&text).iter().chain([part]) {
        match one.without(&text, None) {
            Ok(without) if without.is_empty => return true,
            Ok(without) => text = without.text,
            Err(_) => return false,
        }
    }
    false
}

/// In which order the parts have to come so that a text becomes the other one.
fn order<'a>(part: &'a Content, others: &'a [Content], before: &str, text: &str) -> Option<Vec<&'a Content>> {
    if others.len() > MOST_OTHERS {
        return None;
    }
    let makes = |order: &Vec<&Content>| {
        let made = order.iter().try_fold(before.to_owned(), |text, one| one.with(Some(&text)));
        made.is_ok_and(|made| made == text)
    };
    orders(others.iter().chain([part]).collect()).into_iter().find(makes)
}

fn orders(parts: Vec<&Content>) -> Vec<Vec<&Content>> {
    if parts.len() < 2 {
        return vec![parts];
    }
    let beginning_with = |index: usize| {
        let mut rest = parts.clone();
        let first = rest.remove(index);
        orders(rest).into_iter().map(move |order| [vec![first], order].concat())
    };
    (0..parts.len()).flat_map(beginning_with).collect()
}
