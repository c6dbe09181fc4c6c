//! A small HTTP client, which can also send what no browser would.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// The tokens of the servers that run, by their ports.
static TOKENS: Mutex<BTreeMap<u16, String>> = Mutex::new(BTreeMap::new());

/// Remembers the token that a server printed: from now on requests to its port carry it.
pub fn remember(printed: &Value) -> u16 {
    let port = u16::try_from(printed["port"].as_u64().unwrap()).unwrap();
    let mut tokens = TOKENS.lock().unwrap_or_else(PoisonError::into_inner);
    match printed["token"].as_str() {
        Some(token) => tokens.insert(port, token.to_owned()),
        None => tokens.remove(&port),
    };
    port
}

/// The headers of a request that may be answered: the host, and the token if there is one.
pub fn own(port: u16) -> String {
    let tokens = TOKENS.lock().unwrap_or_else(PoisonError::into_inner);
    let token = tokens.get(&port).map_or(String::new(), |token| format!("Authorization: Bearer {token}\r\n"));
    format!("Host: 127.0.0.1:{port}\r\n{token}")
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The revision at which it was read.
    #[track_caller]
    pub fn revision(&self) -> i64 {
        self.header("blackboard-revision").expect("every answer has a revision").parse().unwrap()
    }
}

/// A connection on which requests follow each other.
pub struct Connection {
    pub stream: BufReader<TcpStream>,
    port: u16,
}

impl Connection {
    pub fn open(port: u16) -> Connection {
        let stream = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).unwrap();
        stream.set_read_timeout(Some(testkit::patience() * 2)).unwrap();
        Connection { stream: BufReader::new(stream), port }
    }

    /// Sends these bytes, whatever they are.
    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    /// Asks for a path as a browser would.
    pub fn ask(&mut self, path: &str) -> Reply {
        let head = format!("GET {path} HTTP/1.1\r\n{}\r\n", own(self.port));
        self.send(head.as_bytes());
        self.reply(true).expect("an answer")
    }

    /// The head of an answer: `None` if the other end closes the connection instead.
    pub fn head(&mut self) -> Option<Reply> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).unwrap_or(0) == 0 {
                return None;
            }
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let status = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines[1..].iter().map(|line| {
            let (name, value) = line.split_once(": ").unwrap_or((line.trim_end_matches(':'), ""));
            (name.to_ascii_lowercase(), value.to_owned())
        });
        Some(Reply { status, headers: headers.collect(), body: Vec::new() })
    }

    /// An answer; without its body if it is one to HEAD.
    pub fn reply(&mut self, has_body: bool) -> Option<Reply> {
        let mut reply = self.head()?;
        let length = reply.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        if has_body {
            reply.body = vec![0; length];
            self.stream.read_exact(&mut reply.body).unwrap();
        }
        Some(reply)
    }

    /// Whether the other end has closed the connection.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0]), Ok(0) | Err(_))
    }
}

/// Sends a request on a new connection.
pub fn get(port: u16, path: &str) -> Reply {
    Connection::open(port).ask(path)
}

/// Sends this request, whatever it is, and returns the answer.
pub fn raw(port: u16, request: &str) -> Option<Reply> {
    let mut connection = Connection::open(port);
    connection.send(request.as_bytes());
    connection.reply(!request.starts_with("HEAD"))
}

/// A request for a path with these headers besides those of every request.
pub fn with_headers(port: u16, path: &str, headers: &str) -> Reply {
    let request = format!("GET {path} HTTP/1.1\r\n{}{headers}\r\n", own(port));
    raw(port, &request).unwrap()
}

/// The stream of events, message by message.
pub struct Events {
    /// The revision after which it continues.
    pub start: i64,
    connection: Connection,
    /// What has come and was not taken yet.
    text: String,
}

/// One message.
#[derive(Debug)]
pub struct Message {
    pub id: i64,
    pub data: Value,
}

impl Events {
    /// Follows from the revision `after`, or from now on; `last` is what a browser sends when it reconnects.
    pub fn follow(port: u16, after: Option<i64>, last: Option<i64>) -> Result<Events, Reply> {
        Events::follow_with(port, &own(port), after, last)
    }

    /// The same with these headers.
    pub fn follow_with(
        port: u16,
        headers: &str,
        after: Option<i64>,
        last: Option<i64>,
    ) -> Result<Events, Reply> {
        let mut connection = Connection::open(port);
        let query = after.map_or(String::new(), |after| format!("?after={after}"));
        let last = last.map_or(String::new(), |last| format!("Last-Event-ID: {last}\r\n"));
        let request = format!("GET /api/events/stream{query} HTTP/1.1\r\n{headers}{last}\r\n");
        connection.send(request.as_bytes());
        let mut head = connection.head().unwrap();
        if head.status != 200 {
            let length: usize = head.header("content-length").unwrap().parse().unwrap();
            head.body = vec![0; length];
            connection.stream.read_exact(&mut head.body).unwrap();
            return Err(head);
        }
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        assert_eq!(head.header("cache-control"), Some("no-cache"));
        assert_eq!(head.header("x-accel-buffering"), Some("no"));
        let mut events = Events { start: head.revision(), connection, text: String::new() };
        assert_eq!(events.block().as_deref(), Some("retry: 2000"));
        Ok(events)
    }

    /// The next message; `None` if the server has ended the stream.
    pub fn next(&mut self) -> Option<Message> {
        loop {
            let block = self.block()?;
            if block.starts_with(':') {
                continue;
            }
            let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
            assert_eq!(field("event: "), None, "onmessage would not be called: {block}");
            return Some(Message {
                id: field("id: ").unwrap().parse().unwrap(),
                data: serde_json::from_str(field("data: ").unwrap()).unwrap(),
            });
        }
    }

    /// The text up to the next empty line.
    fn block(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                let block = self.text[..end].to_owned();
                self.text.drain(..end + 2);
                return Some(block);
            }
            let mut size = String::new();
            if self.connection.stream.read_line(&mut size).ok()? == 0 {
                return None;
            }
            let length = usize::from_str_radix(size.trim(), 16).unwrap();
            let mut chunk = vec![0; length + 2];
            self.connection.stream.read_exact(&mut chunk).ok()?;
            if length == 0 {
                return None;
            }
            self.text.push_str(std::str::from_utf8(&chunk[..length]).unwrap());
        }
    }
}
