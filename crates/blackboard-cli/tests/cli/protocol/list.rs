use crate::scratch::Scratch;
use crate::shapes::is_list;
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_built_in_and_defined_protocols,];

fn human_output_matches_transcript() {
    transcript::check("protocol list");
}

fn json_has_built_in_and_defined_protocols() {
    let scratch = Scratch::new();
    scratch.json(["protocol", "define", "review", "review:{repo}:{id}"]);
    let protocols = scratch.json(["protocol", "list"]);
    is_list(&protocols, &["name", "level", "scope_template", "summary", "built_in", "messages"]);
    assert_eq!(protocols["count"], 17);
    assert_eq!(protocols["items"][0]["messages"][0]["template"], "request:run:{ns?}:{id}");
    let review = &protocols["items"][16];
    assert_eq!((&review["name"], &review["built_in"]), (&"review".into(), &false.into()));
}
