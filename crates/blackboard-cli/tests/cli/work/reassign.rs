use blackboard::Code;

use crate::scratch::Scratch;
use crate::shapes::{WORK_ITEM, is_object};
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, json_has_the_holder_and_its_fence,];

fn human_output_matches_transcript() {
    transcript::check("work reassign");
}

fn json_has_the_holder_and_its_fence() {
    let scratch = Scratch::new();
    let [ivy, oak] = [("Ivy", "ivy"), ("Oak", "oak")].map(|(name, hint)| {
        let registered = scratch.json(["agent", "register", "--name", name, "--session-hint", hint]);
        registered["session_id"].as_str().unwrap().to_owned()
    });
    let claimed = scratch.json(["work", "claim", "item", "--title", "Item", "--session", "ivy"]);
    let old = claimed["fence"].to_string();
    // By its id, by the beginning of it, and by its hint, as every session.
    let reassigned =
        scratch.json(["work", "reassign", "item", "--to", &oak, "--session", "ivy", "--fence", &old]);
    is_object(&reassigned, WORK_ITEM);
    assert_eq!((&reassigned["reassigned"], &reassigned["status"]), (&true.into(), &"claimed".into()));
    assert_eq!(
        (&reassigned["claimed_by"], &reassigned["claimed_by_name"]),
        (&oak.as_str().into(), &"Oak".into())
    );
    assert_eq!(reassigned["previously_held_by"], "Ivy");
    assert_eq!(reassigned["fence"], reassigned["revision"]);
    assert!(reassigned["fence"].as_i64() > claimed["fence"].as_i64());
    assert_eq!(scratch.json(["agent", "show", "oak"])["current_work"], "Item");
    assert!(scratch.json(["agent", "show", "ivy"])["current_work"].is_null());

    let late = scratch.run(["work", "complete", "item", "--session", "oak", "--fence", &old, "--json"]);
    late.refused(Code::StaleFence);
    let refused = scratch.run(["work", "reassign", "item", "--to", "ivy", "--session", "ivy", "--json"]);
    assert_eq!(refused.refused(Code::AlreadyClaimed)["held_by"], oak.as_str());
    let call = ["work", "reassign", "item", "--to", &oak[..8], "--session", "ivy", "--reason", "Again"];
    let again = scratch.json(call);
    assert_eq!((&again["reassigned"], &again["fence"]), (&false.into(), &reassigned["fence"]));
    assert_eq!(again["ignored"], serde_json::json!(["reason"]));
    let forced = scratch.json(["work", "reassign", "item", "--to", "ivy", "--session", "ivy", "--force"]);
    assert_eq!((&forced["claimed_by"], &forced["previously_held_by"]), (&ivy.as_str().into(), &"Oak".into()));
}
