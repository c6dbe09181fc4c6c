//! `blackboard pull`

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use blackboard::clock::{Clock as _, SystemClock};
use blackboard::{Code, Refusal, Result};

use super::Run;
use super::arguments::length;
use super::interrupt::until_interrupted;
use crate::context::{Context, warn};
use crate::hub::cache::Cache;
use crate::hub::find::{self, Hub, HubLocation, NamedBy, Origin};
use crate::hub::git::{GitOptions, has_ssh_command};
use crate::hub::pull::{self, Pulled};
use crate::location;
use crate::open::Access;
use crate::outcome::Outcome;
use crate::output::hub::PulledSpokes;
use crate::output::progress::ProgressBar;
use crate::output::{escape, time};

/// How long a call of git may take by default.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The directory of the cache, in the home of boards.
const CACHE: &str = "hub-cache";

/// Show what the projects of a hub report
///
/// Reads .collab/ of every project: from the path of a registered project, from the hub's own copy, or from its repository
/// with git and a cache. Without --hub, uses the current directory if it is a hub, then hub.url of the home
/// configuration, then the hub of .collab/manifest.yaml, and also shows the registered projects that it lacks. A project that cannot be read is reported, and the others are shown.
///
/// Examples:
///   blackboard pull --hub hub
///   blackboard pull --hub mellanon/pai-collab
///   blackboard pull --hub hub --offline --json
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Pull {
    #[command(flatten)]
    options: HubOptions,
}

/// How a hub is read.
#[derive(clap::Args, Debug)]
pub struct HubOptions {
    /// Hub to read: a directory, owner/repo, or a URL
    #[arg(long, value_name = "DIR|URL", value_hint = clap::ValueHint::AnyPath)]
    hub: Option<String>,

    /// Read the cache only, without a network
    #[arg(long)]
    offline: bool,

    /// Directory whose repositories the hub may name with a file URL; may be repeated
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    allow_path: Vec<PathBuf>,

    /// Time limit of each call of git [default: 30s]
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
}

impl Run for Pull {
    fn run(self, context: &Context) -> Result<Outcome> {
        until_interrupted(|interrupted| {
            let pulled = self.options.pull(context, interrupted)?;
            Ok(Outcome::new(PulledSpokes { pulled, offline: self.options.offline }))
        })
    }
}

impl HubOptions {
    /// Whether only the cache is read.
    pub fn is_offline(&self) -> bool {
        self.offline
    }

    /// Reads the hub and all of its spokes.
    pub fn pull(&self, context: &Context, interrupted: &AtomicBool) -> Result<Pulled> {
        let located = self.locate(context)?;
        let mut cache = self.cache(context)?;
        let hub = match &located {
            Some((location, _)) => read_hub(context, location, &mut cache, interrupted)?,
            None => Hub::default(),
        };
        let board = context.open(Access::read_unswept())?;
        let registered: Vec<_> = board.projects().list()?.into_iter().map(|listed| listed.project).collect();
        let current = context.request().current_dir;
        let allowed: Vec<_> = self.allow_path.iter().map(|path| current.join(path)).collect();
        // With --hub, the user asks for the projects of that hub.
        let others = !matches!(&located, Some((_, NamedBy::Option)));
        let candidates = hub.candidates(&registered, others, &allowed);
        match (&located, candidates.is_empty()) {
            (None, true) => return Err(no_hub()),
            (None, false) => context.note("no hub was found; showing the projects of this board"),
            (Some((location, NamedBy::Configuration | NamedBy::Manifest)), _) => {
                context.note(&format!("the hub is {}", name_of(location)));
            }
            (Some(_), _) => {}
        }
        let uses_ssh = candidates
            .iter()
            .any(|candidate| matches!(&candidate.origin, Origin::Remote(address, _) if address.uses_ssh()));
        learn_ssh(context, uses_ssh, &mut cache, interrupted);
        let mut bar = ProgressBar::on_terminal(context.json());
        let total = candidates.len() as u64;
        let spokes = pull::read(&candidates, &cache, SystemClock.now(), interrupted, |done| {
            bar.show("Reading", done as u64, total);
        });
        drop(bar);
        Ok(Pulled { hub, spokes })
    }

    /// Reads only the hub. It is required.
    pub fn hub(&self, context: &Context, interrupted: &AtomicBool) -> Result<Hub> {
        let Some((location, _)) = self.locate(context)? else { return Err(no_hub()) };
        read_hub(context, &location, &mut self.cache(context)?, interrupted)
    }

    fn locate(&self, context: &Context) -> Result<Option<(HubLocation, NamedBy)>> {
        let request = context.request();
        let configured = context.resolve()?.config.hub_url.clone();
        let root =
            location::main_worktree(&request).map_or_else(|| request.current_dir.clone(), |(root, _)| root);
        find::location(self.hub.as_deref(), &request.current_dir, configured.as_deref(), &root)
    }

    fn cache(&self, context: &Context) -> Result<Cache> {
        let home = location::home(&context.request()).ok_or_else(location::no_home)?;
        let timeout = length(self.timeout.as_deref())?.unwrap_or(TIMEOUT);
        let options = GitOptions { timeout, has_ssh_command: false };
        Ok(Cache { directory: home.join(CACHE), offline: self.offline, options })
    }
}

/// Reads a hub, and warns if only the cache has it.
fn read_hub(
    context: &Context,
    location: &HubLocation,
    cache: &mut Cache,
    interrupted: &AtomicBool,
) -> Result<Hub> {
    let uses_ssh = matches!(location, HubLocation::Remote(address) if address.uses_ssh());
    learn_ssh(context, uses_ssh, cache, interrupted);
    let hub = Hub::read(location, cache, interrupted)?;
    if !context.json()
        && !interrupted.load(Ordering::Relaxed)
        && let (Some(problem), Some(moment)) = (&hub.problem, hub.cached_at)
    {
        let age = time::age(SystemClock.now().since(moment));
        warn(&format!("cannot read the hub: {problem}; using what was read {age} ago"));
    }
    Ok(hub)
}

/// Git asks no question, unless the user has an ssh command of their own.
fn learn_ssh(context: &Context, uses_ssh: bool, cache: &mut Cache, interrupted: &AtomicBool) {
    if uses_ssh && !cache.offline && !cache.options.has_ssh_command {
        let current = context.request().current_dir;
        let in_environment = context.environment().ssh_command.is_some();
        cache.options.has_ssh_command = has_ssh_command(&current, in_environment, interrupted);
    }
}

fn name_of(location: &HubLocation) -> String {
    match location {
        HubLocation::Directory(directory) => escape(&directory.display().to_string()).into_owned(),
        HubLocation::Remote(address) => escape(&address.to_string()).into_owned(),
    }
}

fn no_hub() -> blackboard::Error {
    Refusal::new(Code::Usage, "no hub is named, and none was found")
        .hint("name one: --hub DIR|URL, or hub.url in the configuration")
        .into()
}
