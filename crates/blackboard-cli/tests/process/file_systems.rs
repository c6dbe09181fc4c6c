//! A board on a file system that shares no memory between processes is refused.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use testkit::skip;

use crate::crowd::end_of;
use crate::machine::can;
use crate::test_board::TestBoard;

/// The type of a file system in `statfs`: the first eight bytes of its result on this machine.
const REMOTE: &[(&str, u64)] = &[
    ("NFS", 0x6969),
    ("SMB", 0xff53_4d42),
    ("SMB", 0xfe53_4d42),
    ("9p", 0x0102_1997),
    ("FUSE", 0x6573_5546),
];

/// Makes every `statfs` of a command report this file system.
fn injection(number: u64) -> String {
    // The bytes as they are in memory.
    format!("inject=statfs,fstatfs:poke_exit=@arg2={:016x}", number.to_be())
}

#[track_caller]
fn can_poke() -> bool {
    can("another file system", "strace", &["-qq", "-o", "/dev/null", "-e", &injection(0), "true"])
}

/// The answer of a command on such a file system, with its exit code.
fn answer(board: &TestBoard, number: u64, call: &[&str]) -> (Option<i32>, serde_json::Value) {
    let ended = board.wrapped(&["strace", "-f", "-qq", "-o", "/dev/null", "-e", &injection(number)], call);
    let answer = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    (ended.status.code(), answer)
}

#[test]
fn a_board_on_a_network_file_system_is_refused_with_the_fix() {
    if !can_poke() {
        return;
    }
    let existing = TestBoard::new();
    existing.json(&["write", "fact", "1"]);
    for (name, number) in REMOTE {
        let new = TestBoard::new();
        for (board, call) in [
            (&existing, &["read", "fact", "--json"][..]),
            (&existing, &["list", "--json"]),
            (&existing, &["write", "other", "1", "--json"]),
            (&existing, &["status", "--json"]),
            (&new, &["write", "other", "1", "--json"]),
        ] {
            let (code, refusal) = answer(board, *number, call);
            assert_eq!((code, refusal["code"].as_str()), (Some(5), Some("network_filesystem")), "{refusal}");
            assert_eq!(refusal["filesystem"], *name, "{refusal}");
            let hint = refusal["hint"].as_str().unwrap();
            assert!(hint.contains("--db") && hint.contains("database.allowNetworkFilesystem"), "{refusal}");
        }
        assert!(!new.database().parent().unwrap().exists(), "nothing is created there");
    }
    assert_eq!(existing.json(&["list"]), serde_json::json!(["fact"]));
}

#[test]
fn local_file_systems_are_accepted() {
    if !can_poke() {
        return;
    }
    // ext4, XFS, btrfs, ZFS, overlayfs, tmpfs.
    for number in [0xef53, 0x5846_5342, 0x9123_683e, 0x2fc1_2fc1, 0x794c_7630, 0x0102_1994] {
        let board = TestBoard::new();
        let (code, answer) = answer(&board, number, &["write", "fact", "1", "--json"]);
        assert_eq!(code, Some(0), "{number:#x}: {answer}");
    }
}

#[test]
fn network_file_system_is_accepted_when_configuration_or_environment_allows_it() {
    if !can_poke() {
        return;
    }
    let nfs = 0x6969;
    let board = TestBoard::new();
    board.configure(r#"{"database": {"allowNetworkFilesystem": true}}"#);
    for call in [&["write", "fact", "1", "--json"][..], &["read", "fact", "--json"]] {
        let (code, answer) = answer(&board, nfs, call);
        assert_eq!(code, Some(0), "{answer}");
    }
    let board = TestBoard::new();
    let allowed = ["env", "BLACKBOARD_ALLOW_NETWORK_FILESYSTEM=true"];
    let injection = injection(nfs);
    let wrapper = [&allowed[..], &["strace", "-f", "-qq", "-o", "/dev/null", "-e", &injection]].concat();
    assert!(board.wrapped(&wrapper, &["write", "fact", "1"]).status.success());
    // The configuration of a project may have come with a clone.
    let board = TestBoard::new();
    let project = board.path().join("project/.blackboard");
    std::fs::create_dir_all(&project).unwrap();
    std::fs::write(project.join("config.json"), r#"{"database": {"allowNetworkFilesystem": true}}"#).unwrap();
    let file = project.join("local.db");
    let (code, refusal) =
        answer(&board, nfs, &["--db", file.to_str().unwrap(), "write", "fact", "1", "--json"]);
    assert_eq!((code, refusal["code"].as_str()), (Some(5), Some("network_filesystem")), "{refusal}");
}

#[test]
fn a_board_on_a_real_fuse_mount_is_refused() {
    let device = OpenOptions::new().read(true).write(true).open("/dev/fuse");
    let Ok(device) = device else { return skip("a FUSE mount", "/dev/fuse") };
    if !can("a FUSE mount", "unshare", &["--mount", "true"]) {
        return;
    }
    let board = TestBoard::new();
    let mount = board.path().join("mount");
    std::fs::create_dir(&mount).unwrap();
    // The mount ends with the process that has the namespace.
    let line = format!(
        "mount -i -t fuse -o fd=0,rootmode=40000,user_id=0,group_id=0 none {mount} && \
         exec blackboard --db {mount}/x.db write fact 1 --json </dev/null",
        mount = mount.display()
    );
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "sh", "-c", &line]).current_dir(board.path()).env_clear();
    for (name, value) in board.shell("").get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command.stdin(Stdio::from(device.try_clone().unwrap())).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    drop(command);
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    let server = std::thread::spawn(move || serve_empty_directory(device, &is_over));
    let ended = end_of(child);
    over.store(true, Ordering::Relaxed);
    server.join().unwrap();
    let Ok(refusal) = serde_json::from_str::<serde_json::Value>(&ended.stdout) else {
        return skip("a FUSE mount", &format!("a kernel that mounts one: {ended:?}"));
    };
    assert_eq!(refusal["code"], "network_filesystem", "{refusal}");
    assert_eq!(refusal["filesystem"], "FUSE", "{refusal}");
}

/// Answers the kernel for an empty directory until it is unmounted, or never was mounted when `over` is set.
fn serve_empty_directory(mut device: File, over: &AtomicBool) {
    const LOOKUP: u32 = 1;
    const FORGET: u32 = 2;
    const GETATTR: u32 = 3;
    const STATFS: u32 = 17;
    const INIT: u32 = 26;
    const INTERRUPT: u32 = 36;
    const BATCH_FORGET: u32 = 42;
    let mut request = vec![0; 1024 * 1024];
    loop {
        let length = match device.read(&mut request) {
            Ok(length) => length,
            // There is no mount yet.
            Err(error) if error.kind() == ErrorKind::PermissionDenied && !over.load(Ordering::Relaxed) => {
                std::thread::sleep(Duration::from_millis(2));
                continue;
            }
            Err(_) => return,
        };
        let number = |at: usize| u32::from_ne_bytes(request[at..at + 4].try_into().unwrap());
        let (operation, unique) = (number(4), &request[8..16]);
        let (error, body): (i32, Vec<u8>) = match operation {
            INIT => {
                let mut body = vec![0; 64];
                body[0..4].copy_from_slice(&7_u32.to_ne_bytes());
                body[4..8].copy_from_slice(&31_u32.to_ne_bytes());
                body[20..24].copy_from_slice(&4096_u32.to_ne_bytes());
                (0, body)
            }
            GETATTR => {
                let mut body = vec![0; 104];
                // A directory of root, with one name, in the place of the mode and the number of links.
                body[16..24].copy_from_slice(&1_u64.to_ne_bytes());
                body[76..80].copy_from_slice(&0o040_700_u32.to_ne_bytes());
                body[80..84].copy_from_slice(&2_u32.to_ne_bytes());
                (0, body)
            }
            STATFS => (0, vec![0; 80]),
            LOOKUP => (-2, Vec::new()),
            FORGET | BATCH_FORGET | INTERRUPT => continue,
            _ => (-38, Vec::new()),
        };
        assert!(length >= 40, "a request has a header");
        let mut answer = u32::try_from(16 + body.len()).unwrap().to_ne_bytes().to_vec();
        answer.extend(error.to_ne_bytes());
        answer.extend(unique);
        answer.extend(body);
        let _ = device.write(&answer);
    }
}
