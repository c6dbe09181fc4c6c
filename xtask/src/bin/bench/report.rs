//! The results with their limits: a Markdown table, and the same as JSON.

use std::fmt;

use serde_json::{Value, json};

use crate::statistics::{Spread, median, ratios};

/// The load above which times mean nothing.
const QUIET: f64 = 1.5;

/// One line of the table.
pub struct Line {
    what: String,
    bar: Bar,
    value: Spread,
    unit: Unit,
    raw: String,
}

/// The limit of a result.
#[derive(Clone, Copy)]
pub enum Bar {
    AtMost(f64),
    AtLeast(f64),
    /// There is none: the number is only printed.
    NoLimit,
}

/// The unit of a number.
#[derive(Clone, Copy)]
pub enum Unit {
    Ratio,
    Percent,
    Count,
    Microseconds,
    Milliseconds,
    Seconds,
    Bytes,
    Megabytes,
}

impl Line {
    /// A number with its limit; `raw` shows the numbers that it was computed from.
    pub fn new(
        what: impl Into<String>,
        bar: Bar,
        unit: Unit,
        rounds: &[f64],
        raw: impl Into<String>,
    ) -> Line {
        Line { what: what.into(), bar, value: Spread::of(rounds), unit, raw: raw.into() }
    }

    /// How many times as many of something the library does per second as `others`: at least `limit` times.
    pub fn rate(
        what: &str,
        limit: f64,
        counted: &str,
        library: &[f64],
        (name, others): (&str, &[f64]),
    ) -> Line {
        let raw = format!("{:.0} {counted}/s, {name} {:.0} {counted}/s", median(library), median(others));
        Line::new(what, Bar::AtLeast(limit), Unit::Ratio, &ratios(library, others), raw)
    }

    fn is_met(&self) -> bool {
        match self.bar {
            Bar::AtMost(limit) => self.value.median <= limit,
            Bar::AtLeast(limit) => self.value.median >= limit,
            Bar::NoLimit => true,
        }
    }

    fn measured(&self) -> String {
        let Spread { median, lowest, highest } = self.value;
        let text = self.unit.tell(median);
        if (highest - lowest).abs() < f64::EPSILON {
            return text;
        }
        format!("{text} ({}–{})", self.unit.number(lowest), self.unit.number(highest))
    }
}

impl Unit {
    fn number(self, value: f64) -> String {
        match self {
            Unit::Count | Unit::Bytes => format!("{value:.0}"),
            Unit::Ratio | Unit::Percent | Unit::Megabytes | Unit::Seconds => format!("{value:.2}"),
            Unit::Microseconds | Unit::Milliseconds => format!("{value:.1}"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Unit::Ratio => "×",
            Unit::Percent => " %",
            Unit::Count => "",
            Unit::Microseconds => " µs",
            Unit::Milliseconds => " ms",
            Unit::Seconds => " s",
            Unit::Bytes => " bytes",
            Unit::Megabytes => " MB",
        }
    }

    fn tell(self, value: f64) -> String {
        format!("{}{}", self.number(value), self.name())
    }
}

/// All lines, and the load of the machine at the start.
pub struct Report {
    load: Option<f64>,
    quick: bool,
    lines: Vec<Line>,
}

impl Report {
    /// An empty report. `quick` measurements are too short for a verdict.
    pub fn new(quick: bool) -> Report {
        Report { load: load(), quick, lines: Vec::new() }
    }

    pub fn extend(&mut self, lines: Vec<Line>) {
        self.lines.extend(lines);
    }

    /// The report as one JSON object.
    pub fn json(&self) -> Value {
        let line = |line: &Line| {
            let (bar, limit) = match line.bar {
                Bar::AtMost(limit) => ("at most", Some(limit)),
                Bar::AtLeast(limit) => ("at least", Some(limit)),
                Bar::NoLimit => ("none", None),
            };
            json!({
                "what": line.what, "bar": bar, "limit": limit, "verdict": self.verdict(line),
                "median": line.value.median, "lowest": line.value.lowest, "highest": line.value.highest,
                "unit": line.unit.name().trim(), "raw": line.raw,
            })
        };
        json!({"load": self.load, "quick": self.quick, "lines": self.lines.iter().map(line).collect::<Vec<_>>()})
    }

    fn verdict(&self, line: &Line) -> String {
        match self.load {
            _ if self.quick => "no verdict: --quick".to_owned(),
            None => "no verdict: load unknown".to_owned(),
            Some(load) if load > QUIET => format!("no verdict: load {load:.1}"),
            Some(_) if matches!(line.bar, Bar::NoLimit) => "–".to_owned(),
            Some(_) if line.is_met() => "met".to_owned(),
            Some(_) => "**missed**".to_owned(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| What | Bar | Measured | Verdict | Made from |\n|---|---|---|---|---|")?;
        for line in &self.lines {
            let bar = match line.bar {
                Bar::AtMost(limit) => format!("≤ {}", line.unit.tell(limit)),
                Bar::AtLeast(limit) => format!("≥ {}", line.unit.tell(limit)),
                Bar::NoLimit => "–".to_owned(),
            };
            let (measured, verdict) = (line.measured(), self.verdict(line));
            writeln!(f, "| {} | {bar} | {measured} | {verdict} | {} |", line.what, line.raw)?;
        }
        Ok(())
    }
}

/// The load average of the last minute.
fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(load: Option<f64>, quick: bool, bar: Bar) -> String {
        let report = Report { load, quick, lines: Vec::new() };
        report.verdict(&Line::new("x", bar, Unit::Ratio, &[1.0, 2.0, 3.0], ""))
    }

    #[test]
    fn a_verdict_needs_a_quiet_machine_and_a_whole_measurement() {
        for (load, quick, bar, expected) in [
            (Some(0.2), false, Bar::AtMost(2.0), "met"),
            (Some(0.2), false, Bar::AtMost(1.9), "**missed**"),
            (Some(0.2), false, Bar::AtLeast(2.0), "met"),
            (Some(0.2), false, Bar::AtLeast(2.1), "**missed**"),
            (Some(2.3), false, Bar::AtMost(9.0), "no verdict: load 2.3"),
            (None, false, Bar::AtMost(9.0), "no verdict: load unknown"),
            (Some(0.2), true, Bar::AtMost(9.0), "no verdict: --quick"),
            (Some(0.2), false, Bar::NoLimit, "–"),
        ] {
            assert_eq!(verdict(load, quick, bar), expected);
        }
    }
}
