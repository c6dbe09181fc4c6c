//! The token: no request is answered without it, and no other user of the machine gets it.

use std::fs;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use testkit::process::RunToEnd as _;

use crate::client::{Events, Reply, get, own, raw};
use crate::scratch::Scratch;
use crate::served::Served;

/// Everything that a server has.
const PATHS: &[&str] = &[
    "/",
    "/?token=",
    "/?token=0123456789abcdef0123456789abcdef",
    "/favicon.ico",
    "/nothing",
    "/api",
    "/api/status",
    "/api/board",
    "/api/agents",
    "/api/agents/ivy",
    "/api/agent?id=ivy",
    "/api/work",
    "/api/work/mine",
    "/api/item?id=mine",
    "/api/lanes",
    "/api/events",
    "/api/events/stream",
    "/api/events/stream?after=0",
    "/api/projects",
    "/api/entries",
    "/api/entries/history?key=fact",
    "/api/scopes",
    "/api/locks",
];

/// The answer to a request with these headers besides that of the host.
fn ask(port: u16, method: &str, path: &str, headers: &str) -> Reply {
    let request = format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{headers}\r\n");
    raw(port, &request).unwrap_or_else(|| panic!("no answer to {method} {path}"))
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

/// The header with the cookie that a browser gets for a token.
fn exchange(served: &Served) -> String {
    let reply = ask(served.port, "GET", &format!("/?token={}", served.token), "");
    assert_eq!((reply.status, reply.header("location")), (303, Some("/")), "{reply:?}");
    let cookie = reply.header("set-cookie").unwrap().split(';').next().unwrap();
    format!("Cookie: {cookie}\r\n")
}

#[track_caller]
fn is_refused(reply: &Reply, what: &str) {
    assert_eq!(reply.status, 401, "{what}");
    assert_eq!(reply.header("www-authenticate"), Some("Bearer realm=\"blackboard\""), "{what}");
    assert_eq!(reply.header("set-cookie"), None, "{what}");
    assert_eq!(reply.header("cache-control"), Some("no-store"), "{what}");
    for name in ["blackboard-revision", "blackboard-board", "location"] {
        assert_eq!(reply.header(name), None, "{what}: {name}");
    }
}

#[test]
fn every_request_without_the_token_is_refused() {
    let served = Served::furnished();
    for path in PATHS {
        for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"] {
            let reply = ask(served.port, method, path, "Content-Length: 0\r\n");
            is_refused(&reply, &format!("{method} {path}"));
            if method != "HEAD" {
                let answer = reply.json();
                assert_eq!((&answer["ok"], &answer["code"]), (&false.into(), &"token_required".into()));
                assert!(answer["hint"].as_str().unwrap().ends_with("blackboard serve --status"), "{answer}");
                let text = String::from_utf8(reply.body).unwrap();
                for known in ["Ivy", "local.db", &served.token, "fact"] {
                    assert!(!text.contains(known), "{method} {path} has {known}: {text}");
                }
            }
        }
    }
    // A person reads it as text.
    let reply = ask(served.port, "GET", "/", "Accept: text/html,*/*;q=0.8\r\n");
    is_refused(&reply, "a browser");
    assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"));
    assert!(String::from_utf8(reply.body).unwrap().ends_with("blackboard serve --status\n"));
    // The checks of the host and the origin come first, with and without a token.
    let foreign = format!("GET / HTTP/1.1\r\nHost: evil.example\r\n{}\r\n", bearer(&served.token));
    assert_eq!(raw(served.port, &foreign).unwrap().status, 403);
    let origin = format!("Origin: http://evil.example\r\n{}", bearer(&served.token));
    assert_eq!(ask(served.port, "GET", "/api/work", &origin).status, 403);
    assert_eq!(ask(served.port, "GET", "/api/work", &bearer(&served.token)).status, 200);
}

#[test]
fn another_token_than_that_of_the_server_is_refused() {
    let (served, other) = (Served::furnished(), Served::new());
    let token = &served.token;
    assert_eq!(token.len(), 32);
    assert_ne!(*token, other.token);
    let turned: String = token.chars().rev().collect();
    for wrong in [
        bearer(&other.token),
        bearer(&token[..31]),
        bearer(&format!("{token}0")),
        bearer(&turned),
        bearer(""),
        format!("Authorization: {token}\r\n"),
        format!("Authorization: Basic {token}\r\n"),
        format!("{}{}", bearer(token), bearer(&other.token)),
        format!("Cookie: blackboard-{}={token}\r\n", served.port),
        format!("Cookie: token={token}\r\n"),
        format!("X-Token: {token}\r\n"),
        exchange(&other),
    ] {
        for path in ["/", "/api/work", "/api/events/stream"] {
            is_refused(&ask(served.port, "GET", path, &wrong), &wrong);
        }
    }
    let in_query = ask(served.port, "GET", &format!("/api/work?token={token}"), "");
    is_refused(&in_query, "only the page takes a token from its address");
    is_refused(&ask(served.port, "POST", &format!("/?token={token}"), "Content-Length: 0\r\n"), "a form");
}

#[test]
fn a_browser_gets_a_cookie_for_the_token_and_an_address_without_it() {
    let served = Served::furnished();
    let reply = ask(served.port, "GET", &format!("/?token={}", served.token), "");
    assert_eq!((reply.status, reply.header("location")), (303, Some("/")));
    assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
    let cookie = reply.header("set-cookie").unwrap().to_owned();
    let (pair, attributes) = cookie.split_once("; ").unwrap();
    assert_eq!(attributes, "Path=/; HttpOnly; SameSite=Strict");
    assert!(pair.starts_with(&format!("blackboard-{}=", served.port)), "{pair}");
    assert!(!cookie.contains(&served.token), "it is exchanged for something else");
    let cookie = format!("Cookie: theme=dark; {pair}\r\n");
    for path in PATHS.iter().filter(|path| !path.contains("stream") && !path.contains("token")) {
        let expected = get(served.port, path).status;
        assert_eq!(ask(served.port, "GET", path, &cookie).status, expected, "{path}");
    }
    // A browser with a cookie keeps it, with any token in the address.
    for token in [served.token.as_str(), "old"] {
        let again = ask(served.port, "GET", &format!("/?token={token}"), &cookie);
        assert_eq!((again.status, again.header("location")), (303, Some("/")));
        assert_eq!(again.header("set-cookie"), None);
    }
    // From a page of another site, a redirect would come without the cookie: our own page leads on.
    let link = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n";
    let reply = ask(served.port, "GET", &format!("/?token={}", served.token), link);
    assert_eq!((reply.status, reply.header("location")), (200, None));
    assert!(reply.header("set-cookie").is_some());
    let page = String::from_utf8(reply.body).unwrap();
    assert!(page.contains("content=\"0;url=/\"") && !page.contains(&served.token), "{page}");
}

#[test]
fn two_dashboards_share_the_cookies_of_one_browser() {
    let (one, other) = (Served::furnished(), Served::furnished());
    let jar = format!(
        "{}; {}",
        exchange(&one).trim_end(),
        exchange(&other).trim_end().trim_start_matches("Cookie: ")
    );
    for served in [&one, &other] {
        assert_eq!(ask(served.port, "GET", "/api/work", &format!("{jar}\r\n")).status, 200);
    }
}

#[test]
fn stream_continues_with_the_cookie_after_a_disconnect() {
    let served = Served::furnished();
    let cookie = exchange(&served);
    let headers = format!("Host: 127.0.0.1:{}\r\n{cookie}", served.port);
    let end = served.says(&["status"])["revision"].as_i64().unwrap();
    let mut events = Events::follow_with(served.port, &headers, Some(0), None).unwrap();
    let first = (0..3).map(|_| events.next().unwrap().id).last().unwrap();
    drop(events);
    let mut events = Events::follow_with(served.port, &headers, Some(0), Some(first)).unwrap();
    served.says(&["work", "create", "late", "--title", "Late"]);
    for id in first + 1..=end + 1 {
        assert_eq!(events.next().unwrap().id, id);
    }
    let refused =
        Events::follow_with(served.port, &format!("Host: 127.0.0.1:{}\r\n", served.port), Some(0), None);
    assert_eq!(refused.err().unwrap().status, 401);
}

#[test]
fn a_server_that_starts_again_has_another_token() {
    let served = Served::furnished();
    let (port, token, cookie) = (served.port, served.token.clone(), exchange(&served));
    let served = Served::of(served.end(), port);
    assert_ne!(served.token, token);
    is_refused(&ask(port, "GET", "/api/work", &bearer(&token)), "the token of the server before");
    is_refused(&ask(port, "GET", &format!("/?token={token}"), ""), "its address");
    is_refused(&ask(port, "GET", "/", &cookie), "its cookie");
    assert_eq!(ask(port, "GET", "/", &exchange(&served)).status, 200);
}

#[test]
fn without_a_token_every_request_is_answered() {
    let scratch = Scratch::new();
    scratch.run(["work", "create", "a", "--title", "A"]).success();
    let said = scratch.path().join("said");
    let mut command = scratch.command(["serve", "--json", "--port", "0", "--no-token"]);
    command.stderr(fs::File::create(&said).unwrap());
    let served = Served::by(scratch, command);
    assert_eq!(served.token, "");
    assert!(fs::read_to_string(said).unwrap().contains("every user of this machine"));
    for path in ["/", "/?token=old", "/api/work", "/favicon.ico"] {
        assert!(ask(served.port, "GET", path, "").status < 300, "{path}");
    }
    let status = served.says(&["serve", "--status"]);
    assert_eq!(status["url"], format!("http://127.0.0.1:{}", served.port));
    assert!(status.get("token").is_none(), "{status}");
    // A cookie would prove nothing: all clients share one limit.
    assert_eq!(ask(served.port, "GET", "/", "").header("set-cookie"), None);
    let scratch = served.end();
    let started = scratch.json(["serve", "--background", "--port", "0", "--no-token"]);
    assert!(started.get("token").is_none(), "{started}");
    scratch.json(["serve", "--stop"]);
}

/// The file by which a server is found.
fn registration(scratch: &Scratch) -> PathBuf {
    PathBuf::from(format!("{}-serve", scratch.database().display()))
}

fn mode(file: &Path) -> u32 {
    fs::metadata(file).unwrap().permissions().mode() & 0o777
}

#[test]
fn only_its_user_can_read_the_token() {
    let scratch = Scratch::new();
    scratch.run(["work", "create", "a", "--title", "A"]).success();
    let file = registration(&scratch);
    // What another program left there, and what another user has open already.
    fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(&file).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let mut reader = fs::File::open(&file).unwrap();
    let started = scratch.json(["serve", "--background", "--port", "0"]);
    let token = started["token"].as_str().unwrap();
    assert_eq!(mode(&file), 0o600);
    assert!(fs::read_to_string(&file).unwrap().contains(token));
    let mut seen = String::new();
    std::io::Read::read_to_string(&mut reader, &mut seen).unwrap();
    assert_eq!(seen, "", "the token is in a new file");
    for part in ["cmdline", "environ", "comm"] {
        let bytes = fs::read(format!("/proc/{}/{part}", started["pid"])).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains(token), "{part} has the token");
    }
    assert_eq!(scratch.json(["serve", "--status"])["url"], started["url"]);
    let told = scratch.run(["serve", "--status"]).success().stdout;
    assert!(told.contains(started["url"].as_str().unwrap()), "{told}");
    for refused in [scratch.run(["serve"]), scratch.run(["serve", "--json"])] {
        assert_eq!(refused.code, 4);
        assert!(!format!("{refused:?}").contains(token), "an error has the token: {refused:?}");
    }
    let stopped = scratch.run(["serve", "--stop"]).success();
    assert!(!format!("{stopped:?}").contains(token), "{stopped:?}");
    assert!(!file.exists());
}

#[test]
fn another_user_of_the_machine_is_refused() {
    if !testkit::machine::can_become_another_user() {
        return;
    }
    let served = Served::furnished();
    // The other user can reach the file, so that only its mode protects it.
    let database = served.database();
    for directory in database.ancestors().skip(1).take_while(|path| path.starts_with(served.scratch.path())) {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o711)).unwrap();
    }
    let as_other = |program: &str, arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", program]).args(arguments);
        command.run_to_end()
    };
    let read = as_other("cat", &[registration(&served.scratch).to_str().unwrap()]);
    assert!(!read.status.success() && read.stdout.is_empty(), "{read:?}");
    assert!(String::from_utf8_lossy(&read.stderr).contains("Permission denied"), "{read:?}");
    let line = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{0}; printf 'GET /api/entries HTTP/1.1\\r\\nHost: 127.0.0.1:{0}\\r\\n\\r\\n' >&3; cat <&3",
        served.port
    );
    let asked = as_other("bash", &["-c", &line]);
    let answer = String::from_utf8_lossy(&asked.stdout);
    assert!(answer.starts_with("HTTP/1.1 401 "), "{asked:?}");
    assert!(!answer.contains("fact") && !answer.contains("analyst"), "{answer}");
    let arguments = fs::read(format!("/proc/{}/cmdline", served.pid())).unwrap();
    assert!(!String::from_utf8_lossy(&arguments).contains(&served.token));
}

#[test]
fn a_browser_is_opened_without_the_token_in_its_arguments() {
    let scratch = Scratch::new();
    // In place of the program that opens addresses.
    let programs = scratch.path().join("bin");
    fs::create_dir(&programs).unwrap();
    let program = programs.join("xdg-open");
    let seen = scratch.path().join("seen");
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$#\" \"$1\" > '{0}.new'; cat \"$1\" >> '{0}.new'; mv '{0}.new' '{0}'\n",
        seen.display()
    );
    testkit::write_program(&program, &script);
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let opened_page = || {
        let began = Instant::now();
        loop {
            if let Ok(text) = fs::read_to_string(&seen) {
                fs::remove_file(&seen).unwrap();
                return text;
            }
            assert!(began.elapsed() < testkit::patience(), "no browser was opened");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    // In the background, where the directory of the board is created; then in the foreground.
    let mut command = scratch.command(["serve", "--background", "--open", "--json", "--port", "0"]);
    let started = crate::scratch::Output::of(command.env("PATH", &path).run_to_end()).success().json();
    let text = opened_page();
    let (url, token) = (started["url"].as_str().unwrap(), started["token"].as_str().unwrap());
    let [count, argument, page] = text.splitn(3, '\n').collect::<Vec<_>>()[..] else { panic!("{text}") };
    assert_eq!(count, "1");
    assert!(!argument.contains(token), "{argument}");
    assert!(page.contains(&format!("content=\"0;url={url}\"")), "{page}");
    let file = PathBuf::from(argument);
    assert_eq!(mode(&file), 0o600);
    scratch.json(["serve", "--stop"]);
    assert!(!file.exists(), "it ends with its server");

    let elsewhere = Scratch::new();
    let mut command = elsewhere.command(["serve", "--open", "--json", "--port", "0"]);
    command.env("PATH", &path);
    let served = Served::by(elsewhere, command);
    let text = opened_page();
    let file = PathBuf::from(text.lines().nth(1).unwrap());
    assert!(text.contains(&served.token) && !file.to_str().unwrap().contains(&served.token), "{text}");
    assert_eq!(mode(&file), 0o600);
    served.end();
    assert!(!file.exists(), "it ends with its server");
}

/// Opens streams until the server refuses one.
fn as_many_as_possible(port: u16, headers: &str) -> (Vec<Events>, Reply) {
    let mut open = Vec::new();
    loop {
        match Events::follow_with(port, headers, None, None) {
            Ok(events) => open.push(events),
            Err(refused) => return (open, refused),
        }
        assert!(open.len() < 5000, "one client has {} streams", open.len());
    }
}

#[test]
fn client_with_too_many_streams_does_not_affect_others() {
    let scratch = Scratch::new();
    scratch.run(["work", "create", "a", "--title", "A"]).success();
    // 400 connections, of which programs may use 100 for streams.
    let command = scratch.shell("ulimit -n 464; exec blackboard serve --json --port 0");
    let served = Served::by(scratch, command);
    let port = served.port;
    let browser = || format!("Host: 127.0.0.1:{port}\r\n{}", exchange(&served));
    let (first, second) = (browser(), browser());
    let (mut open, refused) = as_many_as_possible(port, &first);
    assert_eq!((open.len(), refused.status), (32, 429));
    assert_eq!(
        (&refused.json()["code"], refused.header("retry-after")),
        (&"too_many_streams".into(), Some("5"))
    );
    assert_eq!(ask(port, "GET", "/api/work", first.split_once("\r\n").unwrap().1).status, 200);
    let (programs, refused) = as_many_as_possible(port, &own(port));
    assert_eq!((programs.len(), refused.status), (100, 429));
    // Other clients get theirs, and a client that closes one may open another.
    let mut others = Events::follow_with(port, &second, None, None).unwrap();
    drop(open.pop());
    let began = Instant::now();
    let again = loop {
        match Events::follow_with(port, &first, None, None) {
            Ok(events) => break events,
            Err(refused) => assert_eq!(refused.status, 429),
        }
        assert!(began.elapsed() < testkit::patience(), "the stream that was closed still counts");
    };
    served.says(&["work", "create", "b", "--title", "B"]);
    let id = others.next().unwrap().id;
    open.push(again);
    for events in &mut open {
        assert_eq!(events.next().unwrap().id, id);
    }
}

#[test]
fn invented_client_ids_open_no_streams() {
    let served = Served::furnished();
    let cookie = exchange(&served);
    let (name, value) = cookie.trim_end().split_once('=').unwrap();
    let session = value.split('.').next().unwrap();
    for number in 0..40 {
        let invented = format!("{name}={session}.{number:032x}\r\n");
        is_refused(&ask(served.port, "GET", "/api/events/stream", &invented), &invented);
        let invented = format!("{name}={session}.0.{number:032x}.{number:016x}\r\n");
        is_refused(&ask(served.port, "GET", "/api/events/stream", &invented), &invented);
    }
    assert_eq!(ask(served.port, "GET", "/api/work", &cookie).status, 200);
}

#[test]
fn repeated_exchanges_share_a_limit_that_leaves_streams_for_other_clients() {
    let scratch = Scratch::new();
    scratch.run(["work", "create", "a", "--title", "A"]).success();
    // 64 connections, of which browsers with new cookies may use 16 for streams.
    let command = scratch.shell("ulimit -n 128; exec blackboard serve --json --port 0");
    let served = Served::by(scratch, command);
    let port = served.port;
    let mut open = Vec::new();
    let refused = loop {
        let headers = format!("Host: 127.0.0.1:{port}\r\n{}", exchange(&served));
        match Events::follow_with(port, &headers, None, None) {
            Ok(events) => open.push(events),
            Err(refused) => break refused,
        }
        assert!(open.len() < 100, "each exchange gets streams of its own");
    };
    assert_eq!((open.len(), refused.status), (16, 429));
    let answer = refused.json();
    assert_eq!(
        (&answer["code"], &answer["error"]),
        (&"no_free_streams".into(), &"the dashboard has no free streams".into())
    );
    assert!(Events::follow(port, None, None).is_ok(), "programs have a limit of their own");
}

#[test]
fn without_a_token_all_streams_share_a_limit_that_leaves_connections() {
    let scratch = Scratch::new();
    scratch.run(["work", "create", "a", "--title", "A"]).success();
    let command =
        scratch.shell("ulimit -n 128; exec blackboard serve --json --port 0 --no-token 2>/dev/null");
    let served = Served::by(scratch, command);
    let port = served.port;
    let (open, refused) = as_many_as_possible(port, &own(port));
    assert_eq!((open.len(), refused.status), (16, 429));
    let invented =
        format!("{}Cookie: blackboard-{port}={}.{}\r\n", own(port), "0".repeat(32), "1".repeat(32));
    assert_eq!(Events::follow_with(port, &invented, None, None).err().unwrap().status, 429);
    assert_eq!(get(port, "/api/work").status, 200);
}
