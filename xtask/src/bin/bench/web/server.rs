//! A server of the dashboard, and requests to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;

use testkit::patience;

use crate::{Result, Scale};

/// A server. It ends when this value is dropped.
pub struct Server {
    server: testkit::server::Server,
    pub access: Access,
}

/// The address of a server, and its token.
#[derive(Clone)]
pub struct Access {
    pub port: u16,
    pub token: String,
}

impl Server {
    pub fn start(scale: &Scale, board: &Path) -> Server {
        let mut command = scale.blackboard(board);
        command.args(["serve", "--json", "--port", "0"]).stdin(Stdio::null());
        let server = testkit::server::Server::start(command);
        let access = Access { port: server.port(), token: server.token().to_owned() };
        Server { server, access }
    }

    /// Its memory, in bytes.
    pub fn memory(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes: f64 = line.ok_or("no memory")?.trim().trim_end_matches(" kB").parse()?;
        Ok(kilobytes * 1024.0)
    }
}

/// A connection on which a request for `path` was sent, and the headers of the response were read.
pub fn request(access: &Access, path: &str) -> Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(("127.0.0.1", access.port))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience()))?;
    let mut stream = BufReader::new(stream);
    ask(&mut stream, access, path)?;
    Ok(stream)
}

/// Sends a request and reads the headers of the response. Returns the length of the body, if it is known.
pub fn ask(stream: &mut BufReader<TcpStream>, access: &Access, path: &str) -> Result<Option<usize>> {
    let Access { port, token } = access;
    // In one packet, as browsers send it.
    let head =
        format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.get_mut().write_all(head.as_bytes())?;
    let (mut length, mut line) = (None, String::new());
    stream.read_line(&mut line)?;
    if !line.contains(" 200 ") {
        return Err(format!("{path}: {line}").into());
    }
    while !line.trim().is_empty() {
        line.clear();
        stream.read_line(&mut line)?;
        if let Some(text) = line.strip_prefix("content-length: ") {
            length = Some(text.trim().parse()?);
        }
    }
    Ok(length)
}

/// Reads a body of this length.
pub fn body(stream: &mut BufReader<TcpStream>, length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}
