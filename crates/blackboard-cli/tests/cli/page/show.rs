use serde_json::json;

use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_the_entries,];

fn human_output_matches_transcript() {
    transcript::check("page show");
}

fn json_has_the_entries() {
    let scratch = Scratch::new();
    scratch.json(["write", "a", "{\"b\": 1}", "--tag", "x", "--agent", "analyst"]);
    scratch.json(["page", "map", "default"]);
    let page = scratch.json(["page", "show", "bb:default:x"]);
    let fields = ["id", "scope", "by", "locality", "hash", "tokens", "revision", "behind", "entries"];
    is_object(&page, &fields);
    let entry = &page["entries"][0];
    assert_eq!((&entry["key"], &entry["value"]), (&json!("a"), &json!({"b": 1})));
    assert_eq!(entry["source_agent"], "analyst");
    let [by_id, by_hash] =
        ["id", "hash"].map(|name| scratch.json(["page", "show", page[name].as_str().unwrap()]));
    assert_eq!((&by_id["entries"], &by_hash["entries"]), (&page["entries"], &page["entries"]));
}
