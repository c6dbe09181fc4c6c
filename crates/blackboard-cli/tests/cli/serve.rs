//! `serve`, as people see it. What browsers see is in `tests/web`.

use crate::transcript;

#[test]
fn people_see_what_the_transcript_shows() {
    transcript::check("serve");
}
