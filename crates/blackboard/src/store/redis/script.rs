//! The scripts that run on the server. They are called by their digest, and loaded when a server does not know them.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::layout::BoardKeys;
use super::resp::Request;

/// A script and its digest.
pub(super) struct Script {
    text: Cow<'static, str>,
    digest: String,
}

impl Script {
    fn new(text: impl Into<Cow<'static, str>>) -> Script {
        let text = text.into();
        Script { digest: sha1_smol::Sha1::from(text.as_bytes()).digest().to_string(), text }
    }

    /// Adds a call, with the keys of the board.
    pub(super) fn call(&self, request: &mut Request, keys: &BoardKeys, arguments: &[&[u8]]) {
        self.begin(request, &keys.all(), arguments.len());
        for argument in arguments {
            request.argument(argument);
        }
    }

    /// Adds a call whose arguments follow one by one.
    pub(super) fn begin(&self, request: &mut Request, keys: &[&[u8]], arguments: usize) {
        request.begin(3 + keys.len() + arguments);
        request.argument(b"EVALSHA");
        request.argument(self.digest.as_bytes());
        request.argument(keys.len().to_string().as_bytes());
        for key in keys {
            request.argument(key);
        }
    }
}

const COMMIT_TEXT: &str = include_str!("scripts/commit.lua");

pub(super) static COMMIT: LazyLock<Script> = LazyLock::new(|| Script::new(COMMIT_TEXT));
/// The same for a commit that only ends something: it also runs on a server whose memory is full.
pub(super) static COMMIT_OF_AN_END: LazyLock<Script> =
    LazyLock::new(|| Script::new(COMMIT_TEXT.replacen("#!lua", "#!lua flags=allow-oom", 1)));
pub(super) static CREATE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/create.lua")));
pub(super) static RIGHTS: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/rights.lua")));
pub(super) static RESERVE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/reserve.lua")));
pub(super) static CONFIRM: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/confirm.lua")));
pub(super) static RANGE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("scripts/range.lua")));
pub(super) static ENTRIES: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/entries.lua")));
pub(super) static VERSIONS: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/versions.lua")));
pub(super) static FIND: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("scripts/find.lua")));

pub(super) static VALUES: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/values.lua")));
pub(super) static HOLD: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("scripts/hold.lua")));
pub(super) static LOAD: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("scripts/load.lua")));

/// A request that loads every script.
pub(super) fn load_all() -> Request {
    let mut request = Request::default();
    for script in [
        &COMMIT,
        &COMMIT_OF_AN_END,
        &CREATE,
        &RIGHTS,
        &RESERVE,
        &CONFIRM,
        &RANGE,
        &ENTRIES,
        &VERSIONS,
        &VALUES,
        &FIND,
        &HOLD,
        &LOAD,
    ] {
        request.command(&[b"SCRIPT", b"LOAD", script.text.as_bytes()]);
    }
    request
}
