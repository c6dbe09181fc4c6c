//! The page: one document with everything in it.

/// The document. `nonce` is that of its one style and its one script: nothing else may run.
pub fn document(nonce: &str) -> String {
    include_str!("page.html").replace("{nonce}", nonce)
}
