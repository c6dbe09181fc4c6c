//! Many processes at once, waits with a limit, and processes that outlive others.

use std::process::Child;
use std::sync::Barrier;
use std::thread;

use testkit::process::Lines;
pub use testkit::process::{Ended, end_of, kill, signal, wait_for};
pub use testkit::wait_until;

/// Runs `f` in `count` threads that start together, and returns their answers in order.
pub fn at_once<T: Send>(count: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let start = Barrier::new(count);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|index| {
                let (start, f) = (&start, &f);
                scope.spawn(move || {
                    start.wait();
                    f(index)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread of the crowd failed")).collect()
    })
}

/// The two words of the first line that a process prints. The rest is not read: a command that the process runs may outlive it,
/// and would keep the pipe open.
pub fn first_words(child: &mut Child) -> (String, String) {
    let line = Lines::of(child).next();
    let (first, second) = line.trim().split_once(' ').unwrap_or_else(|| panic!("said {line:?}"));
    (first.to_owned(), second.to_owned())
}

/// A process that outlives its parent, ended with the value.
pub struct Orphan(pub u32);

impl Drop for Orphan {
    fn drop(&mut self) {
        kill(self.0);
    }
}
