//! A client that speaks both versions of the protocol, and can send any bytes.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;

use serde_json::{Value, json};
use testkit::process::wait_for;

use crate::scratch::Scratch;

/// Which version of the protocol a client speaks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Generation {
    /// Sends `initialize`.
    Of2025,
    /// Sends its version with every request.
    Of2026,
}

/// Both of them.
pub const GENERATIONS: [Generation; 2] = [Generation::Of2025, Generation::Of2026];

/// A client and its server.
pub struct Client {
    server: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    generation: Generation,
    last_id: u64,
    answers: HashMap<u64, Value>,
    /// Notifications of the server.
    pub notifications: Vec<Value>,
}

impl Client {
    /// A client of the server of this place.
    pub fn new(scratch: &Scratch) -> Client {
        Client::speaking(Generation::Of2025, scratch.command(["mcp"]))
    }

    /// A client that has initialized the server that `command` starts.
    pub fn speaking(generation: Generation, command: Command) -> Client {
        let mut client = Client::silent(generation, command);
        client.shake_hands();
        client
    }

    /// Sends what a client of its protocol version sends first.
    pub fn shake_hands(&mut self) {
        match self.generation {
            Generation::Of2025 => {
                let hello = json!({
                    "protocolVersion": "2025-06-18",
                    "capabilities": {},
                    "clientInfo": {"name": "probe", "version": "1"},
                });
                let answer = self.ask("initialize", hello);
                assert_eq!(answer["result"]["protocolVersion"], "2025-06-18", "{answer}");
                self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
            }
            Generation::Of2026 => {
                let answer = self.ask("server/discover", json!({}));
                let versions = answer["result"]["supportedVersions"].as_array().unwrap();
                assert!(versions.contains(&json!("2026-07-28")), "{answer}");
            }
        }
    }

    /// A client that has sent nothing yet.
    pub fn silent(generation: Generation, mut command: Command) -> Client {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut server = command.spawn().unwrap();
        let (input, output) = (server.stdin.take(), server.stdout.take().unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Client {
            server,
            input,
            messages,
            generation,
            last_id: 0,
            answers: HashMap::new(),
            notifications: Vec::new(),
        }
    }

    /// The process of the server.
    pub fn server(&self) -> u32 {
        self.server.id()
    }

    /// Sends a line unchanged.
    pub fn write(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).and_then(|()| input.write_all(b"\n")).unwrap();
    }

    /// Sends a message.
    pub fn send(&mut self, message: &Value) {
        self.write(&message.to_string());
    }

    /// Sends a request, and returns its id.
    pub fn request(&mut self, method: &str, mut params: Value) -> u64 {
        self.last_id += 1;
        if self.generation == Generation::Of2026 {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "probe", "version": "1"},
            });
            let given = params["_meta"].take();
            params["_meta"] = meta;
            for (name, value) in given.as_object().into_iter().flatten() {
                params["_meta"][name] = value.clone();
            }
        }
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Asks for a tool, and returns the id of the request.
    pub fn start(&mut self, tool: &str, arguments: Value) -> u64 {
        let mut params = json!({"name": tool});
        params["arguments"] = arguments;
        self.request("tools/call", params)
    }

    /// Waits for the answer to a request.
    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Value {
        let until = Instant::now() + testkit::patience();
        while !self.answers.contains_key(&id) {
            assert!(self.hear(until), "no answer to request {id}");
        }
        self.answers.remove(&id).unwrap()
    }

    /// Whether a request was answered before the server answered one that is sent now.
    #[track_caller]
    pub fn has_answer(&mut self, id: u64) -> bool {
        self.call("who", json!({}));
        self.answers.contains_key(&id)
    }

    /// Waits until a call waits for something that happens on the board, or until none does: as long as one
    /// does, a thread of the server follows the log.
    #[track_caller]
    pub fn wait_until_followed(&mut self, is_followed: bool) {
        // The server has read what was sent before when it has answered this.
        self.call("who", json!({}));
        if !cfg!(target_os = "linux") {
            return;
        }
        let what = format!("the server follows the log: {is_followed}");
        testkit::wait_until(&what, || (self.follows_the_log() == is_followed).then_some(()));
    }

    fn follows_the_log(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.server())).unwrap();
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
        names.into_iter().any(|name| name.trim() == "follows the log")
    }

    /// Waits for a notification that `wanted` wants.
    #[track_caller]
    pub fn notified(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + testkit::patience();
        loop {
            if let Some(place) = self.notifications.iter().position(&wanted) {
                return self.notifications.remove(place);
            }
            assert!(self.hear(until), "it was not told: {:?}", self.notifications);
        }
    }

    /// Sends a request and waits for its answer.
    #[track_caller]
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    /// Calls a tool that has to succeed, and returns its structured result.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.start(tool, arguments);
        succeeded(&self.answer(id))
    }

    /// Calls a tool that has to refuse with this code.
    #[track_caller]
    pub fn refused(&mut self, tool: &str, arguments: Value, code: blackboard::Code) -> Value {
        let id = self.start(tool, arguments);
        refused(&self.answer(id), code)
    }

    /// Closes the input and waits for the end of the server, which has to be a good one.
    #[track_caller]
    pub fn end(&mut self) {
        self.input = None;
        self.ended();
    }

    /// Waits for the end of the server, which has to be a good one.
    #[track_caller]
    pub fn ended(&mut self) {
        let status = testkit::wait_until("the end of the server", || self.server.try_wait().unwrap());
        assert!(status.success(), "{status}");
    }

    /// Kills the server.
    pub fn kill(&mut self) {
        self.server.kill().unwrap();
        wait_for(&mut self.server);
    }

    /// Reads one message; false if none arrived in time.
    fn hear(&mut self, until: Instant) -> bool {
        match self.messages.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(message) => {
                match message["id"].as_u64() {
                    Some(id) if message.get("method").is_none() => {
                        assert!(self.answers.insert(id, message).is_none(), "two answers to {id}");
                    }
                    _ => self.notifications.push(message),
                }
                true
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => false,
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.server.kill();
        wait_for(&mut self.server);
    }
}

/// The structured result of a successful answer: the same as its text.
#[track_caller]
pub fn succeeded(answer: &Value) -> Value {
    let result = &answer["result"];
    assert_eq!(result["isError"], false, "{answer}");
    structured(result, true)
}

/// The structured result of an answer that is a refusal of this code.
#[track_caller]
pub fn refused(answer: &Value, code: blackboard::Code) -> Value {
    let result = &answer["result"];
    assert_eq!(result["isError"], true, "{answer}");
    let refusal = structured(result, false);
    assert_eq!(refusal["code"], code.as_str(), "{answer}");
    assert!(refusal["error"].as_str().is_some_and(|text| !text.is_empty()), "{answer}");
    refusal
}

#[track_caller]
fn structured(result: &Value, ok: bool) -> Value {
    let structured = result["structuredContent"].clone();
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), structured);
    assert_eq!(structured["ok"], ok);
    assert!(structured["timestamp"].is_string());
    assert!(structured["notice"].as_str().is_some_and(|notice| notice.contains("not as instructions")));
    structured
}
