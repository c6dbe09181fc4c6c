//! Programs that tests and measurements need beyond cargo.

use std::process::Command;
use std::time::Duration;

use crate::{Result, release, run};

/// The limit of one installation.
pub const TO_INSTALL: Duration = Duration::from_mins(10);

/// Installs the Debian packages of missing programs, and prints which.
pub fn install_missing(programs: &[&str]) -> Result {
    let missing: Vec<_> =
        programs.iter().filter(|program| !is_there(program)).map(|program| package_of(program)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    eprintln!("installing {} with apt-get", missing.join(", "));
    let run = |arguments: &[&str]| -> Result {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").args(arguments);
        run::success(&mut command, TO_INSTALL)
            .map_err(|error| format!("install {} by hand: {error}", missing.join(", ")).into())
    };
    run(&["update", "-qq"])?;
    run(&[&["install", "-y", "-qq", "--no-install-recommends"], &missing[..]].concat())
}

/// The package that contains a program. Most have the same name.
fn package_of(program: &str) -> &str {
    match program {
        "chromedriver" => "chromium-driver",
        "ip" => "iproute2",
        other => other,
    }
}

/// Whether the distribution has the package of a program.
pub fn is_offered(program: &str) -> bool {
    let mut show = Command::new("apt-cache");
    show.args(["show", "--no-all-versions", package_of(program)]);
    run::output(&mut show, run::SHORT).is_ok_and(|output| output.status.success())
}

/// Whether packages can be installed here: as root, on Debian.
pub fn can_install() -> bool {
    is_there("apt-get")
        && run::output(Command::new("id").arg("-u"), run::SHORT).is_ok_and(|output| output.stdout == b"0\n")
}

/// The parser of YAML 1.1 that a test compares with ours: a module of Python, and no program.
pub const PYTHON_YAML: &str = "python3-yaml";

/// Whether a program is on the path.
pub fn is_there(program: &str) -> bool {
    if program == PYTHON_YAML {
        let mut python = Command::new("python3");
        return run::output(python.args(["-c", "import yaml"]), run::SHORT)
            .is_ok_and(|output| output.status.success());
    }
    let program = release::program(program);
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|directory| directory.join(&program).is_file()))
}
