use crate::scratch::Scratch;
use crate::shapes::is_list;
use crate::transcript;

#[test]
fn human_output_matches_transcript() {
    transcript::check("history");
}

#[test]
fn json_has_the_history_of_a_key() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["write", "key", "1", "--agent", "analyst"]);
    scratch.json(["delete", "key"]);
    scratch.json(["write", "key", "2", "--ttl", "1ms"]);
    std::thread::sleep(std::time::Duration::from_millis(5));
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

#[test]
fn history_reports_that_older_versions_were_pruned() {
    let scratch = Scratch::new();
    for value in ["1", "2", "3"] {
        scratch.json(["write", "key", value]);
    }
    // As if retention had come by.
    let database = rusqlite::Connection::open(scratch.database()).unwrap();
    database
        .execute_batch("DELETE FROM entry_versions WHERE revision = 1; DELETE FROM events WHERE id = 1")
        .unwrap();
    let history = scratch.json(["history", "key"]);
    assert_eq!((history["count"].as_u64(), history["compacted"].as_bool()), (Some(2), Some(true)));
    assert!(scratch.run(["history", "key"]).stdout.ends_with("\nOlder versions have been pruned.\n"));
}
