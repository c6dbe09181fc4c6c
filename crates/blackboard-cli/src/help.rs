//! The help of the program: its page, the list of all commands, and the topics that are not about one command.
//!
//! The page is text and not made from the clap definitions, because building all of them costs more than most commands
//! do. Tests compare it with [`COMMANDS`].

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::process::ExitCode;

use blackboard::Code;

use crate::commands::{COMMANDS, Leaf};
use crate::output::{Styles, Tone};

/// What `blackboard help` prints.
#[derive(Clone, Copy, Debug)]
pub enum HelpPage {
    /// The page of the program.
    Program,
    /// One line for each command.
    All,
    /// One of the topics.
    Topic(&'static Topic),
}

/// A page of help that is not about one command.
#[derive(Debug)]
pub struct Topic {
    /// The word after `help`.
    pub name: &'static str,
    text: &'static str,
}

/// Every topic.
pub const TOPICS: &[Topic] =
    &[Topic { name: "environment", text: ENVIRONMENT }, Topic { name: "exit-codes", text: EXIT_CODES }];

impl HelpPage {
    /// The topic that a word after `help` names.
    pub fn named(word: &OsStr) -> Option<HelpPage> {
        TOPICS.iter().find(|topic| word == topic.name).map(HelpPage::Topic)
    }

    /// Prints it.
    pub fn print(self) -> ExitCode {
        let mut stdout = io::stdout().lock();
        // A reader that goes away has what it wanted.
        let _ = stdout.write_all(styled(&self.text(), Styles::of(&stdout)).as_bytes());
        ExitCode::SUCCESS
    }

    fn text(self) -> String {
        match self {
            HelpPage::Program => PAGE.to_owned(),
            HelpPage::All => all_commands(),
            HelpPage::Topic(topic) => topic.text.to_owned(),
        }
    }
}

/// Answers a call without a command: with the page of the program, as a usage error.
pub fn missing_command() -> ExitCode {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(styled(PAGE, Styles::of(&stderr)).as_bytes());
    ExitCode::from(Code::Usage.exit_code())
}

/// The same text with its headings in bold: the lines that end with a colon.
fn styled(text: &str, styles: Styles) -> String {
    let mut shown = String::with_capacity(text.len() + 256);
    for line in text.lines() {
        let tone = if line.ends_with(':') && !line.starts_with(' ') { Tone::Heading } else { Tone::Plain };
        // Writing to a `String` cannot fail.
        let _ = writeln!(shown, "{}", styles.paint(tone, line));
    }
    shown
}

/// One line for each command, with its summary.
fn all_commands() -> String {
    let width = COMMANDS.iter().map(|command| command.path.len()).max().unwrap_or(0);
    let mut text = String::new();
    for command in COMMANDS {
        let definition = Leaf { command, alias: None }.inside_tree();
        let about = definition.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(text, "{:width$}  {about}", command.path);
    }
    text
}

/// The page of the program.
pub const PAGE: &str = "\
Coordinate coding agents that work at the same time

Usage: blackboard <COMMAND> [OPTIONS]

Everyday:
  status         Show a summary of the board, or export it for a hub
  agent list     List active and idle agents
  work list      List work items
  work create    Create a work item
  work claim     Claim a work item for this session
  work complete  Complete a work item
  work release   Release a claimed work item without completing it
  observe        Show events since your last check, or follow new ones
  file reserve   Reserve files so that other agents do not edit them
  write          Write an entry
  read           Read an entry
  serve          Serve a live dashboard for your browser

Getting started:
  demo           Watch four agents share work for 30 seconds
  setup          Connect Claude Code, Codex and other agents
  init           Create a board for this repository
  run            Run a command as an agent session

More commands:
  Agents         agent register, heartbeat, show, deregister; call
  Work           work block, unblock, status, reassign, edit, wait, reset,
                 delete, update-metadata, append-event, import, export
  Entries        list, query, search, history, wait, append, increment, delete,
                 clear, purge, txn, snapshot; scope create, set, show, list,
                 delete; page map, unmap, list, show
  Memory         memory remember, recall, feedback, map, list, define, promote,
                 drain, pending, compact, delete
  Locks, files   lock acquire, release, list, run; file release, list, check
  Projects       project register, list, status, remove; spoke init, show,
                 validate; pull, registry, render
  Protocols      protocol list, show, key, pattern, parse, check, define, remove
  Token quota    quota status, check, release, record, fold, history, init, set
  Setup          setup status, remove; guard install, check, remove; mcp, hook
  Maintenance    sweep, export, import, copy, upgrade, completions, version

Options:
  --db <PATH>    Board to use: a file, an existing directory or a redis:// URL
  --json         Print JSON, also for errors
  -h, --help     Print help
  -V, --version  Print version

Run `blackboard help COMMAND` for options and examples, `blackboard help --all`
for all commands, `blackboard help environment` or `blackboard help exit-codes`.
";

const ENVIRONMENT: &str = "\
Environment variables:
  BLACKBOARD_SESSION_ID          Session to act as, if --session is not given
  BLACKBOARD_DB                  Board to use, if --db is not given: a file, a
                                 directory, or 'redis://host:port?board=NAME'
  BLACKBOARD_REDIS_PASSWORD      Password of a Redis server, if the URL has none
                                 (other users can see one on the command line)
  BLACKBOARD_REDIS_PASSWORD_FILE
                                 File with that password
  BLACKBOARD_REDIS_SENTINEL_PASSWORD
                                 Password of the sentinels, if they have one
  BLACKBOARD_REDIS_TIMEOUT       How long a command waits for a Redis server
                                 [default: 15s]
  BLACKBOARD_SCOPE               Scope of entries, if --scope is not given
                                 [default: default]
  BLACKBOARD_HOME                Directory of the board used outside projects
                                 that have one, and of your configuration
                                 [default: ~/.pai/blackboard]
  BLACKBOARD_PID                 Process to watch for a new session
  BLACKBOARD_AGENT_NAME          Name of an agent that registers through hooks
                                 or the MCP server
  BLACKBOARD_HOOK_DEADLINE       Milliseconds that a hook may take
                                 [default: 300]
  BLACKBOARD_HEARTBEAT_INTERVAL  Seconds between two heartbeats [default: 60]
  BLACKBOARD_STALE_THRESHOLD     Seconds without a heartbeat until an agent is
                                 stale, if its process is gone [default: 300]
  BLACKBOARD_PRUNE_AFTER         Seconds for which heartbeats are kept
                                 [default: 604800]
  BLACKBOARD_ALLOW_NETWORK_FILESYSTEM
                                 Whether a board may be on NFS, SMB, 9p or FUSE:
                                 true or false [default: false]
  BLACKBOARD_UPGRADE             1: upgrade a board of ivy-blackboard when a
                                 command opens it, as `upgrade` does
  BLACKBOARD_NOTIFYING           Any value: start no commands of `notify`; set
                                 for these commands
  TZ                             Time zone of human output
                                 [default: the zone of the system]
  COLUMNS                        Width of human output [default: the width of
                                 the terminal]
  NO_COLOR                       Any value: no colors
  CLICOLOR_FORCE                 Any value but 0: colors also in a pipe

Boards:
  --db, then BLACKBOARD_DB, then .blackboard/ in this directory or above it up
  to the repository root, then ~/.pai/blackboard/local.db. `blackboard status`
  prints the path or the URL.

Set for the command of `run` and `lock run`:
  BLACKBOARD_SESSION_ID          Session of the command (`run`)
  BLACKBOARD_FENCE               Fence token of what it holds, as --fence
                                 accepts it
  BLACKBOARD_LOCK_FENCE          Number in that fence token (`lock run`)

Sessions:
  --session and BLACKBOARD_SESSION_ID accept an id, its first 6 or more
  characters, or an agent name that only one live session has. Without them, a
  command acts for the session of the calling agent: the one that is registered
  for a parent process of the command.
";

const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  internal error or I/O failure
  2  usage error
  3  not found
  4  refused: held by another session, or a condition did not hold
  5  permission denied
  6  timed out

3 also means that no work item is available (`work claim --next`).
5 also means that the text looks like a credential (--allow-secret-looking).

With --json, the field \"code\" of an error is more precise.
`run` and `lock run` exit with the exit code of their command.
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Group;

    #[test]
    fn program_page_has_the_summaries_of_its_commands() {
        for command in COMMANDS.iter().filter(|command| command.group.shows_summaries()) {
            let definition = Leaf { command, alias: None }.inside_tree();
            let about = definition.get_about().map(ToString::to_string).unwrap_or_default();
            let line = format!("  {:13}  {about}", command.path);
            assert!(section(command.group).contains(&line), "{line}");
        }
        assert_eq!(COMMANDS.iter().filter(|command| command.group == Group::Everyday).count(), 12);
    }

    #[test]
    fn program_page_names_every_command_once() {
        for group in Group::ALL.into_iter().filter(|group| !group.shows_summaries()) {
            let mut named = Vec::new();
            let mut noun = "";
            let text = section(group).join(" ");
            for part in text.split_inclusive([',', ';']) {
                let words = part.trim().trim_end_matches([',', ';']);
                match words.split_once(' ') {
                    Some((first, _)) => {
                        noun = first;
                        named.push(words.to_owned());
                    }
                    None if noun.is_empty() => named.push(words.to_owned()),
                    None => named.push(format!("{noun} {words}")),
                }
                if part.ends_with(';') {
                    noun = "";
                }
            }
            let mut expected: Vec<_> = COMMANDS
                .iter()
                .filter(|command| command.group == group)
                .map(|command| command.path)
                .collect();
            named.sort_unstable();
            expected.sort_unstable();
            assert_eq!(named, expected, "{group:?}");
        }
    }

    /// The lines of a group on the page, without its name.
    fn section(group: Group) -> Vec<String> {
        let heading = format!("{}:", group.heading());
        if group.shows_summaries() {
            let lines = PAGE.lines().skip_while(|line| *line != heading).skip(1);
            return lines.take_while(|line| !line.is_empty()).map(str::to_owned).collect();
        }
        let begins = format!("  {:15}", group.heading());
        let mut lines = PAGE.lines().skip_while(|line| !line.starts_with(&begins));
        let first = lines.next().map(|line| line[begins.len()..].to_owned());
        let rest = lines.take_while(|line| line.starts_with("      "));
        first.into_iter().chain(rest.map(|line| line.trim().to_owned())).collect()
    }

    #[test]
    fn program_page_and_topics_fit_a_terminal() {
        assert!(PAGE.lines().count() < 50);
        let topics = TOPICS.iter().map(HelpPage::Topic);
        for page in [HelpPage::Program, HelpPage::All].into_iter().chain(topics) {
            for line in page.text().lines() {
                assert!(line.chars().count() <= 80, "{line}");
            }
        }
    }

    #[test]
    fn program_page_names_every_topic_and_no_other() {
        let named = PAGE.split("`blackboard help ").skip(1).filter_map(|rest| rest.split('`').next());
        let named: Vec<_> = named.filter(|word| !["COMMAND", "--all"].contains(word)).collect();
        assert_eq!(named, TOPICS.iter().map(|topic| topic.name).collect::<Vec<_>>());
    }

    #[test]
    fn only_headings_are_bold() {
        assert_eq!(styled("A:\n  b:\n", Styles::new(true)), "\u{1b}[1mA:\u{1b}[0m\n  b:\n");
        assert_eq!(styled("A:\n  b:\n", Styles::new(false)), "A:\n  b:\n");
    }
}
