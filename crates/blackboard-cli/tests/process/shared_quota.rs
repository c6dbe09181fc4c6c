//! A ledger that two machines share: two homes, and one server with the journal.

use std::process::{Child, Stdio};

use serde_json::Value;
use testkit::redis::RedisServer;
use testkit::scratch::Scratch;

use crate::crowd::{at_once, end_of, kill};
use crate::quota::{configured, file, lines, start, used};
use crate::scale::{Chance, size};

/// Two machines with this budget, and their server.
fn machines(budget: u64) -> Option<(RedisServer, [Scratch; 2])> {
    let server = RedisServer::start(&[])?;
    let url = server.url("token-quota");
    let windows = format!(r#"{{"5h": {{"budget": {budget}}}}}"#);
    let quota = format!(r#"{{"server": "{url}", "providers": {{"a": {{"windows": {windows}}}}}}}"#);
    let home = || configured(&format!(r#"{{"quota": {quota}}}"#));
    Some((server, [home(), home()]))
}

fn reserve(scratch: &Scratch) -> Child {
    let mut command = scratch.command(["quota", "check", "--tokens", "90", "--reserve", "--json"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn of_the_processes_of_two_machines_as_many_reserve_as_fit_together() {
    let Some((_server, machines)) = machines(1_000) else { return };
    let answers = at_once(30, |number| end_of(reserve(&machines[number % 2])));
    let codes: Vec<_> = answers.iter().map(|ended| ended.status.code()).collect();
    assert_eq!(codes.iter().filter(|code| **code == Some(0)).count(), 11, "{answers:?}");
    assert_eq!(codes.iter().filter(|code| **code == Some(4)).count(), 19, "{answers:?}");
    for machine in &machines {
        let window = machine.json(["quota", "status"])["providers"][0]["windows"][0].clone();
        assert_eq!((&window["reserved"], &window["remaining"]), (&990.into(), &10.into()));
    }
}

#[test]
fn messages_that_both_machines_record_are_counted_once_although_processes_are_killed() {
    let Some((_server, machines)) = machines(1_000_000_000_000) else { return };
    let messages = size(1_000, 20_000);
    let files = machines.each_ref().map(|machine| file(machine, "all.jsonl", &lines(0..messages)));
    let mut chance = Chance::new(11);
    for round in 0..size(8, 60) {
        let child = start(&machines[round % 2], &files[round % 2]);
        // At any moment: while it starts, waits for the server, or applies what it has read.
        std::thread::sleep(std::time::Duration::from_millis(chance.below(80) as u64));
        kill(child.id());
        end_of(child);
    }
    let answers = at_once(2, |number| end_of(start(&machines[number], &files[number])));
    for ended in &answers {
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        let answer: Value = serde_json::from_str(&ended.stdout).unwrap();
        let counts = ["recorded", "duplicates"].map(|name| answer[name].as_u64().unwrap());
        assert_eq!(counts.iter().sum::<u64>(), messages as u64, "{answer}");
    }
    let expected = (messages as u64 - 1) * messages as u64 / 2;
    assert_eq!(machines.each_ref().map(used), [expected; 2]);
    let directory = machines[0].home_file("");
    let files = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
    for file in
        files.filter(|file| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("quota-")))
    {
        std::fs::remove_file(file).unwrap();
    }
    assert_eq!(used(&machines[0]), expected, "the file is made again from the journal");
}
