//! The output of `serve`. Its answers to browsers are tested in `tests/web`.

use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript,];

fn human_output_matches_transcript() {
    transcript::check("serve");
}
