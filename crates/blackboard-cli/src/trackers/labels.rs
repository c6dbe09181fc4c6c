//! What labels mean: a priority, an estimate.

use blackboard::work::Priority;

/// The most urgent priority that a label means: `P0` to `P4`, also with more words (`P2-medium`), and words behind
/// `priority:` or `priority/`.
pub fn priority(labels: &[String]) -> Option<Priority> {
    labels.iter().filter_map(|label| priority_of_label(label)).min()
}

fn priority_of_label(label: &str) -> Option<Priority> {
    let label = label.trim().to_ascii_lowercase();
    let named = ["priority:", "priority/", "priority-", "priority=", "prio:"]
        .iter()
        .find_map(|prefix| label.strip_prefix(prefix));
    let word = |text: &str| -> Option<Priority> {
        match text.trim().split(['-', '_', ' ', ':', '/']).next()? {
            "p0" | "p1" => Some(Priority::P1),
            "p2" => Some(Priority::P2),
            "p3" | "p4" => Some(Priority::P3),
            _ => None,
        }
    };
    let level = |text: &str| -> Option<Priority> {
        match text.trim().split(['-', '_', ' ', '/']).next()? {
            "0" | "1" | "critical" | "urgent" | "highest" | "high" => Some(Priority::P1),
            "2" | "medium" | "normal" => Some(Priority::P2),
            "3" | "4" | "low" | "lowest" | "backlog" => Some(Priority::P3),
            _ => None,
        }
    };
    match named {
        Some(rest) => word(rest).or_else(|| level(rest)),
        None => word(&label),
    }
}

/// The priority of a number from 0 (critical) to 4 (backlog).
pub fn priority_of_number(number: u64) -> Option<Priority> {
    match number {
        0 | 1 => Some(Priority::P1),
        2 => Some(Priority::P2),
        3 | 4 => Some(Priority::P3),
        _ => None,
    }
}

/// The tokens that a label `estimate:N` or `tokens:N` means; `k` and `m` are thousands and millions.
pub fn estimate(labels: &[String]) -> Option<u64> {
    labels.iter().find_map(|label| {
        let label = label.trim().to_ascii_lowercase();
        let rest = ["estimate:", "estimate/", "tokens:", "tokens/"]
            .iter()
            .find_map(|name| label.strip_prefix(name))?;
        tokens(rest)
    })
}

/// A number of tokens: `30000`, `30_000`, `30k`.
pub fn tokens(text: &str) -> Option<u64> {
    let text: String = text.trim().chars().filter(|&letter| letter != '_').collect();
    let (digits, factor) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1_000),
        b'm' | b'M' => (&text[..text.len() - 1], 1_000_000),
        _ => (&text[..], 1),
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { digits.parse::<u64>().ok()?.checked_mul(factor) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_mean_priorities() {
        for (label, expected) in [
            ("P1", Some(Priority::P1)),
            ("p0", Some(Priority::P1)),
            ("P2-medium", Some(Priority::P2)),
            ("P3: later", Some(Priority::P3)),
            ("priority: high", Some(Priority::P1)),
            ("priority/critical-urgent", Some(Priority::P1)),
            ("priority:p4", Some(Priority::P3)),
            ("Priority-Low", Some(Priority::P3)),
            ("high", None),
            ("p10", None),
            ("project/collab", None),
            ("", None),
        ] {
            assert_eq!(priority(&[label.to_owned()]), expected, "{label}");
        }
        let both = ["P3".to_owned(), "priority:high".to_owned()];
        assert_eq!(priority(&both), Some(Priority::P1), "the most urgent one");
    }

    #[test]
    fn labels_mean_estimates() {
        for (label, expected) in [
            ("estimate:20000", Some(20_000)),
            ("tokens: 30_000", Some(30_000)),
            ("tokens/5k", Some(5_000)),
            ("estimate:1m", Some(1_000_000)),
            ("estimate:k", None),
            ("estimate:-1", None),
            ("estimate:99999999999999999999k", None),
            ("20000", None),
        ] {
            assert_eq!(estimate(&[label.to_owned()]), expected, "{label}");
        }
    }
}
