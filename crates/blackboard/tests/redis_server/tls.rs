//! TLS: a server is trusted if its certificate is, and has its name.

use std::path::Path;
use std::process::Command;

use blackboard::Code;
use testkit::process::RunToEnd as _;
use testkit::redis::{RedisServer, free_port};

use crate::mistakes::mistake;
use crate::{impatient, open, try_open, value, write};

/// Makes an authority and a certificate of a server with this name; `None` if this machine cannot.
fn make_certificates(directory: &Path, name: &str) -> Option<()> {
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
    openssl(
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.pem",
    );
    Some(())
}

/// A server with TLS on a port, and the address of a board there with this authority.
fn start(directory: &Path) -> Option<(RedisServer, impl Fn(&str) -> String)> {
    let port = free_port();
    let file = |name: &str| directory.join(name).display().to_string();
    let settings = [
        ("tls-port", port.to_string()),
        ("tls-cert-file", file("server.pem")),
        ("tls-key-file", file("server.key")),
        ("tls-ca-cert-file", file("ca.pem")),
        ("tls-auth-clients", "no".to_owned()),
    ];
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
