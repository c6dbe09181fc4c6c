//! What can go wrong with a server, each with its own text. No text contains the URL as it was typed.

use std::error::Error as _;
use std::fmt;
use std::io::{self, ErrorKind};

use super::address::{Address, Host};
use crate::error::{Code, Error, Fault, Refusal};
use crate::store::transfer;

/// A failed exchange with a server.
pub(super) enum Trouble {
    /// It may work soon, on another connection.
    Temporary {
        error: Error,
        /// The server that has the board now, if this one has said so.
        moved: Option<Host>,
        /// Whether every connection to this server is useless: it is not the primary any more.
        elsewhere: bool,
    },
    /// The cluster moves the board: this call is to be announced to another server, and the next one is not.
    Asks { error: Error, host: Host },
    /// The server does not know a script. Nothing was executed.
    UnknownScript,
    /// Trying again does not help.
    Final(Error),
}

impl Trouble {
    fn temporary(error: impl Into<Error>) -> Trouble {
        Trouble::Temporary { error: error.into(), moved: None, elsewhere: false }
    }

    fn elsewhere(error: impl Into<Error>) -> Trouble {
        Trouble::Temporary { error: error.into(), moved: None, elsewhere: true }
    }

    /// The error for the caller.
    pub(super) fn into_error(self, address: &Address) -> Error {
        match self {
            Trouble::Temporary { error, .. } | Trouble::Asks { error, .. } | Trouble::Final(error) => error,
            Trouble::UnknownScript => unreachable(address, "it forgets its scripts at once").into(),
        }
    }
}

/// The server cannot be reached, or is not ready.
fn unreachable(address: &Address, reason: impl fmt::Display) -> Fault {
    Fault::new(Code::ServerUnavailable, format!("the server of {address} cannot be used: {reason}"))
        .hint("check that the server runs and that this machine can reach it")
}

/// The connection failed.
pub(super) fn of_connection(address: &Address, error: io::Error) -> Trouble {
    let reason = match error.kind() {
        ErrorKind::ConnectionRefused => "it refuses connections".to_owned(),
        ErrorKind::TimedOut => "it does not answer in time".to_owned(),
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
            "it closed the connection".to_owned()
        }
        ErrorKind::NotFound => "there is none".to_owned(),
        ErrorKind::PermissionDenied => "this user may not connect to it".to_owned(),
        _ => with_sources(&error),
    };
    let fault = unreachable(address, reason);
    match error.kind() {
        ErrorKind::InvalidInput | ErrorKind::Unsupported => Trouble::Final(fault.because(error).into()),
        _ if is_certificate_error(&error) => Trouble::Final(fault.because(error).into()),
        // A name that cannot be resolved, and everything that is not about this program.
        _ => Trouble::temporary(fault.because(error)),
    }
}

fn with_sources(error: &io::Error) -> String {
    let (mut text, mut source) = (error.to_string(), error.source());
    while let Some(next) = source {
        let next_text = next.to_string();
        if !text.contains(&next_text) {
            text = format!("{text}: {next_text}");
        }
        source = next.source();
    }
    text
}

/// A certificate that is expired, unknown or of another name stays so.
fn is_certificate_error(error: &io::Error) -> bool {
    let tls = error.get_ref().and_then(|source| source.downcast_ref::<rustls::Error>());
    matches!(tls, Some(rustls::Error::InvalidCertificate(_)))
}

/// The server answered with an error.
pub(super) fn of_reply(address: &Address, text: &str) -> Trouble {
    let (code, rest) = text.split_once(' ').unwrap_or((text, ""));
    let suitable =
        |reason: &str| Fault::new(Code::ServerUnsuitable, format!("{address} cannot be used: {reason}"));
    let denied = |reason: &str| Refusal::new(Code::AccessDenied, format!("the server of {address} {reason}"));
    match code {
        "NOSCRIPT" => Trouble::UnknownScript,
        "LOADING" => Trouble::temporary(unreachable(address, "it is still loading its data")),
        "BUSY" => Trouble::temporary(unreachable(address, "a script of another program blocks it")),
        "TRYAGAIN" => Trouble::temporary(unreachable(address, "the cluster moves the board")),
        "ASK" => match moved_to(rest) {
            Some(host) => {
                Trouble::Asks { error: unreachable(address, "the cluster moves the board").into(), host }
            }
            None => Trouble::Final(odd(address, "a redirection that cannot be read")),
        },
        "CLUSTERDOWN" => Trouble::elsewhere(unreachable(address, "its cluster is down")),
        "MASTERDOWN" => Trouble::elsewhere(unreachable(address, "its primary is down")),
        "READONLY" => Trouble::elsewhere(unreachable(address, "it is a replica, which accepts no changes")),
        "UNBLOCKED" => Trouble::elsewhere(unreachable(address, "it is not the primary any more")),
        "MOVED" => match moved_to(rest) {
            Some(host) => Trouble::Temporary {
                error: unreachable(address, "its cluster has moved the board").into(),
                moved: Some(host),
                elsewhere: true,
            },
            None => Trouble::Final(odd(address, "a redirection that cannot be read")),
        },
        "OOM" => Trouble::Final(
            Fault::new(
                Code::ServerFull,
                format!("the memory of the server of {address} is full; nothing was written"),
            )
            .hint("raise maxmemory of the server, or remove data from it")
            .into(),
        ),
        "MISCONF" => Trouble::Final(
            suitable("the server cannot save its data to its disk, so it accepts no changes")
                .hint("look at the log of the server")
                .into(),
        ),
        "NOREPLICAS" => Trouble::temporary(unreachable(address, "it has fewer replicas than it requires")),
        "WRONGTYPE" => Trouble::Final(foreign(address)),
        "NOAUTH" => Trouble::Final(denied("requires a password").hint(PASSWORD_HINT).into()),
        "WRONGPASS" => Trouble::Final(denied("refuses the user or the password").hint(PASSWORD_HINT).into()),
        "NOPERM" => {
            let command = rest.split('\'').nth(1).map(|name| format!("the command {name}"));
            let command = command.unwrap_or_else(|| "a key of the board".to_owned());
            Trouble::Final(denies(address, &command))
        }
        // The same inside of a script.
        "ERR" if rest.contains("user executing the script ") => {
            Trouble::Final(denies(address, "a command of a script"))
        }
        "ERR" if rest.contains("max number of clients") => {
            Trouble::temporary(unreachable(address, "it has too many clients"))
        }
        "ERR" if rest.contains("AUTH") && rest.contains("without any password") => {
            Trouble::Final(denied("has no password, and one was given").hint(PASSWORD_HINT).into())
        }
        "ERR" if rest.contains("SELECT is not allowed in cluster mode") => {
            Trouble::Final(suitable("a cluster has only database 0").into())
        }
        "ERR" if rest.contains("DB index is out of range") => {
            Trouble::Final(suitable("the server does not have this database").into())
        }
        _ => Trouble::Final(odd(address, "an error").with_source(text)),
    }
}

/// A sentinel answered with an error.
pub(super) fn of_sentinel(address: &Address, text: &str) -> Trouble {
    let denied = |reason: &str| {
        let message = format!("a sentinel of {address} {reason}");
        Trouble::Final(Refusal::new(Code::AccessDenied, message).hint(SENTINEL_PASSWORD_HINT).into())
    };
    match text.split(' ').next() {
        Some("NOAUTH") => denied("requires a password"),
        Some("WRONGPASS") => denied("refuses the password"),
        Some("ERR") if text.contains("AUTH") && text.contains("without any password") => {
            denied("has no password, and one was given")
        }
        _ => of_reply(address, text),
    }
}

/// The ACL of the server denies something.
pub(super) fn denies(address: &Address, what: &str) -> Error {
    Refusal::new(Code::AccessDenied, format!("the server of {address} denies this user {what}"))
        .hint("allow what docs/redis.md lists in the ACL of the server")
        .into()
}

const PASSWORD_HINT: &str = "set BLACKBOARD_REDIS_PASSWORD, or a password file";

/// The password of the server is not sent to sentinels: they may be operated by others, and have their own.
const SENTINEL_PASSWORD_HINT: &str = "set BLACKBOARD_REDIS_SENTINEL_PASSWORD, or remove it";

fn moved_to(rest: &str) -> Option<Host> {
    let (name, port) = rest.split_once(' ')?.1.rsplit_once(':')?;
    Some(Host { name: name.to_owned(), port: port.parse().ok()? })
}

trait WithSource {
    fn with_source(self, text: &str) -> Error;
}

impl WithSource for Error {
    fn with_source(self, text: &str) -> Error {
        match self {
            // The server may repeat anything, but a password is no part of a command that can fail like this.
            Error::Fault(fault) => (*fault).because(text.chars().take(200).collect::<String>()).into(),
            Error::Refusal(_) => self,
        }
    }
}

/// The server sent something that it does not send to this program.
pub(super) fn odd(address: &Address, what: &str) -> Error {
    Fault::new(Code::ServerUnsuitable, format!("the server of {address} sent {what}"))
        .hint("check that the address is that of a Redis server of version 7 or later")
        .into()
}

/// A reply is not what a script returns.
pub(super) fn odd_reply(address: &Address) -> Error {
    odd(address, "an unexpected reply")
}

/// The keys of the board belong to something else.
pub(super) fn foreign(address: &Address) -> Error {
    let message = format!("the keys bb:{{{}}}:* of the server belong to another program", address.board());
    Fault::new(Code::ForeignDatabase, message).hint("name another board with ?board=NAME").into()
}

/// The board is not there any more.
pub(super) fn gone(address: &Address) -> Error {
    let message = format!("{address} is gone: the server has no board, or another one, under this name");
    Fault::new(Code::BoardNotFound, message)
        .hint("check the data of the server: a commit never creates a board again")
        .into()
}

/// The board was written by a newer program.
pub(super) fn newer(address: &Address) -> Error {
    Fault::new(Code::NewerSchema, format!("{address} was written by a newer version of blackboard")).into()
}

/// The board is being loaded, or that was interrupted.
pub(super) fn being_copied(address: &Address) -> Error {
    Refusal::new(Code::BeingCopied, format!("{address} is being copied, or a copy to it was interrupted"))
        .hint("wait until the copy ends; if none runs, copy the board again and replace this one")
        .into()
}

/// The board was sealed.
pub(super) fn sealed(address: &Address, location: Option<&str>) -> Error {
    let message = format!("{address} is sealed: {}", transfer::moved_to(location));
    let refusal = Refusal::new(Code::BoardSealed, message).hint("use the board that it was copied to");
    location.into_iter().fold(refusal, |refusal, location| refusal.detail("moved_to", location)).into()
}

/// There is a board where another one is to be loaded.
pub(super) fn exists(address: &Address) -> Error {
    Refusal::new(Code::InUse, format!("cannot copy to {address}: there is a board"))
        .hint("name another board with ?board=NAME, or remove that board first")
        .into()
}

/// The board changed while it was read.
pub(super) fn changed(address: &Address) -> Trouble {
    Trouble::temporary(unreachable(address, "the board keeps changing while it is read"))
}

/// The server is not the primary.
pub(super) fn replica(address: &Address) -> Trouble {
    Trouble::elsewhere(unreachable(address, "it is a replica, which accepts no changes"))
}

/// The server is too old.
pub(super) fn too_old(address: &Address, version: &str) -> Trouble {
    let message = format!("{address} cannot be used: the server has version {version}, and 7.0 is required");
    Trouble::Final(Fault::new(Code::ServerUnsuitable, message).hint("install a newer server").into())
}

/// The server removes data when its memory is full.
pub(super) fn evicts(address: &Address, policy: &str) -> Error {
    let message =
        format!("{address} cannot be used: the server removes data when its memory is full ({policy})");
    Fault::new(Code::ServerUnsuitable, message)
        .hint("set maxmemory-policy of the server to noeviction")
        .into()
}

/// The answer of a commit was lost.
pub(super) fn outcome_unknown(name: &str, reason: &str) -> Error {
    let message = format!("it is not known whether {name} was done: {reason}");
    Fault::new(Code::OutcomeUnknown, message).hint(crate::hint::Hint::RepeatWithOperation).into()
}

/// Other sessions changed what a commit has read, in every run.
pub(super) fn lost(name: &str, runs: usize) -> Error {
    Refusal::new(Code::Conflict, format!("{name} lost against others {runs} times")).into()
}

/// Another session changed what a commit has read, and the caller does not wait.
pub(super) fn busy(name: &str) -> Error {
    Refusal::new(Code::Busy, format!("{name} lost against another session, and does not wait")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_of_a_server_has_its_own_code_and_text() {
        let address: Address = "redis://:secret@host".parse().unwrap();
        for (text, code, words) in [
            ("LOADING Redis is loading", Code::ServerUnavailable, "loading"),
            ("READONLY You", Code::ServerUnavailable, "replica"),
            ("MASTERDOWN Link with MASTER", Code::ServerUnavailable, "primary is down"),
            ("CLUSTERDOWN Hash slot not served", Code::ServerUnavailable, "cluster is down"),
            ("MOVED 7 10.0.0.1:7001", Code::ServerUnavailable, "moved"),
            ("MOVED nowhere", Code::ServerUnsuitable, "redirection"),
            ("ASK 7 10.0.0.1:7001", Code::ServerUnavailable, "moves"),
            ("TRYAGAIN Multiple keys", Code::ServerUnavailable, "moves"),
            ("OOM command not allowed", Code::ServerFull, "full"),
            ("MISCONF Redis is configured", Code::ServerUnsuitable, "disk"),
            ("NOREPLICAS Not enough", Code::ServerUnavailable, "replicas"),
            ("BUSY Redis is busy", Code::ServerUnavailable, "script"),
            ("NOAUTH Authentication required.", Code::AccessDenied, "password"),
            ("WRONGPASS invalid", Code::AccessDenied, "password"),
            ("NOPERM User x has no permissions to run the 'xadd' command", Code::AccessDenied, "xadd"),
            ("NOPERM No permissions to access a key", Code::AccessDenied, "a key"),
            ("WRONGTYPE Operation", Code::ForeignDatabase, "another program"),
            ("ERR max number of clients reached", Code::ServerUnavailable, "too many clients"),
            ("ERR DB index is out of range", Code::ServerUnsuitable, "database"),
            ("ERR something", Code::ServerUnsuitable, "an error"),
        ] {
            let error = of_reply(&address, text).into_error(&address);
            assert_eq!(error.code(), code, "{text}");
            let message = error.to_string();
            assert!(message.contains(words) && !message.contains("secret"), "{text}: {message}");
        }
    }

    #[test]
    fn redirection_names_the_new_server() {
        let address: Address = "redis://host".parse().unwrap();
        let Trouble::Temporary { moved, .. } = of_reply(&address, "MOVED 3999 ::1:6381") else { panic!() };
        assert_eq!(moved, Some(Host { name: "::1".to_owned(), port: 6381 }));
    }
}
