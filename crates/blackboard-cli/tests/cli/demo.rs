use crate::transcript;

#[test]
fn people_see_what_the_transcript_shows() {
    transcript::check("demo");
}
