//! The API of Gemini.

use serde_json::json;

use super::http::{Reply, Request};
use super::{Asked, Dialect, Say, Usage, text_of};

/// `POST …:generateContent` and `…:streamGenerateContent`.
pub struct Generate;

impl Dialect for Generate {
    fn asked(&self, request: &Request) -> Option<Asked> {
        let contents = request.body.get("contents").filter(|_| request.path.contains("enerateContent"))?;
        let listed = request.body["tools"].as_array().into_iter().flatten();
        let declared = listed.flat_map(|tool| tool["functionDeclarations"].as_array().into_iter().flatten());
        let tools = declared.filter_map(|tool| Some(tool.get("name")?.as_str()?.to_owned())).collect();
        let text = format!("{}\n{}", text_of(contents), text_of(&request.body["systemInstruction"]));
        Some(Asked { text, tools })
    }

    fn usage(&self, number: usize) -> Usage {
        Usage { cache_write: 0, ..Usage::of(number) }
    }

    fn said(&self, request: &Request, say: &Say, number: usize) -> Reply {
        let part = match say {
            Say::Text(text) => json!({ "text": text }),
            Say::Call { tool, input } => json!({"functionCall": {"name": tool, "args": input}}),
        };
        let Usage { input, cache_read, output, reasoning, .. } = self.usage(number);
        let prompt = input + cache_read;
        let answer = json!({
            "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {
                "promptTokenCount": prompt, "cachedContentTokenCount": cache_read, "candidatesTokenCount": output,
                "thoughtsTokenCount": reasoning, "totalTokenCount": prompt + output + reasoning,
            },
            "modelVersion": "stand-in",
        });
        if request.path.contains("streamGenerateContent") {
            Reply::Events(format!("data: {answer}\r\n\r\n"))
        } else {
            Reply::Json(answer)
        }
    }

    fn other(&self, _: &Request) -> Reply {
        Reply::Json(json!({"totalTokens": 1}))
    }
}
