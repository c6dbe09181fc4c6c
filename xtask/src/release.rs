//! Builds the release binary, static where the platform allows it.
//!
//! Static means glibc with `+crt-static`. The flag is given for an explicit target only: without one it would also
//! reach the procedural macros, which are shared libraries and would no longer build.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::{Result, run};

/// The limit of one build.
pub const TO_BUILD: Duration = Duration::from_mins(40);

/// Whether binaries are static here.
pub const STATIC: bool = cfg!(target_os = "linux");

/// A linker script that places the functions of short commands together, so that a command touches fewer pages of the
/// binary. `cargo xtask bench instructions --order` writes it.
pub const ORDER: &str = "xtask/order.ld";

/// A linker script that leaves out the tables for unwinding. `-C force-unwind-tables=no` is not enough: with link-time
/// optimization, the standard library brings them back for every function.
const NO_UNWINDING: &str = "xtask/unwind.ld";

/// How a build differs from the installed one.
#[derive(Clone, Copy, Default)]
pub struct Options {
    /// Also builds the programs that measure.
    pub bench: bool,
    /// With symbols, in a separate directory: for profiles.
    pub symbols: bool,
}

/// Builds `blackboard`, and returns its directory.
pub fn build(options: Options) -> Result<PathBuf> {
    let host = host()?;
    let mut directory = target_directory()?;
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release", "--target", &host, "--package", "blackboard-cli"]);
    if options.bench {
        cargo.args(["--package", "xtask", "--features", "xtask/bench"]);
    }
    if options.symbols {
        directory.push("symbols");
        cargo
            .args(["--config", "profile.release.package.blackboard-cli.strip=\"none\""])
            .env("CARGO_PROFILE_RELEASE_STRIP", "none")
            .env("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only");
    }
    if STATIC {
        // Nothing unwinds (docs/decisions/0013), so neither Rust nor SQLite needs the tables for it.
        let flags = "-C target-feature=+crt-static -C relocation-model=static -C force-unwind-tables=no";
        // Cargo starts the linker in the directory of the workspace.
        let flags = format!("{flags} -C link-arg=-Wl,-T,{ORDER} -C link-arg=-Wl,-T,{NO_UNWINDING}");
        let target = host.replace('-', "_");
        cargo.env(format!("CARGO_TARGET_{}_RUSTFLAGS", target.to_uppercase()), flags);
        cargo.env(format!("CFLAGS_{target}"), "-fno-unwind-tables -fno-asynchronous-unwind-tables");
    }
    let status = run::status(cargo.arg("--target-dir").arg(&directory), TO_BUILD)?;
    if !status.success() {
        let missing =
            "a static build needs the C library's archive: libc6-dev on Debian, glibc-static on Fedora";
        return Err(if STATIC {
            format!("the build failed; {missing}")
        } else {
            "the build failed".to_owned()
        }
        .into());
    }
    Ok(directory.join(host).join("release"))
}

/// Refuses an ELF binary that needs a dynamic loader.
pub fn check_static(binary: &Path) -> Result {
    match needs_loader(&fs::read(binary)?) {
        Some(false) => Ok(()),
        Some(true) => Err(format!("{} is not static: it asks for a dynamic loader", binary.display()).into()),
        None => Err(format!("{} is not a 64-bit ELF binary", binary.display()).into()),
    }
}

/// The name of the built program on this platform.
pub fn program(name: &str) -> String {
    format!("{name}{}", std::env::consts::EXE_SUFFIX)
}

fn host() -> Result<String> {
    let output = run::output(Command::new("rustc").arg("-vV"), run::SHORT)?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or("rustc -vV names no host")?.to_owned())
}

fn target_directory() -> Result<PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    let output = run::output(cargo.args(["metadata", "--no-deps", "--format-version", "1"]), run::SHORT)?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    Ok(metadata["target_directory"].as_str().ok_or("cargo metadata names no target directory")?.into())
}

/// Whether one of the program headers is `PT_INTERP`; `None` if this is not 64-bit little-endian ELF.
fn needs_loader(file: &[u8]) -> Option<bool> {
    const PT_INTERP: u64 = 3;
    let number = |at: usize, width: usize| -> Option<u64> {
        let bytes = file.get(at..at.checked_add(width)?)?;
        Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    };
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (start, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    for header in 0..count {
        let at = usize::try_from(start.checked_add(header * size)?).ok()?;
        if number(at, 4)? == PT_INTERP {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elf(kinds: &[u8]) -> Vec<u8> {
        let mut file = vec![0; 64];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (file[32], file[54], file[56]) = (64, 56, u8::try_from(kinds.len()).unwrap());
        for kind in kinds {
            file.push(*kind);
            file.extend([0; 55]);
        }
        file
    }

    #[test]
    fn a_binary_is_static_if_no_header_names_a_loader() {
        assert_eq!(needs_loader(&elf(&[6, 1, 2])), Some(false));
        assert_eq!(needs_loader(&elf(&[6, 3, 1])), Some(true));
        assert_eq!(needs_loader(&elf(&[1])[..70]), Some(false));
        assert_eq!(needs_loader(&elf(&[1])[..66]), None);
        assert_eq!(needs_loader(b"#!/bin/sh"), None);
    }

    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn this_test_program_is_dynamic() {
        assert!(check_static(&std::env::current_exe().unwrap()).is_err());
    }
}
