//! The WebDriver protocol, as far as these tests need it: one JSON request, one JSON answer.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use testkit::process::{Lines, wait_for};

/// A running `chromedriver` with one session, which ends with it.
pub struct Driver {
    process: Child,
    port: u16,
    session: String,
}

impl Driver {
    /// Starts a driver and a browser, unless there is none here.
    #[track_caller]
    pub fn start() -> Option<Driver> {
        let started = Command::new("chromedriver")
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut process = match started {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                testkit::skip(
                    "the page",
                    "chromium and chromedriver, which `cargo xtask test` installs for root",
                );
                return None;
            }
            started => started.expect("chromedriver can be started"),
        };
        let port = port_said(&mut process);
        let mut driver = Driver { process, port, session: String::new() };
        let mut arguments =
            vec!["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"];
        if rustix::process::getuid().is_root() {
            // Chromium refuses to make its sandbox as root, who needs none to do harm.
            arguments.push("--no-sandbox");
        }
        let wanted = json!({
            "goog:chromeOptions": { "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL" },
        });
        let answer = driver.ask("POST", "/session", &json!({ "capabilities": { "alwaysMatch": wanted } }));
        let id = answer["sessionId"].as_str().unwrap_or_else(|| panic!("no browser: {answer}"));
        driver.session = format!("/session/{id}");
        Some(driver)
    }

    /// Does something in the browser.
    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> Value {
        self.ask("POST", &format!("{}{path}", self.session), body)
    }

    /// Asks the browser for something.
    #[track_caller]
    pub fn get(&self, path: &str) -> Value {
        self.ask("GET", &format!("{}{path}", self.session), &Value::Null)
    }

    /// Ends something in the browser.
    #[track_caller]
    pub fn delete(&self, path: &str) -> Value {
        self.ask("DELETE", &format!("{}{path}", self.session), &Value::Null)
    }

    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer =
            self.exchange(method, path, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        assert!(answer["value"]["error"].is_null(), "{method} {path} {body}: {}", answer["value"]);
        answer["value"].clone()
    }

    fn exchange(&self, method: &str, path: &str, body: &Value) -> std::io::Result<Value> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut connection = TcpStream::connect(("127.0.0.1", self.port))?;
        connection.set_read_timeout(Some(testkit::patience() * 4))?;
        write!(
            connection,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.port,
            body.len(),
        )?;
        let mut reader = BufReader::new(connection);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let line = line.trim();
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().map_err(std::io::Error::other)?;
            }
        }
        let mut answer = vec![0; length];
        reader.read_exact(&mut answer)?;
        serde_json::from_slice(&answer).map_err(std::io::Error::other)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            let _ = self.exchange("DELETE", &self.session, &Value::Null);
        }
        let _ = self.process.kill();
        wait_for(&mut self.process);
    }
}

/// The port that a driver reports.
fn port_said(process: &mut Child) -> u16 {
    let mut lines = Lines::of(process);
    loop {
        let line = lines.next();
        let port =
            line.split_once("started successfully on port ").map(|(_, port)| port.trim_end_matches('.'));
        if let Some(port) = port.and_then(|port| port.parse().ok()) {
            lines.discard_rest();
            return port;
        }
    }
}
