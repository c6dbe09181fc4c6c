use blackboard::Code;

use crate::scratch::Scratch;
use crate::shapes::{WORK_ITEM, is_object};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_item,
    title_alone_gets_a_generated_id,
    a_title_needs_no_id_and_no_space,
    id_without_a_title_is_a_usage_error,
];

fn human_output_matches_transcript() {
    transcript::check("work create");
}

fn json_has_the_item() {
    let scratch = Scratch::new();
    let call = ["work", "create", "item", "--title", "Item", "--blocked-by", "later", "--metadata", "{}"];
    let item = scratch.json(call);
    is_object(&item, WORK_ITEM);
    assert_eq!((item["created"].as_bool(), item["status"].as_str()), (Some(true), Some("blocked")));
    assert_eq!(item["missing_blockers"], serde_json::json!(["later"]));
    assert_eq!((item["source"].as_str(), item["priority"].as_str()), (Some("local"), Some("P2")));
    assert_eq!(scratch.json(call)["created"], false);
}

fn title_alone_gets_a_generated_id() {
    let scratch = Scratch::new();
    let created = |title: &str| scratch.json(["work", "create", title])["item_id"].clone();
    assert_eq!(created("Fix the login"), "fix-the-login");
    assert_eq!(created("Fix the login"), "fix-the-login-2");
    assert_eq!(created("fix, the, login!"), "fix-the-login-3");
    assert_eq!(created("a,b"), "a-b", "no id has a comma");
    let item =
        scratch.json(["work", "create", "Ship it", "-p", "p1", "--description", "All of it", "-t", "Ship"]);
    assert_eq!((item["item_id"].as_str(), item["title"].as_str()), (Some("Ship it"), Some("Ship")), "an id");
    let item =
        scratch.json(["work", "create", "Ship it", "--description", "All of it", "--blocked-by", "a-b"]);
    assert_eq!((item["item_id"].as_str(), item["title"].as_str()), (Some("ship-it"), Some("Ship it")));
    assert_eq!(item["open_blockers"], serde_json::json!(["a-b"]));
}

fn a_title_needs_no_id_and_no_space() {
    let scratch = Scratch::new();
    for (call, title) in [
        (&["日本語のタイトル"][..], "日本語のタイトル"),
        (&["Straßenbahn"], "Straßenbahn"),
        (&["--title", "Just the title"], "Just the title"),
        (&["-t", "Fix"], "Fix"),
    ] {
        let created = scratch.json(["work", "create"].iter().chain(call));
        assert_eq!(created["title"], title, "{created}");
        let id = created["item_id"].as_str().unwrap();
        assert_eq!(scratch.json(["work", "status", id])["title"], title);
    }
    let named = scratch.json(["work", "create", "修正", "--title", "Fix it"]);
    assert_eq!(named["item_id"], "修正", "an id, because the title is given");
}

fn id_without_a_title_is_a_usage_error() {
    let scratch = Scratch::new();
    for call in [&["work", "create", "item", "--json"][..], &["work", "create", "--id", "item", "--json"]] {
        let refused = scratch.run(call).refused(Code::Usage);
        assert_eq!(refused["error"], "work item item has no title");
        assert_eq!(refused["hint"], "pass a title: blackboard work create item --title TEXT");
    }
    assert_eq!(scratch.run(["work", "create"]).code, 2);
    assert_eq!(scratch.run(["work", "create", "--id", "x", "--description", "y"]).code, 2);
}
