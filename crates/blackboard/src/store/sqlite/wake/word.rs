//! A word in a file, on which processes sleep until another one changes it.
//!
//! The word is read and written through the file, never through memory: a truncated file or a full disk is then an
//! error of a call and not a signal that kills the process. The page is mapped only because the kernel identifies
//! sleepers by the page they sleep on. It is mapped for reading, which is enough for that.

#![expect(
    unsafe_code,
    reason = "the kernel wants the word's address in memory; nothing here looks at that memory"
)]

use std::fs::{File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::thread::futex::{self, Flags, Timespec};

use super::WakeReason;

/// The length of the file. The word is at its beginning, the rest is zero.
pub(super) const LENGTH: usize = 4096;

/// All sleepers.
const ALL: u32 = i32::MAX.cast_unsigned();

/// The word in a file that has been checked.
pub(super) struct FutexWord {
    file: File,
    /// The identity of the file: its device and inode number, which stay unique while it is open.
    identity: (u64, u64),
    page: NonNull<AtomicU32>,
}

// SAFETY: The mapping belongs to this value alone and stays at its address until the value is dropped, which no
// borrow outlives. Whatever thread calls, only the kernel accesses the memory.
unsafe impl Send for FutexWord {}
// SAFETY: As above; all that is shared are a file, which may be shared, and an address that does not change.
unsafe impl Sync for FutexWord {}

impl FutexWord {
    /// The word in this file, which has [`LENGTH`] bytes.
    pub(super) fn new(file: File, metadata: &Metadata) -> Option<FutexWord> {
        // SAFETY: The kernel chooses a free address, so no existing mapping is replaced.
        let page =
            unsafe { mmap(ptr::null_mut(), LENGTH, ProtFlags::READ, MapFlags::SHARED, &file, 0) }.ok()?;
        // Never null, like every address that the kernel chooses.
        let page = NonNull::new(page.cast())?;
        Some(FutexWord { file, identity: identity(metadata), page })
    }

    /// Whether the word is in this file.
    pub(super) fn is_in(&self, metadata: &Metadata) -> bool {
        self.identity == identity(metadata)
    }

    pub(super) fn read(&self) -> Option<u32> {
        let mut bytes = [0; 4];
        self.file.read_exact_at(&mut bytes, 0).ok()?;
        Some(u32::from_ne_bytes(bytes))
    }

    /// Changes the word and wakes all sleepers.
    pub(super) fn change(&self, value: u32) {
        // Even if the word cannot be changed, the sleepers can be woken.
        let _ = self.file.write_all_at(&value.to_ne_bytes(), 0);
        let _ = futex::wake(self.address(), Flags::empty(), ALL);
    }

    /// Sleeps until the word changes, unless it differs from `seen` already.
    pub(super) fn sleep(&self, seen: u32, at_most: Duration) -> WakeReason {
        let Ok(at_most) = Timespec::try_from(at_most) else { return WakeReason::Impossible };
        match futex::wait(self.address(), Flags::empty(), seen, Some(&at_most)) {
            Ok(()) | Err(Errno::TIMEDOUT | Errno::INTR) => WakeReason::Over,
            Err(Errno::AGAIN) => WakeReason::Changed,
            Err(_) => WakeReason::Impossible,
        }
    }

    fn address(&self) -> &AtomicU32 {
        // SAFETY: The address is that of a page which stays mapped as long as `self` lives, so it is aligned and not
        // null. Any bytes there are a valid number, and an atomic number may be changed by other processes. This
        // program neither reads nor writes it, because a page that has disappeared from the file would raise a
        // signal.
        unsafe { self.page.as_ref() }
    }
}

impl Drop for FutexWord {
    fn drop(&mut self) {
        // SAFETY: This is the mapped page, and every sleeper borrows the value that is being dropped.
        let _ = unsafe { munmap(self.page.as_ptr().cast(), LENGTH) };
    }
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}
