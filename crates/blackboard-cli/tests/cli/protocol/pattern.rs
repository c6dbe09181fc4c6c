use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_the_pattern,];

fn human_output_matches_transcript() {
    transcript::check("protocol pattern");
}

fn json_has_the_pattern() {
    let scratch = Scratch::new();
    let built = scratch.json(["protocol", "pattern", "WorkAssignment.result"]);
    is_object(&built, &["protocol", "message", "template", "pattern"]);
    assert_eq!(built["pattern"], "agent_id:*:result_type:*");
}
