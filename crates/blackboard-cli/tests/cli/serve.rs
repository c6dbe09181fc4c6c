//! The output of `serve`. Its answers to browsers are tested in `tests/web`.

use crate::transcript;

#[test]
fn human_output_matches_transcript() {
    transcript::check("serve");
}
