//! What can go wrong with a server, each with its own text. No text contains the URL as it was typed.

use std::error::Error as _;
use std::fmt;
use std::io::{self, ErrorKind};

use super::address::{Address, Host};
use super::connection::BrokenConnection;
use crate::error::{Code, DamagedBoard, Error, Fault, Refusal};
use crate::hint::Hint;
use crate::store::transfer;

/// A failed exchange with a server.
pub(super) enum ServerError {
    /// It may work soon, on another connection.
    Temporary {
        error: Error,
        /// The server that has the board now, if this one has said so.
        moved: Option<Host>,
        /// Whether every connection to this server is useless: it is not the primary any more.
        elsewhere: bool,
        /// What may be wrong with the address.
        suspicion: Option<Suspicion>,
    },
    /// The cluster moves the board: this call is to be announced to another server, and the next one is not.
    Asks { error: Error, host: Host },
    /// The server does not know a script. Nothing was executed.
    UnknownScript,
    /// Trying again does not help.
    Final(Error),
}

/// A mistake in the address that a failure may come from. A call that opens a board does not wait long for it to go
/// away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Suspicion {
    /// The address is that of another server, or of none.
    Location,
    /// The server expects TLS, or does not use it.
    Tls,
}

impl ServerError {
    fn temporary(error: impl Into<Error>) -> ServerError {
        ServerError::Temporary { error: error.into(), moved: None, elsewhere: false, suspicion: None }
    }

    fn elsewhere(error: impl Into<Error>) -> ServerError {
        ServerError::Temporary { error: error.into(), moved: None, elsewhere: true, suspicion: None }
    }

    /// The same with a possible reason.
    fn suspecting(self, suspected: Suspicion) -> ServerError {
        match self {
            ServerError::Temporary { error, moved, elsewhere, .. } => {
                ServerError::Temporary { error, moved, elsewhere, suspicion: Some(suspected) }
            }
            error => error,
        }
    }

    /// What may be wrong with the address.
    pub(super) fn suspicion(&self) -> Option<Suspicion> {
        if let ServerError::Temporary { suspicion, .. } = self { *suspicion } else { None }
    }

    /// The same, if there is no reason to try again.
    pub(super) fn made_final(self) -> ServerError {
        match self {
            ServerError::Temporary { error, .. } | ServerError::Asks { error, .. } => {
                ServerError::Final(error)
            }
            error => error,
        }
    }

    /// Why another attempt is made, in the words of a person who waits for it.
    pub(super) fn reason_to_wait(&self, address: &Address) -> Option<String> {
        let (ServerError::Temporary { error, .. } | ServerError::Asks { error, .. }) = self else {
            return None;
        };
        let text = error.to_string();
        let reason = text.strip_prefix(&before_reason(address)).unwrap_or(&text);
        Some(format!("waiting for the server of {address}: {reason}"))
    }

    /// The error for the caller.
    pub(super) fn into_error(self, address: &Address) -> Error {
        match self {
            ServerError::Temporary { error, .. }
            | ServerError::Asks { error, .. }
            | ServerError::Final(error) => error,
            ServerError::UnknownScript => unreachable(address, "it does not keep loaded scripts").into(),
        }
    }
}

/// The server cannot be reached, or is not ready.
fn unreachable(address: &Address, reason: impl fmt::Display) -> Fault {
    Fault::new(Code::ServerUnavailable, format!("{}{reason}", before_reason(address)))
        .hint("check that the server runs and that this machine can reach it")
}

fn before_reason(address: &Address) -> String {
    format!("the server of {address} cannot be used: ")
}

/// The server does not suit a board.
fn unsuitable(address: &Address, reason: impl fmt::Display) -> Fault {
    Fault::new(Code::ServerUnsuitable, format!("{address} cannot be used: {reason}"))
}

/// The connection failed.
pub(super) fn of_connection(address: &Address, error: io::Error) -> ServerError {
    let reason = match error.kind() {
        ErrorKind::ConnectionRefused => "it refuses connections".to_owned(),
        ErrorKind::TimedOut => "it does not answer in time".to_owned(),
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
            "it closed the connection".to_owned()
        }
        ErrorKind::NotFound | ErrorKind::NotADirectory if address.is_socket() => {
            "its socket does not exist".to_owned()
        }
        _ if wants_client_certificate(&error) => "it requires a certificate of the client".to_owned(),
        ErrorKind::NotFound => "its host cannot be resolved".to_owned(),
        ErrorKind::PermissionDenied => "this user may not connect to it".to_owned(),
        _ => with_sources(&error),
    };
    let mut fault = unreachable(address, reason);
    let kind = error.kind();
    fault = match kind {
        ErrorKind::NotFound | ErrorKind::NotADirectory if address.is_socket() => {
            fault.hint("check the path of the socket, and that the server runs")
        }
        ErrorKind::NotFound => {
            fault.hint("check the name of the host, and that this machine can resolve names")
        }
        ErrorKind::PermissionDenied => {
            fault.hint("check the permissions of the socket: unixsocketperm of the server")
        }
        _ => fault,
    };
    let certificate = certificate_hint(&error);
    let fault = fault.because(error);
    match (kind, certificate) {
        (_, Some(hint)) => ServerError::Final(fault.hint(hint).into()),
        (ErrorKind::InvalidInput | ErrorKind::Unsupported, None) => ServerError::Final(fault.into()),
        (ErrorKind::NotFound | ErrorKind::NotADirectory, None) => {
            ServerError::temporary(fault).suspecting(Suspicion::Location)
        }
        // Everything that is not about this program.
        _ => ServerError::temporary(fault),
    }
}

/// A new connection failed before the server has answered the login: perhaps no Redis server is there, or one with
/// other settings than the address.
pub(super) fn of_login(address: &Address, broken: BrokenConnection) -> ServerError {
    // A server that refuses a client says why, and closes the connection.
    if let Some(text) = &broken.said {
        return if address.has_login() { of_refused_login(address, text) } else { of_reply(address, text) };
    }
    let error = broken.error;
    let tls = error.get_ref().and_then(|source| source.downcast_ref::<rustls::Error>());
    match (error.kind(), tls) {
        (_, Some(rustls::Error::InvalidMessage(_))) => has_no_tls(address),
        (ErrorKind::InvalidData, None) => ServerError::Final(
            odd(address, "what no Redis server sends").with_source(address, &error.to_string()),
        ),
        (ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe, None) => {
            of_connection(address, error).suspecting(Suspicion::Tls)
        }
        // A server without TLS may wait for the rest of what it takes for a command.
        (ErrorKind::TimedOut, _) if address.has_tls() => {
            of_connection(address, error).suspecting(Suspicion::Tls)
        }
        _ => of_connection(address, error),
    }
}

/// The server does not use TLS.
pub(super) fn has_no_tls(address: &Address) -> ServerError {
    let fault = unsuitable(address, "the server does not use TLS on this port");
    ServerError::Final(fault.hint("write redis:// without the second s, or the port with TLS").into())
}

/// The server expects TLS.
pub(super) fn needs_tls(address: &Address) -> ServerError {
    let fault = unsuitable(address, "the server uses TLS on this port");
    ServerError::Final(fault.hint("write rediss:// with a second s, or the port without TLS").into())
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

/// What to do about the certificate of the server, or about those to trust: both stay as they are.
fn certificate_hint(error: &io::Error) -> Option<&'static str> {
    use rustls::CertificateError::{
        Expired, ExpiredContext, NotValidForName, NotValidForNameContext, UnknownIssuer,
    };
    let source = error.get_ref()?;
    if source.is::<UntrustedFile>() {
        return Some("name a file with certificates that this user can read: ?ca=FILE");
    }
    match source.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(UnknownIssuer) => {
            Some("name the authority of the server with ?ca=FILE")
        }
        rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. }) => {
            Some("use the name of the host that is in the certificate")
        }
        rustls::Error::InvalidCertificate(Expired | ExpiredContext { .. }) => {
            Some("renew the certificate of the server")
        }
        rustls::Error::InvalidCertificate(_) => Some("check the certificate of the server"),
        _ if wants_client_certificate(error) => {
            Some("certificates of clients are not supported: set tls-auth-clients of the server to no")
        }
        _ => None,
    }
}

/// Whether the server ended a connection because the client has no certificate.
fn wants_client_certificate(error: &io::Error) -> bool {
    let source = error.get_ref().and_then(|source| source.downcast_ref::<rustls::Error>());
    matches!(source, Some(rustls::Error::AlertReceived(rustls::AlertDescription::CertificateRequired)))
}

/// The certificates to trust cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct UntrustedFile(pub(super) String);

/// The server answered with an error.
pub(super) fn of_reply(address: &Address, text: &str) -> ServerError {
    let unknown = || ServerError::Final(odd(address, "an error").with_source(address, text));
    of_known_reply(address, text).unwrap_or_else(unknown)
}

/// The server answered the login with an error. Its text may repeat the login, and may end in the middle of it, so no
/// part of an unknown one is shown.
pub(super) fn of_refused_login(address: &Address, text: &str) -> ServerError {
    of_known_reply(address, text).filter(|_| !text.contains("unknown command")).unwrap_or_else(|| {
        let message = format!("the server of {address} does not accept a login");
        ServerError::Final(Refusal::new(Code::AccessDenied, message).hint(NO_LOGIN_HINT).into())
    })
}

/// The error of a reply that has its own text here; `None` for any other one.
fn of_known_reply(address: &Address, text: &str) -> Option<ServerError> {
    let (code, rest) = text.split_once(' ').unwrap_or((text, ""));
    let command = || named_command(rest).filter(|command| address.without_secrets(command).is_some());
    let suitable = |reason: &str| unsuitable(address, reason);
    let denied = |reason: &str| Refusal::new(Code::AccessDenied, format!("the server of {address} {reason}"));
    Some(match code {
        "NOSCRIPT" => ServerError::UnknownScript,
        "LOADING" => ServerError::temporary(
            unreachable(address, "it is still loading its data").hint("wait until it has loaded them"),
        ),
        "BUSY" => ServerError::temporary(
            unreachable(address, "a script of another program blocks it")
                .hint("wait until that script has ended"),
        ),
        "TRYAGAIN" => ServerError::temporary(unreachable(address, "the cluster moves the board")),
        "ASK" => match moved_to(rest) {
            Some(host) => {
                ServerError::Asks { error: unreachable(address, "the cluster moves the board").into(), host }
            }
            None => ServerError::Final(odd(address, "a redirection that cannot be read")),
        },
        "CLUSTERDOWN" => ServerError::elsewhere(
            unreachable(address, "its cluster is down").hint("check the nodes of the cluster"),
        ),
        "MASTERDOWN" => {
            ServerError::elsewhere(unreachable(address, "its primary is down").hint("check its primary"))
        }
        "READONLY" => replica(address),
        "UNBLOCKED" => ServerError::elsewhere(unreachable(address, "it is not the primary any more")),
        "MOVED" => match moved_to(rest) {
            Some(host) => ServerError::Temporary {
                error: unreachable(address, "its cluster has moved the board").into(),
                moved: Some(host),
                elsewhere: true,
                suspicion: None,
            },
            None => ServerError::Final(odd(address, "a redirection that cannot be read")),
        },
        "OOM" => ServerError::Final(
            Fault::new(Code::ServerFull, format!("the memory of the server of {address} is full"))
                .hint(
                    "raise maxmemory of the server; entries and items can still be deleted and released, and sessions \
                     can end",
                )
                .into(),
        ),
        "MISCONF" => ServerError::Final(
            suitable("the server cannot save its data to its disk, so it accepts no changes")
                .hint("look at the log of the server")
                .into(),
        ),
        "NOREPLICAS" => ServerError::temporary(
            unreachable(address, "it has fewer replicas than it requires")
                .hint("check its replicas, and min-replicas-to-write of the server"),
        ),
        "DENIED" => ServerError::Final(
            denied("refuses other machines: it is in protected mode")
                .hint("set a password or ACL users on the server")
                .into(),
        ),
        "WRONGTYPE" => ServerError::Final(foreign(address)),
        "NOAUTH" => ServerError::Final(denied("requires a password").hint(PASSWORD_HINT).into()),
        "WRONGPASS" => {
            ServerError::Final(denied("refuses the user or the password").hint(PASSWORD_HINT).into())
        }
        "NOPERM" => {
            let command = command().unwrap_or_else(|| "a key of the board".to_owned());
            ServerError::Final(denies(address, &command))
        }
        // The same inside of a script.
        "ERR" if rest.contains("user executing the script ") || rest.contains("ACL failure in script") => {
            let command = command().unwrap_or_else(|| "a command of a script".to_owned());
            ServerError::Final(denies(address, &command))
        }
        "ERR" if rest.contains("max number of clients") => ServerError::temporary(
            unreachable(address, "it has too many clients")
                .hint("end other clients, or raise maxclients of the server"),
        ),
        "ERR" if rest.contains("AUTH") && rest.contains("without any password") => ServerError::Final(
            denied("has no password, and one was given").hint("remove the password").into(),
        ),
        "ERR" if rest.contains("SELECT is not allowed in cluster mode") => ServerError::Final(
            suitable("a cluster has only database 0")
                .hint("leave out the number of the database, and name the board with ?board=NAME")
                .into(),
        ),
        "ERR" if rest.contains("DB index is out of range") => ServerError::Final(
            suitable("the server does not have this database")
                .hint("name a smaller number, or raise databases in the configuration of the server")
                .into(),
        ),
        "ERR" if rest.starts_with("unknown command") => {
            let name = rest.split('\'').nth(1).filter(|name| address.without_secrets(name).is_some());
            let command = name.map_or_else(|| "a command".to_owned(), |name| format!("the command {name}"));
            ServerError::Final(
                suitable(&format!("the server does not have {command}"))
                    .hint("docs/redis.md lists the commands of a board: the server may not rename or disable them")
                    .into(),
            )
        }
        _ => return None,
    })
}

/// The command that the text of a server names.
fn named_command(text: &str) -> Option<String> {
    let (before, _) = text.split_once("' command")?;
    let name = before.rsplit('\'').next().filter(|name| !name.is_empty())?;
    Some(format!("the command {name}"))
}

/// Whether a server that answers a commit with this error has changed nothing: it refuses the script before it starts,
/// or the type of a key, which the script checks first. Any other error may come from the middle of the script.
pub(super) fn proves_no_change(text: &str) -> bool {
    const REFUSALS: &str = "ASK BUSY CLUSTERDOWN LOADING MASTERDOWN MISCONF MOVED NOAUTH NOPERM NOREPLICAS NOSCRIPT OOM \
        READONLY TRYAGAIN";
    let code = text.split(' ').next().unwrap_or_default();
    let is_from_script = text.contains("@user_script");
    code == "WRONGTYPE" || (!is_from_script && REFUSALS.split_whitespace().any(|refusal| refusal == code))
}

/// A sentinel answered the login with an error, of which no unknown text is shown.
pub(super) fn of_refused_sentinel_login(address: &Address, text: &str) -> ServerError {
    if matches!(text.split(' ').next(), Some("NOAUTH" | "WRONGPASS")) || text.contains("without any password")
    {
        return of_sentinel(address, text);
    }
    of_known_reply(address, text).filter(|_| !text.contains("unknown command")).unwrap_or_else(|| {
        let message = format!("a sentinel of {address} does not accept a login");
        ServerError::Final(Refusal::new(Code::AccessDenied, message).hint(SENTINEL_PASSWORD_HINT).into())
    })
}

/// A sentinel answered with an error.
pub(super) fn of_sentinel(address: &Address, text: &str) -> ServerError {
    let denied = |reason: &str| {
        let message = format!("a sentinel of {address} {reason}");
        ServerError::Final(Refusal::new(Code::AccessDenied, message).hint(SENTINEL_PASSWORD_HINT).into())
    };
    match text.split(' ').next() {
        Some("NOAUTH") => denied("requires a password"),
        Some("WRONGPASS") => denied("refuses the password"),
        Some("ERR") if text.contains("AUTH") && text.contains("without any password") => {
            denied("has no password, and one was given")
        }
        Some("ERR") if text.contains("unknown command") => {
            no_sentinel(address, "a server of it is no sentinel")
        }
        _ => of_reply(address, text),
    }
}

/// The address names no sentinel, or no service of one.
pub(super) fn no_sentinel(address: &Address, reason: &str) -> ServerError {
    let hint = "check the port of the sentinel and the name of the service";
    ServerError::Final(unsuitable(address, reason).hint(hint).into())
}

/// The ACL of the server denies something.
pub(super) fn denies(address: &Address, what: &str) -> Error {
    Refusal::new(Code::AccessDenied, format!("the server of {address} denies this user {what}"))
        .hint("allow what docs/redis.md lists in the ACL of the server")
        .into()
}

/// What to do if an erasure has no memory: a stream cannot change an entry, so the script writes it again.
pub(super) const FULL_FOR_AN_ERASURE: &str = "raise maxmemory of the server by the size of the event log of the board, \
                                              which is written again, then repeat the purge";

/// What to do about a server without the command for it.
const NO_LOGIN_HINT: &str =
    "check that the server has the command AUTH under this name, or give no user and no password";

const PASSWORD_HINT: &str = "set BLACKBOARD_REDIS_PASSWORD, or a password file";

/// The password of the server is not sent to sentinels: they may be operated by others, and have their own.
const SENTINEL_PASSWORD_HINT: &str = "set BLACKBOARD_REDIS_SENTINEL_PASSWORD, or remove it";

fn moved_to(rest: &str) -> Option<Host> {
    let (name, port) = rest.split_once(' ')?.1.rsplit_once(':')?;
    Some(Host { name: name.to_owned(), port: port.parse().ok()? })
}

trait WithSource {
    /// The same with what the server said, unless that repeats a part of the login.
    fn with_source(self, address: &Address, text: &str) -> Error;
}

impl WithSource for Error {
    fn with_source(self, address: &Address, text: &str) -> Error {
        match (self, address.without_secrets(text)) {
            (Error::Fault(fault), Some(text)) => {
                (*fault).because(text.chars().take(MAX_SOURCE).collect::<String>()).into()
            }
            (error, _) => error,
        }
    }
}

/// How much is shown of what a server says.
const MAX_SOURCE: usize = 200;

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

/// Keys of a board are there, and its rows are not.
pub(super) fn leftover(address: &Address) -> Error {
    let board = address.board();
    let message = format!(
        "the server has the key bb:{{{board}}}:index or bb:{{{board}}}:log without a board: of a lost board, or of \
         another program"
    );
    let delete = format!(
        "if nothing uses them, delete them: redis-cli DEL 'bb:{{{board}}}:index' 'bb:{{{board}}}:log'"
    );
    Fault::new(Code::ForeignDatabase, message).hint(delete).into()
}

/// A part of the board is missing.
pub(super) fn damaged(address: &Address, what: &'static str) -> Error {
    Fault::new(Code::Corrupt, format!("{address} is damaged: {what}"))
        .hint("restore the data of the server, or copy a backup to another board")
        .because(DamagedBoard(what))
        .into()
}

/// What can be missing.
pub(super) const NO_INDEX: &str = "its index is gone";
pub(super) const NO_LOG: &str = "its event log is gone";
pub(super) const NO_STATE: &str = "its state cannot be read";

/// The board is not there any more.
pub(super) fn gone(address: &Address) -> Error {
    let message = format!("{address} is gone: the server has no board, or another one, under this name");
    Fault::new(Code::BoardNotFound, message)
        .hint("check the data of the server: a commit never creates a board again")
        .into()
}

/// The server does not have the board that the caller knows.
pub(super) fn lost_board(address: &Address) -> Error {
    let message =
        format!("{address} is gone: this machine has used a board there, and the server has none now");
    Refusal::new(Code::BoardNotFound, message).hint("check the data of the server").into()
}

/// The server has another board than the one that the caller knows.
pub(super) fn another_board(address: &Address) -> Error {
    let message = format!("{address} is another board than the one that this machine has used");
    Refusal::new(Code::BoardNotFound, message).hint("check the data of the server").into()
}

/// The board was written by a newer program.
pub(super) fn newer(address: &Address) -> Error {
    Fault::new(Code::NewerSchema, format!("{address} was written by a newer version of blackboard"))
        .hint("install that version, or name another board with ?board=NAME")
        .into()
}

/// The board is being loaded, or that was interrupted.
pub(super) fn being_copied(address: &Address) -> Error {
    Refusal::new(Code::BeingCopied, format!("{address} is being copied, or a copy to it was interrupted"))
        .hint(Hint::ReplaceCopyAt(address.without_password().to_owned()))
        .into()
}

/// The board was sealed.
pub(super) fn sealed(address: &Address, location: Option<&str>) -> Error {
    let message = format!("{address} is sealed: {}", transfer::moved_to(location));
    let hint = Hint::UseCopyOf(address.without_password().to_owned());
    let refusal = Refusal::new(Code::BoardSealed, message).hint(hint);
    location.into_iter().fold(refusal, |refusal, location| refusal.detail("moved_to", location)).into()
}

/// There is a board where another one is to be loaded.
pub(super) fn exists(address: &Address) -> Error {
    Refusal::new(Code::InUse, format!("cannot copy to {address}: it already has a board"))
        .hint("name another board with ?board=NAME, or remove that board first")
        .into()
}

/// The board changed while it was read.
pub(super) fn changed(address: &Address) -> ServerError {
    ServerError::temporary(unreachable(address, "the board keeps changing while it is read"))
}

/// The server is not the primary.
pub(super) fn replica(address: &Address) -> ServerError {
    let hint = if address.has_sentinels() {
        "wait until the failover has ended"
    } else {
        "use the address of the primary, or redis+sentinel://"
    };
    let fault = unreachable(address, "it is a replica, which accepts no changes").hint(hint);
    ServerError::elsewhere(fault).suspecting(Suspicion::Location)
}

/// The server is too old.
pub(super) fn too_old(address: &Address, version: &str) -> ServerError {
    let version = address.without_secrets(version).unwrap_or("of an unknown form");
    let reason = format!("the server has version {version}, and 7.0 is required");
    ServerError::Final(unsuitable(address, reason).hint("install a newer server").into())
}

/// The server removes data when its memory is full.
pub(super) fn evicts(address: &Address, policy: &str) -> Error {
    let policy = address.without_secrets(policy).unwrap_or("maxmemory-policy");
    unsuitable(address, format!("the server removes data when its memory is full ({policy})"))
        .hint("set maxmemory-policy of the server to noeviction")
        .into()
}

/// The answer of a commit was lost.
pub(super) fn outcome_unknown(name: &str, reason: &str) -> Error {
    let message = format!("it is not known whether {name} was done: {reason}");
    Fault::new(Code::OutcomeUnknown, message).hint(Hint::RepeatWithOperation).into()
}

/// Other sessions changed what a commit has read, in every run.
pub(super) fn lost(name: &str, runs: usize) -> Error {
    Refusal::new(
        Code::Conflict,
        format!("cannot commit {name}: other sessions changed the same rows {runs} times"),
    )
    .hint("repeat the call when fewer sessions change these rows")
    .into()
}

/// Another session changed what a commit has read, and the caller does not wait.
pub(super) fn busy(name: &str) -> Error {
    Refusal::new(Code::Busy, format!("cannot commit {name} at once: another session changes the same rows"))
        .hint("repeat the call")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_of_a_server_has_its_own_code_and_text() {
        testkit::limit_test();
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
            ("DENIED Redis is running in protected mode", Code::AccessDenied, "protected mode"),
            (
                "ERR The user executing the script cannot run this command",
                Code::AccessDenied,
                "a command of a script",
            ),
            (
                "ERR ACL failure in script: User ivy has no permissions to run the 'hset' command script: 1",
                Code::AccessDenied,
                "the command hset",
            ),
        ] {
            let error = of_reply(&address, text).into_error(&address);
            assert_eq!(error.code(), code, "{text}");
            let message = error.to_string();
            assert!(message.contains(words) && !message.contains("secret"), "{text}: {message}");
        }
    }

    #[test]
    fn errors_of_a_server_have_their_own_advice() {
        testkit::limit_test();
        let address: Address = "redis://host".parse().unwrap();
        let sentinels: Address = "redis+sentinel://host/main".parse().unwrap();
        for (address, text, words) in [
            (&address, "LOADING Redis is loading", "wait until it has loaded"),
            (&address, "READONLY You", "the address of the primary, or redis+sentinel://"),
            (&sentinels, "READONLY You", "failover"),
            (&address, "DENIED Redis is running in protected mode", "set a password or ACL users"),
            (&address, "ERR max number of clients reached", "maxclients"),
            (&address, "ERR AUTH <password> called without any password configured", "remove the password"),
        ] {
            let error = of_reply(address, text).into_error(address);
            let advice = error.hint().and_then(Hint::advice).unwrap();
            assert!(advice.contains(words), "{text}: {advice}");
        }
    }

    #[test]
    fn redirection_names_the_new_server() {
        testkit::limit_test();
        let address: Address = "redis://host".parse().unwrap();
        let ServerError::Temporary { moved, .. } = of_reply(&address, "MOVED 3999 ::1:6381") else {
            panic!()
        };
        assert_eq!(moved, Some(Host { name: "::1".to_owned(), port: 6381 }));
    }
}
