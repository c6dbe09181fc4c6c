use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_what_was_removed,];

fn human_output_matches_transcript() {
    transcript::check("protocol remove");
}

fn json_has_what_was_removed() {
    let scratch = Scratch::new();
    scratch.json(["protocol", "define", "review", "review:{id}"]);
    let removed = scratch.json(["protocol", "remove", "review"]);
    is_object(&removed, &["name", "template", "level", "summary", "defined_at", "revision"]);
    assert_eq!(scratch.json(["protocol", "list"])["count"], 16);
}
