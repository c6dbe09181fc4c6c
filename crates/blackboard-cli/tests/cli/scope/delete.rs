use serde_json::json;

use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_the_number_of_deleted_entries,];

fn human_output_matches_transcript() {
    transcript::check("scope delete");
}

fn json_has_the_number_of_deleted_entries() {
    let scratch = Scratch::new();
    scratch.json(["scope", "create", "cache"]);
    scratch.json(["write", "a", "1", "--scope", "cache"]);
    let deleted = scratch.json(["scope", "delete", "cache", "--entries"]);
    is_object(&deleted, &["scope", "deleted_entries", "revision"]);
    assert_eq!(deleted["deleted_entries"], 1);
    assert_eq!(scratch.json(["list", "--scope", "cache"]), json!([]));
}
