use blackboard::Code;
use serde_json::json;

use crate::scratch::Scratch;
use crate::shapes::{WORK_ITEM, is_object};
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript, members_are_merged,];

fn human_output_matches_transcript() {
    transcript::check("work update-metadata");
}

fn members_are_merged() {
    let scratch = Scratch::new();
    scratch.json(["work", "create", "item", "--title", "Item", "--metadata", r#"{"size": 1.0}"#]);
    let call = ["work", "update-metadata", "--id", "item"];
    let updated = scratch.json(call.into_iter().chain(["--set", "branch=main", "--set", "tries=2"]));
    is_object(&updated, WORK_ITEM);
    assert_eq!((&updated["updated"], &updated["changed"]), (&json!(true), &json!(["branch", "tries"])));
    let expected = json!({"size": 1.0, "branch": "main", "tries": 2});
    assert_eq!(updated["metadata"], expected);
    let again = scratch.json(call.into_iter().chain(["--metadata", r#"{"tries": 2}"#]));
    assert_eq!((&again["updated"], &again["metadata"]), (&json!(false), &expected));
    let observed = scratch.json(["observe", "--since", "1h", "--filter", "metadata_updated"]);
    assert_eq!(observed["count"], 1, "{observed}");
    for member in ["branch", "=main"] {
        let refused = scratch.run(call.into_iter().chain(["--set", member, "--json"]));
        refused.refused(Code::InvalidValue);
    }
}
