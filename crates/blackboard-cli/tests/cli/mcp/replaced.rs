//! A board that is deleted or replaced while the server runs.

use blackboard::Code;
use serde_json::json;

use super::client::Client;
use crate::scratch::Scratch;

testkit::on_each_engine![
    nothing_is_acknowledged_on_a_board_that_was_replaced,
    waits_and_subscriptions_continue_on_a_replaced_board,
];

/// A file that is gone is an error of the file system. A server knows that it has no such board.
fn code_of_a_gone_board(scratch: &Scratch) -> Code {
    if scratch.is_served() { Code::BoardNotFound } else { Code::Io }
}

/// Deletes the board. One on a server is created again by `init` only.
fn delete_board_to_replace_it(scratch: &Scratch) {
    scratch.delete_board();
    if scratch.is_served() {
        scratch.json(["init"]);
    }
}

fn nothing_is_acknowledged_on_a_board_that_was_replaced() {
    let scratch = Scratch::new();
    let mut client = Client::new(&scratch);
    let before = client.call("work_claim", json!({"id": "same", "title": "Same"}));
    client.call("observe", json!({}));
    delete_board_to_replace_it(&scratch);
    scratch.json(["agent", "register", "--name", "Oak", "--session-hint", "oak", "--pid", "1"]);
    scratch.json(["work", "claim", "same", "--title", "Same", "--session", "oak"]);

    // The first call reports that the claim is lost; then it is an agent like any other on the new board.
    let told = client.refused("work_claim", json!({"id": "same"}), code_of_a_gone_board(&scratch));
    assert!(told["error"].as_str().unwrap().contains("lost") && told["hint"].is_string(), "{told}");
    let refusal = client.refused("work_claim", json!({"id": "same"}), Code::AlreadyClaimed);
    assert_eq!(refusal["held_by_name"], "Oak", "{refusal}");
    client.call("entry_write", json!({"key": "fact", "value": 1}));
    assert_eq!(scratch.json(["read", "fact"])["value"], 1);
    let you = client.call("who", json!({}))["you"].clone();
    assert_ne!(you, before["claimed_by"]);
    // Its place in the old log was beyond the end of the new one.
    scratch.json(["work", "create", "later", "--title", "Later"]);
    let seen = client.call("observe", json!({}));
    assert_eq!(seen["items"][0]["target_id"], "later", "{seen}");
    client.end();
    assert_eq!(scratch.json(["agent", "show", you.as_str().unwrap()])["status"], "completed");
}

/// On a server, see `lost_board_is_never_created_again_by_mcp`.
#[test]
fn deleted_board_is_empty_for_readers_and_created_again_by_the_next_writer() {
    let scratch = Scratch::new();
    let mut client = Client::new(&scratch);
    client.call("entry_write", json!({"key": "fact", "value": 1}));
    scratch.delete_board();
    assert_eq!(client.call("entry_read", json!({"key": "fact"}))["found"], false);
    assert_eq!(scratch.json(["status"])["board"], "missing", "who reads creates nothing");
    client.refused("entry_write", json!({"key": "fact", "value": 2}), Code::Io);
    client.call("entry_write", json!({"key": "fact", "value": 2}));
    assert_eq!(scratch.json(["read", "fact"])["value"], 2);
}

fn waits_and_subscriptions_continue_on_a_replaced_board() {
    let scratch = Scratch::new();
    let mut client = Client::new(&scratch);
    client.ask("resources/subscribe", json!({"uri": "blackboard://work"}));
    let wait = client.start("wait", json!({"key": "result", "seconds": 600}));
    client.call("who", json!({}));
    delete_board_to_replace_it(&scratch);
    scratch.json(["write", "result", "7"]);
    assert_eq!(super::client::succeeded(&client.answer(wait))["entry"]["value"], 7);
    client.notified(|message| message["params"]["uri"] == "blackboard://work");
    scratch.json(["work", "create", "x", "--title", "X"]);
    client.notified(|message| message["params"]["uri"] == "blackboard://work");
    client.end();
}
