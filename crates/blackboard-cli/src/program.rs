//! Runs another program that must not be trusted to end: its time and its output are limited.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How often the limits are checked.
const TICK: Duration = Duration::from_millis(50);

/// How long a program may take to exit after it has closed its output.
const PAUSE: Duration = Duration::from_millis(2);

/// How much of the error output is kept.
const MOST_ERRORS: u64 = 16 * 1024;

/// What a program may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// How long it may run.
    pub time: Duration,
    /// How many bytes it may print.
    pub output: u64,
    /// A directory, and how many bytes its files may have.
    pub directory: Option<(&'a Path, u64)>,
}

/// A program that has ended.
#[derive(Debug)]
pub struct Finished {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: Vec<u8>,
    /// The beginning of its error output.
    pub stderr: String,
}

/// Why a program did not end by itself.
#[derive(Debug)]
pub enum Failure {
    /// It did not start.
    CannotStart(io::Error),
    /// Its end could not be waited for.
    CannotWait(io::Error),
    /// It ran longer than it may.
    TimedOut(Duration),
    /// It printed more than it may.
    TooMuchOutput(u64),
    /// It wrote more than it may.
    TooMuchSpace(u64),
    /// The user has interrupted this process.
    Interrupted,
}

/// Runs a program to its end, or ends it and everything that it started. `interrupted` ends it too.
///
/// A program ends when it has exited and its output is closed. What it then leaves running is not ended: git may start a
/// daemon that keeps credentials.
pub fn run(
    command: &mut Command,
    input: Vec<u8>,
    limits: &Limits<'_>,
    interrupted: &AtomicBool,
) -> Result<Finished, Failure> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A group of its own, so that the programs that it starts can be ended with it.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    let child = command.spawn().map_err(Failure::CannotStart)?;
    let mut running = Running { child, has_ended: false };
    let (sender, received) = channel();
    write_in_background(&mut running.child, input);
    read_in_background(running.child.stdout.take(), limits.output, sender.clone(), Part::Output);
    read_in_background(running.child.stderr.take(), MOST_ERRORS, sender, Part::Errors);
    running.finish(&received, limits, interrupted)
}

/// What a program has printed.
enum Part {
    Output(Vec<u8>),
    Errors(Vec<u8>),
}

/// A process that is ended with this value, unless it has ended.
struct Running {
    child: Child,
    /// Whether it was waited for. Its number may then be that of another process.
    has_ended: bool,
}

impl Running {
    fn finish(
        &mut self,
        received: &Receiver<Part>,
        limits: &Limits<'_>,
        interrupted: &AtomicBool,
    ) -> Result<Finished, Failure> {
        let end = Instant::now() + limits.time;
        let (mut stdout, mut stderr) = (None, None);
        while stdout.is_none() || stderr.is_none() {
            match received.recv_timeout(TICK) {
                Ok(Part::Output(bytes)) if bytes.len() as u64 > limits.output => {
                    return Err(Failure::TooMuchOutput(limits.output));
                }
                Ok(Part::Output(bytes)) => stdout = Some(bytes),
                Ok(Part::Errors(bytes)) => stderr = Some(bytes),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            check(limits, end, interrupted)?;
        }
        loop {
            if let Some(status) = self.child.try_wait().map_err(Failure::CannotWait)? {
                self.has_ended = true;
                let stderr = String::from_utf8_lossy(&stderr.unwrap_or_default()).into_owned();
                return Ok(Finished { code: status.code(), stdout: stdout.unwrap_or_default(), stderr });
            }
            check(limits, end, interrupted)?;
            thread::sleep(PAUSE);
        }
    }

    #[cfg(unix)]
    fn kill(&mut self) {
        use rustix::process::{Pid, Signal, kill_process_group};
        // It was not waited for, so its number is still its own.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
    }

    #[cfg(not(unix))]
    fn kill(&mut self) {
        let _ = self.child.kill();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.has_ended {
            // Its children may run although it has exited, so they are ended before it is waited for.
            self.kill();
            // A killed process ends at once.
            let _ = self.child.wait();
        }
    }
}

fn check(limits: &Limits<'_>, end: Instant, interrupted: &AtomicBool) -> Result<(), Failure> {
    if interrupted.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    if Instant::now() >= end {
        return Err(Failure::TimedOut(limits.time));
    }
    match limits.directory {
        Some((directory, most)) if size_of(directory) > most => Err(Failure::TooMuchSpace(most)),
        _ => Ok(()),
    }
}

/// The bytes of the files in a directory, without those below it.
fn size_of(directory: &Path) -> u64 {
    let Ok(files) = fs::read_dir(directory) else { return 0 };
    files.flatten().filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum()
}

fn write_in_background(child: &mut Child, input: Vec<u8>) {
    let stdin = child.stdin.take();
    if let Some(mut stdin) = stdin.filter(|_| !input.is_empty()) {
        // A program that reads no more has its reasons, which its exit code tells.
        thread::spawn(move || stdin.write_all(&input));
    }
}

/// Reads one byte more than allowed, so that it is known whether there is more. It never waits for this process.
fn read_in_background(
    stream: Option<impl Read + Send + 'static>,
    most: u64,
    sender: Sender<Part>,
    part: fn(Vec<u8>) -> Part,
) {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(stream) = stream {
            let mut stream = stream.take(most + 1);
            // What was read before an error counts.
            let _ = stream.read_to_end(&mut bytes);
            if bytes.len() as u64 <= most || matches!(part(Vec::new()), Part::Output(_)) {
                let _ = sender.send(part(bytes));
                return;
            }
            // A program must not wait because its error output is not read.
            bytes.truncate(usize::try_from(most).unwrap_or(usize::MAX));
            let _ = io::copy(&mut stream.into_inner(), &mut io::sink());
        }
        let _ = sender.send(part(bytes));
    });
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::{BufRead as _, BufReader};

    use testkit::process::RunToEnd as _;

    use super::*;

    static NEVER: AtomicBool = AtomicBool::new(false);

    fn shell(script: &str, limits: &Limits<'_>) -> Result<Finished, Failure> {
        testkit::limit_test();
        run(Command::new("sh").args(["-c", script]), b"in\n".to_vec(), limits, &NEVER)
    }

    const LIMITS: Limits<'_> = Limits { time: Duration::from_mins(2), output: 1000, directory: None };

    #[test]
    fn a_program_gets_its_input_and_its_output_is_kept() {
        let finished = shell("cat; echo bad >&2; exit 3", &LIMITS).unwrap();
        assert_eq!(
            (finished.code, &finished.stdout[..], finished.stderr.as_str()),
            (Some(3), &b"in\n"[..], "bad\n")
        );
    }

    #[test]
    fn error_output_is_shortened_and_the_program_ends() {
        let finished = shell("yes | head -c 1000000 >&2; echo done", &LIMITS).unwrap();
        assert_eq!((finished.code, &finished.stdout[..]), (Some(0), &b"done\n"[..]));
        assert_eq!(finished.stderr.len() as u64, MOST_ERRORS);
    }

    #[test]
    fn a_program_that_exceeds_a_limit_is_ended_with_its_children() {
        let scratch = testkit::tempdir().unwrap();
        let limited = Limits { time: Duration::from_millis(100), ..LIMITS };
        // The inner process holds the pipes, and would hold them for longer than a test may take.
        assert!(matches!(shell("sleep 1000 & sleep 1000", &limited), Err(Failure::TimedOut(_))));
        assert!(matches!(shell("yes", &LIMITS), Err(Failure::TooMuchOutput(1000))));
        let limited = Limits { directory: Some((scratch.path(), 5000)), ..LIMITS };
        let script = format!("yes > {}/file & wait", scratch.path().display());
        assert!(matches!(shell(&script, &limited), Err(Failure::TooMuchSpace(5000))));
    }

    #[test]
    fn children_of_a_program_that_has_exited_are_ended_too() {
        let scratch = testkit::tempdir().unwrap();
        testkit::limit_test();
        let pipes = ["gone", "held"].map(|name| scratch.path().join(name));
        assert!(Command::new("mkfifo").args(&pipes).run_to_end().status.success());
        let [gone, held] = pipes;
        // The child holds the error output and `held`. It writes to `held` when the program has closed `gone` by exiting.
        let script = format!(
            "{{ read line < '{gone}'; echo ready; exec sleep 777; }} > '{held}' & exec 8> '{gone}'; exit 0",
            gone = gone.display(),
            held = held.display()
        );
        let interrupted = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut held = BufReader::new(fs::File::open(&held).unwrap());
                held.read_line(&mut String::new()).unwrap();
                interrupted.store(true, Ordering::Relaxed);
                // It ends when no process holds it any more.
                held.read_to_end(&mut Vec::new()).unwrap();
            });
            let ended = run(Command::new("sh").args(["-c", &script]), Vec::new(), &LIMITS, &interrupted);
            assert!(matches!(ended, Err(Failure::Interrupted)), "{ended:?}");
        });
    }

    #[test]
    fn a_program_that_does_not_exist_is_an_error() {
        testkit::limit_test();
        let missing = run(&mut Command::new("/none/such"), Vec::new(), &LIMITS, &NEVER);
        assert!(matches!(missing, Err(Failure::CannotStart(_))));
    }

    #[test]
    fn an_interrupted_process_ends_what_it_started() {
        testkit::limit_test();
        let interrupted = AtomicBool::new(true);
        let ended = run(Command::new("sleep").arg("1000"), Vec::new(), &LIMITS, &interrupted);
        assert!(matches!(ended, Err(Failure::Interrupted)));
    }
}
