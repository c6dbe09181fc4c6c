//! Steps on pages of mapped scopes.

use blackboard::entry::Actor;
use blackboard::page::{Grouping, MapScope};
use blackboard::{Board, Result};
use proptest::option;
use proptest::prelude::*;

use crate::world::session;

/// A step on the pages of a scope. The session acts or asks, or the operator.
#[derive(Clone, Debug)]
pub enum PageStep {
    Map { grouping: usize, who: Option<u8> },
    Unmap { who: Option<u8> },
    Update,
    List { who: Option<u8> },
    Show { page: usize, who: Option<u8> },
}

pub fn page_step() -> BoxedStrategy<PageStep> {
    let who = || option::weighted(0.3, 0..4_u8);
    prop_oneof![
        3 => (0..Grouping::ALL.len(), who()).prop_map(|(grouping, who)| PageStep::Map { grouping, who }),
        1 => who().prop_map(|who| PageStep::Unmap { who }),
        4 => Just(PageStep::Update),
        3 => who().prop_map(|who| PageStep::List { who }),
        2 => (0..3_usize, who()).prop_map(|(page, who)| PageStep::Show { page, who }),
    ]
    .boxed()
}

/// Takes the step, and shows its answer.
pub fn take(board: &Board, scope: &str, step: &PageStep) -> Result<String> {
    let of = |who: Option<u8>| match who {
        Some(who) => board.with_caller(Actor::session(&session(who))),
        None => board.clone(),
    };
    match *step {
        PageStep::Map { grouping, who } => {
            let grouping = Some(Grouping::ALL[grouping]);
            let request =
                MapScope { grouping, max_tokens: Some(64), session: who.map(session), ..MapScope::of(scope) };
            board.pages().map(&request).map(|answer| format!("{answer:?}"))
        }
        PageStep::Unmap { who } => {
            board.pages().unmap(scope, who.map(session).as_deref()).map(|answer| format!("{answer:?}"))
        }
        PageStep::Update => board.pages().update(scope).map(|answer| format!("{answer:?}")),
        PageStep::List { who } => of(who).pages().list(Some(scope)).map(|answer| format!("{answer:?}")),
        PageStep::Show { page, who } => {
            let board = of(who);
            let listed = board.pages().list(None)?;
            let Some(page) = listed.pages.get(page) else { return Ok(String::new()) };
            board.pages().show(&page.hash).map(|answer| format!("{answer:?}"))
        }
    }
}
