use serde_json::json;

use crate::scratch::Scratch;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_levels_and_edges];

fn human_output_matches_transcript() {
    transcript::check("memory map");
}

fn json_has_levels_and_edges() {
    let scratch = Scratch::new();
    scratch.json(["memory", "remember", "Use nextest"]);
    let map = scratch.json(["memory", "map"]);
    assert_eq!(map["levels"].as_array().map(Vec::len), Some(6));
    let edge = json!({"from": "episodic", "to": "procedural", "by": "summary", "missing": false});
    assert!(map["edges"].as_array().unwrap().contains(&edge), "{map}");
    assert_eq!(map["missing"], json!([]));
}
