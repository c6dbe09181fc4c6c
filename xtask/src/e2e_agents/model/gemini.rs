//! The API of Gemini.

use serde_json::json;

use super::http::{Reply, Request};
use super::{Asked, Dialect, Say, text_of};

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

    fn said(&self, request: &Request, say: &Say, _: usize) -> Reply {
        let part = match say {
            Say::Text(text) => json!({ "text": text }),
            Say::Call { tool, input } => json!({"functionCall": {"name": tool, "args": input}}),
        };
        let answer = json!({
            "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
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
