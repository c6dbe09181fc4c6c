//! `cargo xtask pictures`: takes the pictures of the README from the demo, in a real browser.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use crate::release::{self, Options};
use crate::{Result, packages, run};

/// The directory of the pictures.
const DIRECTORY: &str = "docs/pictures";

/// Each picture: its name, the view, its size, and whether it is dark.
const PICTURES: [(&str, &str, &str, bool); 3] = [
    ("overview-dark.png", "", "1400,1000", true),
    ("overview-light.png", "", "1400,1000", false),
    ("lanes-dark.png", "#lanes", "1400,420", true),
];

/// The line of the demo after which all views have content: an agent was killed, and is swept.
const IN_THE_MIDDLE: &str = "blackboard sweep";

/// How long the demo may take until that line, and until its end.
const LIMIT: Duration = Duration::from_mins(2);

/// Takes all of them.
pub fn run() -> Result {
    packages::install_missing(&["chromium"])?;
    let program = release::build(Options::default())?.join(release::program("blackboard"));
    fs::create_dir_all(DIRECTORY)?;
    let demonstration = Demonstration::start(&program)?;
    let url = demonstration.wait_for("Dashboard:")?;
    demonstration.wait_for(IN_THE_MIDDLE)?;
    // The next line reports what the sweep has found.
    demonstration.wait_for("")?;
    for (name, view, size, dark) in PICTURES {
        let file = Path::new(DIRECTORY).join(name);
        // The URL has a token, which the server removes. The fragment after `#` stays.
        take(&format!("{url}{view}"), &file, size, dark)?;
        println!("{}", file.display());
    }
    Ok(())
}

/// A demo that ends when this value is dropped.
struct Demonstration {
    process: Child,
    lines: Receiver<String>,
}

impl Demonstration {
    fn start(program: &Path) -> Result<Demonstration> {
        let mut command = Command::new(program);
        command.args(["demo", "--keep"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn()?;
        let output = process.stdout.take().ok_or("the demonstration has no output")?;
        let (sender, lines) = mpsc::channel();
        // Read to the end, even if no further line is needed: a full pipe would stop the demo.
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(std::io::Result::ok) {
                let _ = sender.send(line);
            }
        });
        Ok(Demonstration { process, lines })
    }

    /// Waits for a line that contains the text, and returns the rest of it.
    fn wait_for(&self, text: &str) -> Result<String> {
        let until = Instant::now() + LIMIT;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line =
                line.map_err(|_| format!("the demonstration did not print {text:?} within {LIMIT:?}"))?;
            if let Some((_, rest)) = line.split_once(text) {
                return Ok(rest.trim().to_owned());
            }
        }
    }
}

impl Drop for Demonstration {
    fn drop(&mut self) {
        // The demo ends normally when it is interrupted, and then removes its board.
        let mut ask = Command::new("kill");
        if run::success(ask.arg(self.process.id().to_string()), run::SHORT).is_err() {
            let _ = self.process.kill();
        }
        run::end(&mut self.process, LIMIT);
    }
}

fn take(url: &str, file: &Path, size: &str, dark: bool) -> Result {
    // In the pixels of Chromium.
    let scheme = u8::from(!dark);
    let mut chromium = Command::new("chromium");
    chromium
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
        .args(["--virtual-time-budget=5000", &format!("--window-size={size}")])
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg(format!("--screenshot={}", file.display()))
        .arg(url)
        .stderr(Stdio::null());
    run::success(&mut chromium, run::SHORT)
}
