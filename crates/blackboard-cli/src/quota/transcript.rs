//! The files in which platforms write their usage, read from where the last call stopped.
//!
//! For each file there is a small state file in the home of boards: how far it was read, and whose it is. A call locks the
//! state file, reads complete lines, passes on what they contain, and only then stores how far it came. A call that is killed
//! repeats lines, and the ledger counts each message once. So a state file may be lost without harm.
//!
//! Paths come from the input of hooks. Read is only a regular file of this user, below the directory of the platform, that
//! is not a symbolic link.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::of_file;
use super::reading::{Reading, ReadingContext, UsageFormat};
use crate::disk;
use crate::platforms::Platform;

/// The directory of state files in the home of boards.
const DIRECTORY: &str = "quota-transcripts";

/// A line that is longer is skipped without being kept in memory.
const LONGEST_LINE: usize = 4 * 1024 * 1024;

/// How many bytes before the last line's end are digested.
const DIGESTED: usize = 256;

/// A longer path is not read.
const LONGEST_PATH: usize = 4096;

/// A longer state file is not one.
const LONGEST_STATE: u64 = 32 * 1024;

/// How long a call that lets a file be read again waits for one that reads it, and how often it looks.
const PATIENCE: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(5);

/// The namespace of the names of state files. It never changes.
const NAMES: Uuid = Uuid::from_u128(0x2f0c_77d1_6a3e_4b0f_9d52_c1e8_40b7_93ac);

/// Whose usage it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Origin {
    /// The board.
    pub board: String,
    /// The session.
    pub session: String,
    /// The name of the agent.
    pub agent: Option<String>,
    /// The work item.
    pub item: Option<String>,
}

/// A file of a platform.
pub struct TranscriptFile {
    /// Its path.
    pub path: PathBuf,
    /// The directory of the platform, without symbolic links.
    pub root: PathBuf,
    /// The platform.
    pub platform: &'static Platform,
    /// The platform's own id of the session, unless it is the file of a subagent.
    pub own_session: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct State {
    path: PathBuf,
    root: PathBuf,
    platform: String,
    #[serde(default)]
    own_session: Option<String>,
    device: u64,
    inode: u64,
    /// The end of the last complete line.
    offset: u64,
    /// The digest of the bytes before it, by which a file is recognized that was cut off and has grown again.
    #[serde(default)]
    digest: u64,
    /// Whether that is the middle of a line that is skipped.
    #[serde(default)]
    is_inside_line: bool,
    #[serde(default)]
    context: ReadingContext,
    origin: Origin,
}

/// A file that this process reads, and no other one.
pub struct Transcript {
    file: File,
    state: State,
    format: &'static UsageFormat,
    is_new: bool,
}

/// How far a call came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// How many bytes it read.
    pub bytes: usize,
    /// Whether there may be more to read now.
    pub has_more: bool,
    /// How many messages were ignored because of their numbers.
    pub ignored: u64,
}

impl Drop for Transcript {
    /// A process that another thread starts has the file open, too, until it runs its program. Closing the file alone would
    /// leave the lock to it.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

impl Transcript {
    /// Opens the state of a file, and creates it. `None` if another process reads the file, or its path is not usable.
    pub fn open(home: &Path, file: TranscriptFile, origin: &Origin) -> io::Result<Option<Transcript>> {
        let TranscriptFile { path, root, platform, own_session } = file;
        let Some(format) = &platform.usage else { return Ok(None) };
        if !is_usable(&path) {
            return Ok(None);
        }
        let state_file = state_file(home, &path);
        let opened = match disk::own_file(&state_file, true) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                create_directory(home)?;
                disk::own_file(&state_file, true)?
            }
            opened => opened.map_err(|error| of_file("the state of a transcript", &error))?,
        };
        if opened.try_lock().is_err() {
            return Ok(None);
        }
        let known = read_state(&opened).filter(|known| known.path == path && known.platform == platform.id);
        let is_new = known.is_none();
        let mut state = known.unwrap_or_else(|| State {
            path,
            root: PathBuf::new(),
            platform: platform.id.to_owned(),
            own_session: None,
            device: 0,
            inode: 0,
            offset: 0,
            digest: 0,
            is_inside_line: false,
            context: ReadingContext::default(),
            origin: Origin::default(),
        });
        if state.origin.session != origin.session || state.origin.board != origin.board {
            state.origin = origin.clone();
        }
        state.root = root;
        state.own_session = own_session;
        Ok(Some(Transcript { file: opened, state, format, is_new }))
    }

    /// Opens the file that a state file is about. `None` if another process reads it, or there is nothing to read.
    pub fn of_state(state_file: &Path) -> Option<Transcript> {
        let file = disk::own_file(state_file, false).ok()?;
        file.try_lock().ok()?;
        let state = read_state(&file)?;
        let format = Platform::find(&state.platform)?.usage.as_ref()?;
        is_usable(&state.path).then_some(Transcript { file, state, format, is_new: false })
    }

    /// Whose usage it is.
    pub fn origin(&self) -> &Origin {
        &self.state.origin
    }

    /// The same, to complete it.
    pub fn origin_mut(&mut self) -> &mut Origin {
        &mut self.state.origin
    }

    /// Whether nothing was known about the file.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// The files of subagents beside it that may have no state yet, at most this many.
    pub fn delegates(&self, most: usize) -> Vec<(TranscriptFile, String)> {
        let Some(platform) = Platform::find(&self.state.platform) else { return Vec::new() };
        let Some(session) = &self.state.own_session else { return Vec::new() };
        let files = delegate_files(platform, &self.state.path, most).into_iter();
        let root = &self.state.root;
        let files = files.map(|(path, delegate)| {
            let hint = platform.session_hint(session, Some(&delegate));
            (TranscriptFile { path, root: root.clone(), platform, own_session: None }, hint)
        });
        files.collect()
    }

    /// Reads about this many bytes of complete lines, and passes on what they contain. What was read is stored only if `keep`
    /// succeeds.
    pub fn read(
        &mut self,
        limit: usize,
        keep: &mut dyn FnMut(&mut Origin, &Reading) -> io::Result<()>,
    ) -> io::Result<Progress> {
        let nothing = Progress { bytes: 0, has_more: false, ignored: 0 };
        let mut file = match open_below(&self.state.path, &self.state.root) {
            // A session has no file before its first message. Another call reads it then.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.store_if_new()?;
                return Ok(nothing);
            }
            file => file.map_err(|error| of_file("a transcript", &error))?,
        };
        let metadata = file.metadata()?;
        let (device, inode) = disk::identity(&metadata);
        let is_same = (device, inode) == (self.state.device, self.state.inode);
        if !is_same || metadata.len() < self.state.offset {
            self.restart();
            (self.state.device, self.state.inode) = (device, inode);
        }
        if metadata.len() == self.state.offset {
            self.store_if_new()?;
            return Ok(nothing);
        }
        let mut chunk = Chunk::read(&mut file, self.state.offset, limit)?;
        if digest(chunk.before()) != self.state.digest && self.state.offset > 0 {
            self.restart();
            chunk = Chunk::read(&mut file, 0, limit)?;
        }
        if chunk.added().len() >= limit && !chunk.added().contains(&b'\n') {
            chunk = Chunk::read(&mut file, self.state.offset, LONGEST_LINE)?;
        }
        let (start, bytes) = (self.state.offset, chunk.added());
        let reading = self.take_lines(bytes);
        if !reading.is_empty() {
            keep(&mut self.state.origin, &reading)?;
        }
        let ignored = reading.ignored;
        self.state.context = reading.context;
        let end = self.state.offset;
        if end > start {
            self.state.digest = digest(chunk.before_offset(start, end));
            self.store()?;
        } else {
            self.store_if_new()?;
        }
        Ok(Progress { bytes: bytes.len(), has_more: end > start && end < metadata.len(), ignored })
    }

    /// Stores the state of a file that had none, so that a fold finds the file.
    pub fn store_if_new(&mut self) -> io::Result<()> {
        if self.is_new { self.store() } else { Ok(()) }
    }

    /// Reads complete lines, and moves behind them.
    fn take_lines(&mut self, mut bytes: &[u8]) -> Reading {
        let state = &mut self.state;
        let mut reading = Reading::after(state.context.clone());
        if state.is_inside_line {
            let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
                state.offset += bytes.len() as u64;
                return reading;
            };
            bytes = &bytes[end + 1..];
            state.offset += end as u64 + 1;
            state.is_inside_line = false;
        }
        let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else {
            if bytes.len() >= LONGEST_LINE {
                state.offset += bytes.len() as u64;
                state.is_inside_line = true;
            }
            return reading;
        };
        state.offset += end as u64 + 1;
        for line in bytes[..end].split(|byte| *byte == b'\n') {
            if let Ok(line) = std::str::from_utf8(line) {
                (self.format.read)(line, &mut reading);
            }
        }
        reading
    }

    /// The file is not the one that was read.
    fn restart(&mut self) {
        self.is_new = true;
        self.state.offset = 0;
        self.state.is_inside_line = false;
        self.state.context = ReadingContext::default();
    }

    fn store(&mut self) -> io::Result<()> {
        let text = serde_json::to_vec(&self.state)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.set_len(0)?;
        self.file.write_all(&text)?;
        self.is_new = false;
        Ok(())
    }
}

/// A part of a file, and some bytes before it.
struct Chunk {
    bytes: Vec<u8>,
    /// How many bytes are before it.
    before: usize,
}

impl Chunk {
    fn read(file: &mut File, offset: u64, limit: usize) -> io::Result<Chunk> {
        let before = offset.min(DIGESTED as u64);
        file.seek(SeekFrom::Start(offset - before))?;
        let mut bytes = Vec::new();
        file.take(limit as u64 + before).read_to_end(&mut bytes)?;
        let before = bytes.len().min(usize::try_from(before).unwrap_or(DIGESTED));
        Ok(Chunk { bytes, before })
    }

    fn before(&self) -> &[u8] {
        &self.bytes[..self.before]
    }

    fn added(&self) -> &[u8] {
        &self.bytes[self.before..]
    }

    /// The bytes before an offset in this part, which starts at another offset.
    fn before_offset(&self, start: u64, offset: u64) -> &[u8] {
        let read = usize::try_from(offset - start).unwrap_or(usize::MAX);
        let end = self.before.saturating_add(read).min(self.bytes.len());
        &self.bytes[end.saturating_sub(DIGESTED)..end]
    }
}

/// The number by which bytes are recognized. It says nothing about them.
#[expect(clippy::cast_possible_truncation, reason = "a part of it is enough")]
fn digest(bytes: &[u8]) -> u64 {
    Uuid::new_v5(&NAMES, bytes).as_u128() as u64
}

/// The state files.
pub fn states(home: &Path) -> impl Iterator<Item = fs::DirEntry> {
    fs::read_dir(home.join(DIRECTORY)).into_iter().flatten().flatten()
}

/// Lets every file be read again from its start. Returns whether all of them will be: another process may read one now.
pub fn restart_all(home: &Path) -> bool {
    let mut all = true;
    for entry in states(home) {
        all &= restart(&entry.path());
    }
    all
}

fn restart(state_file: &Path) -> bool {
    // One that was removed, or is no state, is made again.
    let Ok(file) = disk::own_file(state_file, false) else { return true };
    let began = Instant::now();
    while file.try_lock().is_err() {
        if began.elapsed() >= PATIENCE {
            return false;
        }
        thread::sleep(POLL);
    }
    let state = read_state(&file);
    let format = state.as_ref().and_then(|state| Platform::find(&state.platform)?.usage.as_ref());
    let (Some(state), Some(format)) = (state, format) else { return true };
    let mut transcript = Transcript { file, state, format, is_new: false };
    transcript.restart();
    transcript.store().is_ok()
}

/// Whether this home has state files.
pub fn has_states(home: &Path) -> bool {
    home.join(DIRECTORY).is_dir()
}

/// The files of subagents of a session, and the platform's own id of each, at most this many.
pub fn delegate_files(platform: &Platform, transcript: &Path, most: usize) -> Vec<(PathBuf, String)> {
    let directory = platform.usage.as_ref().and_then(|format| format.delegates);
    let Some(directory) = directory.map(|directory| directory(transcript)) else { return Vec::new() };
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let files = entries.take(10 * most).flatten().filter_map(|entry| {
        let path = entry.path();
        let name = path.file_name()?.to_str()?;
        let delegate = name.strip_prefix("agent-")?.strip_suffix(".jsonl")?.to_owned();
        Some((path, delegate))
    });
    files.take(most).collect()
}

fn state_file(home: &Path, path: &Path) -> PathBuf {
    let name = Uuid::new_v5(&NAMES, path.as_os_str().as_encoded_bytes());
    home.join(DIRECTORY).join(name.simple().to_string())
}

fn create_directory(home: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(home.join(DIRECTORY)) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        created => created,
    }
}

fn read_state(file: &File) -> Option<State> {
    let mut text = Vec::new();
    file.take(LONGEST_STATE).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn is_usable(path: &Path) -> bool {
    let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    path.is_absolute()
        && path.to_str().is_some_and(|text| text.len() <= LONGEST_PATH)
        && path.components().all(is_plain)
}

/// Opens a file to read it, if it is really below this directory.
fn open_below(path: &Path, root: &Path) -> io::Result<File> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let parent = parent.canonicalize()?;
    if !parent.starts_with(root) {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "it is outside of the platform's directory"));
    }
    disk::own_file_to_read(&parent.join(name))
}
