//! The messages API of Anthropic, as Claude Code uses it.

use std::fmt::Write;

use serde_json::{Value, json};

use super::http::{Reply, Request};
use super::{Asked, Dialect, Say, Usage, text_of};

/// `POST /v1/messages`.
pub struct Messages;

impl Dialect for Messages {
    fn asked(&self, request: &Request) -> Option<Asked> {
        let path = request.path.split('?').next().unwrap_or_default();
        let messages = request.body.get("messages").filter(|_| path.ends_with("/v1/messages"))?;
        let tools = request.body["tools"].as_array().into_iter().flatten();
        let tools = tools.filter_map(|tool| Some(tool.get("name")?.as_str()?.to_owned())).collect();
        let text = format!("{}\n{}", text_of(messages), text_of(&request.body["system"]));
        Some(Asked { text, tools })
    }

    fn said(&self, request: &Request, say: &Say, number: usize) -> Reply {
        let (block, delta, reason) = match say {
            Say::Text(text) => {
                (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text}), "end_turn")
            }
            Say::Call { tool, input } => (
                json!({"type": "tool_use", "id": format!("toolu_{number}"), "name": tool, "input": {}}),
                json!({"type": "input_json_delta", "partial_json": input.to_string()}),
                "tool_use",
            ),
        };
        let id = format!("msg_{number}");
        let usage = usage(self.usage(number));
        let model = &request.body["model"];
        if request.body["stream"] != json!(true) {
            let content = match say {
                Say::Text(text) => json!({"type": "text", "text": text}),
                Say::Call { input, .. } => {
                    let mut block = block;
                    block["input"] = input.clone();
                    block
                }
            };
            return Reply::Json(json!({
                "id": id, "type": "message", "role": "assistant", "model": model, "content": [content],
                "stop_reason": reason, "stop_sequence": null, "usage": usage,
            }));
        }
        // Only the end of a stream has the final number of output tokens.
        let mut first = usage.clone();
        first["output_tokens"] = json!(1);
        let message = json!({
            "id": id, "type": "message", "role": "assistant", "model": model, "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": first,
        });
        let events = [
            json!({"type": "message_start", "message": message}),
            json!({"type": "content_block_start", "index": 0, "content_block": block}),
            json!({"type": "content_block_delta", "index": 0, "delta": delta}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({
                "type": "message_delta", "usage": usage,
                "delta": {"stop_reason": reason, "stop_sequence": null},
            }),
            json!({"type": "message_stop"}),
        ];
        let mut text = String::new();
        for event in events {
            // Writing to a string cannot fail.
            let _ = write!(text, "event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
        }
        Reply::Events(text)
    }

    fn other(&self, _: &Request) -> Reply {
        Reply::Json(json!({"input_tokens": 1}))
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input, "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read, "output_tokens": usage.output + usage.reasoning,
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
    })
}
