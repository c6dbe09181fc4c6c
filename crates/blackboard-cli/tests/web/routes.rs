//! Every route agrees with the commands. Tests of HTTP itself use a board in a file.

use serde_json::{Value, json};
use testkit::shapes::AGENT;

use crate::client::{Events, get, own, raw};
use crate::served::Served;

testkit::on_each_engine![
    the_status_counts_what_the_board_has,
    agents_are_those_of_agent_list_the_newest_first,
    one_agent_agrees_with_agent_show,
    work_is_that_of_work_list_by_priority_and_the_newest_first,
    blocked_work_lists_all_its_blockers,
    a_blocker_that_does_not_exist_is_listed_as_missing,
    completed_work_is_ordered_by_completion_on_request,
    one_item_with_any_id_agrees_with_work_status,
    id_that_no_path_can_have_is_a_parameter,
    events_are_those_of_the_log_the_newest_first,
    projects_locks_and_files_are_those_of_their_lists,
    entries_are_those_of_their_scopes,
    lanes_show_which_agent_worked_on_which_item,
    every_answer_has_the_revision_at_which_it_was_read,
    lists_show_what_can_be_read_and_name_the_rest_in_a_header,
    events_of_an_agent_that_cannot_be_read_are_shown_without_its_name,
];

fn column<'a>(rows: &'a Value, name: &str) -> Vec<&'a str> {
    rows.as_array().unwrap().iter().map(|row| row[name].as_str().unwrap()).collect()
}

fn columns(rows: &Value) -> Vec<&str> {
    rows[0].as_object().unwrap().keys().map(String::as_str).collect()
}

/// Those of the seed come first, in whatever order maps have them here.
#[track_caller]
fn has_columns(rows: &Value, seed: &[&str]) {
    let columns = columns(rows);
    for name in seed {
        assert!(columns.contains(name), "{name} is missing in {columns:?}");
    }
}

/// An answer without the time at which it was given.
fn without_timestamp(mut answer: Value) -> Value {
    answer.as_object_mut().unwrap().remove("timestamp");
    answer
}

/// What rows have in common with those of a command, in the columns that both have.
#[track_caller]
fn agree(row: &Value, said: &Value) {
    let mut compared = 0;
    for (name, value) in row.as_object().unwrap() {
        if let Some(expected) = said.get(name) {
            assert_eq!(value, expected, "{name}");
            compared += 1;
        }
    }
    assert!(compared > 5, "{row} has little in common with {said}");
}

fn the_status_counts_what_the_board_has() {
    let served = Served::furnished();
    let status = served.json("/api/status");
    let expected = json!({
        "agents": [{"status": "active", "count": 2}, {"status": "completed", "count": 1}],
        "work": [
            {"status": "available", "count": 3}, {"status": "blocked", "count": 1},
            {"status": "claimed", "count": 1}, {"status": "completed", "count": 1},
        ],
        "projects": {"count": 1},
        "events_24h": {"count": status["revision"]},
        "revision": served.says(&["status"])["revision"],
    });
    assert_eq!(status, expected);
}

fn agents_are_those_of_agent_list_the_newest_first() {
    let served = Served::furnished();
    let agents = served.json("/api/agents");
    assert_eq!(column(&agents, "agent_name"), ["Helper", "Ivy"]);
    has_columns(&agents, &[AGENT, &["claimed_items", "parent_name"]].concat());
    let said = served.says(&["agent", "list"]);
    agree(&agents[1], &said["items"][0]);
    agree(&agents[0], &said["items"][1]);
    assert_eq!((&agents[0]["parent_name"], &agents[1]["claimed_items"]), (&json!("Ivy"), &json!(1)));
    assert_eq!(agents[0]["overdue"], false);
    assert_eq!(column(&agents, "process"), ["alive", "alive"]);
    assert_eq!(column(&served.json("/api/agents?all=1"), "agent_name"), ["Gone", "Helper", "Ivy"]);
}

fn one_agent_agrees_with_agent_show() {
    let served = Served::furnished();
    let said = without_timestamp(served.says(&["agent", "show", "ivy"]));
    let session = said["session_id"].as_str().unwrap().to_owned();
    for id in [session.as_str(), "ivy", &session[..8]] {
        assert_eq!(without_timestamp(served.json(&format!("/api/agents/{id}"))), said);
    }
    assert_eq!(served.get("/api/agents/unknown").json()["code"], "agent_not_found");
}

fn work_is_that_of_work_list_by_priority_and_the_newest_first() {
    let served = Served::furnished();
    let work = served.json("/api/work");
    assert_eq!(column(&work, "item_id"), ["first", "waits", "mine", "gh:o/r#7", "later"]);
    has_columns(
        &work,
        &[
            "item_id",
            "title",
            "project_id",
            "source",
            "source_ref",
            "status",
            "priority",
            "claimed_at",
            "completed_at",
            "blocked_by",
            "created_at",
            "claimed_by_name",
        ],
    );
    let said = served.says(&["work", "list"]);
    for row in work.as_array().unwrap() {
        let items = said["items"].as_array().unwrap();
        agree(row, items.iter().find(|item| item["item_id"] == row["item_id"]).unwrap());
    }
    for (query, expected) in [
        ("all=1", &["first", "done", "waits", "mine", "gh:o/r#7", "later"][..]),
        ("status=blocked,completed", &["done", "waits"]),
        ("project=pai", &["first"]),
        ("project=none", &[]),
    ] {
        assert_eq!(column(&served.json(&format!("/api/work?{query}")), "item_id"), expected, "{query}");
    }
}

fn blocked_work_lists_all_its_blockers() {
    let served = Served::furnished();
    served.says(&["work", "create", "both", "--title", "Both", "--blocked-by", "later,mine"]);
    let waiting = |path: &str| -> Vec<(String, Value)> {
        let rows = served.json(path);
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| (row["item_id"].as_str().unwrap().to_owned(), row["open_blockers"].clone())).collect()
    };
    for (id, blockers) in waiting("/api/work?all=1") {
        let said = served.says(&["work", "status", &id]);
        assert_eq!(blockers, said["open_blockers"], "{id}");
        assert_eq!(
            blockers.as_array().unwrap().len(),
            match id.as_str() {
                "both" => 2,
                "waits" => 1,
                _ => 0,
            }
        );
    }
    served.says(&["work", "complete", "mine", "--session", "ivy"]);
    assert_eq!(waiting("/api/work?status=blocked"), [("both".to_owned(), json!(["later"]))]);
}

fn a_blocker_that_does_not_exist_is_listed_as_missing() {
    let served = Served::furnished();
    served.says(&["work", "create", "four", "--title", "Four", "--blocked-by", "later,ghost,mine,spook"]);
    let row = |path: &str| {
        let rows = served.json(path);
        rows.as_array().unwrap().iter().find(|row| row["item_id"] == "four").unwrap().clone()
    };
    let sorted = |value: &Value| {
        let mut ids: Vec<_> =
            value.as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect();
        ids.sort();
        ids
    };
    for shown in [row("/api/work"), row("/api/work?status=blocked&limit=5"), served.json("/api/work/four")] {
        assert_eq!(sorted(&shown["open_blockers"]), ["ghost", "later", "mine", "spook"], "{shown}");
        assert_eq!(sorted(&shown["missing_blockers"]), ["ghost", "spook"], "{shown}");
    }
    served.says(&["work", "create", "ghost", "--title", "No ghost"]);
    assert_eq!(row("/api/work")["missing_blockers"], json!(["spook"]));
    for other in served.json("/api/work?all=1").as_array().unwrap() {
        if other["item_id"] != "four" {
            assert_eq!(other["missing_blockers"], json!([]), "{other}");
        }
    }
}

fn completed_work_is_ordered_by_completion_on_request() {
    let served = Served::furnished();
    let ends = ["later", "first", "mine", "waits"];
    for id in ends {
        if id != "mine" {
            served.says(&["work", "claim", id, "--session", "ivy"]);
        }
        served.says(&["work", "complete", id, "--session", "ivy"]);
    }
    let path = "/api/work?status=completed&order=completed";
    let expected = ["waits", "mine", "first", "later", "done"];
    assert_eq!(column(&served.json(path), "item_id"), expected);
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let reply = served.get(&format!("{path}&limit=2{after}"));
        found.extend(column(&reply.json(), "item_id").iter().map(|id| (*id).to_owned()));
        let Some(next) = reply.header("blackboard-next") else { break };
        after = format!("&after={next}");
        // What ends meanwhile is on no later page.
        let id = format!("new-{}", found.len());
        served.says(&["work", "claim", &id, "--title", "New", "--session", "ivy"]);
        served.says(&["work", "complete", &id, "--session", "ivy"]);
    }
    assert_eq!(found, expected);
    assert_eq!(column(&served.json(&format!("{path}&project=pai")), "item_id"), ["first"]);
    for wrong in ["order=completed", "status=completed&order=x", "all=1&order=completed"] {
        assert_eq!(served.get(&format!("/api/work?{wrong}")).status, 400, "{wrong}");
    }
}

fn one_item_with_any_id_agrees_with_work_status() {
    let served = Served::furnished();
    for (id, path) in [("mine", "mine"), ("gh:o/r#7", "gh%3Ao%2Fr%237"), ("gh:o/r#7", "gh:o%2fr%237")] {
        let said = without_timestamp(served.says(&["work", "status", id]));
        let mut item = without_timestamp(served.json(&format!("/api/work/{path}")));
        let named = item.as_object_mut().unwrap().remove("named_agents").unwrap();
        assert_eq!(item, said);
        for event in item["history"].as_array().unwrap() {
            let agent = &named[event["id"].to_string()];
            let has_agent = event["summary"].as_str().unwrap().starts_with("Agent \"");
            assert_eq!(agent["session_id"].is_string(), has_agent, "{event}: {named}");
        }
    }
    assert_eq!(served.get("/api/work/none").json()["code"], "work_not_found");
}

fn id_that_no_path_can_have_is_a_parameter() {
    let served = Served::furnished();
    served.says(&["work", "create", "..", "--title", "Dots"]);
    assert_eq!(served.json("/api/item?id=..")["title"], "Dots");
    assert_eq!(served.json("/api/item?id=gh%3Ao%2Fr%237")["item_id"], "gh:o/r#7");
    assert_eq!(served.json("/api/agent?id=ivy")["agent_name"], "Ivy");
    for (path, status) in [("item?id=nothing", 404), ("agent?id=unknown", 404), ("item", 400), ("agent", 400)]
    {
        assert_eq!(served.get(&format!("/api/{path}")).status, status, "{path}");
    }
}

fn events_are_those_of_the_log_the_newest_first() {
    let served = Served::furnished();
    let events = served.json("/api/events");
    has_columns(
        &events,
        &["id", "timestamp", "event_type", "actor_id", "target_id", "target_type", "summary"],
    );
    let said = served.says(&["observe", "--after", "0"]);
    let said: Vec<_> = said["items"].as_array().unwrap().iter().rev().collect();
    assert_eq!(events.as_array().unwrap().len(), said.len());
    for (event, said) in events.as_array().unwrap().iter().zip(said) {
        agree(event, said);
    }
    let all = events.as_array().unwrap().len();
    for (since, count) in [("1h", all), ("2020-01-01T00:00:00Z", all), ("2099-01-01T00:00:00Z", 0)] {
        let found = served.json(&format!("/api/events?since={since}"));
        assert_eq!(found.as_array().unwrap().len(), count, "{since}");
    }
    let shown: Vec<_> = events.as_array().unwrap().iter().map(|event| event["shown_type"].as_str()).collect();
    for name in ["lock_acquired", "work_claimed", "agent_registered"] {
        assert!(shown.contains(&Some(name)), "{name}: {shown:?}");
    }
    let named: Vec<_> = events.as_array().unwrap().iter().map(|event| &event["named_agent"]).collect();
    for event in events.as_array().unwrap().iter().filter(|event| event["event_type"] == "work_claimed") {
        let expected = json!({ "name": event["actor_name"], "session_id": event["actor_id"] });
        assert_eq!(event["named_agent"], expected);
    }
    assert!(named.contains(&&Value::Null), "a summary without an agent");
    let claimed = served.json("/api/events?types=work_claimed,work_completed");
    assert_eq!(column(&claimed, "event_type"), ["work_completed", "work_claimed", "work_claimed"]);
    for wrong in ["nonsense", "work_claimed,nonsense", "work_claimed,"] {
        let refused = served.get(&format!("/api/events?types={wrong}"));
        assert_eq!((refused.status, refused.json()["code"].as_str()), (400, Some("usage")), "{wrong}");
        assert!(refused.json()["hint"].as_str().unwrap().contains("work_claimed"));
    }
    let ivy = served.says(&["agent", "show", "ivy"])["session_id"].as_str().unwrap().to_owned();
    let hers = served.json(&format!("/api/events?agent={ivy}&types=agent_registered"));
    assert_eq!(hers.as_array().unwrap().len(), 1);
}

fn projects_locks_and_files_are_those_of_their_lists() {
    let served = Served::furnished();
    let projects = served.json("/api/projects");
    assert_eq!(projects["items"], served.says(&["project", "list"])["items"]);
    let held = served.json("/api/locks");
    assert_eq!(held["locks"], served.says(&["lock", "list"])["items"]);
    assert_eq!(held["files"], served.says(&["file", "list"])["items"]);
    assert_eq!((held["locks"][0]["name"].as_str(), held["ok"].as_bool()), (Some("deploy"), Some(true)));
}

fn entries_are_those_of_their_scopes() {
    let served = Served::furnished();
    let entries = served.json("/api/entries");
    assert_eq!(column(&entries["items"], "key"), ["fact", "task:1"]);
    assert_eq!(entries["items"][0], served.says(&["read", "fact"]));
    let team = served.json("/api/entries?scope=team-1");
    assert_eq!(team["items"], served.says(&["list", "--long", "--scope", "team-1"])["items"]);
    assert_eq!(column(&served.json("/api/entries?prefix=fa")["items"], "key"), ["fact"]);
    let history = served.json("/api/entries/history?key=fact");
    assert_eq!(history["items"], served.says(&["history", "fact"])["items"]);
    assert_eq!(history["count"], 2);
    let scopes = served.json("/api/scopes");
    assert_eq!(
        scopes["items"],
        json!([{"scope": "default", "entries": 1}, {"scope": "team-1", "entries": 1}])
    );
    assert_eq!(served.get("/api/entries/history?key=none").json()["code"], "entry_not_found");
}

fn lanes_show_which_agent_worked_on_which_item() {
    let served = Served::furnished();
    let lanes = served.json("/api/lanes?hours=1");
    let spans = &lanes["items"][0]["spans"];
    assert_eq!((lanes["count"].as_u64(), lanes["items"][0]["agent_name"].as_str()), (Some(1), Some("Ivy")));
    assert_eq!(column(spans, "item_id"), ["mine", "done"]);
    assert_eq!(
        (&spans[0]["to"], &spans[0]["ended"], &spans[1]["ended"]),
        (&Value::Null, &Value::Null, &json!("completed"))
    );
}

fn every_answer_has_the_revision_at_which_it_was_read() {
    let served = Served::furnished();
    let revision = served.says(&["status"])["revision"].as_i64().unwrap();
    for path in [
        "status",
        "board",
        "agents",
        "agents/ivy",
        "work",
        "work/mine",
        "lanes",
        "events",
        "projects",
        "entries",
        "entries/history?key=fact",
        "scopes",
        "locks",
    ] {
        let reply = served.get(&format!("/api/{path}"));
        assert_eq!((reply.status, reply.revision()), (200, revision), "{path}");
        assert_eq!(reply.header("content-type"), Some("application/json"), "{path}");
        let body = reply.json();
        if body.get("ok").is_some() && !path.contains('/') {
            assert_eq!(body["revision"], revision, "{path}");
        }
    }
}

#[test]
fn head_has_the_headers_of_get_without_its_body() {
    let served = Served::furnished();
    let port = served.port;
    for path in ["/", "/api/status", "/api/work", "/api/events/stream", "/nothing"] {
        let request = format!("HEAD {path} HTTP/1.1\r\n{}Connection: close\r\n\r\n", own(port));
        let mut connection = crate::client::Connection::open(port);
        connection.send(request.as_bytes());
        let head = connection.reply(false).unwrap();
        assert!(connection.is_closed(), "{path} has a body");
        if path == "/api/events/stream" {
            assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
            continue;
        }
        let got = get(port, path);
        assert_eq!((head.status, head.header("content-type")), (got.status, got.header("content-type")));
        assert_eq!(head.header("content-length"), got.header("content-length"), "{path}");
    }
}

#[test]
fn the_page_is_one_document_with_a_nonce_of_its_own() {
    let served = Served::new();
    let (first, second) = (served.get("/"), served.get("/"));
    let policy = first.header("content-security-policy").unwrap().to_owned();
    assert_ne!(policy, second.header("content-security-policy").unwrap());
    let nonce = policy.split("script-src 'nonce-").nth(1).unwrap().split('\'').next().unwrap();
    let text = String::from_utf8(first.body).unwrap();
    assert!(text.contains(&format!("<script nonce=\"{nonce}\"")) && !policy.contains("unsafe"), "{policy}");
    assert_eq!(
        first.headers.iter().find(|(name, _)| name == "content-type").unwrap().1,
        "text/html; charset=utf-8"
    );
}

#[test]
fn wrong_requests_are_refused_with_the_reason() {
    let served = Served::furnished();
    for (path, status, code) in [
        ("/nothing", 404, "not_found"),
        ("/api", 404, "not_found"),
        ("/api/work/a/b", 404, "not_found"),
        ("/api/work/%zz", 400, "usage"),
        ("/api/work?limit=0", 400, "usage"),
        ("/api/work?limit=x", 400, "usage"),
        ("/api/work?limits=3", 400, "usage"),
        ("/api/work?status=odd", 400, "invalid_value"),
        ("/api/work?after=odd", 400, "invalid_value"),
        ("/api/agents?after=odd", 400, "usage"),
        ("/api/events?since=never", 400, "invalid_value"),
        ("/api/events?before=-1", 400, "usage"),
        ("/api/events?until=x", 400, "usage"),
        ("/api/events?before=3&until=3", 400, "usage"),
        ("/api/events?position=-1", 400, "usage"),
        ("/api/events?position=1.5", 400, "usage"),
        ("/api/events?order=random", 400, "usage"),
        ("/api/lanes?hours=0", 400, "usage"),
        ("/api/entries?after=odd", 400, "usage"),
        ("/api/entries/history", 400, "usage"),
        ("/api/events/stream?after=x", 400, "usage"),
        ("/api/events/stream?after=1000000", 410, "cursor_ahead"),
    ] {
        let reply = served.get(path);
        let answer = reply.json();
        assert_eq!((reply.status, answer["code"].as_str()), (status, Some(code)), "{path}: {answer}");
        assert_eq!(answer["ok"], false);
    }
    let port = served.port;
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
        let request = format!("{method} /api/work HTTP/1.1\r\n{}Content-Length: 0\r\n\r\n", own(port));
        let reply = raw(port, &request).unwrap();
        assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, HEAD")), "{method}");
    }
}

fn lists_show_what_can_be_read_and_name_the_rest_in_a_header() {
    let served = Served::furnished();
    assert_eq!(served.get("/api/work").header("blackboard-unreadable"), None);
    for item in ["first", "gh:o/r#7"] {
        served.scratch.set_value("work_items", "created_at", &json!("never"), ("item_id", item));
    }
    served.scratch.set_value("agents", "started_at", &json!("never"), ("agent_name", "Helper"));
    let work = served.get("/api/work");
    assert_eq!(column(&work.json(), "item_id"), ["waits", "mine", "later"]);
    assert_eq!(work.header("blackboard-unreadable"), Some("work_items%20first,work_items%20gh%3Ao%2Fr%237"));
    let agents = served.get("/api/agents");
    assert_eq!(column(&agents.json(), "agent_name"), ["Ivy"]);
    assert!(agents.header("blackboard-unreadable").unwrap().starts_with("agents%20"));
    for path in ["/api/status", "/api/agents/ivy"] {
        assert_eq!(served.get(path).status, 200, "{path}");
    }
    assert_eq!(served.get("/api/work/first").status, 503, "it is asked for by its id");
}

fn events_of_an_agent_that_cannot_be_read_are_shown_without_its_name() {
    let served = Served::furnished();
    served.scratch.set_value("agents", "started_at", &json!("never"), ("agent_name", "Ivy"));
    let shown = served.get("/api/events?limit=500");
    assert_eq!(shown.status, 200, "{shown:?}");
    let of_type = |name: &str| {
        let events = shown.json();
        let events = events.as_array().unwrap().iter();
        events.filter(|event| event["event_type"] == name).cloned().collect::<Vec<_>>()
    };
    let claimed = of_type("work_claimed");
    assert!(!claimed.is_empty());
    assert!(claimed.iter().all(|event| event["actor_id"].is_string() && event["actor_name"].is_null()));
    let mut events = Events::follow(served.port, Some(0), None).unwrap();
    assert_eq!(events.next().unwrap().id, 1);
}
