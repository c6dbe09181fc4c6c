//! Many at once, and waiting with an end.

use std::sync::Barrier;
use std::thread;

pub use testkit::process::{Ended, end_of, kill, signal};
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
