//! What all platforms have in common: where things go by scope, and the pieces that their settings are made of.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValue;
use jsonc_parser::cst::CstInputValue;
use serde::Serialize;

use super::content::Content;
use crate::environment::Environment;

/// An agent platform: everything that set-up knows about it.
pub struct Platform {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// Its program.
    pub program: &'static str,
    /// For whom it can be set up.
    pub scopes: &'static [Scope],
    /// Where it keeps the settings of this user.
    pub directory: fn(&Places) -> PathBuf,
    /// What goes where.
    pub targets: fn(&Places, Scope) -> Vec<Target>,
    /// What the user has to do then.
    pub afterwards: fn(Scope) -> &'static [&'static str],
}

/// For whom a platform is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// This user, everywhere
    User,
    /// Everybody who works on this project: in files that belong into its repository
    Project,
    /// This user in this project, where an agent has that (Claude Code)
    Local,
}

/// One file that set-up looks after.
#[derive(Debug)]
pub struct Target {
    /// What goes into it.
    pub part: Part,
    /// Where it is.
    pub file: PathBuf,
    /// The project that it has to be in, wherever links lead.
    pub inside: Option<PathBuf>,
    /// What belongs into it.
    pub content: Content,
    /// Whether its owner will put secrets there: nobody else is to read it, from its first byte.
    pub is_private: bool,
    /// The platform's own command for the same, if it has one.
    pub own_command: Option<String>,
}

/// What of ours is in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Part {
    #[serde(rename = "hooks")]
    Hooks,
    #[serde(rename = "mcp")]
    Server,
    #[serde(rename = "hooks+mcp")]
    HooksAndServer,
    #[serde(rename = "skill")]
    Skill,
}

/// The directories that settings are in.
pub struct Places {
    /// The home directory.
    pub home: PathBuf,
    /// The root of the project that the call is made in.
    pub project: PathBuf,
    environment: Environment,
    current_dir: PathBuf,
}

impl Places {
    /// From what the process was started with.
    pub fn new(home: PathBuf, project: PathBuf, environment: Environment, current_dir: PathBuf) -> Places {
        Places { home, project, environment, current_dir }
    }

    /// `$CLAUDE_CONFIG_DIR`, `~/.claude`
    pub fn claude(&self) -> PathBuf {
        self.claude_moved().unwrap_or_else(|| self.home.join(".claude"))
    }

    /// The state of Claude Code, which moves with its settings.
    pub fn claude_state(&self) -> PathBuf {
        self.claude_moved().unwrap_or_else(|| self.home.clone()).join(".claude.json")
    }

    /// `$CODEX_HOME`, `~/.codex`
    pub fn codex(&self) -> PathBuf {
        let moved = self.environment.codex_home.as_ref();
        moved.map_or_else(|| self.home.join(".codex"), |moved| self.current_dir.join(moved))
    }

    /// `$GEMINI_CLI_HOME/.gemini`, `~/.gemini`
    pub fn gemini(&self) -> PathBuf {
        let moved = self.environment.gemini_home.as_ref();
        moved.map_or_else(|| self.home.clone(), |moved| self.current_dir.join(moved)).join(".gemini")
    }

    /// `$XDG_CONFIG_HOME/opencode`, `~/.config/opencode`
    pub fn opencode(&self) -> PathBuf {
        let moved = self.environment.config_home.as_ref();
        moved.map_or_else(|| self.home.join(".config"), |moved| self.current_dir.join(moved)).join("opencode")
    }

    /// `$COPILOT_HOME`, `~/.copilot`
    pub fn copilot(&self) -> PathBuf {
        let moved = self.environment.copilot_home.as_ref();
        moved.map_or_else(|| self.home.join(".copilot"), |moved| self.current_dir.join(moved))
    }

    /// `~/.cursor`
    pub fn cursor(&self) -> PathBuf {
        self.home.join(".cursor")
    }

    /// Whether this user has it: its program can be started, or its settings are there.
    pub fn has(&self, platform: &Platform) -> bool {
        (platform.directory)(self).is_dir() || self.can_start(platform.program)
    }

    /// Whether agents find this program under the name that is written into their settings.
    pub fn has_this_program(&self) -> bool {
        self.can_start("blackboard")
    }

    /// The directories that stay whatever is in them: those that the settings of a platform are in are below one of these.
    pub fn kept(&self, platform: &Platform) -> Vec<PathBuf> {
        let settings = (platform.directory)(self);
        let around = settings.parent().map(Path::to_owned);
        [self.home.clone(), self.project.clone()].into_iter().chain(around).collect()
    }

    fn can_start(&self, program: &str) -> bool {
        let Some(path) = &self.environment.path else { return false };
        let name = format!("{program}{}", std::env::consts::EXE_SUFFIX);
        std::env::split_paths(path).any(|directory| is_program(&directory.join(&name)))
    }

    fn claude_moved(&self) -> Option<PathBuf> {
        self.environment.claude_config_dir.as_ref().map(|moved| self.current_dir.join(moved))
    }
}

/// Any word is a platform for those who may not fail; only the names of the real ones are offered to a shell.
#[derive(Clone)]
pub struct AnyPlatform;

impl clap::builder::TypedValueParser for AnyPlatform {
    type Value = String;

    fn parse_ref(
        &self,
        _command: &clap::Command,
        _argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        Ok(value.to_string_lossy().into_owned())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(super::PLATFORMS.iter().map(|platform| PossibleValue::new(platform.name))))
    }
}

impl Platform {
    /// What goes where. The files of a project stay in it: a clone must not choose which files outside are changed.
    pub fn targets_of(&self, places: &Places, scope: Scope) -> Vec<Target> {
        let mut targets = (self.targets)(places, scope);
        for target in targets.iter_mut().filter(|target| target.file.starts_with(&places.project)) {
            target.inside = (scope != Scope::User).then(|| places.project.clone());
        }
        targets
    }
}

impl Scope {
    /// What it is called on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::User => "user",
            Scope::Project => "project",
            Scope::Local => "local",
        }
    }
}

impl Part {
    /// What people call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Part::Hooks => "hooks",
            Part::Server => "MCP server",
            Part::HooksAndServer => "hooks, MCP server",
            Part::Skill => "skill",
        }
    }
}

impl Target {
    pub fn new(part: Part, file: PathBuf, content: Content) -> Target {
        Target { part, file, inside: None, content, is_private: false, own_command: None }
    }

    /// What the user can do where we can't, in a file with this text.
    pub fn by_hand(&self, text: Option<&str>) -> String {
        let text = self.content.by_hand(text);
        self.own_command.as_ref().map_or(text.clone(), |command| format!("{text}or run: {command}\n"))
    }
}

/// The path of our MCP server below this member.
pub fn servers(member: &str) -> Vec<String> {
    vec![member.to_owned(), "blackboard".to_owned()]
}

/// A handler in a group of its own, for the tools that `matcher` fits or for all.
pub fn grouped(matcher: Option<&str>, handler: CstInputValue) -> CstInputValue {
    let matcher = matcher.map(|matcher| ("matcher".to_owned(), matcher.into()));
    let hooks = ("hooks".to_owned(), CstInputValue::Array(vec![handler]));
    CstInputValue::Object(matcher.into_iter().chain([hooks]).collect())
}

/// What an agent can read about the board when it wants to.
pub fn skill(skills: &Path) -> Target {
    Target::new(Part::Skill, skills.join("blackboard/SKILL.md"), Content::Whole(include_str!("skill.md")))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    // Launchers of npm are scripts there.
    path.is_file() || path.with_extension("cmd").is_file()
}
