//! Files that contain several parts of ours, for example the MCP servers of two settings levels.
//!
//! Each part is added and removed separately. The order is not recorded, so every order is tried: if one of them turns
//! the backup into the current text, the file has no other changes.

use super::content::{Content, EditError, Removal};

/// The maximum number of other parts for which this is tried.
const MOST_OTHERS: usize = 3;

/// Whether a text is `before` plus this part and the other parts that it contains.
pub fn is_made_of(part: &Content, before: &str, text: &str) -> bool {
    let others = part.others_in(text);
    order(part, &others, before, text).is_some()
}

/// The text without this part; `before` is the text before all parts. If the text has no other changes, the rest stays
/// unchanged, byte for byte.
pub fn without(part: &Content, text: &str, before: Option<&str>) -> Result<Removal, EditError> {
    let others = part.others_in(text);
    let made = before.and_then(|before| Some((before, order(part, &others, before, text)?)));
    let Some((before, order)) = made else { return part.without(text, before) };
    let without = part.without(before, Some(before))?;
    let left = order.into_iter().filter(|one| !std::ptr::eq(*one, part));
    let text = left.clone().try_fold(without.text, |text, one| one.with(Some(&text)))?;
    Ok(Removal { text, is_empty: without.is_empty && left.count() == 0 })
}

/// Whether a text contains only parts of ours, in any version.
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

/// The order in which adding the parts turns one text into the other.
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
