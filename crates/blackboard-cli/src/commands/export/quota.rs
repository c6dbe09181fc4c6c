//! `blackboard export --format yaml --what quota`: the state of the token quota.
//!
//! With one provider it is an object, with several a list of them.

use std::collections::BTreeMap;

use blackboard::clock::Timestamp;
use blackboard::quota::{AgentLimits, Config, ProviderStatus, RateLimit};
use blackboard::{Code, Fault, Result};
use serde::Serialize;

use crate::context::Context;
use crate::quota::status_of;
use crate::yaml;

#[derive(Serialize)]
struct QuotaFile<'a> {
    quota: OneOrMore<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum OneOrMore<'a> {
    One(Box<Quota<'a>>),
    More(Vec<Quota<'a>>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Quota<'a> {
    provider: &'a str,
    plan: Plan<'a>,
    windows: BTreeMap<&'a str, Window>,
    reservation: AgentLimits,
    current_load: CurrentLoad,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Plan<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tier: Option<&'a str>,
    rate_limit: RateLimit,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Window {
    budget: u64,
    used: u64,
    reserved: u64,
    remaining: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reset_at: Option<Timestamp>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CurrentLoad {
    active_agents: u64,
    combined_rate: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    headroom: Option<u64>,
}

/// The text of the file.
pub fn render(context: &Context) -> Result<String> {
    let (location, status) = status_of(context)?;
    let mut quotas: Vec<_> =
        status.providers.iter().map(|provider| Quota::of(location.config(), provider)).collect();
    let quota = match quotas.pop() {
        Some(only) if quotas.is_empty() => OneOrMore::One(Box::new(only)),
        last => OneOrMore::More(quotas.into_iter().chain(last).collect()),
    };
    yaml::write(&QuotaFile { quota }).map_err(|error| {
        Fault::new(Code::Internal, "the quota cannot be written as YAML").because(error).into()
    })
}

impl Quota<'_> {
    fn of<'a>(config: &Config, status: &'a ProviderStatus) -> Quota<'a> {
        let configured = config.providers.get(&status.provider);
        let windows = status.windows.iter().map(|window| {
            let (budget, used) = (window.budget, window.used);
            let (reserved, remaining) = (window.reserved, window.remaining);
            (window.window.as_str(), Window { budget, used, reserved, remaining, reset_at: window.frees_at })
        });
        Quota {
            provider: &status.provider,
            plan: Plan {
                tier: status.tier.as_deref(),
                rate_limit: configured.map(|provider| provider.rate_limit).unwrap_or_default(),
            },
            windows: windows.collect(),
            reservation: configured.map(|provider| provider.reservation).unwrap_or_default(),
            current_load: CurrentLoad {
                active_agents: status.load.active_agents,
                combined_rate: status.load.tokens_per_minute,
                headroom: status.load.headroom,
            },
        }
    }
}
