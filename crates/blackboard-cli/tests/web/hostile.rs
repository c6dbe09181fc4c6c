//! A hostile board behind the dashboard: every answer of the API and of the stream stays JSON.

use serde_json::Value;

use crate::client::Events;
use crate::hostile_board::{Extent, Generator, PAYLOAD};
use crate::served::Served;

testkit::on_each_engine![the_api_and_the_stream_carry_a_hostile_board_as_json,];

const PATHS: &[&str] = &[
    "/api/status",
    "/api/board",
    "/api/agents",
    "/api/agents?all=1",
    "/api/work",
    "/api/work?all=1",
    "/api/item?id=held",
    "/api/item?id=done",
    "/api/work/open",
    "/api/lanes",
    "/api/events",
    "/api/projects",
    "/api/entries",
    "/api/entries/history?key=fact",
    "/api/scopes",
    "/api/locks",
];

/// Whether one of its texts has the complete payload.
fn has_payload(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(PAYLOAD),
        Value::Array(items) => items.iter().any(has_payload),
        Value::Object(fields) => {
            fields.iter().any(|(name, value)| name.contains(PAYLOAD) || has_payload(value))
        }
        _ => false,
    }
}

fn the_api_and_the_stream_carry_a_hostile_board_as_json() {
    let generator = Generator::shared();
    for extent in [Extent::Everything, Extent::AllButIdentities] {
        let served = Served::of(generator.board(extent, PAYLOAD), 0);
        let mut seen = 0;
        for path in PATHS {
            let reply = served.get(path);
            let by_id = path.contains("held")
                || path.contains("done")
                || path.contains("/open")
                || path.contains("fact");
            let is_gone = extent == Extent::Everything && by_id && reply.status == 404;
            assert!(reply.status == 200 || is_gone, "{path}: {reply:?}");
            assert_eq!(reply.header("content-type"), Some("application/json"), "{path}");
            seen += usize::from(has_payload(&reply.json()));
            // Control characters are escaped in JSON, and none of them is in a header.
            assert!(!reply.body.iter().any(|byte| *byte < b' ' && *byte != b'\n'), "{path}");
            assert!(!reply.headers.iter().any(|(_, value)| value.contains("FORGED")), "{path}: {reply:?}");
        }
        assert!(seen > 5, "what is hostile was asked for: {seen}");
        let last = served.json("/api/board")["revision"].as_i64().unwrap();
        let mut events = Events::follow(served.port, Some(0), None).unwrap();
        let mut id = 0;
        while id < last {
            let message = events.next().expect("the stream goes on to the last event");
            assert!(message.id > id, "events come in order");
            id = message.id;
            assert!(has_payload(&message.data), "{}", message.data);
        }
    }
}
