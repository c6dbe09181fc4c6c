//! The word in the sidecar file: which process creates it, which it wakes, and which files are rejected.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tempfile::TempDir;
use testkit::wait_until;

use super::word::LENGTH;
use super::*;
use crate::board::Board;
use crate::clock::SystemClock;
use crate::entry::{Value, Write};
use crate::store::sqlite::{Sqlite, SqliteOptions, SqliteSidecars};

/// So long that a test that reaches it has failed, and longer than any sleep that ends by itself.
const LONG: Duration = Duration::from_mins(2);

/// A directory for a board that is only a number.
struct Scratch {
    directory: TempDir,
    revision: AtomicI64,
}

impl Scratch {
    fn new() -> Scratch {
        Scratch { directory: testkit::tempdir().unwrap(), revision: AtomicI64::new(7) }
    }

    fn wake(&self) -> Wake {
        Wake::new(&SqliteSidecars::new(&self.directory.path().join("local.db")))
    }

    fn sidecar(&self) -> PathBuf {
        self.directory.path().join("local.db-wake")
    }

    fn write(&self, bytes: &[u8]) {
        fs::write(self.sidecar(), bytes).unwrap();
        set_mode(&self.sidecar(), 0o600);
    }

    fn wait(&self, wake: &Wake, timeout: Duration) -> Revision {
        let read = || Ok(Revision::new(self.revision.load(Ordering::SeqCst)));
        wake.wait(Revision::new(7), timeout, read).unwrap()
    }

    fn commit(&self, wake: &Wake) {
        let revision = self.revision.fetch_add(1, Ordering::SeqCst) + 1;
        wake.tell(Revision::new(revision));
    }

    /// A commit ends a wait, whatever the sidecar file is.
    fn assert_waiting_works(&self) {
        let (one, other) = (self.wake(), self.wake());
        assert_eq!(self.wait(&one, Duration::from_millis(1)), Revision::new(7));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| self.wait(&one, LONG));
            self.commit(&other);
            assert_eq!(waiting.join().unwrap(), Revision::new(8));
        });
        self.revision.store(7, Ordering::SeqCst);
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Whether a change by `teller` ends a sleep of `sleeper`, without any other cause.
fn wakes(teller: &Wake, sleeper: &Wake, value: i64) -> bool {
    let word = sleeper.sidecar.existing_or_new().unwrap();
    let seen = word.read().unwrap();
    let began = Instant::now();
    std::thread::scope(|scope| {
        let sleeping = scope.spawn(|| word.sleep(seen, LONG));
        teller.tell(Revision::new(value));
        assert!(matches!(sleeping.join().unwrap(), WakeReason::Over | WakeReason::Changed));
    });
    assert_eq!(word.read(), Some(low_half(Revision::new(value))));
    began.elapsed() < LONG
}

#[test]
fn waiting_thread_creates_the_file_and_a_writer_does_not() {
    let scratch = Scratch::new();
    let wake = scratch.wake();
    wake.tell(Revision::new(7));
    assert!(!scratch.sidecar().exists(), "no call waits");
    scratch.revision.store(8, Ordering::SeqCst);
    assert_eq!(scratch.wait(&wake, LONG), Revision::new(8));
    assert!(!scratch.sidecar().exists(), "no call had to sleep");
    scratch.revision.store(7, Ordering::SeqCst);
    assert_eq!(scratch.wait(&wake, Duration::ZERO), Revision::new(7));
    assert!(!scratch.sidecar().exists(), "no call had the time to sleep");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| scratch.wait(&wake, LONG));
        let other = scratch.wake();
        wait_until("a file to sleep on", || other.sidecar.existing());
        assert_eq!(fs::read(scratch.sidecar()).unwrap(), [0; LENGTH]);
        assert_eq!(fs::metadata(scratch.sidecar()).unwrap().permissions().mode() & 0o7777, 0o600);
        scratch.commit(&other);
        assert_eq!(waiting.join().unwrap(), Revision::new(8));
    });
    wake.tell(Revision::new(0x0123_4567_89ab_cdef));
    let told = fs::read(scratch.sidecar()).unwrap();
    assert_eq!(told[..4], 0x89ab_cdef_u32.to_ne_bytes());
    assert!(told.len() == LENGTH && told[4..].iter().all(|byte| *byte == 0));
}

#[test]
fn change_wakes_sleepers_with_their_own_file_handle() {
    let scratch = Scratch::new();
    let (one, other) = (scratch.wake(), scratch.wake());
    for value in 8..200 {
        assert!(wakes(&one, &other, value) && wakes(&other, &one, -value), "{value}");
    }
}

#[test]
fn change_wakes_all_sleepers() {
    let scratch = Scratch::new();
    let word = scratch.wake().sidecar.existing_or_new().unwrap();
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..50 {
            let own = scratch.wake().sidecar.existing_or_new().unwrap();
            scope.spawn(move || own.sleep(0, LONG));
        }
        word.change(1);
    });
    assert!(began.elapsed() < LONG);
}

/// What may exist instead of the file.
const ODD: [&str; 10] = [
    "open to the group",
    "empty and open to others",
    "too short",
    "too long",
    "of another program",
    "under a second name",
    "a link to such a file",
    "a link to nothing",
    "a directory",
    "a FIFO",
];

fn put_in_its_place(what: &str, scratch: &Scratch) {
    let path = scratch.sidecar();
    let other = scratch.directory.path().join("other");
    let mut page = [0; LENGTH];
    match what {
        "open to the group" => {
            scratch.write(&page);
            set_mode(&path, 0o640);
        }
        "empty and open to others" => {
            scratch.write(&[]);
            set_mode(&path, 0o602);
        }
        "too short" => scratch.write(&page[1..]),
        "too long" => scratch.write(&[0; LENGTH + 1]),
        "of another program" => {
            page[4] = 1;
            scratch.write(&page);
        }
        "under a second name" => {
            scratch.write(&page);
            fs::hard_link(path, other).unwrap();
        }
        "a link to such a file" => {
            scratch.write(&page);
            fs::rename(&path, &other).unwrap();
            symlink(other, path).unwrap();
        }
        "a link to nothing" => symlink(scratch.directory.path().join("elsewhere"), path).unwrap(),
        "a directory" => fs::create_dir(path).unwrap(),
        _ => {
            use rustix::fs::{CWD, FileType, Mode, mknodat};
            mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        }
    }
}

#[test]
fn wrong_file_is_neither_used_nor_changed() {
    for what in ODD {
        let scratch = Scratch::new();
        put_in_its_place(what, &scratch);
        let before = fs::symlink_metadata(scratch.sidecar()).unwrap();
        let bytes = || before.is_file().then(|| fs::read(scratch.sidecar()).unwrap());
        let bytes_before = bytes();
        let wake = scratch.wake();
        assert!(wake.sidecar.existing().is_none(), "{what}");
        assert!(wake.sidecar.existing_or_new().is_none(), "{what}");
        scratch.assert_waiting_works();
        let after = fs::symlink_metadata(scratch.sidecar()).unwrap();
        assert_eq!((after.file_type(), after.mode()), (before.file_type(), before.mode()), "{what}");
        assert_eq!(bytes(), bytes_before, "{what}");
        assert!(!scratch.directory.path().join("elsewhere").exists(), "{what}");
    }
}

#[test]
fn foreign_file_is_not_used() {
    if !testkit::machine::can_give_files_away() {
        return;
    }
    let scratch = Scratch::new();
    scratch.write(&[0; LENGTH]);
    std::os::unix::fs::chown(scratch.sidecar(), Some(12_345), None).unwrap();
    assert!(scratch.wake().sidecar.existing_or_new().is_none());
    scratch.assert_waiting_works();
}

#[test]
fn wait_works_where_no_file_can_be_created() {
    // No user may write there, not even root.
    let wake = Wake::new(&SqliteSidecars::new(Path::new("/proc/self/local.db")));
    assert!(wake.sidecar.existing_or_new().is_none());
    let scratch = Scratch::new();
    assert_eq!(scratch.wait(&wake, Duration::from_millis(20)), Revision::new(7));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| scratch.wait(&wake, LONG));
        scratch.commit(&wake);
        assert_eq!(waiting.join().unwrap(), Revision::new(8));
    });
}

#[test]
fn waiting_thread_completes_an_unfinished_file() {
    let scratch = Scratch::new();
    scratch.write(&[]);
    let (one, other) = (scratch.wake(), scratch.wake());
    assert!(one.sidecar.existing().is_none(), "who tells completes nothing");
    let creator = fs::OpenOptions::new().write(true).open(scratch.sidecar()).unwrap();
    creator.lock().unwrap();
    assert!(one.sidecar.existing_or_new().is_none(), "another process is about to complete it");
    drop(creator);
    assert!(wakes(&other, &one, 8));
    assert!(wakes(&one, &other, 9));
}

#[test]
fn concurrent_creators_get_the_same_file() {
    let scratch = Scratch::new();
    let start = std::sync::Barrier::new(16);
    std::thread::scope(|scope| {
        let (scratch, start) = (&scratch, &start);
        for _ in 0..16 {
            scope.spawn(move || {
                let wake = scratch.wake();
                start.wait();
                scratch.wait(&wake, LONG)
            });
        }
        let last = scratch.wake();
        wait_until("a file to sleep on", || last.sidecar.existing());
        scratch.commit(&last);
    });
    assert_eq!(fs::read(scratch.sidecar()).unwrap()[..4], 8_u32.to_ne_bytes());
}

#[test]
fn deleted_moved_or_replaced_file_is_reopened() {
    let scratch = Scratch::new();
    let (one, other) = (scratch.wake(), scratch.wake());
    let aside = scratch.directory.path().join("aside");
    assert!(wakes(&one, &other, 8));
    fs::remove_file(scratch.sidecar()).unwrap();
    assert!(one.sidecar.existing().is_none(), "it is gone");
    assert!(wakes(&one, &other, 9), "deleted");
    fs::rename(scratch.sidecar(), &aside).unwrap();
    assert!(wakes(&other, &one, 10), "moved");
    fs::rename(&aside, scratch.sidecar()).unwrap();
    assert!(wakes(&one, &other, 11), "replaced");
    set_mode(&scratch.sidecar(), 0o666);
    assert!(one.sidecar.existing().is_none(), "not to be trusted any more");
    scratch.assert_waiting_works();
}

#[test]
fn truncated_file_crashes_no_sleeper() {
    let scratch = Scratch::new();
    let wake = scratch.wake();
    let word = wake.sidecar.existing_or_new().unwrap();
    fs::OpenOptions::new().write(true).open(scratch.sidecar()).unwrap().set_len(0).unwrap();
    assert_eq!(word.read(), None);
    assert!(matches!(word.sleep(0, LONG), WakeReason::Impossible));
    word.change(8);
    scratch.assert_waiting_works();
}

#[test]
fn commit_right_after_a_check_ends_the_sleep() {
    for look in 0..2 {
        let scratch = Scratch::new();
        let (mut one, other) = (scratch.wake(), scratch.wake());
        one.longest_sleep = LONG;
        assert!(one.sidecar.existing_or_new().is_some(), "the writer has something to wake by");
        let looks = std::cell::Cell::new(0);
        let read = || {
            let revision = scratch.revision.load(Ordering::SeqCst);
            if looks.replace(looks.get() + 1) == look {
                scratch.commit(&other);
            }
            Ok(Revision::new(revision))
        };
        let began = Instant::now();
        assert_eq!(one.wait(Revision::new(7), 2 * LONG, read).unwrap(), Revision::new(8));
        assert!(began.elapsed() < LONG, "it slept until it woke by itself, after look {look}");
    }
}

/// A board in a file whose waiters are woken only by writes of others.
fn board_without_a_net(scratch: &Scratch) -> Board {
    let clock = Arc::new(SystemClock);
    let path = scratch.directory.path().join("local.db");
    let mut store = Sqlite::open(&path, clock.clone(), &SqliteOptions::default()).unwrap();
    store.wake.longest_sleep = LONG;
    Board::on(Arc::new(store), clock)
}

fn write(board: &Board) -> Revision {
    board.scope("team").write(&Write::new("a", Value::null())).unwrap().revision
}

/// The revision after `seen`. A lost wake-up is noticed here.
fn next_revision(board: &Board, seen: Revision) -> Revision {
    let began = Instant::now();
    let revision = board.wait(seen, 2 * LONG).unwrap();
    assert!(revision > seen && began.elapsed() < LONG, "no wait for what follows {seen} woke");
    revision
}

#[test]
fn ten_thousand_commits_around_the_start_of_a_wait_are_noticed() {
    const ROUNDS: u64 = 10_000;
    let scratch = Scratch::new();
    let (board, others) = (board_without_a_net(&scratch), board_without_a_net(&scratch));
    let mut seen = Revision::ZERO;
    let (start, started) = std::sync::mpsc::sync_channel(0);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for () in started {
                write(&others);
            }
        });
        for round in 0..ROUNDS {
            start.send(()).unwrap();
            // So that the commit comes before, during and after every step of going to sleep.
            let later = Instant::now() + Duration::from_micros(round % 500);
            while Instant::now() < later {
                std::hint::spin_loop();
            }
            seen = next_revision(&board, seen);
        }
        drop(start);
    });
    assert_eq!(seen, Revision::new(10_000));
}

#[test]
fn two_alternating_writers_wake_each_other_every_time() {
    const LAST: Revision = Revision::new(2_000);
    let scratch = Scratch::new();
    let (caller, answerer) = (board_without_a_net(&scratch), board_without_a_net(&scratch));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut seen = Revision::ZERO;
            while seen < LAST {
                next_revision(&answerer, seen);
                seen = write(&answerer);
            }
        });
        let mut seen = Revision::ZERO;
        while seen < LAST {
            seen = next_revision(&caller, write(&caller));
        }
    });
}

#[test]
fn sleeper_without_a_wake_up_wakes_by_itself() {
    let scratch = Scratch::new();
    let wake = scratch.wake();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| scratch.wait(&wake, LONG));
        let other = scratch.wake();
        wait_until("a file to sleep on", || other.sidecar.existing());
        // A writer that is killed between its commit and the wake-up.
        scratch.revision.fetch_add(1, Ordering::SeqCst);
        assert_eq!(waiting.join().unwrap(), Revision::new(8));
    });
}

#[test]
fn pauses_grow_to_the_longest_sleep_and_respect_the_timeout() {
    let mut pauses = Backoff::new();
    let milliseconds: Vec<_> = (0..8).map(|_| pauses.next(LONG).as_millis()).collect();
    assert_eq!(milliseconds, [5, 10, 20, 40, 80, 160, 250, 250]);
    assert_eq!(pauses.next(Duration::from_millis(3)).as_millis(), 3);
}

#[test]
fn pauses_keep_growing_between_waits_until_an_event() {
    let wake = Wake::new(&SqliteSidecars::new(Path::new("/proc/self/local.db")));
    let scratch = Scratch::new();
    let next = || wake.pauses().next.as_millis();
    let began = Instant::now();
    // Each of the waits is only long enough for the first pause.
    while next() < LONGEST_SLEEP.as_millis() {
        assert!(began.elapsed() < LONG, "the pauses start again with each wait");
        let before = next();
        assert_eq!(scratch.wait(&wake, Duration::from_millis(2)), Revision::new(7));
        assert!(next() >= before);
    }
    scratch.commit(&wake);
    assert_eq!(scratch.wait(&wake, LONG), Revision::new(8));
    assert_eq!(next(), FIRST_PAUSE.as_millis());
}
