//! Only a browser of this machine, on this server's own page, gets an answer.

use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use crate::client::{Connection, get, own, raw, with_headers};
use crate::served::Served;

#[test]
fn another_host_or_origin_gets_no_answer() {
    let served = Served::furnished();
    let port = served.port;
    for host in ["evil.example", &format!("evil.example:{port}"), "127.0.0.1", "localhost:1", ""] {
        let reply = raw(port, &format!("GET /api/work HTTP/1.1\r\nHost: {host}\r\n\r\n")).unwrap();
        assert_eq!((reply.status, reply.json()["code"].as_str()), (403, Some("foreign_host")), "{host}");
    }
    for request in ["GET / HTTP/1.1\r\n\r\n".to_owned(), "GET / HTTP/1.0\r\n\r\n".to_owned()] {
        assert_eq!(raw(port, &request).unwrap().status, 403, "{request}");
    }
    for (headers, status) in [
        ("Origin: http://evil.example\r\n".to_owned(), 403),
        ("Origin: null\r\n".to_owned(), 403),
        (format!("Origin: http://127.0.0.1:{port}\r\n"), 200),
        ("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n".to_owned(), 403),
        ("Sec-Fetch-Site: same-origin\r\n".to_owned(), 200),
    ] {
        for path in ["/api/work", "/"] {
            assert_eq!(with_headers(port, path, &headers).status, status, "{headers} {path}");
        }
    }
    let stream = with_headers(port, "/api/events/stream", "Origin: http://evil.example\r\n");
    assert_eq!(stream.status, 403);
    for host in [format!("localhost:{port}"), format!("[::1]:{port}")] {
        let headers = own(port).replace(&format!("127.0.0.1:{port}"), &host);
        assert_eq!(raw(port, &format!("GET / HTTP/1.1\r\n{headers}\r\n")).unwrap().status, 200);
    }
}

#[test]
fn every_answer_has_the_headers_that_protect_it() {
    let served = Served::new();
    for path in ["/", "/api/status", "/favicon.ico", "/nothing", "/api/work?limit=x"] {
        let reply = served.get(path);
        let policy = reply.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none';") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe-") && !policy.contains('*'), "{policy}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"), "{path}");
        assert_eq!(reply.header("cross-origin-resource-policy"), Some("same-origin"), "{path}");
        assert_eq!(reply.header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(reply.header("access-control-allow-origin"), None, "{path}");
    }
}

#[test]
fn path_traversal_is_refused() {
    let served = Served::furnished();
    let port = served.port;
    for path in [
        "/../../etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/%2e%2e/local.db",
        "//",
        "/api//work",
        "/api/./work",
        "/api/work/..",
        "/local.db",
        "/%00",
        "/api/work%00",
        "/api/WORK",
        "*",
        "/api/work;x",
        "/\\..\\x",
    ] {
        let request = format!("GET {path} HTTP/1.1\r\n{}\r\n", own(port));
        let status = raw(port, &request).map(|reply| reply.status);
        assert!(matches!(status, Some(400 | 404)), "{path}: {status:?}");
    }
    for request in [
        "\r\n\r\n\r\n",
        "GET\r\n\r\n",
        "nonsense\0\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "\x16\x03\x01\x02\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        "GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    ] {
        let mut connection = Connection::open(port);
        connection.send(request.as_bytes());
        let status = connection.reply(true).map(|reply| reply.status);
        assert!(status.is_none_or(|status| (400..600).contains(&status)), "{request:?}: {status:?}");
    }
    assert_eq!(get(port, "/api/status").status, 200, "it goes on as if nothing had happened");
}

#[test]
fn another_interface_is_not_listened_on() {
    let served = Served::new();
    // Nothing is sent: this only asks which address this machine would use.
    let outside = UdpSocket::bind("0.0.0.0:0")
        .and_then(|socket| socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr()))
        .map(|address| address.ip());
    let mut others: Vec<IpAddr> = vec![[127, 0, 0, 2].into()];
    others.extend(outside.ok().filter(|address| !address.is_loopback()));
    for address in others {
        let connected =
            TcpStream::connect_timeout(&SocketAddr::new(address, served.port), Duration::from_secs(5));
        assert!(connected.is_err(), "{address} answers");
    }
    assert_eq!(served.get("/api/status").status, 200);
}
