use serde_json::json;

use crate::scratch::Scratch;
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_the_mapping_and_its_size,];

fn human_output_matches_transcript() {
    transcript::check("page map");
}

fn json_has_the_mapping_and_its_size() {
    let scratch = Scratch::new();
    scratch.json(["write", "a", "1", "--tag", "x"]);
    let call = ["page", "map", "default", "--by", "prefix", "--max-tokens", "1000"];
    let mapped = scratch.json(call);
    let fields = ["outcome", "scope", "by", "max_tokens", "pages", "entries", "behind", "revision"];
    is_object(&mapped, &fields);
    assert_eq!(
        (&mapped["outcome"], &mapped["by"], &mapped["pages"]),
        (&json!("mapped"), &json!("prefix"), &json!(1))
    );
    let again = scratch.json(["page", "map", "default", "--by", "time"]);
    assert_eq!((&again["outcome"], &again["ignored"]), (&json!("already_mapped"), &json!(["by"])));
    assert_eq!((&again["by"], &again["revision"]), (&mapped["by"], &json!(null)));
    let exported = scratch.json(["export"]);
    assert_eq!(exported["page_maps"][0]["scope"], "default");
    assert_eq!(scratch.json(["export", "--scope", "default"])["page_maps"], exported["page_maps"]);
    scratch.run(["page", "map", "locks", "--json"]).refused(blackboard::Code::InvalidValue);
}
