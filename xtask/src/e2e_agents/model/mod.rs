//! A stand-in for a model, on loopback: the story asks for the next request of a scene and says what to answer.
//!
//! Every prompt that a story starts a session with names its *scene*: `SCENE-MAIN`. The first such word in the texts of a
//! request says which conversation it belongs to, so that subagents and nested agents are distinguished by the prompts
//! that they were started with. A request that belongs to a scene and offers tools waits until the story answers it:
//! meanwhile the story looks at the board. Everything else (titles, summaries, probes) is answered at once with a word.
//!
//! What differs between the interfaces of models is a [`Dialect`], one file each.

pub mod anthropic;
pub mod gemini;
mod http;
pub mod openai;

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::Value;

pub use self::http::{Reply, Request};
use crate::Result;

/// How long a story waits for a request, and a request for the story.
const PATIENCE: Duration = Duration::from_secs(90);

/// What every scene's name starts with.
const SCENE: &str = "SCENE-";

/// How an interface of models asks and answers.
pub trait Dialect: Sync {
    /// What a request asks the model, or nothing if it asks for something else.
    fn asked(&self, request: &Request) -> Option<Asked>;
    /// The answer. Its number is another one every time, for ids.
    fn said(&self, request: &Request, say: &Say, number: usize) -> Reply;
    /// The answer to every other request.
    fn other(&self, request: &Request) -> Reply;
}

/// What a request asks the model.
pub struct Asked {
    /// Everything that the model is to read, the conversation first.
    pub text: String,
    /// The tools that it may call.
    pub tools: Vec<String>,
}

/// What the model says.
pub enum Say {
    Text(String),
    Call { tool: String, input: Value },
}

/// A running stand-in.
pub struct Model {
    port: u16,
    shared: Arc<Shared>,
}

/// A request that waits for its answer. If it is dropped, the model says that it is done.
pub struct Turn {
    scene: String,
    pub asked: Asked,
    answer: Sender<Say>,
}

struct Shared {
    dialect: &'static dyn Dialect,
    turns: Mutex<Vec<Turn>>,
    /// The scenes that are over.
    closed: Mutex<Vec<String>>,
    arrived: Condvar,
    count: AtomicUsize,
    /// Where the requests are kept, to find the cause of a failure.
    log: PathBuf,
}

impl Model {
    /// Starts one that keeps its requests in a directory. It runs as long as this process.
    pub fn start(dialect: &'static dyn Dialect, log: &Path) -> Result<Model> {
        fs::create_dir_all(log)?;
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            dialect,
            turns: Mutex::default(),
            closed: Mutex::default(),
            arrived: Condvar::new(),
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

    /// Where it listens: `http://127.0.0.1:PORT`.
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

    /// Lets the next look for a request find this one again.
    pub fn put_back(&self, turn: Turn) {
        lock(&self.shared.turns).push(turn);
    }

    /// Continues a scene that was ended.
    pub fn open(&self, scene: &str) {
        lock(&self.shared.closed).retain(|closed| closed != scene);
    }

    /// Ends a scene: every request from now on, and every pending one, gets a short final answer.
    pub fn close(&self, scene: &str) {
        lock(&self.shared.closed).push(scene.to_owned());
        lock(&self.shared.turns).retain(|turn| turn.scene != scene);
    }
}

impl Turn {
    /// Whether the model reads this.
    pub fn reads(&self, text: &str) -> bool {
        self.asked.text.contains(text)
    }

    /// Lets the model say this.
    pub fn say(self, say: Say) {
        // A client that did not wait for the answer is found out by what it does not do then.
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
            Some(asked) => self.dialect.said(&request, &self.ask(asked), number),
        };
        let _ = http::answer(stream, &reply);
    }

    /// The answer of the story, or a short final answer if the request belongs to no scene.
    fn ask(&self, asked: Asked) -> Say {
        let done = || Say::Text("Done.".to_owned());
        let scene = scene_of(&asked.text).map(str::to_owned);
        let Some(scene) = scene.filter(|_| !asked.tools.is_empty()) else { return done() };
        let (answer, answered): (Sender<Say>, Receiver<Say>) = mpsc::channel();
        let turn = Turn { scene: scene.clone(), asked, answer };
        // In this order, so that no request waits for a scene that is closed meanwhile.
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

/// The first scene that a conversation names.
fn scene_of(text: &str) -> Option<&str> {
    let scene = &text[text.find(SCENE)?..];
    let end = scene.find(|character: char| {
        !character.is_ascii_uppercase() && character != '-' && !character.is_ascii_digit()
    });
    Some(&scene[..end.unwrap_or(scene.len())])
}

/// Every text in a JSON value, in order, a line or more each.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(text_of).collect::<Vec<_>>().join("\n"),
        Value::Object(members) => members.values().map(text_of).collect::<Vec<_>>().join("\n"),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}
