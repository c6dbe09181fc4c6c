//! `blackboard memory …`

pub mod compact;
pub mod define;
pub mod delete;
pub mod drain;
pub mod feedback;
pub mod list;
pub mod map;
pub mod pending;
pub mod promote;
pub mod recall;
pub mod remember;

use blackboard::memory::Relevance;

/// Parses a relevance.
fn relevance(text: &str) -> Result<Relevance, String> {
    let number = text.trim().parse::<f64>().map_err(|_| "expected a number from 0 to 1".to_owned())?;
    Relevance::new(number).map_err(|error| error.to_string())
}
