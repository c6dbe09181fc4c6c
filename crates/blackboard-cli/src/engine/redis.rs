//! A board on a Redis server.
//!
//! Such a board has no file, so its sidecars have a directory of their own in the home of boards. Its name is made from the
//! URL without the login, which may have a password in it.

mod back_off;
mod known_board;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use blackboard::store::redis::{Address, Redis, RedisOptions, WaitObserver};
use blackboard::store::{LoadingBoard, SidecarDirectory, Sidecars};
use blackboard::text::shell_word;
use blackboard::{Code, Error, Refusal, Result};
use uuid::Uuid;

use self::back_off::BackOff;
use self::known_board::KnownBoard;
use super::{Engine, HookEnd, Mode, OpenStore, Opening};
use crate::config::Database;
use crate::context::{note, warn};
use crate::envelope::BoardState;
use crate::environment::{Environment, Secret};
#[cfg(unix)]
use crate::location::other_owner;

/// The directory in the home of boards with a directory for each board without a file.
const DIRECTORY: &str = "remote";

/// The name space of those directories. It never changes: a running server is found by it.
const BOARDS: Uuid = Uuid::from_u128(0x2f8c_91d4_7a3e_4b60_8d15_c2e7_09ab_f346);

/// How long a check whether the board exists may take.
const CHECK: Duration = Duration::from_secs(3);

/// The longest limit of a user for a call.
const MAX_TIMEOUT: Duration = Duration::from_hours(1);

/// A password that is longer is no password.
const MAX_PASSWORD: usize = 64 << 10;

/// A board on a Redis server.
pub struct RedisServer {
    address: Address,
    sidecars: SidecarDirectory,
    back_off: BackOff,
    known: KnownBoard,
    warning: Option<String>,
    /// How long a call waits for the server, if the user says so.
    timeout: Option<Duration>,
}

impl RedisServer {
    /// The board at this URL, with the password of the environment if the URL has none.
    pub fn new(url: &str, home: &Path, environment: &Environment) -> Result<RedisServer> {
        let address: Address = url.parse()?;
        let (password, warning) = if address.has_password() {
            (None, None)
        } else {
            let file =
                environment.redis_password_file.as_ref().filter(|_| environment.redis_password.is_none());
            (password(environment)?, file.and_then(|file| warning_about(Path::new(file))))
        };
        let address = address
            .with_default_password(password)
            .with_sentinel_password(checked(environment.redis_sentinel_password.as_ref(), "sentinels")?);
        let directory = Uuid::new_v5(&BOARDS, address.to_string().as_bytes()).simple().to_string();
        let directory = home.join(DIRECTORY).join(directory);
        let sidecars = SidecarDirectory::new(&directory);
        let (back_off, known) = (BackOff::in_directory(&directory), KnownBoard::in_directory(&directory));
        let timeout = timeout(environment)?;
        Ok(RedisServer { address, sidecars, back_off, known, warning, timeout })
    }

    fn check(&self) -> Option<Redis> {
        let options = RedisOptions { patience: CHECK, reply_limit: CHECK, ..RedisOptions::default() };
        Redis::open_to_read(self.address.clone(), &options).ok().flatten()
    }

    /// Opens the board that this machine has used, unless the caller accepts any board.
    fn open_store(&self, opening: Opening) -> Result<Option<Redis>> {
        let known = self.known.id();
        let expected = known.clone().filter(|_| !opening.accepts_any_board);
        let opened = self.open_expected(opening, expected).map_err(|error| self.with_hint(error))?;
        if let Some(store) = &opened
            && known.as_deref() != Some(store.id())
        {
            self.known.remember(store.id());
        }
        Ok(opened)
    }

    fn options(&self, opening: Opening) -> RedisOptions {
        let mut options = RedisOptions::default();
        if let Some(timeout) = self.timeout {
            (options.patience, options.reply_limit) = (timeout, timeout.div_f64(3.0));
        }
        if let Some(limit) = opening.write_limit.or(opening.patience.limit()) {
            (options.patience, options.reply_limit) = (limit, limit);
        }
        if opening.notes_waiting {
            options.on_wait = Some(WaitObserver::new(note));
        }
        options
    }

    fn open_expected(&self, opening: Opening, board_id: Option<String>) -> Result<Option<Redis>> {
        let options = RedisOptions { board_id, ..self.options(opening) };
        let address = self.address.clone();
        match opening.mode {
            Mode::Create => Redis::open(address, &options).map(Some),
            Mode::Existing => Redis::open_existing(address, &options),
            Mode::ReadOnly => Redis::open_to_read(address, &options),
        }
    }

    /// What to do if the server does not have the board that this machine has used.
    fn with_hint(&self, error: Error) -> Error {
        if error.code() != Code::BoardNotFound {
            return error;
        }
        let url = self.address.to_string();
        let hint = format!(
            "check the data of the server. To use the board that is there, or a new one: blackboard --db {} init",
            shell_word(&url)
        );
        Refusal::new(Code::BoardNotFound, error.to_string()).hint(hint).into()
    }
}

/// The limit of the environment for a call.
fn timeout(environment: &Environment) -> Result<Option<Duration>> {
    let Some(given) = &environment.redis_timeout else { return Ok(None) };
    let given = given.to_string_lossy();
    match blackboard::duration::parse(&given) {
        Ok(timeout) if !timeout.is_zero() && timeout <= MAX_TIMEOUT => Ok(Some(timeout)),
        _ => {
            let message = format!(
                "BLACKBOARD_REDIS_TIMEOUT is {given:?}: expected a duration of at most 1h, for example 30s"
            );
            Err(Refusal::new(Code::InvalidValue, message).into())
        }
    }
}

/// The password of the environment, or of the file that it names.
fn password(environment: &Environment) -> Result<Option<String>> {
    match (&environment.redis_password, &environment.redis_password_file) {
        (None, Some(file)) => {
            let text = read_password_file(Path::new(file)).map_err(|error| {
                let message = format!("the file of BLACKBOARD_REDIS_PASSWORD_FILE cannot be read: {error}");
                Refusal::new(Code::InvalidValue, message)
            })?;
            let text = text.strip_suffix('\n').unwrap_or(&text);
            checked(Some(&Secret(text.strip_suffix('\r').unwrap_or(text).into())), "server")
        }
        (password, _) => checked(password.as_ref(), "server"),
    }
}

/// The text of a password file. A pipe or a device could keep the call waiting, or never end.
fn read_password_file(file: &Path) -> std::io::Result<String> {
    use std::io::{Error, ErrorKind, Read as _};
    let mut options = fs::OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    let file = options.open(file)?;
    if !file.metadata()?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "it is no regular file"));
    }
    let mut text = String::new();
    // With its end of line. `checked` refuses one that is longer.
    file.take(MAX_PASSWORD as u64 + 3).read_to_string(&mut text)?;
    Ok(text)
}

/// What is wrong with the permissions of a password file. One of another owner, or with the mode of the secrets of
/// containers, is not judged.
#[cfg(unix)]
fn warning_about(file: &Path) -> Option<String> {
    use std::os::unix::fs::PermissionsExt as _;
    let metadata = fs::metadata(file).ok()?;
    let mode = metadata.permissions().mode() & 0o777;
    let is_open = mode & 0o077 != 0 && mode != 0o444 && other_owner(&metadata).is_none();
    let command = format!("chmod 600 {}", blackboard::text::shell_word(&file.to_string_lossy()));
    is_open
        .then(|| format!("other users can read the password file (mode {mode:o}). To change that: {command}"))
}

/// On systems with access lists instead of one owner, the file's own protection has to suffice.
#[cfg(not(unix))]
fn warning_about(_file: &Path) -> Option<String> {
    None
}

/// A password of these servers as text, if it can be one.
fn checked(password: Option<&Secret>, of: &str) -> Result<Option<String>> {
    let Some(Secret(password)) = password else { return Ok(None) };
    let text = password.to_str().filter(|text| !text.is_empty() && text.len() <= MAX_PASSWORD);
    let message = || format!("the password of the {of} is empty, too long or not UTF-8");
    text.map(|text| Some(text.to_owned())).ok_or_else(|| Refusal::new(Code::InvalidValue, message()).into())
}

impl Engine for RedisServer {
    fn name(&self) -> String {
        self.address.to_string()
    }

    fn exists(&self) -> bool {
        self.check().is_some()
    }

    fn identity(&self) -> Option<String> {
        self.check().map(|store| store.id().to_owned())
    }

    fn sidecars(&self) -> &dyn Sidecars {
        &self.sidecars
    }

    fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    fn open(&self, _: &Database, opening: Opening) -> Result<Option<OpenStore>> {
        // A hook has little time, and runs after every tool call: a server that does not answer is left alone for a while.
        let is_hook = opening.write_limit.is_some();
        if opening.backs_off() {
            self.back_off.check(&self.address.to_string())?;
        }
        let opened = self.open_store(opening);
        match &opened {
            Err(error) if error.code() == Code::ServerUnavailable => self.back_off.note_failure(),
            Err(_) => {}
            // A server may stop answering after the board was opened, so a hook has succeeded only at its end.
            Ok(Some(_)) if is_hook => {}
            Ok(_) => self.back_off.note_success(),
        }
        Ok(opened?.map(|store| {
            // A board that is opened to be read says nothing about the rights of the user.
            let state = match (store.is_new(), store.is_read_only() && opening.mode != Mode::ReadOnly) {
                (true, _) => Some(BoardState::Created),
                (false, true) => Some(BoardState::ReadOnly),
                (false, false) => None,
            };
            if store.is_new() && !store.keeps_log() && !is_hook {
                warn("the server has no append-only file: it may lose changes when it stops (see docs/redis.md)");
            }
            OpenStore { clock: store.clock(), store: Arc::new(store), state }
        }))
    }

    fn note_hook_end(&self, end: HookEnd<'_>) {
        match end {
            HookEnd::OutOfTime => self.back_off.note_failure(),
            HookEnd::Failed(error)
                if matches!(error.code(), Code::ServerUnavailable | Code::OutcomeUnknown) =>
            {
                self.back_off.note_failure();
            }
            // A refusal is an answer, too.
            HookEnd::Failed(_) | HookEnd::Answered => self.back_off.note_success(),
        }
    }

    fn create_to_load(
        &self,
        _: &Database,
        opening: Opening,
        replaces: bool,
    ) -> Result<Box<dyn LoadingBoard>> {
        let options = self.options(opening);
        let loading = Redis::create_to_load(self.address.clone(), &options, replaces)?;
        // It replaces whatever this machine has used.
        self.known.forget();
        Ok(Box::new(loading))
    }
}

#[cfg(test)]
mod tests {
    use blackboard::store::Sidecar;

    use super::super::Patience;

    use super::*;

    fn server(url: &str) -> RedisServer {
        RedisServer::new(url, Path::new("/home/ivy/.pai/blackboard"), &Environment::default()).unwrap()
    }

    #[test]
    fn sidecars_of_a_board_do_not_depend_on_the_login() {
        let path = |url| server(url).sidecars().path(Sidecar::ServerRegistration);
        let expected = "/home/ivy/.pai/blackboard/remote/b17a8fafd73854ef9640814c28532458/serve";
        assert_eq!(path("redis://host/1"), Path::new(expected));
        assert_eq!(path("redis://ivy:secret@host/1"), path("redis://host/1"));
        assert_ne!(path("redis://host/2"), path("redis://host/1"));
        assert_ne!(path("redis://host/1?board=b"), path("redis://host/1"));
    }

    #[test]
    fn timeout_of_the_environment_is_a_duration_of_at_most_an_hour() {
        let given =
            |text: &str| timeout(&Environment { redis_timeout: Some(text.into()), ..Environment::default() });
        assert_eq!(timeout(&Environment::default()).unwrap(), None);
        assert_eq!(given("90").unwrap(), Some(Duration::from_secs(90)));
        assert_eq!(given("2m").unwrap(), Some(Duration::from_mins(2)));
        for wrong in ["0", "-1", "61m", "soon"] {
            let refused = given(wrong).unwrap_err();
            assert_eq!(refused.code(), Code::InvalidValue, "{wrong}");
            assert!(refused.to_string().contains("BLACKBOARD_REDIS_TIMEOUT"), "{refused}");
        }
        let environment = Environment { redis_timeout: Some("30s".into()), ..Environment::default() };
        let server = RedisServer::new("redis://host", Path::new("/home/ivy"), &environment).unwrap();
        let limits = |opening| {
            let options = server.options(opening);
            (options.patience.as_secs(), options.reply_limit.as_secs())
        };
        assert_eq!(limits(Opening::new(Mode::Create)), (30, 10));
        let own =
            Opening { patience: Patience::AtMost(Duration::from_secs(2)), ..Opening::new(Mode::Create) };
        assert_eq!(limits(own), (2, 2), "a command with its own limit keeps it");
    }

    #[test]
    fn password_of_the_environment_or_of_its_file_is_used_and_never_shown() {
        let directory = testkit::tempdir().unwrap();
        let file = directory.path().join("password");
        fs::write(&file, "of the file\n").unwrap();
        let environment = |password: Option<&str>, file: Option<&Path>| Environment {
            redis_password: password.map(|password| Secret(password.into())),
            redis_password_file: file.map(Into::into),
            ..Environment::default()
        };
        assert_eq!(password(&environment(None, None)).unwrap(), None);
        assert_eq!(password(&environment(Some("p"), Some(&file))).unwrap().as_deref(), Some("p"));
        assert_eq!(password(&environment(None, Some(&file))).unwrap().as_deref(), Some("of the file"));
        assert!(password(&environment(None, Some(Path::new("/nowhere")))).is_err());
        assert!(password(&environment(None, Some(directory.path()))).is_err());
        #[cfg(target_os = "linux")]
        {
            let pipe = directory.path().join("pipe");
            rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
            for endless in [&*pipe, Path::new("/dev/zero")] {
                let refused = password(&environment(None, Some(endless))).unwrap_err();
                assert!(refused.to_string().contains("no regular file"), "{refused}");
            }
        }
        fs::write(&file, "of the file\r\n").unwrap();
        assert_eq!(password(&environment(None, Some(&file))).unwrap().as_deref(), Some("of the file"));
        assert!(!format!("{:?}", environment(Some("secret"), None)).contains("secret"));
    }
}
