use crate::scratch::Scratch;
use crate::shapes::{WORK_ITEM, is_object};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_remaining_blockers,
    item_that_was_no_blocker_is_reported,
];

fn human_output_matches_transcript() {
    transcript::check("work unblock");
}

fn json_has_the_remaining_blockers() {
    let scratch = Scratch::new();
    scratch.json(["work", "create", "item", "--title", "Item", "--blocked-by", "one,two"]);
    let less = scratch.json(["work", "unblock", "item", "--blocked-by", "one"]);
    is_object(&less, WORK_ITEM);
    assert_eq!(
        (&less["open_blockers"], less["unblocked"].as_bool()),
        (&serde_json::json!(["two"]), Some(false))
    );
    assert_eq!(scratch.json(["work", "unblock", "item"])["unblocked"], true);
}

fn item_that_was_no_blocker_is_reported() {
    let scratch = Scratch::new();
    scratch.json(["work", "create", "ship", "--title", "Ship", "--blocked-by", "one,two"]);
    let said = scratch.run(["work", "unblock", "ship", "--blocked-by", "zzz"]).success();
    assert_eq!(said.stderr, "note: zzz was not a blocker of ship\n");
    let answer = scratch.json(["work", "unblock", "ship", "--blocked-by", "one,yyy,zzz"]);
    assert_eq!(answer["not_blockers"], serde_json::json!(["yyy", "zzz"]));
    let said = scratch.run(["work", "unblock", "ship", "--blocked-by", "yyy,zzz"]).success();
    assert_eq!(said.stderr, "note: yyy, zzz were not blockers of ship\n");
}
