//! What the configuration of a project, which may have come with a clone, changes: it can only be stricter.

use super::config::{Config, Enforcement, Provider, Window};
use crate::text::{grouped, shown};

impl Config {
    /// Applies the stricter values of a project. Returns the reasons why other values are ignored.
    pub fn restrict(&mut self, project: &Config) -> Vec<String> {
        let mut ignored = Vec::new();
        match project.enforce {
            Some(Enforcement::Deny) => self.enforce = Some(Enforcement::Deny),
            Some(Enforcement::Warn) if self.enforcement() == Enforcement::Deny => {
                ignored.push("enforce: warn is looser than deny".to_owned());
            }
            _ => {}
        }
        let factors = [
            ("cacheReadFactor", &mut self.cache_read_factor, project.cache_read_factor, 0.1),
            ("cacheWriteFactor", &mut self.cache_write_factor, project.cache_write_factor, 1.0),
        ];
        for (name, home, project, default) in factors {
            let current = home.unwrap_or(default);
            match project {
                Some(factor) if factor >= current => *home = Some(factor),
                Some(factor) => ignored.push(format!("{name}: {factor} is looser than {current}")),
                None => {}
            }
        }
        if project.server.is_some() {
            ignored.push("server can be set in the home configuration only".to_owned());
        }
        if project.default_provider.is_some() && project.default_provider != self.default_provider {
            ignored.push("defaultProvider can be set in the home configuration only".to_owned());
        }
        if !project.models.is_empty() && project.models != self.models {
            ignored.push("models can be set in the home configuration only".to_owned());
        }
        for (name, provider) in &project.providers {
            let Some(home) = self.providers.get_mut(name) else {
                let name = shown(name);
                ignored.push(format!("providers.{name}: the home configuration does not have it"));
                continue;
            };
            let mut reasons = Vec::new();
            home.restrict(provider, &mut reasons);
            ignored.extend(reasons.into_iter().map(|reason| format!("providers.{name}.{reason}")));
        }
        ignored
    }
}

impl Provider {
    fn restrict(&mut self, project: &Provider, ignored: &mut Vec<String>) {
        if project.tier.is_some() && project.tier != self.tier {
            ignored.push("tier can be set in the home configuration only".to_owned());
        }
        for (name, budget) in &project.windows {
            // Another spelling of the same length is the same window.
            let length = crate::duration::parse(name).ok();
            let same = self.windows.iter_mut().find(|(own, _)| crate::duration::parse(own).ok() == length);
            match same {
                Some((_, own)) => {
                    lower(&format!("windows.{name}.budget"), &mut own.budget, budget.budget, ignored);
                }
                None => {
                    self.windows.insert(name.clone(), *budget);
                }
            }
        }
        let caps = &mut self.reservation.agents;
        for (name, home, project) in [
            (
                "rateLimit.tokensPerMinute",
                &mut self.rate_limit.tokens_per_minute,
                project.rate_limit.tokens_per_minute,
            ),
            (
                "rateLimit.requestsPerMinute",
                &mut self.rate_limit.requests_per_minute,
                project.rate_limit.requests_per_minute,
            ),
            (
                "reservation.agents.maxConcurrent",
                &mut caps.max_concurrent,
                project.reservation.agents.max_concurrent,
            ),
            (
                "reservation.agents.maxPerAgent",
                &mut caps.max_per_agent,
                project.reservation.agents.max_per_agent,
            ),
        ] {
            match (home, project) {
                (Some(home), Some(project)) => lower(name, home, project, ignored),
                (home @ None, Some(project)) => *home = Some(project),
                (_, None) => {}
            }
        }
        let smallest = self.windows().into_iter().min_by_key(|window| window.budget);
        match (project.reservation.operator, smallest) {
            (Some(operator), Some(Window { name, budget, .. })) if operator >= budget => {
                let (operator, budget) = (grouped(operator), grouped(budget));
                ignored.push(format!(
                    "reservation.operator: {operator} leaves nothing of the {budget} of windows.{name} to agents"
                ));
            }
            (Some(operator), _) if operator >= self.operator() => self.reservation.operator = Some(operator),
            (Some(operator), _) => {
                let (operator, own) = (grouped(operator), grouped(self.operator()));
                ignored.push(format!("reservation.operator: {operator} is looser than {own}"));
            }
            (None, _) => {}
        }
        if let Some(thresholds) = &project.warn_at {
            let mut all = self.thresholds();
            all.extend(thresholds.iter().filter(|share| !self.thresholds().contains(share)));
            self.warn_at = Some(all);
        }
    }
}

fn lower(name: &str, home: &mut u64, project: u64, ignored: &mut Vec<String>) {
    if project > *home {
        ignored.push(format!("{name}: {} is looser than {}", grouped(project), grouped(*home)));
    } else {
        *home = project;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: &str = r#"{"cacheReadFactor": 0.2, "providers": {"a": {
        "rateLimit": {"tokensPerMinute": 100}, "windows": {"5h": {"budget": 1000}},
        "reservation": {"operator": 100, "agents": {"maxConcurrent": 3}}}}}"#;

    fn restricted(project: &str) -> (Config, Vec<String>) {
        let mut config = Config::parse(HOME).unwrap();
        let ignored = config.restrict(&Config::parse(project).unwrap());
        (config, ignored)
    }

    #[test]
    fn stricter_values_of_a_project_apply() {
        let (config, ignored) = restricted(
            r#"{"enforce": "deny", "cacheReadFactor": 1, "providers": {"a": {
                "rateLimit": {"tokensPerMinute": 50, "requestsPerMinute": 5},
                "windows": {"300m": {"budget": 500}, "1d": {"budget": 2000}},
                "reservation": {"operator": 200, "agents": {"maxConcurrent": 1, "maxPerAgent": 10}}}}}"#,
        );
        assert_eq!(ignored, Vec::<String>::new());
        let expected = r#"{"enforce": "deny", "cacheReadFactor": 1, "providers": {"a": {
                "rateLimit": {"tokensPerMinute": 50, "requestsPerMinute": 5},
                "windows": {"5h": {"budget": 500}, "1d": {"budget": 2000}},
                "reservation": {"operator": 200, "agents": {"maxConcurrent": 1, "maxPerAgent": 10}}}}}"#;
        assert_eq!(config, Config::parse(expected).unwrap());
    }

    #[test]
    fn operator_of_a_project_that_leaves_nothing_to_agents_is_ignored() {
        for (budget, operator) in [(1000, 1000), (1000, 5000), (500, 500)] {
            let project = format!(
                r#"{{"providers": {{"a": {{"windows": {{"5h": {{"budget": {budget}}}}}, "rateLimit": {{}}}}}}}}"#
            );
            let mut project = Config::parse(&project).unwrap();
            project.providers.get_mut("a").unwrap().reservation.operator = Some(operator);
            let mut config = Config::parse(HOME).unwrap();
            let ignored = config.restrict(&project);
            assert_eq!(config.providers["a"].operator(), 100);
            assert_eq!(ignored.len(), 1, "{ignored:?}");
            assert!(ignored[0].starts_with("providers.a.reservation.operator: "), "{ignored:?}");
            assert!(ignored[0].ends_with("of windows.5h to agents"), "{ignored:?}");
        }
    }

    #[test]
    fn looser_values_of_a_project_are_ignored_with_the_reason() {
        let (config, ignored) = restricted(
            r#"{"enforce": "warn", "cacheReadFactor": 0.1, "models": {"x": "a"}, "providers": {"b": {}, "a": {
                "tier": "free", "rateLimit": {"tokensPerMinute": 101}, "windows": {"5h": {"budget": 1001}},
                "reservation": {"operator": 99, "agents": {"maxConcurrent": 4}}}}}"#,
        );
        assert_eq!(config, Config::parse(HOME).unwrap());
        assert_eq!(
            ignored,
            [
                "cacheReadFactor: 0.1 is looser than 0.2",
                "models can be set in the home configuration only",
                "providers.a.tier can be set in the home configuration only",
                "providers.a.windows.5h.budget: 1,001 is looser than 1,000",
                "providers.a.rateLimit.tokensPerMinute: 101 is looser than 100",
                "providers.a.reservation.agents.maxConcurrent: 4 is looser than 3",
                "providers.a.reservation.operator: 99 is looser than 100",
                "providers.b: the home configuration does not have it",
            ]
        );
    }
}
