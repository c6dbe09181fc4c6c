//! Steps on memory: few levels and texts, so that records meet.

use blackboard::entry::Actor;
use blackboard::memory::{
    Compact, Define, Drain, LevelRules, Promote, Recall, Relevance, Remember, Usefulness,
};
use blackboard::search::IndexLocation;
use blackboard::{Board, Result};
use proptest::option;
use proptest::prelude::*;

use crate::world::session;

#[derive(Clone, Debug)]
pub enum MemoryStep {
    Define { level: usize, next: Option<usize>, takes_at: Option<u64>, session: bool },
    DefineSeed,
    Remember { who: Option<u8>, level: Option<usize>, text: u8, keyed: bool, relevance: Option<u8> },
    Recall { words: Option<u8>, level: Option<usize> },
    Feedback { text: u8, useful: bool },
    Promote { text: u8, to: usize },
    Drain { level: Option<usize>, who: Option<u8> },
    Compact { level: usize, texts: Vec<u8> },
    Delete { text: u8, level: Option<usize> },
    Look,
}

const LEVELS: [&str; 4] = ["working", "short-term", "semantic", "own"];

fn level() -> impl Strategy<Value = usize> {
    0..LEVELS.len()
}

fn name(level: usize) -> String {
    LEVELS[level].to_owned()
}

fn text(number: u8) -> String {
    format!("record number{number} of all")
}

/// The key of a text that is remembered under a key of its own.
fn key(text: u8) -> String {
    format!("key{}", text % 2)
}

pub fn memory_step() -> impl Strategy<Value = MemoryStep> {
    let texts = || 0..5_u8;
    prop_oneof![
        1 => (level(), option::of(level()), option::of(1..4_u64), any::<bool>())
            .prop_map(|(level, next, takes_at, session)| MemoryStep::Define { level, next, takes_at, session }),
        2 => Just(MemoryStep::DefineSeed),
        10 => (option::of(0..3_u8), option::of(level()), texts(), any::<bool>(), option::of(0..=10_u8))
            .prop_map(|(who, level, text, keyed, relevance)| MemoryStep::Remember { who, level, text, keyed, relevance }),
        3 => (option::of(texts()), option::of(level()))
            .prop_map(|(words, level)| MemoryStep::Recall { words, level }),
        1 => (texts(), any::<bool>()).prop_map(|(text, useful)| MemoryStep::Feedback { text, useful }),
        2 => (texts(), level()).prop_map(|(text, to)| MemoryStep::Promote { text, to }),
        2 => (option::of(level()), option::of(0..3_u8))
            .prop_map(|(level, who)| MemoryStep::Drain { level, who }),
        1 => (level(), prop::collection::vec(texts(), 1..3))
            .prop_map(|(level, texts)| MemoryStep::Compact { level, texts }),
        1 => (texts(), option::of(level())).prop_map(|(text, level)| MemoryStep::Delete { text, level }),
        1 => Just(MemoryStep::Look),
    ]
}

/// Takes the step, and shows its answer.
pub fn take(board: &Board, step: &MemoryStep) -> Result<String> {
    let memory = board.memories();
    match step {
        MemoryStep::Define { level, next, takes_at, session } => {
            let rules = LevelRules {
                next: next.map(name).into_iter().collect(),
                takes_at: *takes_at,
                session: *session,
                ..LevelRules::default()
            };
            let define = Define { name: name(*level), rules, session: None };
            memory.define(&define).map(|answer| format!("{answer:?}"))
        }
        MemoryStep::DefineSeed => memory.define_seed(None).map(|answer| format!("{answer:?}")),
        MemoryStep::Remember { who, level, text: number, keyed, relevance } => {
            let remember = Remember {
                level: level.map(name),
                key: keyed.then(|| key(*number)),
                relevance: relevance.map(|tenths| Relevance::new(f64::from(tenths) / 10.0).unwrap()),
                actor: Actor { session: who.map(session), ..Actor::default() },
                ..Remember::text(&text(*number))
            };
            memory.remember(&remember).map(|answer| format!("{answer:?}"))
        }
        MemoryStep::Recall { words, level } => {
            let recall = Recall {
                words: words.map(|word| format!("number{word}")),
                levels: level.map(name).into_iter().collect(),
                limit: Some(100),
                ..Recall::default()
            };
            let answer = memory.recall(&recall, &IndexLocation::Memory)?;
            Ok(format!("{:?} {} {}", answer.records, answer.total, answer.tokens))
        }
        MemoryStep::Feedback { text, useful } => {
            let rating = if *useful { Usefulness::Useful } else { Usefulness::Useless };
            memory.feedback(&key(*text), None, rating, &Actor::default()).map(|answer| format!("{answer:?}"))
        }
        MemoryStep::Promote { text, to } => {
            let (keys, to) = (vec![key(*text)], name(*to));
            let promote = Promote { keys, from: None, to, actor: Actor::default() };
            memory.promote(&promote).map(|answer| format!("{answer:?}"))
        }
        MemoryStep::Drain { level, who } => {
            let actor = Actor { session: who.map(session), ..Actor::default() };
            let drain = Drain { level: level.map(name), to: None, actor };
            memory.drain(&drain).map(|answer| format!("{answer:?}"))
        }
        MemoryStep::Compact { level, texts } => {
            let compact = Compact {
                level: name(*level),
                summary: "summary of several".to_owned(),
                of: texts.iter().map(|text| key(*text)).collect(),
                ..Compact::default()
            };
            memory.compact(&compact).map(|answer| format!("{answer:?}"))
        }
        MemoryStep::Delete { text, level } => memory
            .delete(&[key(*text)], level.map(name).as_deref(), &Actor::default())
            .map(|answer| format!("{answer:?}")),
        MemoryStep::Look => Ok(format!("{:?} {:?}", memory.map()?, memory.pending(None)?)),
    }
}
