//! What the settings of all platforms have in common: their levels, their directories, and the pieces that they are made of.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use clap::builder::PossibleValue;
use jsonc_parser::cst::CstInputValue;
use serde::Serialize;

use super::content::Content;
use crate::environment::Environment;
use crate::platforms::{PLATFORMS, Platform, listed};

/// For whom a platform is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SettingsLevel {
    /// This user, everywhere.
    User,
    /// All users of this project.
    Project,
    /// This user in this project.
    Local,
}

impl ValueEnum for SettingsLevel {
    fn value_variants<'a>() -> &'a [SettingsLevel] {
        &[SettingsLevel::User, SettingsLevel::Project, SettingsLevel::Local]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            SettingsLevel::User => "This user, everywhere".to_owned(),
            SettingsLevel::Project => {
                "All users of this project: in files that belong into its repository".to_owned()
            }
            SettingsLevel::Local => {
                let have_it = PLATFORMS.iter().filter(|platform| platform.settings.levels.contains(self));
                let names = listed(have_it.map(|platform| platform.name), "and");
                format!("This user in this project, where an agent has that ({names})")
            }
        };
        Some(PossibleValue::new(self.as_str()).help(help))
    }
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
    /// Whether it will contain secrets: only its owner may read it, from its first byte.
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
pub struct SettingsDirs {
    /// The home directory.
    pub home: PathBuf,
    /// The root of the project that the call is made in.
    pub project: PathBuf,
    environment: Environment,
    current_dir: PathBuf,
}

impl SettingsDirs {
    /// From what the process was started with.
    pub fn new(
        home: PathBuf,
        project: PathBuf,
        environment: Environment,
        current_dir: PathBuf,
    ) -> SettingsDirs {
        SettingsDirs { home, project, environment, current_dir }
    }

    /// The directory that this variable of a platform names.
    pub fn moved_by(&self, variable: &str) -> Option<PathBuf> {
        self.environment.variable(variable).map(|moved| self.current_dir.join(moved))
    }

    /// Whether this user has it: its program can be started, or its settings are there.
    pub fn has(&self, platform: &Platform) -> bool {
        (platform.settings.directory)(self).is_dir() || self.can_start(platform.settings.program)
    }

    /// Whether agents find this program under the name that is written into their settings.
    pub fn has_this_program(&self) -> bool {
        self.can_start("blackboard")
    }

    /// The directories that stay whatever is in them: those that the settings of a platform are in are below one of these.
    pub fn kept(&self, platform: &Platform) -> Vec<PathBuf> {
        let settings = (platform.settings.directory)(self);
        let around = settings.parent().map(Path::to_owned);
        [self.home.clone(), self.project.clone()].into_iter().chain(around).collect()
    }

    fn can_start(&self, program: &str) -> bool {
        let Some(path) = &self.environment.path else { return false };
        let name = format!("{program}{}", std::env::consts::EXE_SUFFIX);
        std::env::split_paths(path).any(|directory| is_program(&directory.join(&name)))
    }
}

impl Platform {
    /// What goes where. The files of a project stay in it: a clone must not choose which files outside are changed.
    pub fn targets_of(&self, dirs: &SettingsDirs, level: SettingsLevel) -> Vec<Target> {
        let mut targets = (self.settings.targets)(dirs, level);
        for target in targets.iter_mut().filter(|target| target.file.starts_with(&dirs.project)) {
            target.inside = (level != SettingsLevel::User).then(|| dirs.project.clone());
        }
        targets
    }
}

impl SettingsLevel {
    /// What it is called on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            SettingsLevel::User => "user",
            SettingsLevel::Project => "project",
            SettingsLevel::Local => "local",
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
