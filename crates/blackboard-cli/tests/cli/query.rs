use blackboard::Code;
use serde_json::Value;

use crate::scratch::Scratch;
use crate::shapes::{ENTRY, is_list};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    pages_together_contain_every_entry,
    page_token_of_another_order_is_refused,
    bracket_that_is_not_closed_matches_itself_in_every_command,
];

fn human_output_matches_transcript() {
    transcript::check("query");
}

fn bracket_that_is_not_closed_matches_itself_in_every_command() {
    let scratch = Scratch::new();
    for key in ["a", "list0"] {
        scratch.json(["write", key, "1"]);
    }
    // No command writes such a key, but another program may.
    scratch.rewrite(
        "UPDATE entries SET key = 'list[0' WHERE key = 'list0';
                     UPDATE entry_versions SET key = 'list[0' WHERE key = 'list0'",
    );
    for (pattern, expected, is_closed) in [
        ("[", &[][..], false),
        ("list[*", &["list[0"], false),
        ("list[0", &["list[0"], false),
        ("[a", &[], false),
        ("[a]", &["a"], true),
        ("list[[]0", &["list[0"], true),
    ] {
        let query = scratch.json(["query", pattern]);
        let items = query["items"].as_array().unwrap().iter();
        let found: Vec<&str> = items.map(|entry| entry["key"].as_str().unwrap()).collect();
        assert_eq!(found, expected, "{pattern}");
        assert_eq!(scratch.json(["list", "--pattern", pattern]), Value::from(expected), "{pattern}");
        assert_eq!(scratch.json(["clear", pattern, "--dry-run"])["keys"], Value::from(expected), "{pattern}");
        let note =
            if is_closed { "" } else { "note: the [ in the pattern is not closed, so it matches itself\n" };
        for call in [
            &["query", pattern][..],
            &["list", "--pattern", pattern],
            &["snapshot", "--pattern", pattern],
            &["clear", pattern, "--dry-run"],
        ] {
            assert_eq!(scratch.run(call).success().stderr, note, "{call:?}");
        }
    }
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
