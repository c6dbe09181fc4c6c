use blackboard::Code;

use crate::scratch::Scratch;
use crate::shapes::{WORK_ITEM, is_object};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_unblocked_items,
    fence_can_have_the_form_with_its_item,
];

fn human_output_matches_transcript() {
    transcript::check("work complete");
}

fn json_has_the_unblocked_items() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    let claim = ["work", "claim", "item", "--title", "Item", "--session", "ivy"];
    let fence = scratch.json(claim)["fence"].to_string();
    scratch.json(["work", "create", "later", "--title", "Later", "--blocked-by", "item"]);
    let call = ["work", "complete", "item", "--session", "ivy", "--fence", &fence];
    let completed = scratch.json(call);
    is_object(&completed, WORK_ITEM);
    assert_eq!(completed["unblocked"], serde_json::json!(["later"]));
    assert!(completed["claimed_by"].is_string() && completed["claimed_at"].is_string());
    assert_eq!(scratch.json(call)["already_completed"], true);
}

fn fence_can_have_the_form_with_its_item() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    let as_ivy = |words: &str, fence: &str| {
        let words = words.split(' ').chain(["--session", "ivy", "--fence", fence, "--json"]);
        scratch.run(words)
    };
    let claim = ["work", "claim", "item", "--title", "Item", "--session", "ivy"];
    let fence = scratch.json(claim)["fence"].to_string();
    for other in [format!("work:another={fence}"), format!("lock:item={fence}")] {
        as_ivy("work complete item", &other).refused(Code::InvalidValue);
        as_ivy("work release item", &other).refused(Code::InvalidValue);
    }
    let own = format!("work:item={fence}");
    assert_eq!(as_ivy("work release item", &own).success().json()["released"], true);
    scratch.json(claim);
    as_ivy("work complete item", &own).refused(Code::StaleFence);

    let acquire = ["lock", "acquire", "deploy", "--session", "ivy"];
    let fence = scratch.json(acquire)["fence"].to_string();
    as_ivy("lock release deploy", &format!("work:deploy={fence}")).refused(Code::InvalidValue);
    let released = as_ivy("lock release deploy", &format!("lock:deploy={fence}")).success();
    assert_eq!(released.json()["released"], true);
}
