//! The server in the background: found, reported, and stopped. Links, paths and directories are those of a file.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;

use blackboard::Code;
use testkit::process::RunToEnd as _;
use testkit::wait_until;

use crate::client::{get, raw, remember};
use crate::scratch::{Output, Scratch};
use crate::served::Served;

testkit::on_each_engine![
    background_server_runs_until_it_is_stopped,
    human_output_has_the_address_and_how_to_stop,
    the_registration_of_a_killed_server_blocks_no_other,
];

fn background_server_runs_until_it_is_stopped() {
    let scratch = Scratch::new();
    assert_eq!(scratch.run(["serve", "--status"]).code, 3);
    let started = scratch.json(["serve", "--background", "--port", "0"]);
    let port = remember(&started);
    assert_eq!(get(port, "/api/status").status, 200);
    let status = scratch.json(["serve", "--status"]);
    assert_eq!((&status["running"], &status["pid"]), (&true.into(), &started["pid"]));
    assert_eq!((&status["url"], &status["token"]), (&started["url"], &started["token"]));
    let address = format!("http://127.0.0.1:{port}");
    for call in [&["serve"][..], &["serve", "--background"], &["serve", "--port", "0"]] {
        let refused = scratch.run(call.iter().chain(&["--json"])).refused(Code::AlreadyRunning);
        assert_eq!((&refused["url"], &refused["pid"]), (&address.clone().into(), &started["pid"]));
    }
    let stopped = scratch.json(["serve", "--stop"]);
    assert_eq!(stopped["pid"], started["pid"]);
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
    scratch.run(["serve", "--stop", "--json"]).refused(Code::NotRunning);
    assert_eq!(scratch.run(["serve", "--status", "--json"]).code, 3);
}

fn human_output_has_the_address_and_how_to_stop() {
    let scratch = Scratch::new();
    let said = scratch.run(["serve", "--background", "--port", "0"]).success().stdout;
    let pid = said.lines().find_map(|line| line.strip_prefix("PID:  ")).unwrap();
    assert!(said.contains("URL:  http://127.0.0.1:") && said.contains("/?token="), "{said}");
    assert!(said.ends_with(&format!("Stop: blackboard serve --stop (or kill {pid})\n")), "{said}");
    let stopped = scratch.run(["serve", "--stop"]).success().stdout;
    assert!(stopped.starts_with("Stopped dashboard: http://127.0.0.1:"), "{stopped}");
    assert!(!stopped.contains("token"), "{stopped}");
}

#[test]
fn status_finds_a_server_in_the_foreground() {
    let served = Served::new();
    // Where there is no directory yet, there is no place to leave a word.
    assert_eq!(served.scratch.run(["serve", "--status"]).code, 3);
    let scratch = served.end();
    scratch.run(["work", "create", "a", "--title", "A"]).success();
    let served = Served::of(scratch, 0);
    assert_eq!(served.says(&["serve", "--status"])["pid"], served.pid());
    served.scratch.run(["serve", "--port", "0", "--json"]).refused(Code::AlreadyRunning);
    assert_eq!(served.says(&["serve", "--stop"])["pid"], served.pid());
}

/// The signals that a process has in this set of `/proc/PID/status`, as a bit mask.
#[cfg(target_os = "linux")]
fn signals(pid: u32, set: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix(set)?.strip_prefix(':')).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn server_that_has_printed_its_address_catches_every_request_to_stop() {
    use rustix::process::Signal;
    let bit = |signal: Signal| 1_u64 << (signal.as_raw() - 1);
    let all = bit(Signal::TERM) | bit(Signal::INT) | bit(Signal::HUP);
    for _ in 0..5 {
        let served = Served::new();
        let caught = signals(served.pid(), "SigCgt");
        assert_eq!(caught & all, all, "{caught:x}");
        served.end();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn server_started_with_nohup_continues_without_its_terminal() {
    let scratch = Scratch::new();
    let command = scratch.shell("trap '' HUP; exec blackboard serve --json --port 0");
    let served = Served::by(scratch, command);
    let hang_up = 1_u64 << (rustix::process::Signal::HUP.as_raw() - 1);
    assert_eq!(signals(served.pid(), "SigIgn") & hang_up, hang_up);
    assert_eq!(signals(served.pid(), "SigCgt") & hang_up, 0);
    served.end();
}

fn the_registration_of_a_killed_server_blocks_no_other() {
    let scratch = Scratch::new();
    let started = scratch.json(["serve", "--background", "--port", "0"]);
    let pid =
        rustix::process::Pid::from_raw(i32::try_from(started["pid"].as_i64().unwrap()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    wait_until("the end of the server", || (scratch.run(["serve", "--status"]).code != 0).then_some(()));
    scratch.run(["serve", "--stop", "--json"]).refused(Code::NotRunning);
    let again = scratch.json(["serve", "--background", "--port", "0"]);
    assert_ne!(again["pid"], started["pid"]);
    // A file with a process that is not the server stops no other server.
    let file = scratch.registration();
    let told = fs::read_to_string(&file).unwrap();
    scratch.json(["serve", "--stop"]);
    let own = std::process::id().to_string();
    fs::write(&file, told.replace(&again["pid"].to_string(), &own)).unwrap();
    scratch.run(["serve", "--stop", "--json"]).refused(Code::NotRunning);
    for odd in ["", "null", "{}", "[1", "\0\0"] {
        fs::write(&file, odd).unwrap();
        assert_eq!(scratch.run(["serve", "--status"]).code, 3, "{odd:?}");
    }
}

#[test]
fn taken_port_is_reported_with_a_free_one() {
    let scratch = Scratch::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    for background in [&[][..], &["--background"]] {
        let call = ["serve", "--json", "--port", &port.to_string()].map(str::to_owned);
        let output = scratch.run(call.iter().map(String::as_str).chain(background.iter().copied()));
        let refused = output.refused(Code::PortTaken);
        let hint = refused["hint"].as_str().unwrap();
        assert!(hint.contains("--port "), "{hint}");
        assert_eq!(refused["port"], port);
    }
    assert_eq!(scratch.run(["serve", "--status"]).code, 3);
}

#[test]
fn serve_refuses_a_file_that_is_no_board() {
    let scratch = Scratch::new();
    fs::write(scratch.path().join("notes.txt"), "no board ".repeat(100)).unwrap();
    for background in [&[][..], &["--background"]] {
        let call = ["serve", "--json", "--port", "0", "--db", "notes.txt"];
        scratch.run(call.iter().chain(background)).refused(Code::ForeignDatabase);
    }
}

#[test]
fn server_that_cannot_be_registered_does_not_start_in_the_background() {
    let scratch = Scratch::new();
    scratch.run(["work", "create", "a", "--title", "A"]).success();
    let file = format!("{}-serve", scratch.database().display());
    let elsewhere = scratch.path().join("elsewhere");
    symlink(&elsewhere, &file).unwrap();
    let refused = scratch.run(["serve", "--background", "--port", "0", "--json"]).refused(Code::Io);
    assert!(refused["error"].as_str().unwrap().contains("local.db-serve"), "{refused}");
    assert!(!elsewhere.exists(), "a link is not followed");
    // In the foreground there is a warning.
    let mut command = scratch.command(["serve", "--json", "--port", "0"]);
    let said = scratch.path().join("said");
    command.stderr(fs::File::create(&said).unwrap());
    let served = Served::by(scratch, command);
    assert_eq!(get(served.port, "/api/work").status, 200);
    let said = fs::read_to_string(said).unwrap();
    assert!(said.starts_with("warning: serve --status and --stop will not find this server"), "{said}");
    assert_eq!(served.scratch.run(["serve", "--status"]).code, 3);
}

#[test]
fn server_is_found_again_when_its_directory_is_replaced() {
    let scratch = Scratch::new();
    scratch.run(["work", "create", "a", "--title", "A"]).success();
    let started = scratch.json(["serve", "--background", "--port", "0"]);
    let directory = scratch.database().parent().unwrap().to_owned();
    fs::rename(&directory, scratch.path().join("away")).unwrap();
    scratch.run(["work", "create", "b", "--title", "B"]).success();
    wait_until("the server at its new place", || {
        (scratch.run(["serve", "--status"]).code == 0).then_some(())
    });
    let refused = scratch.run(["serve", "--port", "0", "--json"]).refused(Code::AlreadyRunning);
    assert_eq!(refused["pid"], started["pid"]);
    assert_eq!(scratch.json(["serve", "--stop"])["pid"], started["pid"]);
}

#[test]
fn hints_name_the_board_that_the_command_names() {
    let scratch = Scratch::new();
    let db = "other board.db";
    let refused = scratch.run(["serve", "--stop", "--json", "--db", db]).refused(Code::NotRunning);
    assert_eq!(refused["hint"], "start one: blackboard --db 'other board.db' serve --background");
    scratch.json(["serve", "--background", "--port", "0", "--db", db]);
    for background in [&[][..], &["--background"]] {
        let call = ["serve", "--port", "0", "--json", "--db", db];
        let refused = scratch.run(call.iter().chain(background)).refused(Code::AlreadyRunning);
        assert_eq!(
            refused["hint"],
            "print the address to open: blackboard --db 'other board.db' serve --status"
        );
    }
    scratch.json(["serve", "--stop", "--db", db]);
}

#[test]
fn texts_and_page_of_a_board_that_was_given_by_db_name_it() {
    let scratch = Scratch::new();
    let db = "{script}&'s <board>.db";
    let quoted = "'{script}&'\\''s <board>.db'";
    let call = ["serve", "--background", "--port", "0", "--db", db];
    let said = scratch.run(call).success().stdout;
    let stop = said.lines().find_map(|line| line.strip_prefix("Stop: ")?.split(" (or kill").next()).unwrap();
    assert_eq!(stop, format!("blackboard --db {quoted} serve --stop"));
    let port = remember(&scratch.json(["serve", "--status", "--db", db]));

    // The page names the absolute path, because it is not in the directory of the call.
    let path = scratch.path().join(db);
    let program = format!("blackboard --db '{}'", path.to_str().unwrap().replace('\'', "'\\''"));
    let mut html = program;
    for (character, escaped) in
        [('&', "&#38;"), ('<', "&#60;"), ('>', "&#62;"), ('"', "&#34;"), ('\'', "&#39;"), ('{', "&#123;")]
    {
        html = html.replace(character, escaped);
    }
    let page = String::from_utf8(get(port, "/").body).unwrap();
    assert!(page.contains(&format!("data-program=\"{html}\"")), "{page}");
    for words in ["work create", "project register"] {
        assert!(page.contains(&format!("<code>{html} {words}</code>")), "{words}");
    }
    assert_eq!(page.matches("<script").count(), 1);

    // A request without the token learns only that the command needs the option.
    let refused = raw(port, &format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n")).unwrap();
    let refused = String::from_utf8(refused.body).unwrap();
    assert!(refused.contains("serve --status, with the --db that it was started with"), "{refused}");
    assert!(!refused.contains("board>"), "{refused}");

    let stopped = Output::of(scratch.shell(stop).run_to_end()).success().stdout;
    assert!(stopped.starts_with("Stopped dashboard: "), "{stopped}");
}
