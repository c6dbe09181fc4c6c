//! Resources, and notifications of their changes.

use serde_json::{Value, json};

use super::client::{Client, GENERATIONS, Generation};
use crate::scratch::Scratch;

testkit::on_each_engine![
    every_resource_can_be_read,
    client_of_2025_is_notified_until_it_unsubscribes,
    a_client_of_2026_listens_until_it_cancels,
    server_stops_following_when_no_client_listens,
    subscription_ends_when_the_input_ends,
];

fn read(client: &mut Client, uri: &str) -> Value {
    let answer = client.ask("resources/read", json!({"uri": uri}));
    let contents = &answer["result"]["contents"][0];
    assert_eq!(
        (&contents["uri"], &contents["mimeType"]),
        (&json!(uri), &json!("application/json")),
        "{answer}"
    );
    serde_json::from_str(contents["text"].as_str().unwrap()).unwrap()
}

fn tells_of(uri: &str) -> impl Fn(&Value) -> bool {
    move |message| message["method"] == "notifications/resources/updated" && message["params"]["uri"] == uri
}

fn every_resource_can_be_read() {
    for generation in GENERATIONS {
        let scratch = Scratch::new();
        let mut client = Client::speaking(generation, scratch.command(["mcp"]));
        assert_eq!(read(&mut client, "blackboard://events")["count"], 0);
        client.call("work_claim", json!({"id": "x", "title": "X"}));
        assert_eq!(read(&mut client, "blackboard://board")["work_items"]["claimed"], 1);
        let agent = &read(&mut client, "blackboard://agents")["items"][0];
        assert_eq!(agent["agent_name"], format!("probe-{}", &agent["session_id"].as_str().unwrap()[..4]));
        assert_eq!(read(&mut client, "blackboard://work")["items"][0]["item_id"], "x");
        let events = read(&mut client, "blackboard://events");
        assert_eq!(
            (&events["count"], &events["items"][0]["event_type"]),
            (&json!(3), &json!("work_claimed"))
        );
    }
}

fn client_of_2025_is_notified_until_it_unsubscribes() {
    let scratch = Scratch::new();
    let mut client = Client::new(&scratch);
    for uri in ["blackboard://work", "blackboard://events"] {
        assert_eq!(client.ask("resources/subscribe", json!({"uri": uri}))["result"], json!({}));
    }
    let refused = client.ask("resources/subscribe", json!({"uri": "blackboard://nowhere"}));
    assert!(refused["error"].is_object(), "{refused}");
    scratch.json(["write", "a", "1"]);
    client.notified(tells_of("blackboard://events"));
    assert_eq!(client.notifications.len(), 0, "an entry is no work: {:?}", client.notifications);
    scratch.json(["work", "create", "x", "--title", "X"]);
    client.notified(tells_of("blackboard://work"));
    client.notified(tells_of("blackboard://events"));
    client.ask("resources/unsubscribe", json!({"uri": "blackboard://work"}));
    scratch.json(["work", "create", "y", "--title", "Y"]);
    client.notified(tells_of("blackboard://events"));
    assert_eq!(client.notifications.len(), 0, "{:?}", client.notifications);
    let answer = client.ask("subscriptions/listen", json!({"notifications": {}}));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    client.end();
}

fn a_client_of_2026_listens_until_it_cancels() {
    let scratch = Scratch::new();
    let mut client = Client::speaking(Generation::Of2026, scratch.command(["mcp"]));
    let wanted =
        json!({"notifications": {"resourceSubscriptions": ["blackboard://agents", "blackboard://nowhere"]}});
    let id = client.request("subscriptions/listen", wanted);
    let told = client.notified(|message| message["method"] == "notifications/subscriptions/acknowledged");
    assert_eq!(
        told["params"]["notifications"]["resourceSubscriptions"],
        json!(["blackboard://agents"]),
        "{told}"
    );
    // Once at the start, because something may have changed since the subscription was confirmed.
    client.notified(tells_of("blackboard://agents"));
    scratch.json(["agent", "register", "--name", "Ivy"]);
    let told = client.notified(tells_of("blackboard://agents"));
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], json!(id), "{told}");
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    // From then on no process is left that could report it.
    client.wait_until_followed(false);
    scratch.json(["agent", "register", "--name", "Oak"]);
    assert!(!client.has_answer(id));
    assert_eq!(client.notifications.len(), 0, "{:?}", client.notifications);
    let answer = client.ask("resources/subscribe", json!({"uri": "blackboard://agents"}));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    client.end();
}

fn server_stops_following_when_no_client_listens() {
    let scratch = Scratch::new();
    let mut client = Client::new(&scratch);
    for _ in 0..2 {
        client.ask("resources/subscribe", json!({"uri": "blackboard://work"}));
        client.wait_until_followed(true);
        client.ask("resources/unsubscribe", json!({"uri": "blackboard://work"}));
        client.wait_until_followed(false);
    }
    client.ask("resources/subscribe", json!({"uri": "blackboard://work"}));
    scratch.json(["work", "create", "x", "--title", "X"]);
    client.notified(tells_of("blackboard://work"));

    let mut client = Client::speaking(Generation::Of2026, scratch.command(["mcp"]));
    let wanted = json!({"notifications": {"resourceSubscriptions": ["blackboard://work"]}});
    let id = client.request("subscriptions/listen", wanted);
    client.notified(tells_of("blackboard://work"));
    client.wait_until_followed(true);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    client.wait_until_followed(false);
}

fn subscription_ends_when_the_input_ends() {
    let scratch = Scratch::new();
    let mut client = Client::speaking(Generation::Of2026, scratch.command(["mcp"]));
    let wanted = json!({"notifications": {"resourceSubscriptions": ["blackboard://board"]}});
    let id = client.request("subscriptions/listen", wanted);
    client.notified(|message| message["method"] == "notifications/subscriptions/acknowledged");
    client.end();
    assert!(client.answer(id)["result"].is_object());
}
