use crate::transcript;

#[test]
fn human_output_matches_transcript() {
    transcript::check("demo");
}
