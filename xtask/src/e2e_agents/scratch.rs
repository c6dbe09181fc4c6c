//! The environment of a client: a home, a repository and a board that no other program uses, and the npm packages,
//! which are kept under `target/e2e` so that the second run is quick.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::clients::Package;
use crate::{Result, packages, run};

/// How long an action of another process may take until the board shows it.
const SOON: Duration = Duration::from_secs(10);

/// A home, a repository and a board.
pub struct Scratch {
    root: PathBuf,
    /// Deletes everything, unless it is kept.
    _directory: Option<TempDir>,
}

impl Scratch {
    /// Creates one for this program.
    pub fn new(name: &str, program: &Path, keep: bool) -> Result<Scratch> {
        let directory = tempfile::Builder::new().prefix(&format!("blackboard-e2e-{name}-")).tempdir()?;
        // Agents resolve symbolic links.
        let root = directory.path().canonicalize()?;
        let directory = if keep {
            println!("{name}: kept in {}", directory.keep().display());
            None
        } else {
            Some(directory)
        };
        let scratch = Scratch { root, _directory: directory };
        for path in [scratch.home(), scratch.repository(), scratch.bin()] {
            fs::create_dir(path)?;
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(program, scratch.program())?;
        #[cfg(not(unix))]
        fs::copy(program, scratch.program())?;
        scratch.run("git", &["init", "--quiet"])?;
        scratch.run(
            "git",
            &[
                "-c",
                "user.name=e2e",
                "-c",
                "user.email=e2e@localhost",
                "commit",
                "--quiet",
                "--allow-empty",
                "--message",
                "Begin",
            ],
        )?;
        scratch.board(&["init"])?;
        Ok(scratch)
    }

    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub fn repository(&self) -> PathBuf {
        self.root.join("repository")
    }

    /// The directory for requests to the model and output of the client.
    pub fn log(&self) -> PathBuf {
        self.root.join("log")
    }

    /// The program under test.
    pub fn program(&self) -> PathBuf {
        self.bin().join(crate::release::program("blackboard"))
    }

    fn bin(&self) -> PathBuf {
        self.root.join("bin")
    }

    /// A command in the repository with the scratch home and the program under test, and nothing of this process's
    /// environment: neither its settings, nor that it may be an agent itself.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let inherited = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths(std::iter::once(self.bin()).chain(env::split_paths(&inherited)));
        command
            .env_clear()
            .env("PATH", path.unwrap_or(inherited))
            .env("HOME", self.home())
            .env("LANG", "C.UTF-8")
            .env("SHELL", "/bin/sh")
            .env("TERM", "dumb")
            // The program under test is a debug build, and the machine may be busy.
            .env("BLACKBOARD_HOOK_DEADLINE", "3000")
            .current_dir(self.repository())
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let output = run::output(self.command(program).args(arguments), run::SHORT)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        Err(format!("{program} {}: {} {}{}", arguments.join(" "), output.status, out.trim(), error.trim())
            .into())
    }

    /// Runs the program under test with these arguments.
    pub fn board(&self, arguments: &[&str]) -> Result<Value> {
        let program = self.program();
        let program = program.to_str().ok_or("the path of the scratch directory is not UTF-8")?;
        Ok(serde_json::from_str(&self.run(program, &[arguments, &["--json"]].concat())?)?)
    }

    /// All agents on the board that the story did not register itself.
    pub fn agents(&self) -> Result<Vec<Value>> {
        let listed = self.board(&["agent", "list", "--all"])?;
        let items = listed["items"].as_array().cloned().unwrap_or_default();
        Ok(items.into_iter().filter(|agent| agent["agent_name"] != super::story::NEIGHBOR).collect())
    }

    /// The errors in the hook log.
    pub fn hook_log(&self) -> Option<String> {
        let text = fs::read_to_string(self.repository().join(".blackboard/hook.log")).ok()?;
        (!text.trim().is_empty()).then(|| text.trim().to_owned())
    }
}

/// Repeats a check until it has a result, for actions of other processes.
pub fn soon<T>(mut look: impl FnMut() -> Result<T>) -> Result<T> {
    let until = Instant::now() + SOON;
    loop {
        match look() {
            Ok(found) => return Ok(found),
            Err(why) if Instant::now() >= until => return Err(why),
            Err(_) => thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Installs an npm package if it is missing, and returns the directory of its programs.
pub fn install(package: &Package) -> Result<PathBuf> {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/e2e/npm");
    let directory = target.join(format!("{}-{}", package.name.replace('/', "-"), package.version));
    let manifest = directory.join("node_modules").join(package.name).join("package.json");
    if !manifest.exists() {
        fs::create_dir_all(&directory)?;
        let name = format!("{}@{}", package.name, package.version);
        println!("installing {name} with npm");
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--no-save"]);
        let output = run::output(npm.arg("--prefix").arg(&directory).arg(&name), packages::TO_INSTALL)?;
        if !output.status.success() {
            let _ = fs::remove_dir_all(&directory);
            return Err(
                format!("{name} cannot be installed: {}", String::from_utf8_lossy(&output.stderr)).into()
            );
        }
    }
    let directory = directory.canonicalize()?;
    Ok(directory.join("node_modules/.bin"))
}
