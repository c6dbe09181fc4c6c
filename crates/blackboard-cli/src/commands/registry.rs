//! `blackboard registry`

use blackboard::{Code, Refusal, Result};

use super::Run;
use super::interrupt::{INTERRUPTED, watch_signals};
use super::pull::HubOptions;
use crate::context::Context;
use crate::hub::check::differences;
use crate::outcome::{Nothing, Outcome};
use crate::output::hub::{CheckedRegistry, RegistryList};

/// List the projects and operators of a hub
///
/// Reads the hub and its spokes as `blackboard pull` does. The health of a project is fresh, stale (its status is more than
/// 7 days old), cached (its repository cannot be read now), broken, unreachable, no .collab/ or no source. The health of an
/// operator is the worst of the spokes that the operator maintains.
///
/// --check reads the hub only, and compares REGISTRY.md with the files PROJECT.yaml. It exits with 4 if they differ, and
/// lists every difference.
///
/// Examples:
///   blackboard registry --hub hub
///   blackboard registry --hub hub --check
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Registry {
    /// Compare REGISTRY.md with the files PROJECT.yaml
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    options: HubOptions,
}

impl Run for Registry {
    fn run(self, context: &Context) -> Result<Outcome> {
        let interrupted = watch_signals();
        if self.check {
            let hub = self.options.hub(context, &interrupted)?;
            let Some(registry) = hub.registry() else {
                let problem = match &hub.files.registry {
                    Some(Err(problem)) => format!("REGISTRY.md of the hub {problem}"),
                    _ => "the hub has no REGISTRY.md".to_owned(),
                };
                return Err(Refusal::new(Code::InvalidValue, problem).hint("check --hub").into());
            };
            let projects = hub.projects();
            let problems = projects.iter().flat_map(|project| {
                project.problems.iter().map(|problem| format!("{}: {problem}", project.id))
            });
            let checked = CheckedRegistry {
                differences: differences(&registry, &projects),
                problems: hub.files.problems.iter().cloned().chain(problems).collect(),
                projects: projects.len(),
            };
            return Ok(match checked.refusal() {
                Some(refused) => Outcome::new(refused).that_means(Code::RegistryMismatch),
                None => Outcome::new(checked),
            });
        }
        Ok(match self.options.pull(context, &interrupted)? {
            Some(pulled) => Outcome::new(RegistryList::new(pulled, self.options.is_offline())),
            None => Outcome::new(Nothing).with_exit_code(INTERRUPTED),
        })
    }
}
