//! What was read from remotes, so that unchanged ones are not read again, and so that a pull works without a network.
//!
//! Each remote has a directory: `repository.git`, a bare repository without files that makes the next fetch small, and
//! `snapshot.json`, the texts that were read from its last commit. The time of the snapshot is when the remote was last
//! asked. Losing the cache loses nothing.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use blackboard::clock::Timestamp;
use blackboard::store::create_private_directory;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::address::Address;
use super::folder::LARGEST_HUB;
use super::git::{GitOptions, Repository, Tip};

/// The largest snapshot: that of a hub with as much text as is read, most of which JSON stores unchanged.
const LARGEST_SNAPSHOT: u64 = 2 * LARGEST_HUB;

/// How many files the packs of a repository may be before it is fetched again from the start.
const MOST_PACK_FILES: usize = 60;

/// How often a remote that another process reads is tried again.
const RETRY: Duration = Duration::from_millis(20);

/// What is read from a remote.
pub trait Selection: Serialize + DeserializeOwned {
    /// Distinguishes caches of the same remote.
    const KIND: &'static str;

    /// Reads it from the fetched commit.
    fn select(repository: &Repository<'_>) -> Result<Self, String>;
}

/// What is known about a remote.
pub struct Reading<S> {
    /// What was read, now or earlier.
    pub snapshot: Option<(Snapshot<S>, Timestamp)>,
    /// Why it could not be read now.
    pub problem: Option<String>,
}

/// What was read from a commit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot<S> {
    /// The branch.
    pub reference: String,
    /// The commit.
    pub commit: String,
    /// What was read.
    pub content: S,
}

/// All remotes.
#[derive(Clone, Debug)]
pub struct Cache {
    /// Its directory.
    pub directory: PathBuf,
    /// Whether remotes are not asked.
    pub offline: bool,
    /// How git is run.
    pub options: GitOptions,
}

impl Cache {
    /// Reads from a remote what has changed there, and the rest from the cache.
    pub fn read<S: Selection>(
        &self,
        address: &Address,
        branch: Option<&str>,
        interrupted: &AtomicBool,
    ) -> Reading<S> {
        let name = format!("{}\n{}\n{}", S::KIND, address.url, branch.unwrap_or_default());
        let directory = self.directory.join(Uuid::new_v5(&Uuid::NAMESPACE_URL, name.as_bytes()).to_string());
        if self.offline {
            let snapshot = stored(&directory);
            let problem = snapshot.is_none().then(|| "it is not in the cache".to_owned());
            return Reading { snapshot, problem };
        }
        let remote = Remote { cache: self, directory: &directory, address, branch, interrupted };
        match remote.update() {
            Ok(snapshot) => Reading { snapshot: Some(snapshot), problem: None },
            Err(problem) => Reading { snapshot: stored(&directory), problem: Some(problem) },
        }
    }
}

/// One remote while it is read.
struct Remote<'a> {
    cache: &'a Cache,
    directory: &'a Path,
    address: &'a Address,
    branch: Option<&'a str>,
    interrupted: &'a AtomicBool,
}

impl Remote<'_> {
    fn update<S: Selection>(&self) -> Result<(Snapshot<S>, Timestamp), String> {
        let failed = |error: io::Error| format!("its cache cannot be written: {error}");
        // Only this user can read it: a snapshot may come from a private repository.
        create_private_directory(self.directory).map_err(failed)?;
        let _lock = self.lock()?;
        let repository = Repository {
            directory: self.directory.join("repository.git"),
            address: self.address,
            options: &self.cache.options,
            interrupted: self.interrupted,
        };
        let has_objects = repository.directory.join("shallow").exists();
        repository.create().map_err(failed)?;
        let tip = repository.tip(self.branch)?;
        let snapshot = match stored::<S>(self.directory) {
            Some((snapshot, _)) if snapshot.commit == tip.commit && snapshot.reference == tip.reference => {
                touch(self.directory).map_err(failed)?;
                snapshot
            }
            _ => {
                let snapshot = match fetch(&repository, &tip) {
                    // The repository of an earlier fetch may be damaged. A new one is not.
                    Err(_) if has_objects && !self.interrupted.load(Ordering::Relaxed) => {
                        remove(&repository);
                        repository.create().map_err(failed)?;
                        fetch(&repository, &tip)
                    }
                    fetched => fetched,
                };
                let snapshot = snapshot.inspect_err(|_| remove(&repository))?;
                store(self.directory, &snapshot).map_err(failed)?;
                if is_fragmented(&repository) {
                    remove(&repository);
                }
                snapshot
            }
        };
        Ok((snapshot, asked_at(self.directory).unwrap_or(Timestamp::EPOCH)))
    }

    /// Waits until no other process reads this remote. Each of them ends, because git has a limit there too.
    fn lock(&self) -> Result<File, String> {
        let end = Instant::now() + self.cache.options.timeout;
        let failed = |error: &dyn std::fmt::Display| format!("its cache cannot be locked: {error}");
        let file =
            crate::disk::own_file(&self.directory.join("lock"), true).map_err(|error| failed(&error))?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if self.interrupted.load(Ordering::Relaxed) => {
                    return Err("interrupted".to_owned());
                }
                Err(TryLockError::WouldBlock) if Instant::now() < end => thread::sleep(RETRY),
                Err(TryLockError::WouldBlock) => return Err("another process is reading it".to_owned()),
                Err(TryLockError::Error(error)) => return Err(failed(&error)),
            }
        }
    }
}

fn fetch<S: Selection>(repository: &Repository<'_>, tip: &Tip) -> Result<Snapshot<S>, String> {
    repository.fetch(tip)?;
    // The branch may have moved since it was asked for.
    let commit = repository.fetched()?;
    Ok(Snapshot { reference: tip.reference.clone(), commit, content: S::select(repository)? })
}

/// A repository in an unknown state is fetched again from the start.
fn remove(repository: &Repository<'_>) {
    let _ = fs::remove_dir_all(&repository.directory);
}

/// Every fetch adds a pack.
fn is_fragmented(repository: &Repository<'_>) -> bool {
    fs::read_dir(repository.directory.join("objects/pack")).is_ok_and(|files| files.count() > MOST_PACK_FILES)
}

fn snapshot_file(directory: &Path) -> PathBuf {
    directory.join("snapshot.json")
}

/// The snapshot, and when the remote was last asked. One that cannot be read is missing.
fn stored<S: Selection>(directory: &Path) -> Option<(Snapshot<S>, Timestamp)> {
    let mut text = String::new();
    let file = File::open(snapshot_file(directory)).ok()?;
    file.take(LARGEST_SNAPSHOT).read_to_string(&mut text).ok()?;
    Some((serde_json::from_str(&text).ok()?, asked_at(directory)?))
}

/// Replaces the snapshot, if it can be read again. It is not synchronized with the disk: losing it costs a fetch.
fn store<S: Selection>(directory: &Path, snapshot: &Snapshot<S>) -> io::Result<()> {
    let json = serde_json::to_vec(snapshot)?;
    if json.len() as u64 > LARGEST_SNAPSHOT {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it would have too many bytes"));
    }
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(&json)?;
    file.persist(snapshot_file(directory))?;
    Ok(())
}

fn touch(directory: &Path) -> io::Result<()> {
    File::options().append(true).open(snapshot_file(directory))?.set_modified(SystemTime::now())
}

fn asked_at(directory: &Path) -> Option<Timestamp> {
    let modified = fs::metadata(snapshot_file(directory)).ok()?.modified().ok()?;
    let since = modified.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(Timestamp::from_millis(i64::try_from(since.as_millis()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::folder::Collab;
    use super::*;

    #[test]
    fn a_snapshot_that_could_not_be_read_again_is_not_stored() {
        let scratch = testkit::tempdir().unwrap();
        testkit::limit_test();
        // JSON needs six bytes for each of these.
        let snapshot = |length: usize| {
            let files = [("status.yaml".to_owned(), Ok("\u{1}".repeat(length)))].into();
            let content = Collab { problem: None, files };
            Snapshot { reference: "HEAD".to_owned(), commit: "1".repeat(40), content }
        };
        store(scratch.path(), &snapshot(10)).unwrap();
        let refused = store(scratch.path(), &snapshot(12_000_000)).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::FileTooLarge);
        // What was there before is kept.
        let (kept, _) = stored::<Collab>(scratch.path()).unwrap();
        assert_eq!(kept.content, snapshot(10).content);
    }
}
