//! What the settings of all platforms share: levels, directories and building blocks.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use clap::builder::PossibleValue;
use jsonc_parser::cst::CstInputValue;
use serde::Serialize;

use super::content::Content;
use crate::environment::Environment;
use crate::platforms::{PLATFORMS, Platform, listed};

/// The settings level that setup changes.
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

/// One file that setup manages.
#[derive(Debug)]
pub struct Target {
    /// Which part of ours it contains.
    pub part: Part,
    /// Its path.
    pub file: PathBuf,
    /// The project that must contain it after links are resolved.
    pub inside: Option<PathBuf>,
    /// Its content.
    pub content: Content,
    /// Whether it may contain secrets: then only its owner may read it, from the moment it is created.
    pub is_private: bool,
    /// The platform's own command for the same change, if it has one.
    pub own_command: Option<String>,
}

/// The part of ours that a file contains.
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
    /// The location of the board, in the home configuration of this program.
    #[serde(rename = "board")]
    Board,
}

/// The directories that contain settings.
pub struct SettingsDirs {
    /// The home directory.
    pub home: PathBuf,
    /// The root of the current project.
    pub project: PathBuf,
    environment: Environment,
    current_dir: PathBuf,
}

impl SettingsDirs {
    /// From the environment of the process.
    pub fn new(
        home: PathBuf,
        project: PathBuf,
        environment: Environment,
        current_dir: PathBuf,
    ) -> SettingsDirs {
        SettingsDirs { home, project, environment, current_dir }
    }

    /// The directory in this variable of a platform.
    pub fn moved_by(&self, variable: &str) -> Option<PathBuf> {
        self.environment.variable(variable).map(|moved| self.current_dir.join(moved))
    }

    /// Whether the user has this platform: its program is on the PATH, or its settings exist.
    pub fn has(&self, platform: &Platform) -> bool {
        (platform.settings.directory)(self).is_dir() || self.can_start(platform.settings.program)
    }

    /// Whether agents can find this program under the name in their settings.
    pub fn has_this_program(&self) -> bool {
        self.can_start("blackboard")
    }

    fn can_start(&self, program: &str) -> bool {
        let Some(path) = &self.environment.path else { return false };
        let name = format!("{program}{}", std::env::consts::EXE_SUFFIX);
        std::env::split_paths(path).any(|directory| is_program(&directory.join(&name)))
    }
}

impl Platform {
    /// The files of a platform at a level. Project files stay in the project: a clone must not choose which files
    /// outside are changed.
    pub fn targets_of(&self, dirs: &SettingsDirs, level: SettingsLevel) -> Vec<Target> {
        let mut targets = (self.settings.targets)(dirs, level);
        for target in targets.iter_mut().filter(|target| target.file.starts_with(&dirs.project)) {
            target.inside = (level != SettingsLevel::User).then(|| dirs.project.clone());
        }
        targets
    }
}

impl SettingsLevel {
    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            SettingsLevel::User => "user",
            SettingsLevel::Project => "project",
            SettingsLevel::Local => "local",
        }
    }
}

impl Part {
    /// Its name in human output.
    pub fn as_str(self) -> &'static str {
        match self {
            Part::Hooks => "hooks",
            Part::Server => "MCP server",
            Part::HooksAndServer => "hooks, MCP server",
            Part::Skill => "skill",
            Part::Board => "board",
        }
    }
}

impl Target {
    pub fn new(part: Part, file: PathBuf, content: Content) -> Target {
        Target { part, file, inside: None, content, is_private: false, own_command: None }
    }

    /// What the user can do if we cannot edit a file with this text.
    pub fn by_hand(&self, text: Option<&str>) -> String {
        let text = self.content.by_hand(text);
        self.own_command.as_ref().map_or(text.clone(), |command| format!("{text}or run: {command}\n"))
    }
}

/// The path of our MCP server below this member.
pub fn servers(member: &str) -> Vec<String> {
    vec![member.to_owned(), "blackboard".to_owned()]
}

/// A handler in its own group, for the tools that `matcher` matches, or for all.
pub fn grouped(matcher: Option<&str>, handler: CstInputValue) -> CstInputValue {
    let matcher = matcher.map(|matcher| ("matcher".to_owned(), matcher.into()));
    let hooks = ("hooks".to_owned(), CstInputValue::Array(vec![handler]));
    CstInputValue::Object(matcher.into_iter().chain([hooks]).collect())
}

/// The skill: instructions that an agent reads when it needs them.
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
    // Launchers of npm are scripts on this system.
    path.is_file() || path.with_extension("cmd").is_file()
}
