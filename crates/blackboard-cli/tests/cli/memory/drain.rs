use serde_json::json;

use crate::scratch::Scratch;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_counts_what_moved_and_what_is_left];

fn human_output_matches_transcript() {
    transcript::check("memory drain");
}

fn json_counts_what_moved_and_what_is_left() {
    let scratch = Scratch::new();
    scratch.json(["memory", "remember", "An episode"]);
    scratch.json(["memory", "remember", "Noise", "--relevance", "0.1"]);
    assert_eq!(scratch.json(["memory", "drain"])["moved"], 0);
    let drained = scratch.json(["memory", "drain", "short-term"]);
    assert_eq!((&drained["moved"], &drained["left"]), (&json!(1), &json!(1)));
    assert_eq!(drained["edges"][0]["declined"], 1);
}
