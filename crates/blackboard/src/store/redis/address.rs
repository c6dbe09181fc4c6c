//! The address of a board on a server: a URL, without its password in anything that is printed.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The schemes of addresses.
pub const SCHEMES: [&str; 5] = ["redis", "rediss", "redis+unix", "redis+sentinel", "rediss+sentinel"];

/// The board of an address without `?board=`.
pub const DEFAULT_BOARD: &str = "default";

/// The port of a server, and that of a sentinel.
const SERVER_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// The most databases of a server, and the most replicas that a commit waits for.
const MAX_DATABASE: u32 = 9999;
const MAX_REPLICAS: u32 = 100;

/// The names of options.
const OPTIONS: [&str; 4] = ["board=", "replicas=", "db=", "ca="];

/// How much of a secret makes a text one that repeats it: a server shortens what it repeats.
const SHOWN_START: usize = 8;

/// The longest name of a board.
const MAX_NAME: usize = 64;

/// The location of a board on a server.
///
/// ```
/// use blackboard::store::redis::Address;
///
/// let address: Address = "redis://ivy:secret@localhost:6380/1?board=team".parse()?;
/// assert_eq!(address.to_string(), "redis://localhost:6380/1?board=team");
/// # Ok::<(), blackboard::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    pub(super) server: Server,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    /// The password of the sentinels.
    pub(super) sentinel_password: Option<String>,
    pub(super) database: u32,
    /// Whether the number of the database is an option, as it has to be for a socket.
    has_database_option: bool,
    pub(super) board: String,
    /// How many replicas have a commit before it is acknowledged.
    pub(super) replicas: u32,
    /// The file with the certificates to trust; those of the system if there is none.
    pub(super) certificates: Option<PathBuf>,
    /// The address without its login and options.
    shown: String,
    /// The address without its password.
    without_password: String,
}

/// Where the server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Server {
    Tcp {
        host: Host,
        tls: bool,
    },
    Unix(PathBuf),
    /// The sentinels that know the server of this service.
    Sentinels {
        sentinels: Vec<Host>,
        service: String,
        tls: bool,
    },
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) port: u16,
}

impl Address {
    /// The same address with this password, unless it has one.
    #[must_use]
    pub fn with_default_password(mut self, password: Option<String>) -> Address {
        self.password = self.password.or(password);
        self
    }

    /// The same address with this password of its sentinels. That of the server is never sent to them.
    #[must_use]
    pub fn with_sentinel_password(self, sentinel_password: Option<String>) -> Address {
        Address { sentinel_password, ..self }
    }

    /// The URL without its password, with its user and all options.
    pub fn without_password(&self) -> &str {
        &self.without_password
    }

    /// Whether it has a password.
    pub fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// Whether a login is sent, to the server or to its sentinels.
    pub(super) fn has_login(&self) -> bool {
        [&self.user, &self.password, &self.sentinel_password].into_iter().any(Option::is_some)
    }

    /// The file with the certificates to trust.
    pub fn certificates(&self) -> Option<&Path> {
        self.certificates.as_deref()
    }

    /// Whether the server has a Unix socket.
    pub(super) fn is_socket(&self) -> bool {
        matches!(self.server, Server::Unix(_))
    }

    /// Whether connections are encrypted.
    pub(super) fn has_tls(&self) -> bool {
        matches!(self.server, Server::Tcp { tls: true, .. } | Server::Sentinels { tls: true, .. })
    }

    /// Whether sentinels name the server.
    pub(super) fn has_sentinels(&self) -> bool {
        matches!(self.server, Server::Sentinels { .. })
    }

    /// A text of another program, unless it repeats the user or a password, or the start of one: such a text is never
    /// shown.
    pub(super) fn without_secrets<'a>(&self, text: &'a str) -> Option<&'a str> {
        let secrets = [&self.user, &self.password, &self.sentinel_password].into_iter().flatten();
        let starts = secrets.map(|secret| secret.chars().take(SHOWN_START).collect::<String>());
        let repeats = starts.filter(|start| !start.is_empty()).any(|start| text.contains(&start));
        (!repeats).then_some(text)
    }

    /// The name of the board on its server.
    pub fn board(&self) -> &str {
        &self.board
    }
}

/// Without the login, which may be a secret.
impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)?;
        let database = self.has_database_option.then(|| format!("db={}", self.database));
        let board = (self.board != DEFAULT_BOARD).then(|| format!("board={}", self.board));
        for (option, before) in database.into_iter().chain(board).zip(["?", "&"]) {
            write!(formatter, "{before}{option}")?;
        }
        Ok(())
    }
}

/// Without the login, which may be a secret.
impl fmt::Debug for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Address({self})")
    }
}

impl std::str::FromStr for Address {
    type Err = Error;

    /// Messages repeat no part of the text that may contain a password.
    fn from_str(text: &str) -> Result<Address> {
        let (scheme, rest) = text.split_once("://").ok_or_else(|| invalid("has no scheme"))?;
        if !SCHEMES.contains(&scheme) {
            return Err(invalid(format!("has none of the schemes {}", SCHEMES.join(", "))));
        }
        let (login, location) = split_login(rest);
        let (location, options) = location.split_once('?').unwrap_or((location, ""));
        if location.contains('#') || options.contains('#') {
            return Err(invalid("contains #: write %23 in a password"));
        }
        let (user, password) = login.map(read_login).transpose()?.unwrap_or_default();
        let tls = scheme.starts_with("rediss");
        let (server, database) = match scheme {
            "redis+unix" => (read_socket(location)?, 0),
            "redis+sentinel" | "rediss+sentinel" => read_sentinels(location, tls)?,
            _ => {
                let (host, database) = location.split_once('/').unwrap_or((location, ""));
                (Server::Tcp { host: read_host(host, SERVER_PORT)?, tls }, read_database(database)?)
            }
        };
        let name = login.map(|login| login.split(':').next().unwrap_or_default());
        let name = name.filter(|name| !name.is_empty()).map(|name| format!("{name}@")).unwrap_or_default();
        let after = if options.is_empty() { String::new() } else { format!("?{options}") };
        let address = Address {
            server,
            user,
            password,
            sentinel_password: None,
            database,
            has_database_option: false,
            board: DEFAULT_BOARD.to_owned(),
            replicas: 0,
            certificates: None,
            shown: format!("{scheme}://{location}"),
            without_password: format!("{scheme}://{name}{location}{after}"),
        };
        let options: Vec<_> = options.split('&').filter(|option| !option.is_empty()).collect();
        refuse_repeated(&options)?;
        let address = options.into_iter().try_fold(address, read_option)?;
        // Certificates without TLS would be an encryption that is believed in and not there.
        if address.certificates.is_some() && !address.has_tls() {
            return Err(invalid("has ca without TLS, which has the scheme rediss or rediss+sentinel"));
        }
        Ok(address)
    }
}

/// Splits what follows the scheme into the login, if there is one, and the rest.
///
/// A password may contain any character, so the login ends at the last `@` before the options. The path of a socket may
/// contain one, too: a text that begins with the path has no login.
fn split_login(rest: &str) -> (Option<&str>, &str) {
    if rest.starts_with('/') {
        return (None, rest);
    }
    let is_option = |text: &str| OPTIONS.iter().any(|name| text.starts_with(name));
    let options = rest.match_indices('?').map(|(at, _)| at).find(|at| is_option(&rest[at + 1..]));
    match rest[..options.unwrap_or(rest.len())].rfind('@') {
        Some(at) => (Some(&rest[..at]), &rest[at + 1..]),
        None => (None, rest),
    }
}

/// A second value would silently replace the first.
fn refuse_repeated(options: &[&str]) -> Result<()> {
    let name = |option: &str| option.split('=').next().unwrap_or_default().to_owned();
    for (number, option) in options.iter().enumerate() {
        if options[..number].iter().any(|earlier| name(earlier) == name(option)) {
            return Err(invalid("has an option twice"));
        }
    }
    Ok(())
}

fn read_option(mut address: Address, option: &str) -> Result<Address> {
    let (name, value) = option.split_once('=').ok_or_else(|| invalid("has an option without a value"))?;
    let value = decode(value)?;
    match name {
        "board" if is_board_name(&value) => address.board = value,
        "board" => {
            return Err(invalid(format!(
                "has a board name that is not 1 to {MAX_NAME} of the characters A-Z a-z 0-9 . _ -"
            )));
        }
        "replicas" => address.replicas = read_number(&value, "number of replicas", MAX_REPLICAS)?,
        "db" => {
            address.database = read_number(&value, "number of the database", MAX_DATABASE)?;
            address.has_database_option = true;
        }
        "ca" if value.is_empty() => return Err(invalid("has an empty ca")),
        "ca" => address.certificates = Some(value.into()),
        _ => return Err(invalid("has an option other than board, replicas, db and ca")),
    }
    Ok(address)
}

fn read_login(login: &str) -> Result<(Option<String>, Option<String>)> {
    let (user, password) = match login.split_once(':') {
        Some((user, password)) => (user, Some(decode(password)?)),
        None => (login, None),
    };
    Ok(((!user.is_empty()).then(|| decode(user)).transpose()?, password))
}

fn read_socket(location: &str) -> Result<Server> {
    let path = PathBuf::from(decode(location)?);
    if path.is_absolute() {
        Ok(Server::Unix(path))
    } else {
        Err(invalid("needs the absolute path of a socket"))
    }
}

fn read_sentinels(location: &str, tls: bool) -> Result<(Server, u32)> {
    let (hosts, rest) = location.split_once('/').ok_or_else(|| invalid("needs the name of a service"))?;
    let (service, database) = rest.split_once('/').unwrap_or((rest, ""));
    if service.is_empty() {
        return Err(invalid("needs the name of a service"));
    }
    let sentinels = hosts.split(',').map(|host| read_host(host, SENTINEL_PORT)).collect::<Result<_>>()?;
    let server = Server::Sentinels { sentinels, service: decode(service)?, tls };
    Ok((server, read_database(database)?))
}

fn read_host(text: &str, default_port: u16) -> Result<Host> {
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (name, port) = rest.split_once(']').ok_or_else(|| invalid("has a [ without its ]"))?;
            (name, port.strip_prefix(':'))
        }
        None => match text.rsplit_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        },
    };
    if name.is_empty() {
        return Err(invalid("has no host"));
    }
    if name.contains(|letter: char| letter.is_whitespace() || "\"'".contains(letter)) {
        return Err(invalid("has a host with a space or a quotation mark"));
    }
    let port = port.map_or(Some(default_port), |port| port.parse().ok().filter(|port| *port > 0));
    let port = port.ok_or_else(|| invalid("has a port that is not a number from 1 to 65535"))?;
    Ok(Host { name: decode(name)?, port })
}

fn read_database(text: &str) -> Result<u32> {
    if text.is_empty() { Ok(0) } else { read_number(text, "number of the database", MAX_DATABASE) }
}

fn read_number(text: &str, what: &str, most: u32) -> Result<u32> {
    let number = text.parse().ok().filter(|number| *number <= most);
    number.ok_or_else(|| invalid(format!("has a {what} that is not from 0 to {most}")))
}

fn is_board_name(name: &str) -> bool {
    let is_allowed = |letter: u8| letter.is_ascii_alphanumeric() || b"._-".contains(&letter);
    !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(is_allowed)
}

/// Replaces `%XX`.
fn decode(text: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let code = rest.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        let byte = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(byte.ok_or_else(|| invalid("has a % without two hexadecimal digits: write %25"))?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map_err(|_| invalid("is not UTF-8"))
}

fn invalid(reason: impl fmt::Display) -> Error {
    Error::invalid(format!("the URL of the board {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(name: &str, port: u16, tls: bool) -> Server {
        Server::Tcp { host: Host { name: name.to_owned(), port }, tls }
    }

    #[test]
    fn every_form_of_an_address_is_read() {
        let socket = Server::Unix("/run/redis.sock".into());
        for (text, server, database, board) in [
            ("redis://localhost", tcp("localhost", 6379, false), 0, "default"),
            ("redis://localhost:6380/3", tcp("localhost", 6380, false), 3, "default"),
            ("rediss://host/0?board=team-1", tcp("host", 6379, true), 0, "team-1"),
            ("redis://[::1]:7000", tcp("::1", 7000, false), 0, "default"),
            ("redis://[::1]", tcp("::1", 6379, false), 0, "default"),
            ("redis+unix:///run/redis.sock?board=b&db=2", socket, 2, "b"),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!((&address.server, address.database, address.board()), (&server, database, board));
        }
        let address: Address = "rediss+sentinel://a,b:7/main/1?replicas=2&ca=/ca.pem".parse().unwrap();
        let host = |name: &str, port| Host { name: name.to_owned(), port };
        let sentinels = vec![host("a", 26379), host("b", 7)];
        assert_eq!(address.server, Server::Sentinels { sentinels, service: "main".to_owned(), tls: true });
        assert_eq!((address.replicas, address.certificates), (2, Some("/ca.pem".into())));
    }

    #[test]
    fn login_is_read_and_never_shown() {
        for (login, user, password) in [
            ("", None, None),
            ("ivy@", Some("ivy"), None),
            (":secret@", None, Some("secret")),
            ("ivy:secret@", Some("ivy"), Some("secret")),
            ("ivy:se/cr:et@@", Some("ivy"), Some("se/cr:et@")),
            ("ivy:secret%25%40@", Some("ivy"), Some("secret%@")),
        ] {
            let address: Address = format!("redis://{login}host/1?board=b").parse().unwrap();
            assert_eq!((address.user.as_deref(), address.password.as_deref()), (user, password));
            assert_eq!(address.to_string(), "redis://host/1?board=b");
            assert_eq!(format!("{address:?}"), "Address(redis://host/1?board=b)");
            let user = user.map(|user| format!("{user}@")).unwrap_or_default();
            assert_eq!(address.without_password(), format!("redis://{user}host/1?board=b"));
        }
    }

    #[test]
    fn login_ends_before_the_options_and_before_the_path_of_a_socket() {
        for (text, user, password) in [
            ("rediss://host?ca=/a@b.pem", None, None),
            ("rediss://ivy:secret@host?ca=/a@b.pem", Some("ivy"), Some("secret")),
            ("rediss://ivy:se?cr@et@host?board=b&ca=/a@b.pem", Some("ivy"), Some("se?cr@et")),
            ("redis+unix:///run/user@1/x", None, None),
            ("redis+unix://ivy:secret@/run/user%401/x", Some("ivy"), Some("secret")),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!((address.user.as_deref(), address.password.as_deref()), (user, password), "{text}");
            match address.server {
                Server::Unix(path) => assert_eq!(path, Path::new("/run/user@1/x"), "{text}"),
                _ => assert_eq!(address.certificates(), Some(Path::new("/a@b.pem")), "{text}"),
            }
        }
    }

    #[test]
    fn text_of_an_address_distinguishes_boards_and_databases() {
        for (text, expected) in [
            ("redis://ivy@host", "redis://host"),
            ("rediss://host/1?replicas=2&ca=/ca.pem", "rediss://host/1"),
            ("redis+unix:///run/a?db=2", "redis+unix:///run/a?db=2"),
            ("redis+unix:///run/a?board=b&db=2", "redis+unix:///run/a?db=2&board=b"),
            ("redis+unix:///run/a?board=default", "redis+unix:///run/a"),
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn text_that_repeats_a_part_of_the_login_is_not_shown() {
        let address: Address = "redis://ivy:long-secret@host".parse().unwrap();
        let address = address.with_sentinel_password(Some("other".to_owned()));
        for text in ["'ivy'", "a long-secret b", "long-sec", "another"] {
            assert_eq!(address.without_secrets(text), None, "{text}");
        }
        for text in ["", "long", "secret"] {
            assert_eq!(address.without_secrets(text), Some(text));
        }
        let open: Address = "redis://host".parse().unwrap();
        assert_eq!(open.without_secrets("anything"), Some("anything"));
    }

    #[test]
    fn password_of_the_url_comes_before_another_one() {
        let with = |text: &str| {
            let address: Address = text.parse().unwrap();
            address.with_default_password(Some("other".to_owned())).password
        };
        assert_eq!(with("redis://:secret@host").as_deref(), Some("secret"));
        assert_eq!(with("redis://host").as_deref(), Some("other"));
    }

    #[test]
    fn an_address_with_a_mistake_is_refused_without_its_password() {
        testkit::limit_test();
        let long = format!("redis://:secret@host?board={}", "a".repeat(65));
        for text in [
            "host",
            "http://:secret@host",
            "redis://",
            "redis://:secret@",
            "redis://:secret@:7",
            "redis://:secret@host:0",
            "redis://:secret@host:66000",
            "redis://:secret@host/one",
            "redis://:secret@host/-1",
            "redis://:secret@[::1",
            "redis://:secret%zz@host",
            "redis://:secret@host#1",
            "redis://:secret@host?password=secret",
            "redis://:secret@host?board",
            "redis://:secret@host?board=",
            "redis://:secret@host?board=a:b",
            "redis://:secret@host?board={a}",
            "redis://:secret@host?board=%00",
            "redis://:secret@host?replicas=-1",
            "redis://:secret@host?board=a&board=b",
            "redis://:secret@host ",
            "redis://:secret@host\"",
            "redis://:secret@host?ca=",
            "redis://:secret@host?ca=/ca.pem",
            "redis+unix://:secret@/run/redis.sock?ca=/ca.pem",
            "redis+sentinel://:secret@host/main?ca=/ca.pem",
            "redis+unix://:secret@relative",
            "redis+sentinel://:secret@host",
            "redis+sentinel://:secret@host/",
            &long,
        ] {
            let error = text.parse::<Address>().unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
