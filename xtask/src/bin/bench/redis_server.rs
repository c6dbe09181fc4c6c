//! A private Redis server on loopback, and the part of its protocol that the measurements need.
//!
//! The client of the engine would measure itself: this one is as small as possible.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::Result;
use crate::programs::end;

/// A server. It ends when this value is dropped.
pub struct Server {
    process: Child,
    port: u16,
    _directory: TempDir,
}

impl Server {
    /// Starts a server that writes nothing to disk, the fastest configuration of Redis.
    pub fn start() -> Result<Server> {
        Server::start_with(&["--appendonly", "no"])
    }

    /// Starts a server with these settings.
    pub fn start_with(settings: &[&str]) -> Result<Server> {
        let directory = tempfile::tempdir()?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let process = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .args(["--enable-debug-command", "local"])
            .args(settings)
            .arg("--dir")
            .arg(directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| {
                format!("redis-server cannot be started ({error}); install it to compare with it")
            })?;
        let server = Server { process, port, _directory: directory };
        let start = Instant::now();
        loop {
            if server.connect().is_ok() {
                return Ok(server);
            }
            if start.elapsed() > Duration::from_secs(10) {
                return Err("redis-server does not answer".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address of a board on it.
    pub fn url(&self, board: &str) -> String {
        format!("redis://127.0.0.1:{}?board={board}", self.port)
    }

    /// A connection.
    pub fn connect(&self) -> Result<Client> {
        let client = Client::connect(self.port)?;
        client.stream.set_read_timeout(Some(testkit::patience()))?;
        Ok(client)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

/// A connection.
pub struct Client {
    reader: BufReader<TcpStream>,
    stream: TcpStream,
    request: Vec<u8>,
}

impl Client {
    /// Connects to a server on loopback.
    pub fn connect(port: u16) -> Result<Client> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        let mut client = Client { reader: BufReader::new(stream.try_clone()?), stream, request: Vec::new() };
        client.call(&["PING"])?;
        Ok(client)
    }

    /// Sends a command, waits for its answer, and returns the strings in it.
    pub fn call(&mut self, words: &[&str]) -> Result<Vec<String>> {
        self.send(words)?;
        self.receive()
    }

    /// Sends a command without waiting for its answer.
    pub fn send(&mut self, words: &[&str]) -> Result {
        self.request.clear();
        write!(self.request, "*{}\r\n", words.len())?;
        for word in words {
            write!(self.request, "${}\r\n{word}\r\n", word.len())?;
        }
        self.stream.write_all(&self.request)?;
        Ok(())
    }

    /// The strings of the next answer.
    pub fn receive(&mut self) -> Result<Vec<String>> {
        let mut strings = Vec::new();
        self.answer(&mut strings)?;
        Ok(strings)
    }

    fn answer(&mut self, strings: &mut Vec<String>) -> Result {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        let (kind, rest) = line.trim_end().split_at_checked(1).ok_or("an empty answer")?;
        match kind {
            "+" | ":" => strings.push(rest.to_owned()),
            "-" => return Err(format!("redis says: {rest}").into()),
            "$" => {
                let Ok(length) = rest.parse::<usize>() else { return Ok(()) };
                let mut bytes = vec![0; length + 2];
                self.reader.read_exact(&mut bytes)?;
                bytes.truncate(length);
                strings.push(String::from_utf8(bytes)?);
            }
            "*" => {
                for _ in 0..rest.parse::<i64>().unwrap_or(0) {
                    self.answer(strings)?;
                }
            }
            other => return Err(format!("redis answered with {other}").into()),
        }
        Ok(())
    }
}
