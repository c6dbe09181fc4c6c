//! A stand-in for a model, on loopback: the story waits for the next request of a scene and decides the answer.
//!
//! Every prompt with which a story starts a session contains its *scene*: `SCENE-MAIN`. The first such word in the
//! texts of a request identifies its conversation, so subagents and nested agents are distinguished by their first
//! prompts. A request that belongs to a scene and offers tools waits until the story answers it; meanwhile the story
//! checks the board. All other requests (titles, summaries, probes) get a short answer at once.
//!
//! Each model API is a [`Dialect`], one file each.

pub mod anthropic;
pub mod gemini;
mod http;
pub mod openai;
mod usage;

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::Value;

pub use self::http::{Reply, Request};
pub use self::usage::Usage;
use crate::Result;

/// How long a story waits for a request, and a request for the story.
const PATIENCE: Duration = Duration::from_secs(90);

/// The prefix of every scene's name.
const SCENE: &str = "SCENE-";

/// The format of a model API.
pub trait Dialect: Sync {
    /// Parses a request to the model; `None` for other requests.
    fn asked(&self, request: &Request) -> Option<Asked>;
    /// The usage of an answer, which is different every time. An API without cache writes reports none.
    fn usage(&self, number: usize) -> Usage {
        Usage::of(number)
    }
    /// The answer, with its usage. The number is different every time, for ids.
    fn said(&self, request: &Request, say: &Say, number: usize) -> Reply;
    /// The answer to every other request.
    fn other(&self, request: &Request) -> Reply;
}

/// A request to the model.
pub struct Asked {
    /// Everything that the model reads, the conversation first.
    pub text: String,
    /// The tools that the model may call.
    pub tools: Vec<String>,
}

/// The answer of the model.
pub enum Say {
    Text(String),
    Call { tool: String, input: Value },
}

/// A running stand-in.
pub struct Model {
    port: u16,
    shared: Arc<Shared>,
}

/// A request that waits for its answer. If it is dropped, the model answers that it is done.
pub struct Turn {
    scene: String,
    pub asked: Asked,
    answer: Sender<Say>,
}

struct Shared {
    dialect: &'static dyn Dialect,
    turns: Mutex<Vec<Turn>>,
    /// The scenes that have ended.
    closed: Mutex<Vec<String>>,
    arrived: Condvar,
    /// The usage of each answer to a request of a scene.
    given: Mutex<Vec<(String, Usage)>>,
    count: AtomicUsize,
    /// The directory in which requests are kept, to find the cause of a failure.
    log: PathBuf,
}

impl Model {
    /// Starts a stand-in that keeps its requests in a directory. It runs as long as this process.
    pub fn start(dialect: &'static dyn Dialect, log: &Path) -> Result<Model> {
        fs::create_dir_all(log)?;
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            dialect,
            turns: Mutex::default(),
            closed: Mutex::default(),
            arrived: Condvar::new(),
            given: Mutex::default(),
            count: AtomicUsize::new(0),
            log: log.to_owned(),
        });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&serving);
                // A client that closes the connection during a request is not an error of the stand-in.
                thread::spawn(move || shared.serve(&stream));
            }
        });
        Ok(Model { port, shared })
    }

    /// Its URL: `http://127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The next request of a scene.
    pub fn turn(&self, scene: &str) -> Result<Turn> {
        let until = Instant::now() + PATIENCE;
        let mut turns = lock(&self.shared.turns);
        loop {
            if let Some(found) = turns.iter().position(|turn| turn.scene == scene) {
                return Ok(turns.remove(found));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(format!("no request of the scene {scene} came within {PATIENCE:?}").into());
            }
            turns = self.shared.arrived.wait_timeout(turns, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The usage of all answers to requests of a scene.
    pub fn given(&self, scene: &str) -> Vec<Usage> {
        let given = lock(&self.shared.given);
        given.iter().filter(|(of, _)| of == scene).map(|(_, usage)| *usage).collect()
    }

    /// Puts a request back, so that the next search for one finds it again.
    pub fn put_back(&self, turn: Turn) {
        lock(&self.shared.turns).push(turn);
    }

    /// Continues a scene that has ended.
    pub fn open(&self, scene: &str) {
        lock(&self.shared.closed).retain(|closed| closed != scene);
    }

    /// Ends a scene: all pending and later requests get a short final answer.
    pub fn close(&self, scene: &str) {
        lock(&self.shared.closed).push(scene.to_owned());
        lock(&self.shared.turns).retain(|turn| turn.scene != scene);
    }
}

impl Turn {
    /// Whether the model's request contains this text.
    pub fn reads(&self, text: &str) -> bool {
        self.asked.text.contains(text)
    }

    /// Answers with this.
    pub fn say(self, say: Say) {
        // A client that did not wait for the answer fails a later check.
        let _ = self.answer.send(say);
    }

    /// Ends the conversation.
    pub fn done(self) {
        self.say(Say::Text("Done.".to_owned()));
    }
}

impl Shared {
    fn serve(&self, stream: &TcpStream) {
        let Ok(request) = http::read(stream) else { return };
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let record = serde_json::json!({"path": request.path, "body": request.body});
        let _ = fs::write(self.log.join(format!("{number:04}.json")), record.to_string());
        let reply = match self.dialect.asked(&request) {
            None => self.dialect.other(&request),
            Some(asked) => {
                let scene = scene_of(&asked.text).filter(|_| !asked.tools.is_empty()).map(str::to_owned);
                let said = self.ask(asked, scene.as_deref());
                // Before the answer: a client may end as soon as it has it.
                if let Some(scene) = scene {
                    lock(&self.given).push((scene, self.dialect.usage(number)));
                }
                self.dialect.said(&request, &said, number)
            }
        };
        let _ = http::answer(stream, &reply);
    }

    /// The answer of the story, or a short final answer if the request belongs to no scene.
    fn ask(&self, asked: Asked, scene: Option<&str>) -> Say {
        let done = || Say::Text("Done.".to_owned());
        let Some(scene) = scene.map(str::to_owned) else { return done() };
        let (answer, answered): (Sender<Say>, Receiver<Say>) = mpsc::channel();
        let turn = Turn { scene: scene.clone(), asked, answer };
        // In this order, so that no request waits for a scene that ends meanwhile.
        lock(&self.turns).push(turn);
        let closed = lock(&self.closed).contains(&scene);
        if closed {
            lock(&self.turns).retain(|turn| turn.scene != scene);
        }
        self.arrived.notify_all();
        answered.recv_timeout(PATIENCE).unwrap_or_else(|_| done())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first scene that a conversation contains.
fn scene_of(text: &str) -> Option<&str> {
    let scene = &text[text.find(SCENE)?..];
    let end = scene.find(|character: char| {
        !character.is_ascii_uppercase() && character != '-' && !character.is_ascii_digit()
    });
    Some(&scene[..end.unwrap_or(scene.len())])
}

/// Every text in a JSON value, in order, one or more lines each.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(text_of).collect::<Vec<_>>().join("\n"),
        Value::Object(members) => members.values().map(text_of).collect::<Vec<_>>().join("\n"),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}
