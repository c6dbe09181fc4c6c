//! Entries: facts that agents share, each a [`Value`] under a key of a scope.

mod value;

pub use value::Value;
