//! The token quota. Its ledger is a file in the home of boards, on every engine.

mod check;
mod history;
mod init;
mod record;
mod release;
mod set;
mod shared;
mod shown;
mod status;

use crate::scratch::Scratch;

/// A home with a quota of one provider: 1,000 tokens in 5 hours, of which 200 are kept.
fn configured() -> Scratch {
    with_quota(
        r#"{"providers": {"a": {"windows": {"5h": {"budget": 1000}}, "reservation": {"operator": 200}}}}"#,
    )
}

/// A home with this quota.
fn with_quota(quota: &str) -> Scratch {
    let scratch = Scratch::new();
    write_config(&scratch, &format!(r#"{{"quota": {quota}}}"#));
    scratch
}

fn write_config(scratch: &Scratch, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    let file = scratch.home_file("config.json");
    let directory = file.parent().unwrap();
    std::fs::create_dir_all(directory).unwrap();
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::write(file, text).unwrap();
}
