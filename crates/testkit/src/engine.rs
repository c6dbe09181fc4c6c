//! The engines of the boards of a test: one test function, one test per engine.
//!
//! A test of the program that is about a board, and not about its file, has no `#[test]`. Its file lists it in
//! [`on_each_engine`](crate::on_each_engine), which runs it once on each engine. A new engine is one line there.
//!
//! The engine belongs to the thread of the test, as its time limit does: [`Scratch`](crate::scratch::Scratch) asks for
//! it. Threads that a test starts have the fixtures of their test.

use std::cell::Cell;

use crate::redis::skip_without_redis;

/// An engine of boards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// A board in a file.
    Sqlite,
    /// A board on a server that the tests of a process share.
    Redis,
}

thread_local! {
    static ENGINE: Cell<Engine> = const { Cell::new(Engine::Sqlite) };
}

impl Engine {
    /// The engine of the test in this thread.
    pub fn of_this_test() -> Engine {
        ENGINE.get()
    }

    /// Runs a test on this engine, or reports that it is skipped because this machine has no server.
    #[track_caller]
    pub fn run(self, test: fn()) {
        crate::limit_test();
        if self == Engine::Redis && skip_without_redis() {
            return;
        }
        ENGINE.set(self);
        test();
        ENGINE.set(Engine::Sqlite);
    }
}

/// Runs tests on each engine.
#[macro_export]
macro_rules! on_each_engine {
    ($($test:ident),+ $(,)?) => {
        $crate::on_each_engine!(@ on_sqlite = Sqlite: $($test),+);
        $crate::on_each_engine!(@ on_redis = Redis: $($test),+);
    };
    (@ $module:ident = $engine:ident: $($test:ident),+) => {
        mod $module {
            $(#[test]
            fn $test() {
                $crate::engine::Engine::$engine.run(super::$test);
            })+
        }
    };
}
