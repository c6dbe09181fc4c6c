//! The responses API, which Codex uses, and chat completions, which many others use.

use std::fmt::Write;

use serde_json::{Value, json};

use super::http::{Reply, Request};
use super::{Asked, Dialect, Say, Usage, text_of};

/// `POST …/responses`.
pub struct Responses;

/// `POST …/chat/completions`.
pub struct Chat;

impl Dialect for Responses {
    fn asked(&self, request: &Request) -> Option<Asked> {
        let input = request.body.get("input").filter(|_| request.path.ends_with("/responses"))?;
        let tools = tools(request).filter_map(|(_, tool)| Some(tool.get("name")?.as_str()?.to_owned()));
        let text = format!("{}\n{}", text_of(input), text_of(&request.body["instructions"]));
        Some(Asked { text, tools: tools.collect() })
    }

    fn said(&self, request: &Request, say: &Say, number: usize) -> Reply {
        let item = match say {
            Say::Text(text) => json!({
                "type": "message", "role": "assistant", "id": format!("msg_{number}"),
                "content": [{"type": "output_text", "text": text}],
            }),
            Say::Call { tool, input } => {
                let mut call = json!({
                    "type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number}"),
                    "name": tool, "arguments": input.to_string(),
                });
                match tools(request).find(|(_, offered)| offered["name"] == json!(tool)) {
                    Some((Some(namespace), _)) => call["namespace"] = namespace.clone(),
                    // Its input is free-form text.
                    Some((None, offered)) if offered["type"] == "custom" => {
                        call["type"] = json!("custom_tool_call");
                        call["input"] = input.clone();
                    }
                    _ => {}
                }
                call
            }
        };
        let id = format!("resp_{number}");
        let Usage { input, cache_write, cache_read, output, reasoning } = self.usage(number);
        let (input, output) = (input + cache_write + cache_read, output + reasoning);
        let usage = json!({
            "input_tokens": input, "output_tokens": output, "total_tokens": input + output,
            "input_tokens_details": {"cached_tokens": cache_read, "cache_write_tokens": cache_write},
            "output_tokens_details": {"reasoning_tokens": reasoning},
        });
        let events = [
            json!({"type": "response.created", "response": {"id": id}}),
            json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
            json!({"type": "response.completed", "response": {"id": id, "usage": usage}}),
        ];
        let mut text = String::new();
        for event in events {
            // Writing to a string cannot fail.
            let _ = write!(text, "event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
        }
        Reply::Events(text)
    }

    fn other(&self, _: &Request) -> Reply {
        models()
    }
}

/// The tools of a request to [`Responses`], each with its namespace: each MCP server has one.
fn tools(request: &Request) -> impl Iterator<Item = (Option<&Value>, &Value)> {
    let listed = request.body["tools"].as_array().into_iter().flatten();
    listed.flat_map(|tool| match tool["tools"].as_array() {
        Some(inner) => inner.iter().map(|inner| (tool.get("name"), inner)).collect(),
        None => vec![(None, tool)],
    })
}

impl Dialect for Chat {
    fn asked(&self, request: &Request) -> Option<Asked> {
        let messages =
            request.body.get("messages").filter(|_| request.path.ends_with("/chat/completions"))?;
        let listed = request.body["tools"].as_array().into_iter().flatten();
        let tools = listed.filter_map(|tool| Some(tool["function"].get("name")?.as_str()?.to_owned()));
        // The system prompt is not part of the conversation, but the model reads it.
        let (system, conversation): (Vec<&Value>, Vec<&Value>) =
            messages.as_array().into_iter().flatten().partition(|message| message["role"] == "system");
        let texts = conversation.into_iter().chain(system).map(text_of);
        Some(Asked { text: texts.collect::<Vec<_>>().join("\n"), tools: tools.collect() })
    }

    fn usage(&self, number: usize) -> Usage {
        Usage { cache_write: 0, ..Usage::of(number) }
    }

    fn said(&self, request: &Request, say: &Say, number: usize) -> Reply {
        let (message, reason) = match say {
            Say::Text(text) => (json!({"role": "assistant", "content": text}), "stop"),
            Say::Call { tool, input } => {
                let call = json!({
                    "index": 0, "id": format!("call_{number}"), "type": "function",
                    "function": {"name": tool, "arguments": input.to_string()},
                });
                (json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls")
            }
        };
        let Usage { input, cache_read, output, reasoning, .. } = self.usage(number);
        let (input, output) = (input + cache_read, output + reasoning);
        let usage = json!({
            "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
            "prompt_tokens_details": {"cached_tokens": cache_read},
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        });
        let answer = |object: &str, choice: Value| {
            json!({
                "id": format!("chat_{number}"), "object": object, "created": 1, "model": request.body["model"],
                "choices": [choice], "usage": usage,
            })
        };
        if request.body["stream"] != json!(true) {
            let choice = json!({"index": 0, "message": message, "finish_reason": reason});
            return Reply::Json(answer("chat.completion", choice));
        }
        let choices = [
            json!({"index": 0, "delta": message, "finish_reason": null}),
            json!({"index": 0, "delta": {}, "finish_reason": reason}),
        ];
        let chunks = choices.map(|choice| format!("data: {}\n\n", answer("chat.completion.chunk", choice)));
        Reply::Events(format!("{}data: [DONE]\n\n", chunks.concat()))
    }

    fn other(&self, _: &Request) -> Reply {
        models()
    }
}

/// The list of models, which clients request when they start.
fn models() -> Reply {
    Reply::Json(json!({"object": "list", "data": [{"id": "stand-in", "object": "model"}], "models": []}))
}
