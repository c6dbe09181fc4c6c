//! `serve`, as people see it. What browsers see is in `tests/web`.

use crate::transcript;

#[test]
fn human_output_matches_transcript() {
    transcript::check("serve");
}
