use serde_json::{Value, json};

use crate::scratch::Scratch;
use crate::shapes::{WORK_ITEM, is_list};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_a_list_of_items,
    json_of_a_limited_list_reports_that_there_is_more,
    every_blocker_is_listed_and_one_that_does_not_exist_is_reported_wherever_the_item_is_shown,
    a_project_that_is_not_registered_is_not_found,
    an_empty_list_says_whether_items_were_left_out,
];

fn human_output_matches_transcript() {
    transcript::check("work list");
}

fn json_has_a_list_of_items() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["work", "claim", "item", "--title", "Item", "--session", "ivy"]);
    scratch.json(["work", "create", "urgent", "--title", "Urgent", "--priority", "P1"]);
    let items = scratch.json(["work", "list", "--status", "available,claimed"]);
    is_list(&items, WORK_ITEM);
    assert_eq!((items["items"][0]["item_id"].as_str(), items["count"].as_u64()), (Some("urgent"), Some(2)));
}

fn json_of_a_limited_list_reports_that_there_is_more() {
    let scratch = Scratch::new();
    for id in ["a", "b", "c"] {
        scratch.json(["work", "create", id, "--title", id]);
    }
    let more = |limit: &str| scratch.json(["work", "list", "--limit", limit])["more"].clone();
    assert_eq!((more("2"), more("3")), (json!(true), Value::Null));
}

fn every_blocker_is_listed_and_one_that_does_not_exist_is_reported_wherever_the_item_is_shown() {
    let scratch = Scratch::new();
    scratch.json(["project", "register", "pai", "--name", "PAI"]);
    for id in ["a", "b", "c"] {
        scratch.json(["work", "create", id, "--title", id]);
    }
    let blockers = ["--blocked-by", "a,b,c,reveiw"];
    let create = ["work", "create", "ship", "--title", "Ship it", "--project", "pai"];
    scratch.json(create.iter().chain(&blockers));
    let (open, missing) = (json!(["a", "b", "c", "reveiw"]), json!(["reveiw"]));
    let shown = |item: &Value| (item["open_blockers"].clone(), item["missing_blockers"].clone());
    let mut views = vec![
        scratch.json(["work", "list", "--status", "blocked"])["items"][0].take(),
        scratch.json(["work", "status", "ship"]),
        scratch.json(["project", "status", "pai"])["work_items"][0].take(),
        scratch.json(["work", "block", "ship", "--blocked-by", "a"]),
    ];
    for view in views.drain(..) {
        assert_eq!(
            (shown(&view), &view["blocked_by"]),
            ((open.clone(), missing.clone()), &json!("a")),
            "{view}"
        );
    }
    assert_eq!(scratch.json(["status"])["missing_blockers"], missing);
    for call in [
        &["work", "list"][..],
        &["work", "status", "ship"],
        &["project", "status", "pai"],
        &["work", "block", "ship", "--blocked-by", "a"],
        &["status"],
    ] {
        let text = scratch.run(call).success().stdout;
        let is_named = text.contains("reveiw (not created)") || text.contains("; not created: reveiw)");
        assert!(is_named, "{call:?}: {text}");
    }
    scratch.json(["work", "create", "reveiw", "--title", "Review"]);
    assert!(!scratch.run(["work", "list"]).success().stdout.contains("not created"));
}

fn a_project_that_is_not_registered_is_not_found() {
    let scratch = Scratch::new();
    scratch.json(["work", "create", "item", "--title", "Item"]);
    scratch.run(["work", "list", "--project", "nope", "--json"]).refused(blackboard::Code::ProjectNotFound);
}

fn an_empty_list_says_whether_items_were_left_out() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["project", "register", "pai", "--name", "PAI"]);
    let list = |options: &[&str]| {
        scratch.run(["work", "list"].iter().chain(options)).success().stdout.trim_end().to_owned()
    };
    assert!(list(&[]).starts_with("No open work items. Add one: "), "{}", list(&[]));
    scratch.json(["work", "create", "item", "--title", "Item"]);
    for (options, expected) in [
        (&["--mine", "--session", "ivy"][..], "You hold no work items."),
        (&["--project", "pai"], "No open work item matches."),
        (&["--priority", "P1"], "No open work item matches."),
        (&["--project", "pai", "--all"], "No work item matches."),
        (&["--status", "completed"], "No work item matches."),
    ] {
        assert_eq!(list(options), expected, "{options:?}");
    }
}
