//! Tests with a board that is not a file: open, follow, register a server.

mod gaps;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use blackboard::Result;
use blackboard::clock::SystemClock;
use blackboard::entry::{Value, Write};
use blackboard::store::{Memory, Sidecar, SidecarDirectory, Sidecars};

use super::background::{Running, ServerRegistration};
use super::feed::Feed;
use crate::config::{Config, Database};
use crate::engine::{Engine, Mode, OpenStore, Opening};
use crate::open::{KeptBoard, ResolvedBoard};

/// A board that is not a file.
pub struct InMemory {
    store: Arc<Memory>,
    sidecars: SidecarDirectory,
}

impl InMemory {
    /// The board in this store, with sidecars in this directory.
    pub fn new(store: Arc<Memory>, sidecars: &Path) -> InMemory {
        InMemory { store, sidecars: SidecarDirectory::new(sidecars) }
    }
}

impl Engine for InMemory {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    fn exists(&self) -> bool {
        true
    }

    fn identity(&self) -> Option<String> {
        Some("memory".to_owned())
    }

    fn sidecars(&self) -> &dyn Sidecars {
        &self.sidecars
    }

    fn open(&self, _: &Database, _: Opening) -> Result<Option<OpenStore>> {
        Ok(Some(OpenStore { store: self.store.clone(), clock: Arc::new(SystemClock), state: None }))
    }
}

#[test]
fn a_board_without_a_file_is_opened_followed_and_registered_like_any_other() {
    testkit::limit_test();
    let scratch = testkit::tempdir().unwrap();
    let store = Arc::new(Memory::new(Arc::new(SystemClock)));
    let engine = Arc::new(InMemory::new(store, &scratch.path().join("sidecars")));
    let config = Config::default();
    let settings = config.settings(false);
    let resolved = ResolvedBoard {
        engine,
        config,
        settings,
        notifier: None,
        replaces_repository_board: false,
        upgrades: false,
    };
    let kept = KeptBoard::new(resolved.clone());
    let board = kept.open(Mode::Existing, |_| panic!("it is not gone")).unwrap().existing().unwrap();
    board.scope("default").write(&Write::new("a", Value::of(&1).unwrap())).unwrap();

    let (feed, thread) = Feed::start(resolved.clone()).unwrap();
    assert_eq!((feed.condition().state, feed.identity()), ("open", "memory".to_owned()));
    assert_eq!(feed.board().unwrap().revision().unwrap(), board.revision().unwrap());
    feed.stop();
    thread.join().unwrap();

    let sidecars = resolved.engine.sidecars();
    sidecars.create_directory().unwrap();
    assert!(sidecars.path(Sidecar::HookLog).starts_with(scratch.path().join("sidecars")));
    let mut registration = ServerRegistration::take(sidecars).unwrap();
    registration.publish(&Running::here(SocketAddr::from(([127, 0, 0, 1], 3141)), None));
    assert!(registration.is_found() && super::find(sidecars).is_some());
}
