//! Waiting for keys and locks, and canceled calls.

use blackboard::Code;
use blackboard::clock::Timestamp;
use serde_json::{Value, json};

use super::client::{Client, GENERATIONS, refused, succeeded};
use crate::scratch::{Scratch, with_dying_process};

testkit::on_each_engine![
    wait_ends_when_another_process_writes_the_key,
    wait_acquires_the_lock_when_it_is_released,
    wait_sweeps_agents_whose_process_ends_meanwhile,
    canceled_wait_is_not_answered_and_holds_nothing,
    thousand_waits_need_no_thread_each_and_end_together,
    pending_waits_are_answered_at_once_when_the_input_ends,
];

fn cancel(client: &mut Client, id: u64) {
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
}

fn wait_ends_when_another_process_writes_the_key() {
    let scratch = Scratch::new();
    let mut client = Client::new(&scratch);
    let id = client.start("wait", json!({"key": "result", "seconds": 600}));
    client.wait_until_followed(true);
    assert!(!client.has_answer(id));
    let written = scratch.json(["write", "result", "{\"a\":1}"]);
    let entry = succeeded(&client.answer(id))["entry"].clone();
    assert_eq!((&entry["value"], &entry["revision"]), (&json!({"a": 1}), &written["revision"]));
    // It is there already, and then it is not: something newer is wanted.
    assert_eq!(client.call("wait", json!({"key": "result"}))["entry"]["revision"], written["revision"]);
    let newer = json!({"key": "result", "after": written["revision"], "seconds": 0});
    assert_eq!(client.call("wait", newer)["timed_out"], true, "that is no failure");
    client.end();
}

fn wait_acquires_the_lock_when_it_is_released() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy", "--pid", "1"]);
    scratch.json(["lock", "acquire", "deploy", "--session", "ivy"]);
    let mut client = Client::new(&scratch);
    let late = client.call("wait", json!({"lock": "deploy", "seconds": 1}));
    assert_eq!((&late["timed_out"], &late["waited_seconds"]), (&json!(true), &json!(1)), "{late}");
    assert!(late["missing"].as_str().unwrap().contains("Ivy") && late["fence"].is_i64(), "{late}");
    let id = client.start("wait", json!({"lock": "deploy", "seconds": 600}));
    client.wait_until_followed(true);
    assert!(!client.has_answer(id));
    scratch.json(["lock", "release", "deploy", "--session", "ivy"]);
    assert_eq!(succeeded(&client.answer(id))["acquired"], true);
}

fn wait_sweeps_agents_whose_process_ends_meanwhile() {
    for wait in [json!({"key": "end", "seconds": 600}), json!({"lock": "deploy", "seconds": 600})] {
        let scratch = Scratch::new();
        scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy", "--pid", "1"]);
        scratch.json(["lock", "acquire", "deploy", "--session", "ivy"]);
        // Two sweeps come from the start of the wait: that of its first check, and that of the thread that follows the
        // log. The third agent is found while it waits.
        let names = ["first", "second", "third"];
        for name in names {
            with_dying_process(|pid| {
                scratch.json(["agent", "register", "--name", name, "--session-hint", name, "--pid", pid]);
            });
        }
        let mut client = Client::new(&scratch);
        let id = client.start("wait", wait);
        client.wait_until_followed(true);
        // From here on no other call is made.
        for name in names {
            scratch.change_agents(|agent, _| {
                if agent.agent_name == name {
                    agent.last_seen_at = Timestamp::EPOCH;
                }
            });
            let sql = "SELECT status FROM agents WHERE agent_name = ?1";
            let status = || scratch.tables().query_row(sql, [name], |row| row.get::<_, String>(0)).unwrap();
            testkit::wait_until("the agent is stale", || (status() == "stale").then_some(()));
        }
        assert!(!client.has_answer(id));
        scratch.json(["write", "end", "1"]);
        scratch.json(["lock", "release", "deploy", "--session", "ivy"]);
        succeeded(&client.answer(id));
        client.end();
    }
}

fn canceled_wait_is_not_answered_and_holds_nothing() {
    for generation in GENERATIONS {
        let scratch = Scratch::new();
        scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy", "--pid", "1"]);
        scratch.json(["lock", "acquire", "deploy", "--session", "ivy"]);
        let mut client = Client::speaking(generation, scratch.command(["mcp"]));
        let key = client.start("wait", json!({"key": "result", "seconds": 600}));
        let lock = client.start("wait", json!({"lock": "deploy", "seconds": 600}));
        client.wait_until_followed(true);
        assert!(!client.has_answer(key) && !client.has_answer(lock));
        cancel(&mut client, key);
        cancel(&mut client, lock);
        // From then on no call waits.
        client.wait_until_followed(false);
        scratch.json(["lock", "release", "deploy", "--session", "ivy"]);
        scratch.json(["write", "result", "1"]);
        assert!(!client.has_answer(key) && !client.has_answer(lock));
        assert_eq!(scratch.json(["lock", "list"])["count"], 0);
        client.end();
    }
}

fn thousand_waits_need_no_thread_each_and_end_together() {
    let scratch = Scratch::new();
    let mut client = Client::new(&scratch);
    let waits: Vec<u64> =
        (0..1_000).map(|_| client.start("wait", json!({"key": "start", "seconds": 600}))).collect();
    // Others are answered meanwhile.
    client.call("who", json!({}));
    if let Ok(tasks) = std::fs::read_dir(format!("/proc/{}/task", client.server())) {
        assert!(tasks.count() < 20);
    }
    client.call("entry_write", json!({"key": "start", "value": true}));
    for id in waits {
        assert_eq!(succeeded(&client.answer(id))["entry"]["value"], Value::Bool(true));
    }
    client.end();
}

fn pending_waits_are_answered_at_once_when_the_input_ends() {
    let scratch = Scratch::new();
    let mut client = Client::new(&scratch);
    let id = client.start("wait", json!({"key": "never", "seconds": 600}));
    client.wait_until_followed(true);
    assert!(!client.has_answer(id));
    client.end();
    refused(&client.answer(id), Code::TimedOut);
}
