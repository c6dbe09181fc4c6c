//! [`Config`]: providers with their windows, budgets, reservations and caps.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::shape;
use super::usage::check_text;
use crate::error::{Error, Result};
use crate::text::{grouped, shown};
use crate::{duration, wildcard};

/// How many tokens a budget may have.
const MOST_TOKENS: u64 = 1_000_000_000_000_000;
/// The most that a token of a cache can count. Platforms count a written one about twice at most.
const LARGEST_FACTOR: f64 = 10.0;
const LONGEST_NAME: usize = 60;
const LONGEST_URL: usize = 2048;
const MOST_PROVIDERS: usize = 32;
const MOST_WINDOWS: usize = 8;
const MOST_MODELS: usize = 64;
const MOST_THRESHOLDS: usize = 8;
const SHORTEST_WINDOW: Duration = Duration::from_mins(1);
const LONGEST_WINDOW: Duration = Duration::from_hours(24 * 366);

/// The share of a budget at which a window warns, if no other is configured.
const WARN_AT: f64 = 0.8;

/// The configuration of a ledger. What is not set has a default, which the methods return.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// What happens to a claim that does not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforce: Option<Enforcement>,
    /// How much a token counts that is read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read_factor: Option<f64>,
    /// How much a token counts that is written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_factor: Option<f64>,
    /// The provider of sessions that have not used any yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_provider: Option<String>,
    /// The URL of a server with the journal of the ledger, if several machines share it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The providers of models: a pattern with `*`, and the name of a provider.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, String>,
    /// The providers, by name.
    pub providers: BTreeMap<String, Provider>,
}

/// What happens to a claim that does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Enforcement {
    /// It is reported.
    #[default]
    Warn,
    /// It is refused.
    Deny,
}

/// A provider of models.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Provider {
    /// The name of the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// The limits per minute.
    pub rate_limit: RateLimit,
    /// The rolling windows, by length.
    pub windows: BTreeMap<String, Budget>,
    /// What agents leave to the operator, and what one of them may use.
    pub reservation: AgentLimits,
    /// The shares of a budget at which a window warns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warn_at: Option<Vec<f64>>,
}

/// The limits per minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RateLimit {
    /// Tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u64>,
    /// Requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u64>,
}

/// The budget of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Budget {
    /// Tokens in any period of this length.
    pub budget: u64,
}

/// What agents leave to the operator, and what one of them may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AgentLimits {
    /// Tokens of each window that are kept for the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<u64>,
    /// Caps for agents.
    pub agents: AgentCaps,
}

/// Caps for agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AgentCaps {
    /// How many agents may use the provider at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<u64>,
    /// How many tokens a session may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_per_agent: Option<u64>,
}

/// A rolling window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its length as it was written.
    pub name: String,
    /// Its length.
    pub length: Duration,
    /// Its budget.
    pub budget: u64,
}

impl Config {
    /// Parses the JSON text of a configuration.
    pub fn parse(text: &str) -> Result<Config> {
        let value =
            serde_json::from_str(text).map_err(|error| Error::invalid(format!("not valid: {error}")))?;
        Config::from_json(value)
    }

    /// The configuration in a JSON object. Refuses values that cannot be meant.
    pub fn from_json(value: Value) -> Result<Config> {
        let config = Config::read(value)?;
        if config.providers.is_empty() {
            return Err(Error::invalid("providers is missing"));
        }
        config.check_names()?;
        Ok(config)
    }

    /// The configuration of a project in a JSON object, which may have any part of a configuration: it only makes another one
    /// stricter ([`Config::restrict`]).
    ///
    /// ```
    /// use blackboard::quota::{Config, Enforcement};
    ///
    /// let mut config = Config::parse(r#"{"providers": {"anthropic": {}}}"#)?;
    /// let project = Config::of_project(serde_json::json!({"enforce": "deny"}))?;
    /// assert!(config.restrict(&project).is_empty());
    /// assert_eq!(config.enforcement(), Enforcement::Deny);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn of_project(value: Value) -> Result<Config> {
        Config::read(value)
    }

    fn read(value: Value) -> Result<Config> {
        let value = without_null(value);
        if let Some(problem) = shape::problem(&value) {
            return Err(Error::invalid(problem));
        }
        let config: Config =
            serde_json::from_value(value).map_err(|error| Error::invalid(shown(&error.to_string())))?;
        config.check()?;
        Ok(config)
    }

    /// How much a token counts that is read from a cache.
    pub fn cache_read_factor(&self) -> f64 {
        self.cache_read_factor.unwrap_or(0.1)
    }

    /// How much a token counts that is written to a cache.
    pub fn cache_write_factor(&self) -> f64 {
        self.cache_write_factor.unwrap_or(1.0)
    }

    /// What happens to a claim that does not fit.
    pub fn enforcement(&self) -> Enforcement {
        self.enforce.unwrap_or_default()
    }

    /// The provider of a model: that of the longest pattern that matches.
    pub fn provider_of(&self, model: &str) -> Option<&str> {
        let matching = self.models.iter().filter(|(pattern, _)| matches(pattern, model));
        matching.max_by_key(|(pattern, _)| pattern.len()).map(|(_, provider)| provider.as_str())
    }

    /// The provider whose budgets count a message of this model: that of its pattern, or the only one if there are no
    /// patterns.
    pub fn provider_of_message(&self, model: &str) -> Option<&str> {
        let mut names = self.providers.keys();
        match (names.next(), names.next()) {
            (Some(only), None) if self.models.is_empty() => Some(only),
            _ => self.provider_of(model),
        }
    }

    /// The longest window of all providers.
    pub fn longest_window(&self) -> Duration {
        self.windows().map(|window| window.length).max().unwrap_or_default()
    }

    /// All windows.
    pub(super) fn windows(&self) -> impl Iterator<Item = Window> {
        self.providers.values().flat_map(Provider::windows)
    }

    fn check(&self) -> Result<()> {
        check_count("providers", self.providers.len(), MOST_PROVIDERS)?;
        check_count("models", self.models.len(), MOST_MODELS)?;
        if let Some(server) = &self.server {
            check_text("server", server, LONGEST_URL)?;
        }
        check_factor("cacheReadFactor", self.cache_read_factor)?;
        check_factor("cacheWriteFactor", self.cache_write_factor)?;
        for pattern in self.models.keys() {
            check_text("pattern of a model", pattern, LONGEST_NAME)?;
        }
        for (name, provider) in &self.providers {
            check_text("name of a provider", name, LONGEST_NAME)?;
            if name.contains(['.', '/', ' ']) {
                return Err(Error::invalid(format!(
                    "the name of the provider \"{name}\" has a dot, slash or space"
                )));
            }
            provider.check().map_err(|error| Error::invalid(format!("providers.{name}.{error}")))?;
        }
        Ok(())
    }

    /// Refuses names of providers that are not configured.
    fn check_names(&self) -> Result<()> {
        if let Some(provider) =
            self.default_provider.as_ref().filter(|name| !self.providers.contains_key(*name))
        {
            let provider = shown(provider);
            return Err(Error::invalid(format!(
                "defaultProvider: the provider {provider} is not configured"
            )));
        }
        match self.models.iter().find(|(_, provider)| !self.providers.contains_key(*provider)) {
            Some((pattern, provider)) => {
                let provider = shown(provider);
                Err(Error::invalid(format!("models.{pattern}: the provider {provider} is not configured")))
            }
            None => Ok(()),
        }
    }
}

impl Provider {
    /// Its windows, the shortest one first.
    pub fn windows(&self) -> Vec<Window> {
        let parsed = self.windows.iter().filter_map(|(name, budget)| {
            let length = duration::parse(name).ok()?;
            Some(Window { name: name.clone(), length, budget: budget.budget })
        });
        let mut windows: Vec<_> = parsed.collect();
        windows.sort_by_key(|window| window.length);
        windows
    }

    /// Tokens of each window that are kept for the operator.
    pub fn operator(&self) -> u64 {
        self.reservation.operator.unwrap_or(0)
    }

    /// The shares of a budget at which a window warns, the smallest one first.
    pub fn thresholds(&self) -> Vec<f64> {
        let mut thresholds = self.warn_at.clone().unwrap_or_else(|| vec![WARN_AT]);
        thresholds.sort_by(f64::total_cmp);
        thresholds
    }

    /// The share of a budget that the operator leaves to agents, if that is not all of it.
    #[expect(clippy::cast_precision_loss, reason = "budgets are below 2^52")]
    pub(super) fn share_of_agents(&self, budget: u64) -> Option<f64> {
        let left = budget.saturating_sub(self.operator());
        (0 < left && left < budget).then(|| left as f64 / budget as f64)
    }

    fn check(&self) -> Result<()> {
        check_count("windows", self.windows.len(), MOST_WINDOWS)?;
        if let Some(tier) = &self.tier {
            check_text("tier", tier, LONGEST_NAME)?;
        }
        let mut lengths = Vec::new();
        for (name, Budget { budget }) in &self.windows {
            check_text("length of a window", name, LONGEST_NAME)?;
            let length = duration::parse(name)
                .map_err(|error| Error::invalid(format!("windows.{}: {error}", shown(name))))?;
            if !(SHORTEST_WINDOW..=LONGEST_WINDOW).contains(&length) {
                return Err(Error::invalid(format!(
                    "windows.{name}: a window has from 1 minute to 366 days"
                )));
            }
            if lengths.contains(&length) {
                return Err(Error::invalid(format!("windows.{name}: another window has the same length")));
            }
            lengths.push(length);
            check_tokens(&format!("windows.{name}.budget"), Some(*budget))?;
            if self.operator() >= *budget {
                return Err(Error::invalid(format!(
                    "reservation.operator: {} tokens leave nothing of the {} of windows.{name} to agents",
                    grouped(self.operator()),
                    grouped(*budget)
                )));
            }
        }
        check_tokens("rateLimit.tokensPerMinute", self.rate_limit.tokens_per_minute)?;
        check_tokens("rateLimit.requestsPerMinute", self.rate_limit.requests_per_minute)?;
        check_tokens("reservation.agents.maxConcurrent", self.reservation.agents.max_concurrent)?;
        check_tokens("reservation.agents.maxPerAgent", self.reservation.agents.max_per_agent)?;
        check_count("warnAt", self.warn_at.as_ref().map_or(0, Vec::len), MOST_THRESHOLDS)?;
        match self.thresholds().into_iter().find(|share| !(*share > 0.0 && *share <= 1.0)) {
            Some(share) => Err(Error::invalid(format!("warnAt: {share} is not a share above 0 and up to 1"))),
            None => Ok(()),
        }
    }
}

/// The value without members that are `null`: they are not set.
fn without_null(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let set = members.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(set.map(|(name, value)| (name, without_null(value))).collect())
        }
        value => value,
    }
}

fn check_count(what: &str, count: usize, most: usize) -> Result<()> {
    if count > most { Err(Error::invalid(format!("{what}: at most {most} are allowed"))) } else { Ok(()) }
}

fn check_tokens(what: &str, number: Option<u64>) -> Result<()> {
    match number {
        Some(number) if !(1..=MOST_TOKENS).contains(&number) => {
            let most = grouped(MOST_TOKENS);
            Err(Error::invalid(format!("{what}: {} is not a whole number from 1 to {most}", grouped(number))))
        }
        _ => Ok(()),
    }
}

fn check_factor(what: &str, factor: Option<f64>) -> Result<()> {
    match factor {
        Some(factor) if !(0.0..=LARGEST_FACTOR).contains(&factor) => {
            Err(Error::invalid(format!("{what}: {factor} is not a number from 0 to {LARGEST_FACTOR}")))
        }
        _ => Ok(()),
    }
}

/// Whether a pattern with `*` matches a name, in any case of letters.
fn matches(pattern: &str, name: &str) -> bool {
    let tokens: Vec<char> = pattern.chars().collect();
    let is_same = |token: &char, character: char| token.eq_ignore_ascii_case(&character);
    wildcard::matches(&tokens, |token| *token == '*', name.chars(), is_same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_belong_to_the_provider_of_the_longest_pattern() {
        let config = Config::parse(
            r#"{"providers": {"a": {}, "b": {}}, "models": {"*": "a", "gpt-*": "b", "gpt-*-mini": "a"}}"#,
        );
        let config = config.unwrap();
        for (model, provider) in [("claude", "a"), ("gpt-5", "b"), ("GPT-5-mini", "a"), ("", "a")] {
            assert_eq!(config.provider_of(model), Some(provider), "{model}");
        }
    }

    #[test]
    fn windows_are_in_the_order_of_their_length() {
        let windows = r#"{"windows": {"7d": {"budget": 3}, "5h": {"budget": 2}, "90": {"budget": 1}}}"#;
        let provider: Provider = serde_json::from_str(windows).unwrap();
        let budgets: Vec<_> = provider.windows().iter().map(|window| window.budget).collect();
        assert_eq!(budgets, [1, 2, 3]);
    }

    #[test]
    fn values_that_cannot_be_meant_are_refused_with_their_name() {
        for (text, expected) in [
            ("{}", "providers is missing"),
            (
                r#"{"providers": {"a": {"window": {}}}}"#,
                "providers.a: unknown field `window`; known: tier, rateLimit, windows",
            ),
            ("[]", "quota is not an object"),
            (r#"{"providers": 1}"#, "providers is not an object"),
            (r#"{"providers": {"a": 1}}"#, "providers.a is not an object"),
            (r#"{"providers": {"a": {"tier": 1}}}"#, "providers.a.tier is not a text"),
            (r#"{"providers": {"a": {"warnAt": 0.5}}}"#, "providers.a.warnAt is not a list of numbers"),
            (r#"{"providers": {"a": {"warnAt": ["0.5"]}}}"#, "providers.a.warnAt is not a list of numbers"),
            (r#"{"providers": {"a": {"windows": {"5h": {}}}}}"#, "providers.a.windows.5h has no budget"),
            (
                r#"{"providers": {"a": {"windows": {"5h": {"budget": "1k"}}}}}"#,
                "5h.budget is not a whole number",
            ),
            (
                r#"{"providers": {"a": {"windows": {"5h": {"budget": 1.5}}}}}"#,
                "5h.budget is not a whole number",
            ),
            (r#"{"providers": {"a": {}}, "cacheReadFactor": "0.1"}"#, "cacheReadFactor is not a number"),
            (r#"{"providers": {"a": {}}, "cacheReadFactor": 11}"#, "cacheReadFactor: 11 is not"),
            (r#"{"providers": {"a": {}}, "cacheWriteFactor": 1e300}"#, "is not a number from 0 to 10"),
            (r#"{"providers": {"a": {}}, "models": {"x": 1}}"#, "models.x is not a text"),
            (r#"{"providers": {"a b": {}}}"#, "dot, slash or space"),
            (r#"{"providers": {"a": {"windows": {"5x": {"budget": 1}}}}}"#, "is not a duration"),
            (
                r#"{"providers": {"a": {"windows": {"5s": {"budget": 1}}}}}"#,
                "providers.a.windows.5s: a window has from",
            ),
            (
                r#"{"providers": {"a": {"windows": {"5h": {"budget": 0}}}}}"#,
                "providers.a.windows.5h.budget: 0 is not",
            ),
            (
                r#"{"providers": {"a": {"windows": {"5h": {"budget": -1}}}}}"#,
                "5h.budget is not a whole number",
            ),
            (
                r#"{"providers": {"a": {"windows": {"60m": {"budget": 1}, "1h": {"budget": 1}}}}}"#,
                "another window has the same length",
            ),
            (
                r#"{"providers": {"a": {"windows": {"1h": {"budget": 5}}, "reservation": {"operator": 5}}}}"#,
                "leave nothing of the 5",
            ),
            (r#"{"providers": {"a": {"warnAt": [0.5, 1.5]}}}"#, "providers.a.warnAt: 1.5 is not a share"),
            (r#"{"providers": {"a": {}}, "cacheReadFactor": -1}"#, "cacheReadFactor: -1 is not"),
            (r#"{"providers": {"a": {}}, "models": {"x": "b"}}"#, "the provider b is not configured"),
            (r#"{"providers": {"a": {}}, "defaultProvider": "b"}"#, "defaultProvider: the provider b is not"),
            (r#"{"providers": {"a": {}}, "enforce": "kill"}"#, "enforce is not warn or deny"),
        ] {
            let refused = Config::parse(text).unwrap_err().to_string();
            assert!(refused.contains(expected), "{text}: {refused}");
            assert!(!refused.contains("column") && !refused.contains("invalid type"), "{text}: {refused}");
        }
    }

    #[test]
    fn a_member_that_is_null_is_not_set() {
        let config =
            r#"{"enforce": null, "providers": {"a": {"tier": null, "windows": {"1h": null}}, "b": null}}"#;
        let expected = r#"{"providers": {"a": {"windows": {}}}}"#;
        assert_eq!(Config::parse(config).unwrap(), Config::parse(expected).unwrap());
    }
}
