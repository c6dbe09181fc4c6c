//! Where a repository is: what `--hub`, a configuration, a manifest or a hub calls it, and the URL that git gets.
//!
//! A hub and a manifest are written by others, so they may name only `https` and `ssh`. A path of this machine is allowed
//! if the user named it.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::repository_name::owner_and_name;

/// How long a URL may be.
const LONGEST: usize = 1000;

/// The host of `owner/repo`, unless the hub is on another one.
pub const USUAL_HOST: &str = "github.com";

/// A repository that git can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// What git gets. It may contain a password.
    pub url: String,
    transport: Transport,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Https,
    Ssh,
    File,
}

/// Which paths of this machine an address may have.
#[derive(Clone, Copy, Debug)]
pub enum Paths<'a> {
    /// Every path: the user wrote the address.
    Any,
    /// Those inside of these directories, which the user named.
    Inside(&'a [PathBuf]),
}

impl Address {
    /// Parses `owner/repo`, an `https`, `ssh` or `file` URL, or `user@host:path`. The error completes a sentence that begins
    /// with the address.
    pub fn parse(text: &str, host: &str, paths: Paths<'_>) -> Result<Address, String> {
        if text.is_empty() || text.len() > LONGEST {
            return Err("is empty or too long".to_owned());
        }
        if text.starts_with('-') {
            return Err("begins with a hyphen".to_owned());
        }
        if text.chars().any(|letter| letter.is_control() || letter.is_whitespace()) {
            return Err("contains a space or a control character".to_owned());
        }
        if let Some((scheme, rest)) = text.split_once("://") {
            return match scheme {
                "https" => with_host(text, rest, Transport::Https),
                "ssh" => with_host(text, rest, Transport::Ssh),
                "file" => file(rest, paths),
                _ => Err(format!("has the scheme {scheme}: only https, ssh and file are allowed")),
            };
        }
        if is_helper(text) {
            return Err("names a program of git: only https, ssh and file are allowed".to_owned());
        }
        if let Some(short) = short_form(text) {
            return Ok(Address { url: format!("https://{host}/{short}.git"), transport: Transport::Https });
        }
        if is_ssh_short_form(text) {
            return Ok(Address { url: text.to_owned(), transport: Transport::Ssh });
        }
        Err("is neither owner/repo nor a URL".to_owned())
    }

    /// The repository at a path that the user named.
    pub fn of_path(path: &Path) -> Result<Address, String> {
        let text = path.to_str().filter(|text| text.starts_with('/'));
        let text = text.ok_or("is not a path that a URL can have")?;
        // Git decodes the path of a URL.
        let path = text.replace('%', "%25");
        Ok(Address { url: format!("file://{path}"), transport: Transport::File })
    }

    /// The protocols that git may use for it.
    pub fn protocols(&self) -> &'static str {
        match self.transport {
            Transport::Https | Transport::Ssh => "https:ssh",
            Transport::File => "file",
        }
    }

    /// Whether git starts ssh for it.
    pub fn uses_ssh(&self) -> bool {
        self.transport == Transport::Ssh
    }

    /// `owner/repo`, if the last two parts of a URL can be that.
    pub fn repository(&self) -> Option<String> {
        let path = match self.transport {
            Transport::File => return None,
            Transport::Https => self.url.split_once("://")?.1.split_once('/')?.1,
            Transport::Ssh => match self.url.split_once("://") {
                Some((_, rest)) => rest.split_once('/')?.1,
                None => self.url.split_once(':')?.1,
            },
        };
        short_form(path.trim_matches('/'))
    }

    /// Its host, of which `owner/repo` in a hub is a part.
    pub fn host(&self) -> Option<&str> {
        let (_, rest) = self.url.split_once("://")?;
        let host = rest.split('/').next()?.rsplit('@').next()?;
        (self.transport == Transport::Https && !host.is_empty()).then_some(host)
    }
}

/// Without a password.
impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&without_password(&self.url))
    }
}

/// A URL without what is before the `@` of its host, except the user of ssh, which is no secret.
pub fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match authority.rsplit_once('@') {
        Some((login, host)) if scheme == "ssh" && !login.contains(':') => {
            format!("{scheme}://{login}@{host}{path}")
        }
        Some((_, host)) => format!("{scheme}://{host}{path}"),
        None => url.to_owned(),
    }
}

fn with_host(url: &str, rest: &str, transport: Transport) -> Result<Address, String> {
    let authority = rest.split('/').next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if !is_host(host) || authority.starts_with('-') {
        return Err("has no valid host".to_owned());
    }
    Ok(Address { url: url.to_owned(), transport })
}

/// A name, an address or an IPv6 address in brackets, with or without a port. It never begins like an option.
fn is_host(host: &str) -> bool {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || ".-_:[]".contains(letter);
    host.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '[') && host.chars().all(allowed)
}

fn file(path: &str, paths: Paths<'_>) -> Result<Address, String> {
    if path.contains('%') {
        return Err("contains a percent sign".to_owned());
    }
    let address = Address::of_path(Path::new(path))?;
    let is_allowed = match paths {
        Paths::Any => true,
        Paths::Inside(directories) => {
            // Without links and `..`, so that the path cannot leave the directory.
            let real = std::fs::canonicalize(path).unwrap_or_else(|_| plain(Path::new(path)));
            directories.iter().any(|directory| {
                std::fs::canonicalize(directory).is_ok_and(|directory| real.starts_with(directory))
            })
        }
    };
    if is_allowed { Ok(address) } else { Err("is a path that no --allow-path names".to_owned()) }
}

/// A path that does not exist. One with `..` is nowhere.
fn plain(path: &Path) -> PathBuf {
    let has_parent = path.components().any(|part| part == std::path::Component::ParentDir);
    if has_parent { PathBuf::new() } else { path.to_owned() }
}

/// `helper::address` runs `git-remote-helper`.
fn is_helper(text: &str) -> bool {
    text.split_once("::").is_some_and(|(helper, _)| {
        helper.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-._".contains(letter))
    })
}

/// `owner/repo` of `owner/repo` or `owner/repo.git`.
fn short_form(text: &str) -> Option<String> {
    owner_and_name(text).map(|(owner, name)| format!("{owner}/{name}"))
}

/// `user@host:path`, as git and ssh have it.
fn is_ssh_short_form(text: &str) -> bool {
    let Some((login, path)) = text.split_once(':') else { return false };
    let Some((user, host)) = login.split_once('@') else { return false };
    let is_user = user.starts_with(|first: char| first.is_ascii_alphanumeric())
        && user.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter));
    is_user && is_host(host) && !host.contains(':') && !path.is_empty() && !path.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Address, String> {
        Address::parse(text, USUAL_HOST, Paths::Inside(&[]))
    }

    #[test]
    fn addresses_become_urls() {
        testkit::limit_test();
        for (text, url, repository) in [
            ("mellanon/pai", "https://github.com/mellanon/pai.git", Some("mellanon/pai")),
            ("mellanon/pai.git", "https://github.com/mellanon/pai.git", Some("mellanon/pai")),
            ("https://example.org/a/b", "https://example.org/a/b", Some("a/b")),
            ("https://example.org/a/b.git", "https://example.org/a/b.git", Some("a/b")),
            ("https://example.org:8443/a/b/c", "https://example.org:8443/a/b/c", None),
            ("ssh://git@example.org:22/a/b", "ssh://git@example.org:22/a/b", Some("a/b")),
            ("git@example.org:a/b.git", "git@example.org:a/b.git", Some("a/b")),
        ] {
            let address = parse(text).unwrap_or_else(|error| panic!("{text} {error}"));
            assert_eq!((address.url.as_str(), address.repository().as_deref()), (url, repository), "{text}");
            assert_eq!(address.protocols(), "https:ssh");
        }
        let elsewhere = Address::parse("a/b", "example.org", Paths::Any).unwrap();
        assert_eq!(
            (elsewhere.url.as_str(), elsewhere.host()),
            ("https://example.org/a/b.git", Some("example.org"))
        );
    }

    #[test]
    fn other_schemes_options_and_programs_are_refused() {
        testkit::limit_test();
        let long = format!("https://example.org/{}", "a".repeat(LONGEST));
        for text in [
            "",
            "-u",
            "--upload-pack=touch /tmp/x",
            "http://example.org/a/b",
            "git://example.org/a/b",
            "ftp://example.org/a",
            "ext::sh -c touch% /tmp/x",
            "ext::sh",
            "fd::17",
            "file:///etc",
            "/etc",
            "../hub",
            "./a/b",
            "a/../b",
            "https://-oProxyCommand=x/a",
            "ssh://-oProxyCommand=x/a",
            "-oProxyCommand=x@host:a",
            "git@-oProxyCommand=x:a",
            "git@host:-a",
            "https://",
            "https:///a",
            "https://example.org/a b",
            "https://example.org/a\n",
            "HTTPS://example.org/a",
            "a/b/c",
            "a",
            &long,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_path_has_to_be_inside_of_a_directory_that_the_user_named() {
        let scratch = testkit::tempdir().unwrap();
        let inside = scratch.path().join("inside");
        std::fs::create_dir_all(inside.join("a")).unwrap();
        std::fs::create_dir(scratch.path().join("outside")).unwrap();
        let allowed = [inside.clone()];
        let is_allowed = |path: &str| {
            let url = format!("file://{}/{path}", scratch.path().display());
            Address::parse(&url, USUAL_HOST, Paths::Inside(&allowed)).is_ok()
        };
        assert!(is_allowed("inside/a") && is_allowed("inside") && is_allowed("inside/missing"));
        assert!(!is_allowed("outside") && !is_allowed("inside/../outside") && !is_allowed("inside/../none"));
        assert!(!is_allowed("inside/%2e%2e/outside"));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(scratch.path().join("outside"), inside.join("link")).unwrap();
            assert!(!is_allowed("inside/link"));
        }
        assert!(Address::parse("file:///anywhere", USUAL_HOST, Paths::Any).is_ok());
    }

    #[test]
    fn passwords_are_not_shown() {
        testkit::limit_test();
        for (url, shown) in [
            ("https://ivy:secret@example.org/a", "https://example.org/a"),
            ("https://token@example.org/a@b", "https://example.org/a@b"),
            ("ssh://git@example.org/a", "ssh://git@example.org/a"),
            ("ssh://git:secret@example.org/a", "ssh://example.org/a"),
            ("git@example.org:a", "git@example.org:a"),
            ("file:///a@b", "file:///a@b"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}
