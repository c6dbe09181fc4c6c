//! The hook log: one line for each call that failed.
//!
//! The log is beside the board, is readable only by its user, and never exceeds two files of 256 KB. It contains times,
//! names of platforms and events, and messages of this program. Of standard input it contains only the name of the
//! event, and nothing of the environment.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::{panic, process};

use blackboard::clock::{Clock, SystemClock};
use blackboard::store::{Sidecar, SidecarDirectory, Sidecars};
use blackboard::text::escape_for_terminal;

use crate::disk::private_file;
use crate::engine::engine_at;
use crate::environment::Environment;
use crate::location::{self, Location, Request};

/// The size at which a file is rotated.
const LARGEST: u64 = 256 * 1024;

/// The maximum number of characters of a line.
const LONGEST: usize = 400;

/// The log, once its location is known.
pub struct HookLog {
    known: Mutex<LogState>,
    append: fn(&Path, &str) -> std::io::Result<()>,
}

#[derive(Clone, Default)]
struct LogState {
    platform: Option<String>,
    /// The board that the call names, to locate the log.
    db: Option<OsString>,
    /// Its possible files. The first whose directory exists is used, once there is a line to write.
    files: Vec<PathBuf>,
    event: Option<String>,
}

impl Default for HookLog {
    /// A log that has no file yet.
    fn default() -> HookLog {
        HookLog { known: Mutex::default(), append }
    }
}

impl HookLog {
    /// Sets the platform that calls, and the board that the call names.
    pub fn called_by(&self, platform: &str, db: Option<&OsStr>) {
        let mut known = self.known();
        known.platform = Some(platform.to_owned());
        known.db = db.map(OsStr::to_owned);
    }

    /// Uses the log of the board that this request leads to. If that has none, uses the one in the home of boards.
    pub fn locate(&self, request: &Request) {
        if let Ok(location) = location::find(request) {
            return self.locate_at(&location);
        }
        self.use_first_of(location::home(request).as_deref().map(log_in).into_iter().collect());
    }

    /// Uses the log of the board at this location. If that has none, uses the one in the home of boards.
    pub fn locate_at(&self, location: &Location) {
        let own = engine_at(location).ok().map(|engine| engine.sidecars().path(Sidecar::HookLog));
        let home = location.home.as_deref().map(log_in);
        self.use_first_of(own.into_iter().chain(home).collect());
    }

    /// Uses the first of these files whose directory exists. Creates no directory.
    fn use_first_of(&self, files: Vec<PathBuf>) {
        self.known().files = files;
    }

    /// Sets the event of the call.
    pub fn about(&self, event: &str) {
        self.known().event = Some(event.to_owned());
    }

    /// Writes one line. An error here cannot be reported anywhere.
    pub fn write(&self, what: &str) {
        // A disk may be slow. No other thread waits for it.
        let known = self.known().clone();
        let Some(file) = known.file() else { return };
        let LogState { event, platform, .. } = &known;
        let parts = [platform.as_deref().unwrap_or("-"), event.as_deref().unwrap_or("-"), what];
        let _ = (self.append)(file, &line_of(&parts));
    }

    /// Writes one line. Locates the log first if necessary.
    pub fn write_from_anywhere(&self, what: &str) {
        let known = self.known().clone();
        if known.file().is_none() {
            let current_dir = std::env::current_dir().unwrap_or_default();
            let db = known.db.map(Into::into);
            let request = Request { db, environment: Environment::capture(), current_dir };
            self.locate(&request);
        }
        self.write(what);
    }

    /// Lets a panic log its location before the process ends. Its message is omitted, because it may contain input.
    pub fn write_panics(self: &Arc<HookLog>) {
        let log = Arc::clone(self);
        panic::set_hook(Box::new(move |panic| {
            let location = panic.location().map(ToString::to_string).unwrap_or_default();
            log.write(&format!("a fault of this program at {location}"));
            process::exit(0);
        }));
    }

    fn known(&self) -> std::sync::MutexGuard<'_, LogState> {
        self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl LogState {
    /// The file to write to.
    fn file(&self) -> Option<&Path> {
        self.files.iter().map(PathBuf::as_path).find(|file| file.parent().is_some_and(Path::is_dir))
    }
}

/// The log in a directory of boards.
fn log_in(home: &Path) -> PathBuf {
    SidecarDirectory::new(home).path(Sidecar::HookLog)
}

/// Appends one line to another log, with the same limits.
pub fn append_line(path: &Path, what: &str) -> std::io::Result<()> {
    append(path, &line_of(&[what]))
}

fn line_of(parts: &[&str]) -> String {
    let parts: Vec<_> = parts.iter().map(|part| escape_for_terminal(part)).collect();
    let text: String = parts.join(" ").chars().take(LONGEST).collect();
    format!("{} {text}\n", SystemClock.now())
}

fn append(path: &Path, line: &str) -> std::io::Result<()> {
    let mut file = open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(());
    }
    if metadata.len() > LARGEST {
        fs::rename(path, path.with_extension("log.old"))?;
        file = open(path)?;
    }
    // A single write, so that lines of several processes do not mix.
    file.write_all(line.as_bytes())
}

/// Never follows a link, and does not block on a pipe with that name.
fn open(path: &Path) -> std::io::Result<File> {
    let mut options = private_file();
    options.append(true).create(true);
    #[cfg(unix)]
    {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_private_bounded_and_one_line_a_call() {
        let directory = testkit::tempdir().unwrap();
        let log = HookLog::default();
        log.called_by("claude", None);
        log.write("unknown location");
        log.use_first_of(vec![
            directory.path().join("none").join("hook.log"),
            directory.path().join("hook.log"),
        ]);
        log.about("Post\nToolUse");
        for _ in 0..2000 {
            log.write(&"x\n\u{1b}[31m".repeat(100));
        }
        let file = directory.path().join("hook.log");
        let sizes = [&file, &file.with_extension("log.old")].map(|file| fs::metadata(file).unwrap().len());
        assert!(sizes.iter().all(|size| *size <= LARGEST + 1000), "{sizes:?}");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.lines().all(|line| line.contains(" claude Post\\nToolUse x\\n")), "{text}");
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions());
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn a_line_that_is_being_written_blocks_no_other() {
        static WRITING: std::sync::Barrier = std::sync::Barrier::new(2);
        let slow = |_: &Path, _: &str| {
            WRITING.wait();
            WRITING.wait();
            Ok(())
        };
        let directory = testkit::tempdir().unwrap();
        let log = HookLog { append: slow, ..HookLog::default() };
        log.use_first_of(vec![directory.path().join("hook.log")]);
        std::thread::scope(|scope| {
            scope.spawn(|| log.write("something"));
            WRITING.wait();
            log.about("Stop");
            assert!(log.known().file().is_some());
            WRITING.wait();
        });
    }

    #[test]
    fn a_board_without_a_file_has_a_log_of_its_own_once_it_has_a_directory() {
        let home = testkit::tempdir().unwrap();
        let request = Request {
            db: Some("redis://ivy:secret@nowhere".into()),
            environment: Environment { home: Some(home.path().into()), ..Environment::default() },
            current_dir: home.path().to_owned(),
        };
        let engine = engine_at(&location::find(&request).unwrap()).unwrap();
        let own = engine.sidecars().path(Sidecar::HookLog);
        let log = HookLog::default();
        log.locate(&request);
        log.write("before");
        assert!(!own.exists() && home.path().join("hook.log").exists());
        engine.sidecars().create_directory().unwrap();
        log.locate(&request);
        log.write("after");
        assert!(fs::read_to_string(own).unwrap().contains("after"));
    }

    #[cfg(unix)]
    #[test]
    fn the_log_is_never_written_through_a_link() {
        let directory = testkit::tempdir().unwrap();
        let target = directory.path().join("target");
        fs::write(&target, "").unwrap();
        let file = directory.path().join("hook.log");
        std::os::unix::fs::symlink(&target, &file).unwrap();
        let log = HookLog::default();
        log.use_first_of(vec![file]);
        log.write("something");
        assert_eq!(fs::read_to_string(&target).unwrap(), "");
    }
}
