//! The token quota on the dashboard.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::scratch::Scratch;
use crate::served::Served;

testkit::on_each_engine![
    the_quota_is_that_of_quota_status_with_a_history,
    other_boards_are_summed_and_not_named,
    a_server_without_a_quota_has_no_route_and_no_view,
    a_ledger_that_cannot_be_read_is_a_problem_of_the_quota_alone,
    the_server_never_writes_the_ledger,
];

const QUOTA: &str = r#"{"quota": {"providers": {"a": {
    "windows": {"5h": {"budget": 1000}, "7d": {"budget": 5000}}, "reservation": {"operator": 200}
}}}}"#;

fn configured() -> Scratch {
    let scratch = Scratch::new();
    let file = scratch.home_file("config.json");
    let directory = file.parent().unwrap();
    fs::create_dir_all(directory).unwrap();
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(file, QUOTA).unwrap();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch
}

fn record(scratch: &Scratch, tokens: &str, item: &str) {
    scratch.json(["quota", "record", "--input-tokens", tokens, "--item", item, "--session", "ivy"]);
}

fn the_quota_is_that_of_quota_status_with_a_history() {
    let scratch = configured();
    record(&scratch, "640", "x");
    scratch.json(["quota", "check", "--tokens", "50", "--reserve", "--session", "ivy"]);
    let served = Served::of(scratch, 0);
    let reply = served.get("/api/quota");
    assert_eq!((reply.status, reply.revision() > 0), (200, true));
    let quota = reply.json();
    let said = served.says(&["quota", "status"]);
    let (shown, said) = (&quota["providers"][0], &said["providers"][0]);
    for member in ["provider", "tier", "operator", "agents", "items", "reservations"] {
        assert_eq!(shown[member], said[member], "{member}");
    }
    for window in 0..2 {
        for member in
            ["window", "budget", "used", "reserved", "remaining", "available", "frees_at", "warning"]
        {
            assert_eq!(shown["windows"][window][member], said["windows"][window][member], "{member}");
        }
    }
    assert_eq!(shown["other_boards"], json!({"tokens": 0, "items": 0, "reserved": 0}));
    let history = &quota["histories"][0];
    assert_eq!((&history["provider"], &history["step"]), (&json!("a"), &json!("hour")));
    let sum = |history: &Value| {
        history["points"].as_array().unwrap().iter().filter_map(|point| point["tokens"].as_u64()).sum::<u64>()
    };
    assert_eq!(sum(history), 640);
    let month = &served.json("/api/quota?hours=720")["histories"][0];
    assert_eq!((&month["step"], sum(month)), (&json!("day"), 640));
    for wrong in ["hours=0", "hours=x", "hours=2161", "days=1"] {
        assert_eq!(served.get(&format!("/api/quota?{wrong}")).status, 400, "{wrong}");
    }
}

fn other_boards_are_summed_and_not_named() {
    let scratch = configured();
    record(&scratch, "100", "own");
    let other = scratch.path().join("secret-place.db");
    let other = other.to_str().unwrap();
    for call in [
        &["agent", "register", "--name", "Spy", "--session-hint", "spy"][..],
        &["quota", "record", "--input-tokens", "30", "--item", "secret-item", "--session", "spy"],
        &["quota", "check", "--tokens", "7", "--reserve", "--session", "spy"],
    ] {
        scratch.json([&["--db", other], call].concat());
    }
    let served = Served::of(scratch, 0);
    let reply = served.get("/api/quota");
    let provider = reply.json()["providers"][0].clone();
    assert_eq!(provider["windows"][0]["used"], 130);
    assert_eq!(provider["other_boards"], json!({"tokens": 30, "items": 30, "reserved": 7}));
    assert_eq!(provider["agents"].as_array().map(Vec::len), Some(1));
    let text = String::from_utf8(reply.body).unwrap();
    assert!(!text.contains("secret") && !text.contains("Spy"), "{text}");
}

fn a_server_without_a_quota_has_no_route_and_no_view() {
    let served = Served::furnished();
    let reply = served.get("/api/quota");
    assert_eq!((reply.status, &reply.json()["code"]), (404, &json!("quota_not_configured")));
    let page = String::from_utf8(served.get("/").body).unwrap();
    assert!(page.contains("data-quota=\"off\""));
    assert!(!served.scratch.home_file("quota.db").exists());
}

fn a_ledger_that_cannot_be_read_is_a_problem_of_the_quota_alone() {
    let scratch = configured();
    let file = scratch.home_file("quota.db");
    fs::write(&file, "no database").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let served = Served::of(scratch, 0);
    let quota = served.json("/api/quota");
    assert!(quota["problem"].is_string() && quota.get("providers").is_none(), "{quota}");
    assert_eq!(served.json("/api/agents")[0]["agent_name"], "Ivy");
    // A ledger that is put in its place is shown.
    fs::remove_file(&file).unwrap();
    record(&served.scratch, "5", "x");
    assert_eq!(served.json("/api/quota")["providers"][0]["windows"][0]["used"], 5);
}

fn the_server_never_writes_the_ledger() {
    let served = Served::of(configured(), 0);
    assert_eq!(served.json("/api/quota")["providers"][0]["windows"][0]["used"], 0);
    assert!(!served.scratch.home_file("quota.db").exists(), "a missing ledger is empty, and is not created");
    record(&served.scratch, "100", "x");
    let state = || -> Vec<(Vec<u8>, Option<SystemTime>)> {
        let files = ["quota.db", "quota.db-wal"].map(|name| served.scratch.home_file(name));
        let modified = |file| fs::metadata(file).and_then(|found| found.modified()).ok();
        files.iter().map(|file| (fs::read(file).unwrap_or_default(), modified(file))).collect()
    };
    let before = state();
    for _ in 0..3 {
        assert_eq!(served.json("/api/quota")["providers"][0]["windows"][0]["used"], 100);
    }
    assert!(before == state(), "something was written");
}
