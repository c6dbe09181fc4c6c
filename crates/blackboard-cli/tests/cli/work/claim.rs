use serde_json::json;

use crate::scratch::Scratch;
use crate::shapes::{WORK_ITEM, is_object};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_fence_of_the_claim,
    fields_of_a_new_item_are_reported_as_ignored_when_the_item_exists,
];

fn human_output_matches_transcript() {
    transcript::check("work claim");
}

fn json_has_the_fence_of_the_claim() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["agent", "register", "--name", "Oak", "--session-hint", "oak"]);
    let call = ["work", "claim", "item", "--title", "Item", "--session", "ivy"];
    let claimed = scratch.json(call);
    is_object(&claimed, WORK_ITEM);
    assert_eq!((claimed["claimed"].as_bool(), claimed["already_held"].as_bool()), (Some(true), Some(false)));
    assert!(claimed["fence"].as_i64().is_some_and(|fence| fence > 0));
    let again = scratch.json(call);
    assert_eq!((again["claimed"].as_bool(), again["already_held"].as_bool()), (Some(false), Some(true)));
    assert_eq!((&again["fence"], &again["since"]), (&claimed["fence"], &claimed["claimed_at"]));
    // Another session gets the holder.
    let refusal = scratch.run(["work", "claim", "item", "--session", "oak", "--json"]);
    let refusal = refusal.refused(blackboard::Code::AlreadyClaimed);
    assert_eq!((&refusal["held_by"], &refusal["fence"]), (&claimed["claimed_by"], &claimed["fence"]));
    assert_eq!((refusal["held_by_name"].as_str(), &refusal["since"]), (Some("Ivy"), &claimed["claimed_at"]));
}

fn fields_of_a_new_item_are_reported_as_ignored_when_the_item_exists() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["work", "create", "a11y", "--title", "Check contrast"]);
    let other =
        ["work", "claim", "a11y", "--title", "Something else", "--source-ref", "7", "--session", "ivy"];
    let shown = scratch.run(other).success();
    assert_eq!(shown.stderr, "note: work item a11y already exists; ignored --title, --source-ref\n");
    let claimed = scratch.json(other);
    assert_eq!(
        (&claimed["ignored"], &claimed["title"]),
        (&json!(["title", "source_ref"]), &json!("Check contrast"))
    );
    let same = ["work", "claim", "a11y", "--title", "Check contrast", "--session", "ivy"];
    assert_eq!(scratch.run(same).success().stderr, "", "a retry gets no note about unchanged fields");
    assert_eq!(scratch.json(same)["ignored"], json!([]));
    let run = ["run", "--work-item", "new", "--title", "New", "--", "true"];
    assert_eq!(scratch.run(run).success().stderr, "");
    let run = ["run", "--work-item", "new", "--title", "Other", "--", "true"];
    let note = "note: work item new already exists; ignored --title\n";
    assert_eq!(scratch.run(run).success().stderr, note);
}
