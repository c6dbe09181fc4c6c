//! A coordination surface for agents that work at the same time.

pub mod clock;
pub mod duration;
pub mod error;
pub mod process;
pub mod text;

pub use error::{Code, Error, Fault, Refusal, Result};
