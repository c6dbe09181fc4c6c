//! Addresses that are wrong: each is reported soon, with its own advice.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use blackboard::Code;
use blackboard::store::redis::{Redis, RedisOptions, WaitObserver};
use testkit::redis::{RedisServer, free_port};

use crate::{impatient, open, try_open};

/// The error of an address, and its advice. The patience of the caller is longer than a test may take.
#[track_caller]
pub(crate) fn mistake(url: &str) -> (Code, String, String) {
    let options = RedisOptions { patience: Duration::from_hours(1), ..RedisOptions::default() };
    let error = try_open(url, &options).err().unwrap();
    let advice = error.hint().and_then(blackboard::Hint::advice).unwrap_or_default().to_owned();
    (error.code(), error.to_string(), advice)
}

/// The port of a program that answers each connection with this text and closes it.
fn start_program(answer: &'static str) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = stream.and_then(|mut stream| stream.write_all(answer.as_bytes()));
        }
    });
    port
}

/// The port of a program that answers the first request of each connection with what `answer` makes of it.
fn start_echo(answer: fn(&str) -> String) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let Ok(count) = stream.read(&mut request) else { continue };
            let request = String::from_utf8_lossy(&request[..count]).replace("\r\n", " ");
            let _ = stream.write_all(answer(&request).as_bytes());
            // The client ends the connection.
            let _ = stream.read(&mut [0]);
        }
    });
    port
}

#[test]
fn server_that_repeats_its_input_does_not_get_the_login_into_an_error() {
    testkit::limit_test();
    let answers: [fn(&str) -> String; 6] = [
        // To the login, to another command after a login, and before the connection ends.
        |request| format!("-ERR unknown request {request}\r\n+OK\r\n+OK\r\n"),
        |request| format!("+OK\r\n-ERR unknown request {request}\r\n+OK\r\n"),
        |request| format!("-ERR unknown request {request}\r\n"),
        // As a list of the arguments, as a command of a denial, and as a part of a version.
        |request| format!("*1\r\n${}\r\n{request}\r\n+OK\r\n+OK\r\n", request.len()),
        |request| format!("-NOPERM this user may not run the '{request}' command\r\n+OK\r\n+OK\r\n"),
        |request| {
            let info = format!("redis_version:6.{request}\r\nrun_id:a\r\n");
            format!("+OK\r\n+OK\r\n${}\r\n{info}\r\n", info.len())
        },
    ];
    for (number, answer) in answers.into_iter().enumerate() {
        let port = start_echo(answer);
        for login in [":s3cr3tpw@", "ivy:s3cr3tpw@"] {
            let error = try_open(&format!("redis://{login}127.0.0.1:{port}"), &impatient()).err().unwrap();
            let text = format!("{error} {error:?}");
            assert!(!text.contains("s3cr") && !text.contains("ivy"), "{number}: {text}");
        }
    }
}

#[test]
fn program_that_is_no_redis_server_is_reported_at_once() {
    testkit::limit_test();
    let port = start_program("HTTP/1.1 400 Bad Request\r\n\r\n");
    for scheme in ["redis", "rediss"] {
        let (code, _, advice) = mistake(&format!("{scheme}://127.0.0.1:{port}"));
        assert_eq!(code, Code::ServerUnsuitable, "{scheme}: {advice}");
    }
}

#[test]
fn reason_of_a_server_that_closes_the_connection_is_reported() {
    testkit::limit_test();
    let port =
        start_program("-DENIED Redis is running in protected mode because protected mode is enabled\r\n");
    let (code, message, advice) = mistake(&format!("redis://127.0.0.1:{port}"));
    assert_eq!(code, Code::AccessDenied, "{message}");
    assert!(message.contains("protected mode") && advice.contains("set a password or ACL users"), "{advice}");
    let Some(server) = RedisServer::start(&[]) else { return };
    let board = open(&server.url("a"));
    server.command(&["CONFIG", "SET", "maxclients", "1"]);
    let error = try_open(&server.url("a"), &impatient()).err().unwrap();
    assert!(error.to_string().contains("too many clients"), "{error}");
    drop(board);
}

#[test]
fn server_without_tls_is_named_if_the_address_has_it() {
    let Some(server) = RedisServer::start_with_port(&[]) else { return };
    let (code, message, advice) = mistake(&format!("rediss://127.0.0.1:{}", server.port()));
    assert_eq!(code, Code::ServerUnsuitable, "{message}");
    assert!(message.contains("does not use TLS") && advice.contains("redis://"), "{message}: {advice}");
}

#[test]
fn missing_socket_and_host_are_waited_for_only_a_while() {
    testkit::limit_test();
    let (code, message, advice) = mistake("redis+unix:///nowhere/socket");
    assert_eq!(code, Code::ServerUnavailable, "{message}");
    assert!(
        message.contains("its socket does not exist") && advice.contains("path of the socket"),
        "{advice}"
    );
}

#[test]
fn replica_is_named_and_waited_for_only_a_while() {
    let Some(primary) = RedisServer::start_with_port(&[]) else { return };
    let replicaof = format!("127.0.0.1 {}", primary.port());
    let Some(replica) = RedisServer::start(&[]) else { return };
    let mut command = vec!["REPLICAOF"];
    command.extend(replicaof.split(' '));
    replica.command(&command);
    let (code, message, advice) = mistake(&replica.url("a"));
    assert_eq!(code, Code::ServerUnavailable, "{message}");
    assert!(advice.contains("the address of the primary"), "{message}: {advice}");
}

#[test]
fn sentinel_that_is_none_and_a_needless_password_have_their_own_advice() {
    let Some(server) = RedisServer::start_with_port(&[]) else { return };
    let (code, message, advice) = mistake(&format!("redis+sentinel://127.0.0.1:{}/main", server.port()));
    assert_eq!(code, Code::ServerUnsuitable, "{message}");
    assert!(advice.contains("port of the sentinel and the name of the service"), "{message}: {advice}");
    let (code, message, advice) = mistake(&format!("redis://:s3cr3t@127.0.0.1:{}", server.port()));
    assert_eq!((code, advice.as_str()), (Code::AccessDenied, "remove the password"), "{message}");
}

#[test]
fn waiting_for_a_server_is_told_once_and_ends_when_the_server_is_there() {
    testkit::limit_test();
    let url = format!("redis://127.0.0.1:{}", free_port());
    let told = Arc::new(Mutex::new(Vec::new()));
    let observer = {
        let told = Arc::clone(&told);
        WaitObserver::new(move |text: &str| told.lock().unwrap().push(text.to_owned()))
    };
    let patience = Duration::from_secs(2);
    let options = RedisOptions { patience, on_wait: Some(observer), ..RedisOptions::default() };
    assert_eq!(Redis::open(url.parse().unwrap(), &options).err().unwrap().code(), Code::ServerUnavailable);
    let expected = format!("waiting for the server of {url}: it refuses connections");
    assert_eq!(*told.lock().unwrap(), [expected]);
}
