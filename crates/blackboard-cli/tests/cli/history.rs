use crate::scratch::Scratch;
use crate::shapes::is_list;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_the_history_of_a_key,
    history_reports_that_older_versions_were_pruned,
    history_shows_every_version_and_reports_what_a_limit_leaves_out,
    history_of_an_unknown_key_names_its_scope,
];

fn human_output_matches_transcript() {
    transcript::check("history");
}

fn json_has_the_history_of_a_key() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["write", "key", "1", "--agent", "analyst"]);
    scratch.json(["delete", "key"]);
    scratch.json(["write", "key", "2", "--ttl", "1h"]);
    scratch.let_time_pass();
    scratch.json(["write", "key", "3", "--lease", "--session", "ivy"]);
    scratch.json(["agent", "deregister", "ivy"]);
    let history = scratch.json(["history", "key"]);
    is_list(&history, &["revision", "version", "what", "timestamp", "previous"]);
    let items = history["items"].as_array().unwrap();
    let told: Vec<_> = items.iter().map(|item| (item["what"].as_str().unwrap(), &item["version"])).collect();
    let told: Vec<_> = told.into_iter().map(|(what, version)| format!("{what} {version}")).collect();
    assert_eq!(told, ["released 3", "written 3", "expired 2", "written 2", "deleted 1", "written 1"]);
    for pair in items.windows(2) {
        assert_eq!(pair[0]["previous"], pair[1]["revision"]);
    }
    let removed: Vec<_> = items.iter().filter(|item| item.get("value").is_none()).collect();
    assert!(removed.iter().all(|item| item["summary"].is_string()) && removed.len() == 3, "{history}");
    assert_eq!((&items[5]["value"], &items[5]["source_agent"]), (&1.into(), &"analyst".into()));
    let authors: Vec<_> = items.iter().map(|item| item["source_agent"].as_str()).collect();
    assert_eq!(authors, [Some("Ivy"), Some("Ivy"), None, Some("cli"), Some("cli"), Some("analyst")]);
    assert_eq!(history["compacted"], false);
    assert_eq!(scratch.json(["history", "key", "--limit", "2"])["count"], 2);
}

fn history_reports_that_older_versions_were_pruned() {
    let scratch = Scratch::new();
    for value in ["1", "2", "3"] {
        scratch.json(["write", "key", value]);
    }
    scratch.prune(1, &[1]);
    let history = scratch.json(["history", "key"]);
    assert_eq!((history["count"].as_u64(), history["compacted"].as_bool()), (Some(2), Some(true)));
    assert!(scratch.run(["history", "key"]).stdout.ends_with("\nOlder versions have been pruned.\n"));
}

fn history_shows_every_version_and_reports_what_a_limit_leaves_out() {
    let scratch = Scratch::new();
    for value in 0..25 {
        scratch.json(["write", "key", &value.to_string()]);
    }
    let all = scratch.json(["history", "key"]);
    assert_eq!((all["count"].as_u64(), all["more"].as_bool()), (Some(25), Some(false)));
    let some = scratch.json(["history", "key", "--limit", "3"]);
    assert_eq!((some["count"].as_u64(), some["more"].as_bool()), (Some(3), Some(true)));
    let shown = scratch.run(["history", "key", "--limit", "3"]).stdout;
    assert!(shown.ends_with("\nThere are older versions. Use --limit N for more.\n"), "{shown}");
    assert_eq!(scratch.run(["history", "key"]).stdout.lines().count(), 26);
}

fn history_of_an_unknown_key_names_its_scope() {
    let scratch = Scratch::new();
    scratch.json(["write", "key", "1"]);
    let refused = scratch.run(["history", "key", "--scope", "team-1"]);
    assert_eq!(refused.code, 3);
    let expected =
        "error: key key has no history in scope team-1\nhint: list keys: blackboard list --scope team-1\n";
    assert_eq!(refused.stderr, expected);
}
