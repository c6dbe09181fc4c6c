//! The protocol: two versions, and malformed messages.

use serde_json::{Value, json};

use super::client::{Client, GENERATIONS, Generation, succeeded};
use crate::scratch::Scratch;

testkit::on_each_engine![
    both_protocol_versions_get_the_same_short_list_of_tools,
    read_only_tools_register_no_session_and_create_no_board,
    both_protocol_versions_claim,
    server_ends_when_its_client_closes_the_input,
    request_without_initialize_needs_protocol_metadata,
    malformed_input_is_refused_or_ignored_and_the_next_call_is_answered,
    line_that_is_not_json_gets_a_parse_error_and_the_next_call_is_answered,
    arguments_of_wrong_types_are_refused_in_the_result,
    a_thousand_calls_in_flight_are_all_answered,
    pending_answers_arrive_after_the_input_ends,
];

fn both_protocol_versions_get_the_same_short_list_of_tools() {
    let lists = GENERATIONS.map(|generation| {
        let scratch = Scratch::new();
        let mut client = Client::speaking(generation, scratch.command(["mcp"]));
        let tools = client.ask("tools/list", json!({}))["result"]["tools"].take();
        let resources = client.ask("resources/list", json!({}))["result"]["resources"].take();
        client.end();
        // A client that only reads creates nothing.
        assert_eq!(scratch.json(["status"])["board"], "missing");
        (tools, resources)
    });
    assert_eq!(lists[0], lists[1]);
    let (tools, resources) = &lists[0];
    assert!(tools.to_string().len() < 6_500 && tools.as_array().unwrap().len() <= 11);
    assert_eq!(resources.as_array().unwrap().len(), 4);
}

fn read_only_tools_register_no_session_and_create_no_board() {
    let scratch = Scratch::new();
    let before = scratch.contents();
    let mut client = Client::new(&scratch);
    let tools = client.ask("tools/list", json!({}))["result"]["tools"].take();
    let reading: Vec<&str> = tools.as_array().unwrap().iter().filter_map(reads).collect();
    for tool in &reading {
        let arguments = if *tool == "entry_read" { json!({"key": "a"}) } else { json!({}) };
        client.call(tool, arguments);
        assert!(scratch.contents() == before, "{tool} left something behind");
    }
    assert_eq!(reading, ["who", "work_find", "entry_read", "entry_query", "recall"]);
}

/// The name of a tool that is annotated as read-only.
fn reads(tool: &Value) -> Option<&str> {
    (tool["annotations"]["readOnlyHint"] == true).then(|| tool["name"].as_str().unwrap())
}

fn both_protocol_versions_claim() {
    for generation in GENERATIONS {
        let scratch = Scratch::new();
        let mut client = Client::speaking(generation, scratch.command(["mcp"]));
        let claimed = client.call("work_claim", json!({"id": "x", "title": "X"}));
        assert_eq!(
            (&claimed["claimed"], &claimed["created"]),
            (&json!(true), &json!(true)),
            "{generation:?}"
        );
        let session = claimed["claimed_by"].as_str().unwrap();
        assert_eq!(claimed["claimed_by_name"], format!("probe-{}", &session[..4]), "{generation:?}");
        assert_eq!(scratch.json(["work", "status", "x"])["fence"], claimed["fence"]);
    }
}

fn server_ends_when_its_client_closes_the_input() {
    let scratch = Scratch::new();
    let before = scratch.contents();
    Client::silent(Generation::Of2025, scratch.command(["mcp"])).end();
    assert!(scratch.contents() == before);
}

fn request_without_initialize_needs_protocol_metadata() {
    let scratch = Scratch::new();
    let mut client = Client::silent(Generation::Of2025, scratch.command(["mcp"]));
    let answer = client.ask("tools/list", json!({}));
    assert!(answer["error"]["message"].as_str().unwrap().contains("_meta"), "{answer}");
    // A notification before `initialize` does not end the server.
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    client.end();
}

fn malformed_input_is_refused_or_ignored_and_the_next_call_is_answered() {
    for generation in GENERATIONS {
        let scratch = Scratch::new();
        let mut client = Client::speaking(generation, scratch.command(["mcp"]));
        for line in ["", "{", "nonsense", "\u{0}", "{\"jsonrpc\":\"2.0\",\"id\":", "[]", "7", "null", "{}"] {
            client.write(line);
        }
        client.write(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{}", "[".repeat(100_000)));
        client.write(&"x".repeat(9 * 1024 * 1024));
        let many = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":9999,\"method\":\"x\",\"params\":\"{}\"}}",
            "x".repeat(9 << 20)
        );
        client.write(&many);
        client.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}}),
        );
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/unheard-of"}));
        client.send(&json!({"jsonrpc": "2.0", "id": 5000, "result": {}}));
        let answer = client.ask("no/such/method", json!({}));
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
        let answer = client.ask("tools/call", json!({"name": "no_such_tool"}));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        for (method, params) in [
            ("tools/call", json!({"name": "who", "arguments": "text"})),
            ("tools/call", json!({"name": 7})),
            ("resources/read", json!({"uri": []})),
        ] {
            let answer = client.ask(method, params);
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
        }
        let answer = client.ask("resources/read", json!({"uri": "blackboard://nowhere"}));
        assert!(answer["error"]["code"].is_i64(), "{answer}");
        let id = client.start("who", json!({}));
        succeeded(&client.answer(id));
        client.end();
    }
}

fn line_that_is_not_json_gets_a_parse_error_and_the_next_call_is_answered() {
    let is_parse_error = |message: &Value| {
        message["error"]["code"] == -32700 && message["id"].is_null() && message["method"].is_null()
    };
    for generation in GENERATIONS {
        let scratch = Scratch::new();
        let mut client = Client::silent(generation, scratch.command(["mcp"]));
        // Also before the handshake.
        client.write("nonsense");
        client.notified(is_parse_error);
        client.shake_hands();
        for line in ["{", "nonsense", "\u{0}", "{\"jsonrpc\":\"2.0\",\"id\":", "1e999", "\"\\ud800\""] {
            client.write(line);
            client.notified(is_parse_error);
            client.call("who", json!({}));
        }
        // These are JSON, or no message: none of them gets this error.
        for line in ["", " ", "[]", "7", "null", "{}"] {
            client.write(line);
        }
        client.call("who", json!({}));
        assert!(!client.notifications.iter().any(is_parse_error), "{:?}", client.notifications);
        // The last line of the input gets its answer, too.
        client.write("nonsense");
        client.end();
        client.notified(is_parse_error);
    }
}

fn arguments_of_wrong_types_are_refused_in_the_result() {
    let scratch = Scratch::new();
    let before = scratch.contents();
    let mut client = Client::new(&scratch);
    for (tool, arguments) in [
        ("who", json!({"all": "yes"})),
        ("who", json!({"unheard": 1})),
        ("work_find", json!({"limit": -1})),
        ("work_find", json!({"status": "available"})),
        ("work_claim", json!({})),
        ("work_claim", json!({"id": "x", "next": true})),
        ("work_claim", json!({"id": "x", "priority": "P1"})),
        ("work_claim", json!({"next": true, "title": "X"})),
        ("work_claim", json!({"id": 7})),
        ("work_update", json!({"id": "x"})),
        ("work_update", json!({"action": "explode", "id": "x"})),
        ("work_update", json!({"action": "complete"})),
        ("work_update", json!({"action": "complete", "id": "x", "title": "X"})),
        ("work_update", json!({"action": "progress"})),
        ("entry_read", json!({})),
        ("entry_write", json!({"key": "a"})),
        ("entry_write", json!({"key": "a", "value": 1, "delete": true})),
        ("entry_write", json!({"key": "a", "delete": true, "tags": ["x"]})),
        ("entry_write", json!({"key": "a", "value": 1, "if_revision": "1"})),
        ("entry_query", json!({"tags": "x"})),
        ("observe", json!({"limit": "many"})),
        ("hold", json!({"action": "lock"})),
        ("hold", json!({"action": "lock", "name": "x", "paths": ["a"]})),
        ("hold", json!({"action": "reserve"})),
        ("hold", json!({"action": "check", "paths": ["a"], "ttl": "1m"})),
        ("wait", json!({})),
        ("wait", json!({"key": "a", "lock": "b"})),
        ("wait", json!({"lock": "b", "after": 1})),
    ] {
        let refusal = client.refused(tool, arguments.clone(), blackboard::Code::Usage);
        assert!(refusal["hint"].is_string(), "{tool} {arguments}: {refusal}");
    }
    for (arguments, error) in [
        (json!({}), "no item given"),
        (json!({"id": "x", "next": true}), "both id and next are given"),
        (json!({"next": true, "title": "X"}), "title and description require an id"),
    ] {
        assert_eq!(client.refused("work_claim", arguments, blackboard::Code::Usage)["error"], error);
    }
    for (tool, arguments) in [
        ("work_find", json!({"status": ["finished"]})),
        ("work_claim", json!({"next": true, "priority": "P9"})),
        ("entry_write", json!({"key": "a", "value": 1, "ttl": "soon"})),
        ("entry_write", json!({"key": "a", "value": 1, "fences": ["lock"]})),
        ("observe", json!({"since": "long ago"})),
        ("hold", json!({"action": "check", "paths": ["../../../../../../etc/passwd"]})),
    ] {
        client.refused(tool, arguments, blackboard::Code::InvalidValue);
    }
    client.end();
    assert!(scratch.contents() == before, "nothing of this was worth a board");
}

fn a_thousand_calls_in_flight_are_all_answered() {
    let scratch = Scratch::new();
    let mut client = Client::new(&scratch);
    let claims: Vec<u64> = (0..1_000)
        .map(|number| client.start("work_claim", json!({"id": format!("item-{}", number / 2), "title": "X"})))
        .collect();
    let answers: Vec<Value> = claims.into_iter().map(|id| succeeded(&client.answer(id))).collect();
    let count = |field: &str| answers.iter().filter(|answer| answer[field] == true).count();
    assert_eq!((count("claimed"), count("already_held")), (500, 500));
    let sessions = scratch.json(["agent", "list", "--all"]);
    assert_eq!(sessions["count"], 1, "all of them are one session's");
}

fn pending_answers_arrive_after_the_input_ends() {
    let scratch = Scratch::new();
    let mut client = Client::new(&scratch);
    let ids: Vec<u64> = (0..20)
        .map(|number| client.start("entry_write", json!({"key": format!("k{number}"), "value": number})))
        .collect();
    client.end();
    for id in ids {
        succeeded(&client.answer(id));
    }
    assert_eq!(scratch.json(["agent", "list"])["count"], 0);
    assert_eq!(scratch.json(["list"]).as_array().unwrap().len(), 20);
}
