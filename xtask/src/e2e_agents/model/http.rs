//! The part of HTTP/1.1 that clients of models use: one request per connection, with a complete answer.
//!
//! Not `hyper`, because that needs `tokio`, and every installation would build both for `xtask` first.

use std::io::{self, BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

/// The maximum size of a request.
const LONGEST_BODY: u64 = 64 * 1024 * 1024;

/// A request of a client.
pub struct Request {
    pub path: String,
    /// Null if it has no body, or one that is not JSON.
    pub body: Value,
}

/// A response.
pub enum Reply {
    /// One JSON document.
    Json(Value),
    /// Server-sent events: the text of all of them.
    Events(String),
}

/// Reads a request.
pub fn read(stream: &TcpStream) -> io::Result<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split(' ').nth(1).ok_or_else(|| Error::from(ErrorKind::InvalidData))?.to_owned();
    let (mut length, mut chunked) = (0, false);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let header = header.trim().to_ascii_lowercase();
        match header.split_once(':') {
            Some(("content-length", value)) => length = value.trim().parse().map_err(Error::other)?,
            Some(("transfer-encoding", value)) => chunked = value.contains("chunked"),
            // Curl and some libraries wait for this before they send a long body.
            Some(("expect", _)) => (&*stream).write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?,
            Some(_) => {}
            None => break,
        }
    }
    let mut body = Vec::new();
    if chunked {
        read_chunks(&mut reader, &mut body)?;
    } else {
        reader.take(length.min(LONGEST_BODY)).read_to_end(&mut body)?;
    }
    Ok(Request { path, body: serde_json::from_slice(&body).unwrap_or_default() })
}

fn read_chunks(reader: &mut impl BufRead, body: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let mut size = String::new();
        reader.read_line(&mut size)?;
        let digits = size.trim().split(';').next().unwrap_or_default();
        let size = u64::from_str_radix(digits, 16).map_err(Error::other)?;
        if size > LONGEST_BODY - body.len() as u64 {
            return Err(ErrorKind::InvalidData.into());
        }
        reader.by_ref().take(size).read_to_end(body)?;
        reader.read_line(&mut String::new())?;
        if size == 0 {
            return Ok(());
        }
    }
}

/// Sends the response.
pub fn answer(mut stream: &TcpStream, reply: &Reply) -> io::Result<()> {
    let (kind, text) = match reply {
        Reply::Json(value) => ("application/json", value.to_string()),
        Reply::Events(text) => ("text/event-stream", text.clone()),
    };
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    )?;
    stream.flush()
}
