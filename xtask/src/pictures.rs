//! `cargo xtask pictures`: the pictures of the README, taken from a demonstration in a real browser.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::release::{self, Options};
use crate::{Result, packages};

/// Where they are kept.
const DIRECTORY: &str = "docs/pictures";

/// Each picture: its name, the view, its size, and whether it is dark.
const PICTURES: [(&str, &str, &str, bool); 3] = [
    ("overview-dark.png", "", "1400,1000", true),
    ("overview-light.png", "", "1400,1000", false),
    ("lanes-dark.png", "#lanes", "1400,420", true),
];

/// When something of everything has happened, and somebody has died.
const IN_THE_MIDDLE: Duration = Duration::from_secs(14);

/// Takes all of them.
pub fn run(arguments: &[String]) -> Result {
    if !arguments.is_empty() {
        return Err("usage: cargo xtask pictures".into());
    }
    packages::install_missing(&["chromium"])?;
    let program = release::build(Options::default())?.join(release::program("blackboard"));
    fs::create_dir_all(DIRECTORY)?;
    let mut demonstration = Demonstration::start(&program)?;
    let url = demonstration.url()?;
    sleep(IN_THE_MIDDLE);
    for (name, view, size, dark) in PICTURES {
        let file = Path::new(DIRECTORY).join(name);
        // The address has a token, which the server takes out of it; what follows `#` stays.
        take(&format!("{url}{view}"), &file, size, dark)?;
        println!("{}", file.display());
    }
    Ok(())
}

/// A demonstration that ends with the value.
struct Demonstration(Child);

impl Demonstration {
    fn start(program: &Path) -> Result<Demonstration> {
        let mut command = Command::new(program);
        command.args(["demo", "--keep"]).stdin(Stdio::null()).stdout(Stdio::piped());
        Ok(Demonstration(command.spawn()?))
    }

    /// Where its dashboard is, which it says first.
    fn url(&mut self) -> Result<String> {
        let output = self.0.stdout.take().ok_or("the demonstration says nothing")?;
        let mut lines = BufReader::new(output).lines();
        let line = lines.find_map(|line| line.ok()?.strip_prefix("Dashboard:").map(str::to_owned));
        // Nobody reads on, but the pipe has to stay open: the demonstration tells its story.
        std::mem::forget(lines);
        Ok(line.ok_or("the demonstration has no dashboard")?.trim().to_owned())
    }
}

impl Drop for Demonstration {
    fn drop(&mut self) {
        // It ends in good order when it is asked to, and then removes its board.
        let asked = Command::new("kill").arg(self.0.id().to_string()).status();
        if !asked.is_ok_and(|status| status.success()) {
            let _ = self.0.kill();
        }
        let _ = self.0.wait();
    }
}

fn take(url: &str, file: &Path, size: &str, dark: bool) -> Result {
    // As Chromium counts them.
    let scheme = u8::from(!dark);
    let taken = Command::new("chromium")
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
        .args(["--virtual-time-budget=5000", &format!("--window-size={size}")])
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg(format!("--screenshot={}", file.display()))
        .arg(url)
        .stderr(Stdio::null())
        .status()?;
    if taken.success() { Ok(()) } else { Err(format!("chromium ended with {taken}").into()) }
}
