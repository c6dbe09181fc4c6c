use serde_json::json;

use crate::scratch::Scratch;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_the_average];

fn human_output_matches_transcript() {
    transcript::check("memory feedback");
}

fn json_has_the_average() {
    let scratch = Scratch::new();
    scratch.json(["memory", "remember", "CI needs 12 minutes", "--key", "ci"]);
    let rated = scratch.json(["memory", "feedback", "ci", "useful"]);
    assert_eq!((&rated["usefulness"], &rated["ratings"]), (&json!(0.55), &json!(1)));
    let rated = scratch.json(["memory", "feedback", "ci", "useless", "--level", "short-term"]);
    assert_eq!((&rated["usefulness"], &rated["ratings"]), (&json!(0.495), &json!(2)));
}
