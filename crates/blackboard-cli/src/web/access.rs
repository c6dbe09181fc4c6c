//! Which requests the server answers, and the cookie that a browser gets.
//!
//! A browser lets any page on the web send requests to this machine. None of them gets an answer. A request is answered
//! only if its `Host` is this server, which excludes foreign names that resolve to this machine, and if no page of
//! another origin sent it. Following a link to the page itself is allowed.
//!
//! Every user of the machine can connect to the loopback interface, but the board belongs to one of them. Each server
//! creates a token when it starts. The token is in the private file that `serve --status` reads, and in the printed
//! URL. The first request of a browser has it in its URL: the server answers with a cookie and redirects the browser to
//! `/`, so that the token disappears from the address bar. Other programs send it as `Authorization: Bearer TOKEN`.
//!
//! Each start creates a new token. While no server runs, another user can listen on its port, and an open page sends
//! its cookie there. That cookie must be worthless to the next server.
//!
//! Cookies belong to a host, regardless of the port. The cookie's name contains the port, so that two dashboards do not
//! overwrite each other's. The cookie also has a random client id, by which streams are counted (`clients.rs`). The id
//! has a tag that only this server can make, so that a program cannot invent ids. The tag is a keyed hash of the
//! standard library: it protects only a limit. Access depends on the secrets alone.

use std::fmt::{self, Write};
use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;
use std::time::{Duration, Instant};

use blackboard::{Code, Fault, Result};
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONNECTION, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION, ORIGIN,
    SET_COOKIE, WWW_AUTHENTICATE,
};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{Method, StatusCode, Version};
use serde::{Deserialize, Serialize};

use super::clients::Client;
use super::reply::{self, Reply};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// The number of random bytes in a secret.
const SECRET_BYTES: usize = 16;

/// Browsers that get their cookies in the same period of this length share a limit of streams.
const WINDOW: Duration = Duration::from_mins(10);

/// The page that redirects the browser. It is a page of this server, so the browser sends the cookie even if a page of
/// another site linked to this one.
const REDIRECT_PAGE: &str = "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">\
    <meta http-equiv=\"refresh\" content=\"0;url=/\"><title>Blackboard</title></head>\
    <body><p><a href=\"/\">Open the dashboard</a></p></body></html>\n";

/// A random text that only this user knows. `Debug` does not print it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Creates one, with random bytes of the operating system.
    pub fn random() -> Result<Secret> {
        let mut bytes = [0; SECRET_BYTES];
        getrandom::fill(&mut bytes)
            .map_err(|error| Fault::new(Code::Io, "the system provides no random numbers").because(error))?;
        let mut text = String::with_capacity(2 * SECRET_BYTES);
        for byte in bytes {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Secret(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares in constant time.
    fn is(&self, given: &str) -> bool {
        let differences =
            self.0.bytes().zip(given.bytes()).fold(0, |found, (a, b)| black_box(found | (a ^ b)));
        self.0.len() == given.len() && black_box(differences) == 0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

/// Which requests a server answers.
pub struct Access {
    port: u16,
    /// `None` if every program on this machine may send requests.
    token: Option<Secret>,
    /// The prefix of this server's cookies.
    session: Secret,
    /// The name of its cookies.
    cookie: String,
    /// The key of the tags of client ids.
    key: RandomState,
    started: Instant,
    /// Whether commands for the board need `--db`.
    is_named: bool,
}

impl Access {
    /// The rules of the server on this port, with this token. `is_named` means that commands for the board need `--db`.
    pub fn new(port: u16, token: Option<Secret>, is_named: bool) -> Result<Access> {
        let cookie = format!("blackboard-{port}");
        let (session, key) = (Secret::random()?, RandomState::new());
        Ok(Access { port, token, session, cookie, key, started: Instant::now(), is_named })
    }

    /// The client that sent a request. Otherwise the response to send instead: the request was meant for another host,
    /// was sent by another site, has no token, or must get its cookie first.
    pub fn admit(&self, request: &Parts) -> Result<Client, Box<Reply>> {
        match foreign_request(request, self.port) {
            Some(refusal) => Err(Box::new(refusal)),
            None => self.identify(request),
        }
    }

    /// The client that the token or the cookie of a request identifies.
    fn identify(&self, request: &Parts) -> Result<Client, Box<Reply>> {
        // Without a token any program can get any number of cookies, so all clients share one limit.
        let Some(token) = &self.token else { return Ok(Client::Program) };
        let known = self.client(&request.headers);
        let reads = request.method == Method::GET || request.method == Method::HEAD;
        let given = token_in_address(request).filter(|_| reads);
        match (known, given) {
            (Some(client), None) => Ok(client),
            (Some(Client::Browser { .. }), Some(_)) => Err(Box::new(self.exchanged(request, true))),
            (Some(Client::Program), Some(_)) => Err(Box::new(self.exchanged(request, false))),
            (None, Some(given)) if token.is(given) => Err(Box::new(self.exchanged(request, false))),
            (None, _) => Err(Box::new(refused(request, self.is_named))),
        }
    }

    /// Adds a cookie for the browser to this response.
    fn name_client(&self, reply: &mut Reply) {
        // Without a cookie the browser is refused, and its user opens the URL again.
        let Ok(id) = Secret::random() else { return };
        let window = self.started.elapsed().as_secs() / WINDOW.as_secs();
        let cookie = format!(
            "{}={}.{}; Path=/; HttpOnly; SameSite=Strict",
            self.cookie,
            self.session.as_str(),
            self.client_id(window, id.as_str())
        );
        if let Ok(cookie) = HeaderValue::try_from(cookie) {
            reply.headers_mut().insert(SET_COOKIE, cookie);
        }
    }

    /// Creates a client id that only this server can make.
    fn client_id(&self, window: u64, random: &str) -> String {
        format!("{window}.{random}.{:016x}", self.key.hash_one((window, random)))
    }

    /// The browser with this client id; `None` if this server did not issue it.
    fn browser(&self, id: &str) -> Option<Client> {
        let (window, rest) = id.split_once('.')?;
        let (random, _) = rest.split_once('.')?;
        let window = window.parse().ok()?;
        let issued = Secret(self.client_id(window, random));
        issued.is(id).then(|| Client::Browser { id: random.to_owned(), window })
    }

    /// The response to a token in the URL: a cookie, and a redirect to the URL without the token.
    fn exchanged(&self, request: &Parts, has_cookie: bool) -> Reply {
        // A browser does not send such a cookie after a redirect from another site, but does so when our own page
        // redirects.
        let from_elsewhere = request.headers.get(FETCH_SITE).is_some_and(|site| site == "cross-site");
        let mut reply = if from_elsewhere {
            reply::text("text/html; charset=utf-8", REDIRECT_PAGE)
        } else {
            let mut reply = reply::empty(StatusCode::SEE_OTHER);
            reply.headers_mut().insert(LOCATION, HeaderValue::from_static("/"));
            reply
        };
        if !has_cookie {
            self.name_client(&mut reply);
        }
        reply
    }

    /// The client that a cookie or a token identifies.
    fn client(&self, headers: &HeaderMap) -> Option<Client> {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|header| header.to_str().ok());
        // Another server on this host can set a cookie of the same name, so there may be several.
        let own = cookies.flat_map(|header| header.split(';')).find_map(|cookie| {
            let (name, value) = cookie.trim().split_once('=')?;
            let (session, id) = value.split_once('.').filter(|_| name == self.cookie)?;
            self.session.is(session).then(|| self.browser(id)).flatten()
        });
        own.or_else(|| {
            let mut given = headers.get_all(AUTHORIZATION).iter();
            let (Some(value), None) = (given.next(), given.next()) else { return None };
            let (scheme, given) = value.to_str().ok()?.split_once(' ')?;
            let token = self.token.as_ref().filter(|_| scheme.eq_ignore_ascii_case("bearer"))?;
            token.is(given.trim()).then_some(Client::Program)
        })
    }
}

/// The response to a request for another host, or from another site; `None` if the request is allowed.
fn foreign_request(request: &Parts, port: u16) -> Option<Reply> {
    let forbidden = |code, message| {
        let hint = format!("open http://127.0.0.1:{port}/");
        Some(reply::refused(StatusCode::FORBIDDEN, code, message, &hint))
    };
    let foreign_origin = || forbidden("foreign_origin", "a page of another origin sent this request");
    let named = request.uri.authority().map(Authority::as_str);
    let is_for_us = match one(&request.headers, &HOST) {
        Single::Value(host) => is_ours(host, port) && named.is_none_or(|named| is_ours(named, port)),
        // HTTP 1.0 has no such header, and no current browser uses it.
        Single::None | Single::Many => false,
    };
    if !is_for_us || request.version < Version::HTTP_11 {
        return forbidden("foreign_host", "this request names another host");
    }
    match one(&request.headers, &ORIGIN) {
        Single::None => {}
        Single::Value(origin) if origin.strip_prefix("http://").is_some_and(|host| is_ours(host, port)) => {}
        _ => return foreign_origin(),
    }
    let navigates = one(&request.headers, &FETCH_MODE) == Single::Value("navigate");
    match one(&request.headers, &FETCH_SITE) {
        Single::None | Single::Value("same-origin" | "none") => None,
        Single::Value("same-site" | "cross-site") if navigates && request.method == Method::GET => None,
        _ => foreign_origin(),
    }
}

/// A header that may be present at most once.
#[derive(PartialEq)]
enum Single<'a> {
    None,
    Value(&'a str),
    /// Several values, or one that is not text.
    Many,
}

fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Single<'a> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Single::None,
        (Some(value), None) => value.to_str().map_or(Single::Many, Single::Value),
        _ => Single::Many,
    }
}

/// Whether a host and port belong to this server.
fn is_ours(host: &str, port: u16) -> bool {
    let (name, given) = match host.rsplit_once(':') {
        // An IPv6 address in brackets contains colons.
        Some((name, given)) if !given.ends_with(']') => (name, Some(given)),
        _ => (host, None),
    };
    let is_port = match given {
        Some(given) => given == port.to_string(),
        None => port == 80,
    };
    is_port && ["localhost", "127.0.0.1", "[::1]"].iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// The token in the URL of the page.
fn token_in_address(request: &Parts) -> Option<&str> {
    let query = request.uri.query().filter(|_| request.uri.path() == "/")?;
    query.split('&').find_map(|part| part.strip_prefix("token="))
}

/// The response to a request without the token. It reveals nothing about the board.
fn refused(request: &Parts, is_named: bool) -> Reply {
    let message = "this dashboard answers only to requests with its token";
    let hint = if is_named {
        "print its address with the token: blackboard serve --status, with the --db that it was started with"
    } else {
        "print its address with the token: blackboard serve --status"
    };
    let mut accepted = request.headers.get_all(ACCEPT).iter().filter_map(|accept| accept.to_str().ok());
    let mut reply = if accepted.any(|accept| accept.contains("text/html")) {
        reply::text("text/plain; charset=utf-8", format!("{message}\n{hint}\n"))
    } else {
        reply::refused(StatusCode::UNAUTHORIZED, "token_required", message, hint)
    };
    *reply.status_mut() = StatusCode::UNAUTHORIZED;
    let headers = reply.headers_mut();
    headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"blackboard\""));
    // The connection is no longer needed.
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    reply
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    /// The result for a request with these headers: a client, or a status.
    fn admitted(access: &Access, uri: &str, headers: &[(&str, &str)]) -> Result<Client, StatusCode> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        access.identify(&parts).map_err(|reply| reply.status())
    }

    #[test]
    fn a_secret_is_random_and_equals_only_itself() {
        testkit::limit_test();
        let secret = Secret::random().unwrap();
        assert_eq!(secret.as_str().len(), 32);
        assert_ne!(secret, Secret::random().unwrap());
        assert!(secret.is(secret.as_str()));
        assert!(!format!("{secret:?}").contains(secret.as_str()));
        for other in ["", &secret.as_str()[1..], &format!("{}0", secret.as_str()), &"0".repeat(32)] {
            assert!(!secret.is(other), "{other}");
        }
    }

    #[test]
    fn only_the_token_or_a_cookie_of_this_server_admits_a_request() {
        testkit::limit_test();
        let token = Secret::random().unwrap();
        let access = Access::new(3141, Some(token.clone()), false).unwrap();
        let other = Access::new(3141, Some(Secret::random().unwrap()), false).unwrap();
        let token = token.as_str();
        let id = access.client_id(0, &"0".repeat(32));
        let cookie = |access: &Access| {
            let id = access.client_id(0, &"0".repeat(32));
            format!("blackboard-3141={}.{id}", access.session.as_str())
        };
        let (own, foreign) = (cookie(&access), cookie(&other));
        for (name, value, expected) in [
            ("authorization", format!("Bearer {token}"), true),
            ("authorization", format!("bearer  {token} "), true),
            ("authorization", format!("Basic {token}"), false),
            ("authorization", token.to_owned(), false),
            ("authorization", format!("Bearer {}", &token[1..]), false),
            ("authorization", format!("Bearer {token}0"), false),
            ("authorization", "Bearer ".to_owned(), false),
            ("cookie", own.clone(), true),
            ("cookie", format!("a=b; {own}; c"), true),
            ("cookie", format!("{foreign}; {own}"), true),
            ("cookie", foreign, false),
            ("cookie", own.replace("3141", "3142"), false),
            ("cookie", format!("blackboard-3141={token}.{id}"), false),
            ("cookie", format!("blackboard-3141={}", access.session.as_str()), false),
            ("cookie", format!("blackboard-3141={}.x", access.session.as_str()), false),
            // Ids that this server did not issue.
            ("cookie", format!("blackboard-3141={}.{}", access.session.as_str(), "0".repeat(32)), false),
            ("cookie", own.replace(".0.", ".1."), false),
            ("cookie", own.replacen(".00", ".01", 1), false),
            ("cookie", format!("{own}0"), false),
            ("x-token", token.to_owned(), false),
        ] {
            let found = admitted(&access, "/api/work", &[(name, &value)]);
            assert_eq!(found.is_ok(), expected, "{name}: {value}: {found:?}");
        }
        let twice = format!("Bearer {token}");
        let twice = [("authorization", twice.as_str()), ("authorization", twice.as_str())];
        assert_eq!(admitted(&access, "/", &twice), Err(StatusCode::UNAUTHORIZED));
        // The token in the URL is accepted only for the page, and only once.
        for (uri, expected) in [
            (format!("/?token={token}"), StatusCode::SEE_OTHER),
            (format!("/?a=b&token={token}"), StatusCode::SEE_OTHER),
            (format!("/?token={}", &token[1..]), StatusCode::UNAUTHORIZED),
            (format!("/?token={token}&token=x"), StatusCode::SEE_OTHER),
            (format!("/?xtoken={token}"), StatusCode::UNAUTHORIZED),
            (format!("/api/work?token={token}"), StatusCode::UNAUTHORIZED),
        ] {
            assert_eq!(admitted(&access, &uri, &[]), Err(expected), "{uri}");
        }
        // A browser that has a cookie is redirected to the URL without the token, even if the token is wrong.
        assert_eq!(admitted(&access, "/?token=old", &[("cookie", &own)]), Err(StatusCode::SEE_OTHER));
    }

    fn answer_to(headers: &[(&str, &str)], uri: &str) -> Option<StatusCode> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        foreign_request(&parts, 3141).map(|reply| reply.status())
    }

    #[test]
    fn only_this_server_by_its_own_names_is_asked() {
        for host in ["127.0.0.1:3141", "localhost:3141", "LocalHost:3141", "[::1]:3141"] {
            assert_eq!(answer_to(&[("host", host)], "/"), None, "{host}");
        }
        for host in [
            "",
            ":3141",
            "127.0.0.1",
            "127.0.0.1:80",
            "127.0.0.1:31410",
            "evil.example:3141",
            "localhost",
            "localhost.:3141",
            "localhost:3141:3141",
            "127.0.0.1.evil.example:3141",
            "user@127.0.0.1:3141",
            "[::1]",
            "[::2]:3141",
            "0.0.0.0:3141",
            "127.1:3141",
            "localhost:03141",
            "localhost:3141 ",
        ] {
            assert_eq!(answer_to(&[("host", host)], "/"), Some(StatusCode::FORBIDDEN), "{host}");
        }
        assert_eq!(answer_to(&[], "/"), Some(StatusCode::FORBIDDEN));
        let two = [("host", "127.0.0.1:3141"), ("host", "evil.example")];
        assert_eq!(answer_to(&two, "/"), Some(StatusCode::FORBIDDEN));
        let named = [("host", "127.0.0.1:3141")];
        assert_eq!(answer_to(&named, "http://evil.example/"), Some(StatusCode::FORBIDDEN));
        assert_eq!(answer_to(&named, "http://127.0.0.1:3141/"), None);
    }

    #[test]
    fn no_page_of_another_origin_gets_an_answer() {
        let own = ("host", "127.0.0.1:3141");
        for (name, value, expected) in [
            ("origin", "http://127.0.0.1:3141", true),
            ("origin", "http://localhost:3141", true),
            ("origin", "http://localhost:8000", false),
            ("origin", "https://127.0.0.1:3141", false),
            ("origin", "http://evil.example", false),
            ("origin", "null", false),
            ("origin", "", false),
            ("sec-fetch-site", "same-origin", true),
            ("sec-fetch-site", "none", true),
            ("sec-fetch-site", "same-site", false),
            ("sec-fetch-site", "cross-site", false),
            ("sec-fetch-site", "whatever", false),
        ] {
            assert_eq!(answer_to(&[own, (name, value)], "/").is_none(), expected, "{name}: {value}");
        }
        let link = [own, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
        assert_eq!(answer_to(&link, "/"), None);
    }
}
