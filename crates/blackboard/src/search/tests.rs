//! Tests of the search as a whole: what is found, by whom, and what the index has after everything that may happen to it.

mod access;
mod content;
mod fold;
mod relevance;
mod results;
