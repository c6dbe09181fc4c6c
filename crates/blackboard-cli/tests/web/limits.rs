//! Too many or too large requests: refused or served, and the server keeps running.

use std::io::{Read, Write};

use crate::client::{Connection, Events, get, own, raw};
use crate::scale::size;
use crate::scratch::Scratch;
use crate::served::Served;

#[test]
fn ten_thousand_requests_are_all_answered() {
    let served = Served::furnished();
    let (connections, requests) = (10, 1000);
    std::thread::scope(|scope| {
        for _ in 0..connections {
            scope.spawn(|| {
                let mut connection = Connection::open(served.port);
                for number in 0..requests {
                    let path = ["/api/status", "/api/work", "/api/events?limit=5", "/nothing"][number % 4];
                    assert_eq!(connection.ask(path).status, if number % 4 == 3 { 404 } else { 200 });
                }
            });
        }
    });
    for _ in 0..size(100, 1000) {
        assert_eq!(get(served.port, "/api/status").status, 200);
    }
}

#[test]
fn heads_that_are_too_large_are_refused() {
    let served = Served::new();
    let port = served.port;
    let host = own(port);
    for request in [
        format!("GET / HTTP/1.1\r\n{host}X: {}\r\n\r\n", "x".repeat(100_000)),
        format!("GET /{} HTTP/1.1\r\n{host}\r\n", "x".repeat(100_000)),
        format!("GET / HTTP/1.1\r\n{host}{}\r\n", "X: y\r\n".repeat(1000)),
    ] {
        let mut connection = Connection::open(port);
        // The server may close before all of it is sent.
        let _ = connection.stream.get_mut().write_all(request.as_bytes());
        let status = connection.head().map(|reply| reply.status);
        assert!(status.is_none_or(|status| (400..500).contains(&status)), "{status:?}");
    }
    assert_eq!(get(port, "/api/status").status, 200);
}

#[test]
fn unexpected_body_is_harmless() {
    let served = Served::new();
    let port = served.port;
    let request = format!("POST /api/work HTTP/1.1\r\n{}Content-Length: 99999999\r\n\r\n", own(port));
    assert_eq!(raw(port, &request).unwrap().status, 405);
    assert_eq!(get(port, "/api/status").status, 200);
}

#[test]
fn unfinished_request_is_disconnected_while_others_are_served() {
    let served = Served::new();
    let mut slow: Vec<_> = (0..size(50, 500)).map(|_| Connection::open(served.port)).collect();
    for (number, connection) in slow.iter_mut().enumerate() {
        let begun = ["", "G", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: 127"][number % 4];
        connection.send(begun.as_bytes());
    }
    assert_eq!(get(served.port, "/api/status").status, 200);
    for connection in &mut slow {
        // It may get a timeout error before the end.
        let mut rest = Vec::new();
        let _ = connection.stream.read_to_end(&mut rest);
        let text = String::from_utf8_lossy(&rest);
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 408"), "{text}");
    }
    assert_eq!(get(served.port, "/api/status").status, 200);
}

#[test]
fn excess_connections_are_closed_and_the_others_continue() {
    let scratch = Scratch::new();
    let command = scratch.shell("ulimit -n 100; exec blackboard serve --json --port 0");
    let served = Served::by(scratch, command);
    let mut events = Events::follow(served.port, Some(0), None).unwrap();
    let crowd: Vec<_> = (0..150).map(|_| Connection::open(served.port)).collect();
    served.scratch.run(["work", "create", "a", "--title", "A"]).success();
    assert_eq!(events.next().unwrap().id, 1, "who was there goes on");
    drop(crowd);
    let request = format!("GET /api/work HTTP/1.1\r\n{}\r\n", own(served.port));
    let answered = || {
        let mut connection = Connection::open(served.port);
        let sent = connection.stream.get_mut().write_all(request.as_bytes());
        (sent.is_ok() && connection.head().is_some_and(|reply| reply.status == 200)).then_some(())
    };
    testkit::wait_until("there is room again once they have left", answered);
}

#[test]
fn idle_connections_without_the_token_do_not_block_the_dashboard() {
    let scratch = Scratch::new();
    scratch.run(["work", "create", "a", "--title", "A"]).success();
    // 36 connections.
    let command = scratch.shell("ulimit -n 100; exec blackboard serve --json --port 0");
    let served = Served::by(scratch, command);
    let mut events = Events::follow(served.port, Some(0), None).unwrap();
    assert_eq!(events.next().unwrap().id, 1);
    let idle: Vec<_> = (0..150).map(|_| Connection::open(served.port)).collect();
    // All places are in use, by connections that send nothing.
    assert_eq!(get(served.port, "/api/work").status, 200);
    served.says(&["work", "create", "b", "--title", "B"]);
    assert_eq!(events.next().unwrap().id, 2, "a connection with the token is not replaced");
    drop(idle);
}
