//! Who may ask, and the headers of every answer.
//!
//! A browser lets every page of the world send requests to this machine. None of them gets an answer: a request is answered
//! if it names this server as its host, which no name of somebody else's that was made to point here does, and if no page of
//! another origin sent it. Following a link to the page itself is no such request.

use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{Method, StatusCode, Version};

use super::reply::{Reply, refused};

const CORP: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// The answer to a request that was not meant for this server, or that another site sent; none if it may ask.
pub fn refusal(request: &Parts, port: u16) -> Option<Reply> {
    let forbidden = |code, message| {
        let hint = format!("open http://127.0.0.1:{port}/");
        Some(refused(StatusCode::FORBIDDEN, code, message, &hint))
    };
    let foreign_origin = || forbidden("foreign_origin", "a page of another origin sent this request");
    let named = request.uri.authority().map(Authority::as_str);
    let is_for_us = match one(&request.headers, &HOST) {
        Single::Value(host) => is_ours(host, port) && named.is_none_or(|named| is_ours(named, port)),
        // Before 1.1 there was no such header, and there are no browsers of that time left.
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

/// A header that should be there once at most.
#[derive(PartialEq)]
enum Single<'a> {
    None,
    Value(&'a str),
    /// Several of them, or one that is not text.
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

/// Whether a host and port are those of this server.
fn is_ours(host: &str, port: u16) -> bool {
    let (name, given) = match host.rsplit_once(':') {
        // The colons of an address in brackets are its own.
        Some((name, given)) if !given.ends_with(']') => (name, Some(given)),
        _ => (host, None),
    };
    let is_port = match given {
        Some(given) => given == port.to_string(),
        None => port == 80,
    };
    is_port && ["localhost", "127.0.0.1", "[::1]"].iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// Gives an answer the headers that all have. `nonce` is that of the page's own style and script.
pub fn protect(reply: &mut Reply, nonce: Option<&str>) {
    let policy = match nonce {
        Some(nonce) => format!(
            "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; \
             img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
        None => "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'".to_owned(),
    };
    let headers = reply.headers_mut();
    if let Ok(policy) = HeaderValue::try_from(policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CORP, HeaderValue::from_static("same-origin"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    fn answer_to(headers: &[(&str, &str)], uri: &str) -> Option<StatusCode> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        refusal(&parts, 3141).map(|reply| reply.status())
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
