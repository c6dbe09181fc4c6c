use blackboard::Code;
use serde_json::Value;

use crate::scratch::Scratch;
use crate::shapes::{ENTRY, is_list};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    pages_together_contain_every_entry,
    page_token_of_another_order_is_refused,
];

fn human_output_matches_transcript() {
    transcript::check("query");
}

fn pages_together_contain_every_entry() {
    let scratch = Scratch::new();
    let keys = ["agent:c:results", "agent:a:results", "agent:b:results", "agent:b:notes"];
    for key in keys {
        scratch.json(["write", key, "1", "--tag", "analysis"]);
    }
    for (order, expected) in [("key", [1, 2, 0]), ("newest", [2, 1, 0])] {
        let call = ["query", "agent:*:results", "--tag", "analysis", "--limit", "1", "--order", order];
        let mut found = Vec::new();
        let mut after = Value::Null;
        loop {
            let next = after.as_str().map(|after| ["--after", after]);
            let page = scratch.json(call.iter().chain(next.iter().flatten()));
            is_list(&page, ENTRY);
            assert_eq!(page["revision"], 4);
            found.push(page["items"][0]["key"].as_str().unwrap().to_owned());
            after = page["next"].clone();
            if after.is_null() {
                break;
            }
        }
        assert_eq!(found, expected.map(|index| keys[index]), "{order}");
    }
    let rest = scratch.json(["query", "--order", "key", "--offset", "3"]);
    assert_eq!((rest["count"].as_u64(), &rest["items"][0]["key"]), (Some(1), &"agent:c:results".into()));
}

fn page_token_of_another_order_is_refused() {
    let scratch = Scratch::new();
    scratch.run(["query", "--after", "task:a", "--json"]).refused(Code::InvalidValue);
}
