//! TLS: a server is trusted if its certificate is, and has its name.

use std::path::Path;
use std::process::Command;

use blackboard::Code;
use testkit::process::RunToEnd as _;
use testkit::redis::{RedisServer, free_port};
use testkit::redis_sentinel::Sentinel;

use crate::mistakes::mistake;
use crate::{impatient, open, try_open, value, write};

/// Makes an authority and a certificate of a server with this name; `None` if this machine cannot.
fn make_certificates(directory: &Path, name: &str) -> Option<()> {
    make_certificates_for(directory, name, 2)
}

/// The same with a certificate of the server that is valid for so many days. One of -1 day has expired.
fn make_certificates_for(directory: &Path, name: &str, days: i32) -> Option<()> {
    let openssl = |arguments: &str| {
        let mut command = Command::new("openssl");
        command.args(arguments.split(' ')).current_dir(directory);
        assert!(command.run_to_end().status.success(), "{arguments}");
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|directory| directory.join("openssl").is_file()) {
        testkit::skip("TLS to a Redis server", "openssl");
        return None;
    }
    std::fs::write(directory.join("names"), format!("subjectAltName={name}")).unwrap();
    for authority in ["ca", "other"] {
        openssl(&format!(
            "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={authority} -keyout {authority}.key -out {authority}.pem"
        ));
    }
    openssl("req -newkey rsa:2048 -nodes -subj /CN=server -keyout server.key -out server.csr");
    openssl(&format!(
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days {days} -extfile names -out server.pem"
    ));
    Some(())
}

/// A server with TLS on a port, and the address of a board there with this authority.
fn start(directory: &Path) -> Option<(RedisServer, impl Fn(&str) -> String)> {
    start_asking(directory, "no")
}

/// The settings of a server, or of a sentinel, with these certificates.
fn settings(directory: &Path, port: u16, asks_for_certificates: &str) -> [(&'static str, String); 5] {
    let file = |name: &str| directory.join(name).display().to_string();
    [
        ("tls-port", port.to_string()),
        ("tls-cert-file", file("server.pem")),
        ("tls-key-file", file("server.key")),
        ("tls-ca-cert-file", file("ca.pem")),
        ("tls-auth-clients", asks_for_certificates.to_owned()),
    ]
}

/// The same with a server that may ask clients for certificates.
fn start_asking(
    directory: &Path,
    asks_for_certificates: &str,
) -> Option<(RedisServer, impl Fn(&str) -> String)> {
    let port = free_port();
    let settings = settings(directory, port, asks_for_certificates);
    let settings: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let server = RedisServer::start(&settings)?;
    let directory = directory.to_owned();
    let url = move |authority: &str| {
        format!("rediss://127.0.0.1:{port}?board=a&ca={}", directory.join(authority).display())
    };
    Some((server, url))
}

#[test]
fn board_works_over_tls_with_a_given_certificate_and_no_other() {
    let directory = testkit::tempdir().unwrap();
    if testkit::redis::skip_without_redis() || make_certificates(directory.path(), "IP:127.0.0.1").is_none() {
        return;
    }
    let Some((server, url)) = start(directory.path()) else { return };
    let board = open(&url("ca.pem"));
    for number in 0..3 {
        write(&board, "x", number).unwrap();
    }
    assert_eq!(value(&open(&server.url("a")), "x"), Some(2));
    let own_file = "name a file with certificates";
    for (authority, expected, advice) in [
        ("other.pem", "UnknownIssuer", "name the authority of the server with ?ca=FILE"),
        ("names", "no certificates", own_file),
        ("none", "cannot be read", own_file),
    ] {
        let error = try_open(&url(authority), &impatient()).err().unwrap();
        assert_eq!(error.code(), Code::ServerUnavailable, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        let hint = error.hint().and_then(blackboard::Hint::advice).unwrap_or_default();
        assert!(hint.contains(advice), "{hint}");
    }
    let without_tls = url("ca.pem").replacen("rediss", "redis", 1);
    let without_tls = without_tls.split("&ca=").next().unwrap();
    let (code, message, advice) = mistake(without_tls);
    assert_eq!(code, Code::ServerUnsuitable, "{message}");
    assert!(message.contains("uses TLS") && advice.contains("rediss://"), "{message}: {advice}");
}

#[test]
fn certificate_of_another_name_is_refused() {
    let directory = testkit::tempdir().unwrap();
    if testkit::redis::skip_without_redis() || make_certificates(directory.path(), "DNS:elsewhere").is_none()
    {
        return;
    }
    let Some((_server, url)) = start(directory.path()) else { return };
    let error = try_open(&url("ca.pem"), &impatient()).err().unwrap();
    assert_eq!(error.code(), Code::ServerUnavailable, "{error}");
    assert!(error.to_string().contains("not valid for name"), "{error}");
}

#[test]
fn expired_certificate_is_refused() {
    let directory = testkit::tempdir().unwrap();
    if testkit::redis::skip_without_redis()
        || make_certificates_for(directory.path(), "IP:127.0.0.1", -1).is_none()
    {
        return;
    }
    let Some((_server, url)) = start(directory.path()) else { return };
    let (code, message, advice) = mistake(&url("ca.pem"));
    assert_eq!(code, Code::ServerUnavailable, "{message}");
    assert!(message.contains("Expired") && advice.contains("renew the certificate"), "{message}: {advice}");
}

#[test]
fn server_that_asks_for_a_certificate_of_the_client_is_reported_at_once() {
    let directory = testkit::tempdir().unwrap();
    if testkit::redis::skip_without_redis() || make_certificates(directory.path(), "IP:127.0.0.1").is_none() {
        return;
    }
    let Some((_server, url)) = start_asking(directory.path(), "yes") else { return };
    let (code, message, advice) = mistake(&url("ca.pem"));
    assert_eq!(code, Code::ServerUnavailable, "{message}");
    assert!(message.contains("requires a certificate of the client"), "{message}");
    assert!(advice.contains("set tls-auth-clients of the server to no"), "{advice}");
}

#[test]
fn sentinels_and_their_server_are_reached_over_tls() {
    let directory = testkit::tempdir().unwrap();
    if testkit::redis::skip_without_redis() || make_certificates(directory.path(), "IP:127.0.0.1").is_none() {
        return;
    }
    let Some((server, url)) = start(directory.path()) else { return };
    let server_port = url("").split(':').nth(2).unwrap().split('?').next().unwrap().parse().unwrap();
    let port = free_port();
    let lines = settings(directory.path(), port, "no").map(|(name, value)| format!("{name} {value}\n"));
    let _sentinel = Sentinel::naming_port(server_port, &lines.concat());
    let ca = directory.path().join("ca.pem");
    let address = |scheme: &str, port: u16| format!("{scheme}://127.0.0.1:{port}/main?board=a");
    let board = open(&format!("{}&ca={}", address("rediss+sentinel", port), ca.display()));
    write(&board, "x", 1).unwrap();
    assert_eq!(value(&open(&server.url("a")), "x"), Some(1));
    let other =
        format!("{}&ca={}", address("rediss+sentinel", port), directory.path().join("other.pem").display());
    let error = try_open(&other, &impatient()).err().unwrap();
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
    // Without TLS no sentinel answers.
    assert!(try_open(&address("redis+sentinel", port), &impatient()).is_err());
}
