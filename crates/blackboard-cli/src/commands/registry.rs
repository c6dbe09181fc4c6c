//! `blackboard registry`

use blackboard::{Code, Refusal, Result};

use super::Run;
use super::interrupt::until_interrupted;
use super::pull::HubOptions;
use crate::context::Context;
use crate::hub::check::differences;
use crate::hub::find::Hub;
use crate::outcome::Outcome;
use crate::output::hub::{CheckedRegistry, RegistryList};

/// List the projects and operators of a hub
///
/// Reads the hub and its spokes as `blackboard pull` does. The health of an operator is the worst of the spokes that the
/// operator maintains. With --check, reads the hub only, lists every difference between REGISTRY.md and the files
/// PROJECT.yaml, and exits with 4 if there is one.
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
        until_interrupted(|interrupted| {
            if self.check {
                return check(&self.options.hub(context, interrupted)?);
            }
            let pulled = self.options.pull(context, interrupted)?;
            Ok(Outcome::new(RegistryList::new(pulled, self.options.is_offline())))
        })
    }
}

fn check(hub: &Hub) -> Result<Outcome> {
    let Some(registry) = hub.registry() else {
        let problem = match &hub.files.registry {
            Some(Err(problem)) => format!("REGISTRY.md of the hub {problem}"),
            _ => "the hub has no REGISTRY.md".to_owned(),
        };
        return Err(Refusal::new(Code::InvalidValue, problem).hint("check --hub").into());
    };
    let projects = hub.projects();
    let problems = projects
        .iter()
        .flat_map(|project| project.problems.iter().map(|problem| format!("{}: {problem}", project.id)));
    let checked = CheckedRegistry {
        differences: differences(&registry, &projects),
        problems: hub.files.problems.iter().cloned().chain(problems).collect(),
        projects: projects.len(),
    };
    Ok(match checked.refusal() {
        Some(refused) => Outcome::new(refused).that_means(Code::RegistryMismatch),
        None => Outcome::new(checked),
    })
}
