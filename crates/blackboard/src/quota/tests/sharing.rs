//! A ledger that several machines share.

use super::*;
use crate::board::Board;
use crate::entry::{Value, Write};

const CONFIG: &str = r#"{"providers": {"a": {"windows": {"5h": {"budget": 1000}}}}}"#;
const TTL: Duration = Duration::from_mins(30);

/// A machine: its own file of a shared ledger.
struct Machine {
    _directory: TempDir,
    ledger: Ledger,
}

impl Machine {
    fn on(board: &Board) -> Machine {
        let directory = testkit::tempdir().unwrap();
        let (config, file) = (Config::parse(CONFIG).unwrap(), directory.path().join("shared.db"));
        let ledger = Ledger::shared(&file, &config, board.clone(), &SqliteOptions::default()).unwrap();
        Machine { _directory: directory, ledger }
    }

    fn record(&self, id: &str, input: u64) -> Recorded {
        let usage = Usage { input, ..Usage::default() };
        self.ledger.record(&[Record::new(id, "a", self.ledger.now(), usage)]).unwrap()
    }

    fn used(&self) -> u64 {
        self.ledger.refresh().unwrap();
        self.ledger.status().unwrap().providers[0].windows[0].used
    }
}

#[test]
fn machines_count_each_message_once_together() {
    testkit::limit_test();
    let board = Board::memory();
    let (one, other) = (Machine::on(&board), Machine::on(&board));
    assert_eq!(one.record("1", 100).recorded, 1);
    assert_eq!(other.record("2", 10), Recorded { recorded: 1, ..Recorded::default() });
    assert_eq!(other.record("1", 100), Recorded { duplicates: 1, ..Recorded::default() });
    assert_eq!((one.used(), other.used()), (110, 110));
    assert_eq!(Machine::on(&board).used(), 110, "a new machine has all of it");
}

#[test]
fn reservations_of_all_machines_fit_together() {
    testkit::limit_test();
    let board = Board::memory();
    let machines: Vec<_> = (0..4).map(|_| Machine::on(&board)).collect();
    let fitted: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = machines
            .iter()
            .map(|machine| {
                scope.spawn(|| {
                    let request = TokenRequest::new("a", 90);
                    let tries = (0..10).map(|_| machine.ledger.reserve(&request, TTL).unwrap());
                    tries.filter(|reserved| reserved.reservation.is_some()).count()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(fitted, 11, "of 40 that would each fit alone");
    for machine in &machines {
        machine.ledger.refresh().unwrap();
        assert_eq!(machine.ledger.reservations().unwrap().len(), 11);
    }
    let held = machines[0].ledger.reservations().unwrap();
    assert!(machines[1].ledger.release(&held[0].id).unwrap());
    assert!(!machines[2].ledger.release(&held[0].id).unwrap(), "it was released");
    assert!(machines[3].ledger.reserve(&TokenRequest::new("a", 90), TTL).unwrap().check.fits);
}

#[test]
fn limits_that_one_machine_reports_count_on_all() {
    testkit::limit_test();
    let board = Board::memory();
    let (one, other) = (Machine::on(&board), Machine::on(&board));
    let now = one.ledger.now();
    let limit = ReportedLimit {
        provider: "a".to_owned(),
        window_minutes: 300,
        used_percent: 50.0,
        resets_at: now.plus(Duration::from_hours(1)),
        reported_at: now,
    };
    assert_eq!(one.ledger.report(&[limit]).unwrap(), 1);
    assert_eq!(other.used(), 500);
}

#[test]
fn machine_continues_with_the_oldest_change_that_is_left() {
    testkit::limit_test();
    let board = Board::memory();
    let one = Machine::on(&board);
    for (id, input) in [("1", 1), ("2", 10), ("3", 100)] {
        one.record(id, input);
    }
    board.scope("quota").delete("change:0000000000000001").unwrap();
    let late = Machine::on(&board);
    assert_eq!((late.used(), one.used()), (110, 111));
    late.record("4", 1000);
    assert_eq!((late.used(), one.used()), (1110, 1111));
}

#[test]
fn changes_are_kept_for_37_days_and_the_last_number_for_ever() {
    testkit::limit_test();
    let board = Board::memory();
    Machine::on(&board).record("1", 1);
    let scope = board.scope("quota");
    let change = scope.entry("change:0000000000000001").unwrap().unwrap();
    let kept = change.expires_at.unwrap().since(change.updated_at);
    assert_eq!(kept, Duration::from_hours(37 * 24));
    assert_eq!(scope.entry("head").unwrap().unwrap().expires_at, None);
}

#[test]
fn machine_continues_after_a_journal_that_has_expired() {
    testkit::limit_test();
    let board = Board::memory();
    let one = Machine::on(&board);
    for (id, input) in [("1", 1), ("2", 10)] {
        one.record(id, input);
    }
    for number in 1..=2 {
        board.scope("quota").delete(&format!("change:{number:016}")).unwrap();
    }
    let late = Machine::on(&board);
    assert_eq!(late.record("3", 100).recorded, 1);
    assert_eq!((late.used(), one.used()), (100, 111));
    assert_eq!(one.record("4", 1_000).recorded, 1);
    assert_eq!((late.used(), one.used()), (1_100, 1_111));
    for number in 3..=4 {
        board.scope("quota").delete(&format!("change:{number:016}")).unwrap();
    }
    assert_eq!(one.record("5", 10_000).recorded, 1, "a file that has all of it continues too");
    assert_eq!((late.used(), one.used()), (11_100, 11_111));
}

#[test]
fn file_with_changes_that_the_server_lost_is_made_again() {
    testkit::limit_test();
    let board = Board::memory();
    let (one, other) = (Machine::on(&board), Machine::on(&board));
    one.record("1", 1);
    one.record("2", 10);
    assert_eq!((one.used(), other.used()), (11, 11));
    // A replica that did not have the second change became the primary.
    let scope = board.scope("quota");
    scope.delete("change:0000000000000002").unwrap();
    scope.write(&Write::new("head", Value::of(&1).unwrap())).unwrap();
    assert_eq!(one.used(), 1, "it is ahead of the journal");
    one.record("3", 100);
    assert_eq!(other.used(), 101, "another change has the number of the lost one");
    assert_eq!(other.record("2", 10).recorded, 1, "the lost message can be recorded again");
    assert_eq!((one.used(), other.used()), (111, 111));
}
