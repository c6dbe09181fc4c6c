//! Entries: facts that agents share, each a [`Value`] under a key of a scope.

mod glob;
mod key;
mod value;

pub use glob::Glob;
pub use key::{
    MAX_KEY_BYTES, MAX_SCOPE_BYTES, MAX_TAG_BYTES, MAX_TAGS, check_key, check_pattern, check_scope,
    check_tag, tag_set,
};
pub use value::Value;
