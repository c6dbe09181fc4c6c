//! `cargo xtask load`: keeps the machine busy, as `cargo xtask test --under-load` does during the tests.
//!
//! The load is four computing processes per core, and one that writes to the disk. Each of them ends when its standard
//! input does, and therefore with the process that has started it, even if that is killed. The writer uses an unnamed
//! file of at most 64 MB beside this program, which the system removes with the process. If a process of the load ends
//! early, the task fails: the machine was less busy than claimed.

use std::io::{Read, Seek, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::{Result, run};

/// The number of computing processes per core.
const BUSY_PER_CORE: usize = 4;

/// The size after which the file is overwritten from its start, and the number of bytes between two calls of `fsync`.
const FILE: usize = 64 * CHUNK;
const SYNCED: usize = 16 * CHUNK;
const CHUNK: usize = 1 << 20;

#[derive(clap::Args)]
pub struct Options {
    /// How many processes compute [default: four per core]
    #[arg(long, value_name = "COUNT")]
    busy: Option<usize>,

    /// What a load starts
    #[arg(hide = true)]
    worker: Option<Worker>,
}

/// A process of a load.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Worker {
    Busy,
    Disk,
}

/// The task itself: starts a load, prints its processes, and keeps it until the input ends.
pub fn run(options: &Options) -> Result {
    match options.worker {
        Some(Worker::Busy) => compute(),
        Some(Worker::Disk) => return write_to_the_disk(),
        None => {}
    }
    let mut load = Load::start(options.busy.unwrap_or_else(busy_processes))?;
    let pids: Vec<_> = load.0.iter().map(|(_, child)| child.id().to_string()).collect();
    println!("{}", pids.join(" "));
    wait_for_the_end_of_the_input();
    load.check()
}

/// The default number of processes.
pub fn busy_processes() -> usize {
    BUSY_PER_CORE * std::thread::available_parallelism().map_or(1, usize::from)
}

/// The processes of a load, each with its kind. They end when this value is dropped.
pub struct Load(Vec<(&'static str, Child)>);

impl Load {
    /// Starts this many computing processes, and one that writes to the disk.
    pub fn start(busy: usize) -> Result<Load> {
        let program = this_program()?;
        let mut load = Load(Vec::new());
        for worker in std::iter::repeat_n("busy", busy).chain(["disk"]) {
            let mut command = Command::new(&program);
            let child = command.args(["load", worker]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
            load.0.push((worker, child));
        }
        Ok(load)
    }

    /// Fails if a process of the load has ended.
    pub fn check(&mut self) -> Result {
        for (worker, child) in &mut self.0 {
            if let Some(status) = child.try_wait()? {
                return Err(format!("the {worker} process of the load ended early ({status})").into());
            }
        }
        Ok(())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for (_, child) in &mut self.0 {
            drop(child.stdin.take());
        }
        for (_, child) in &mut self.0 {
            run::end(child, Duration::from_secs(30));
        }
    }
}

/// This program. Its path may have another file by now: `cargo test` replaces the program that started it.
fn this_program() -> std::io::Result<PathBuf> {
    if cfg!(target_os = "linux") { Ok(PathBuf::from("/proc/self/exe")) } else { std::env::current_exe() }
}

fn wait_for_the_end_of_the_input() {
    let mut input = std::io::stdin().lock();
    // An input that cannot be read counts as ended.
    while input.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
}

/// Ends this process when its input ends.
fn end_with_the_input() {
    std::thread::spawn(|| {
        wait_for_the_end_of_the_input();
        std::process::exit(0);
    });
}

fn compute() -> ! {
    end_with_the_input();
    let mut number = 0_u64;
    loop {
        number = std::hint::black_box(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

fn write_to_the_disk() -> Result {
    end_with_the_input();
    let program = std::env::current_exe()?;
    // The directory of the program is on the same disk as the build.
    let directory = program.parent().ok_or("this program has no directory")?;
    let mut file = tempfile::tempfile_in(directory)?;
    let chunk = vec![0x5a; CHUNK];
    loop {
        file.rewind()?;
        for written in (CHUNK..=FILE).step_by(CHUNK) {
            file.write_all(&chunk)?;
            if written % SYNCED == 0 {
                file.sync_data()?;
            }
        }
    }
}
