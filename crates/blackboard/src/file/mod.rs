//! Files: who works on which part of a tree, as a [`PathPattern`] that others are told about.

mod pattern;

pub use pattern::PathPattern;
