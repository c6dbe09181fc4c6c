//! Test results and coverage from the reports that test runners write. Nothing is run: the user names the files.
//!
//! | Report | Recognized by |
//! |---|---|
//! | JUnit XML (`cargo nextest`, `pytest --junitxml`) | `<testsuites>` or `<testsuite>` |
//! | Cobertura XML (`pytest --cov-report=xml`) | `<coverage>` |
//! | JSON lines of libtest and `cargo nextest` | `"type": "suite"` |
//! | JSON of `pytest --json-report` | `summary` |
//! | JSON with `passing`, `failing`, `coverage` | these keys |
//! | JSON of coverage.py and `cargo llvm-cov` | `totals`, `data` |
//! | LCOV | `SF:` and `end_of_record` |

use serde_json::Value;

use super::status::TestResults;

/// The largest report that is read.
pub const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// How many elements and attributes an XML report may have.
const MAX_NODES: u32 = 8_000_000;

/// What a report contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestReport {
    /// The results, if it has results.
    pub results: Option<Counts>,
    /// The covered part, if it has that: `87.5%`.
    pub coverage: Option<String>,
}

/// How many tests there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How many passed.
    pub passing: u64,
    /// How many failed, or could not be run to their end.
    pub failing: u64,
    /// How many were not run.
    pub skipped: u64,
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.passing = self.passing.saturating_add(other.passing);
        self.failing = self.failing.saturating_add(other.failing);
        self.skipped = self.skipped.saturating_add(other.skipped);
    }
}

impl TestReport {
    /// Reads a report of any form. The error says what is wrong with it.
    pub fn read(text: &str) -> Result<TestReport, String> {
        let text = text.trim_start_matches('\u{feff}').trim_start();
        let report = match text.as_bytes().first() {
            Some(b'<') => xml(text)?,
            Some(b'{') => json(text)?,
            _ => lcov(text),
        };
        if report == TestReport::default() {
            return Err("it is not a test report of a known form".to_owned());
        }
        Ok(report)
    }
}

/// Adds up the results of several reports. Coverage cannot be added up, so only one of them may have it. If no report has
/// results or a coverage, those of the previous status stay.
pub fn combine(reports: &[TestReport], previous: Option<&TestResults>) -> Result<TestResults, String> {
    let mut counts: Option<Counts> = None;
    let mut coverage = None;
    for report in reports {
        if let Some(results) = report.results {
            counts.get_or_insert_default().add(results);
        }
        if report.coverage.is_some() && coverage.replace(&report.coverage).is_some() {
            return Err("two of the files have a coverage".to_owned());
        }
    }
    let mut results = previous.cloned().unwrap_or_default();
    if let Some(Counts { passing, failing, skipped }) = counts {
        results = TestResults { passing, failing, skipped: Some(skipped), ..results };
    }
    if let Some(coverage) = coverage {
        results.coverage.clone_from(coverage);
    }
    Ok(results)
}

fn xml(text: &str) -> Result<TestReport, String> {
    // Without a DTD there are no entities that expand.
    let options =
        roxmltree::ParsingOptions { allow_dtd: false, nodes_limit: MAX_NODES, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(text, options)
        .map_err(|error| format!("it is not valid XML ({error})"))?;
    let root = document.root_element();
    if root.tag_name().name() == "coverage" {
        let Some(rate) = root.attribute("line-rate") else { return Ok(TestReport::default()) };
        let coverage = rate.parse::<f64>().ok().and_then(|rate| percent(rate * 100.0));
        let coverage = coverage
            .ok_or_else(|| format!("line-rate is {}, expected a fraction from 0 to 1", short(rate)))?;
        return Ok(TestReport { results: None, coverage: Some(coverage) });
    }
    if !matches!(root.tag_name().name(), "testsuites" | "testsuite") {
        return Ok(TestReport::default());
    }
    let mut counts = Counts::default();
    for case in root.descendants().filter(|node| node.has_tag_name("testcase")) {
        let has = |name: &str| case.children().any(|child| child.has_tag_name(name));
        let counted = if has("failure") || has("error") {
            &mut counts.failing
        } else if has("skipped") {
            &mut counts.skipped
        } else {
            &mut counts.passing
        };
        *counted += 1;
    }
    Ok(TestReport { results: Some(counts), coverage: None })
}

fn json(text: &str) -> Result<TestReport, String> {
    let mut report = TestReport::default();
    // One value, or one on each line.
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        let value = value.map_err(|error| format!("it is not valid JSON ({error})"))?;
        if let Some(counts) = counts_in(&value)? {
            report.results.get_or_insert_default().add(counts);
        }
        if report.coverage.is_none() {
            report.coverage = coverage_in(&value)?;
        }
    }
    Ok(report)
}

fn counts_in(value: &Value) -> Result<Option<Counts>, String> {
    if value.get("passing").is_some() || value.get("failing").is_some() {
        let required = |key: &str| count(value, key)?.ok_or_else(|| format!("{key} is missing"));
        let (passing, failing) = (required("passing")?, required("failing")?);
        return Ok(Some(Counts { passing, failing, skipped: count(value, "skipped")?.unwrap_or_default() }));
    }
    // The end of a suite, by libtest. Its other lines are about single tests.
    if value.get("type").and_then(Value::as_str) == Some("suite") {
        let (passed, failed) = (count(value, "passed")?, count(value, "failed")?);
        let skipped = count(value, "ignored")?.unwrap_or_default();
        return Ok(passed.zip(failed).map(|(passing, failing)| Counts { passing, failing, skipped }));
    }
    let Some(summary) = value.get("summary").filter(|summary| summary.get("total").is_some()) else {
        return Ok(None);
    };
    let sum = |keys: &[&str]| {
        keys.iter().try_fold(0_u64, |sum, key| {
            Ok::<_, String>(sum.saturating_add(count(summary, key)?.unwrap_or_default()))
        })
    };
    Ok(Some(Counts {
        passing: sum(&["passed", "xfailed"])?,
        failing: sum(&["failed", "error", "xpassed"])?,
        skipped: sum(&["skipped", "deselected"])?,
    }))
}

/// The number of a key; `None` if it has none.
fn count(value: &Value, key: &str) -> Result<Option<u64>, String> {
    let Some(number) = value.get(key).filter(|number| !number.is_null()) else { return Ok(None) };
    let wrong =
        || format!("{key} is {}, expected a whole number that is not negative", short(&number.to_string()));
    number.as_u64().map(Some).ok_or_else(wrong)
}

/// The covered part. `percent_covered` and `percent` are percentages by definition. A number of the user's own report may be
/// meant as a fraction if it is less than 1, so that it needs a sign.
fn coverage_in(value: &Value) -> Result<Option<String>, String> {
    const EXPECTED: &str = "expected a percentage from 0 to 100, for example \"87%\"";
    let of_others = ["/totals/percent_covered", "/data/0/totals/lines/percent"];
    let own = value.get("coverage").filter(|coverage| !coverage.is_null());
    let Some(found) = own.or_else(|| of_others.iter().find_map(|path| value.pointer(path))) else {
        return Ok(None);
    };
    let (number, has_sign) = match found {
        Value::String(text) => {
            let number = text.trim().trim_end_matches('%').trim().parse().ok();
            (number, text.trim().ends_with('%'))
        }
        other => (other.as_f64(), own.is_none()),
    };
    let shown = || short(&found.to_string());
    if number.is_some_and(|number: f64| number > 0.0 && number < 1.0) && !has_sign {
        return Err(format!(
            "coverage is {}, which may be a fraction: write it with a percent sign",
            shown()
        ));
    }
    let coverage = number.and_then(percent);
    coverage.map(Some).ok_or_else(|| format!("coverage is {}, {EXPECTED}", shown()))
}

/// The beginning of a value, for messages.
fn short(value: &str) -> String {
    const CHARACTERS: usize = 40;
    match value.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

fn lcov(text: &str) -> TestReport {
    let (mut found, mut hit, mut is_lcov) = (0_u64, 0_u64, false);
    let number = |text: &str| text.trim().parse::<u64>().unwrap_or_default();
    // A file without totals has a line for each line of code.
    let (mut lines, mut covered, mut has_totals) = (0_u64, 0_u64, false);
    for line in text.lines() {
        match line.split_once(':') {
            Some(("LF", count)) => (found, has_totals) = (found.saturating_add(number(count)), true),
            Some(("LH", count)) => hit = hit.saturating_add(number(count)),
            Some(("DA", data)) => {
                lines += 1;
                covered += u64::from(data.split(',').nth(1).is_some_and(|count| number(count) > 0));
            }
            _ if line.trim() == "end_of_record" => {
                is_lcov = true;
                if !has_totals {
                    found = found.saturating_add(lines);
                    hit = hit.saturating_add(covered);
                }
                (lines, covered, has_totals) = (0, 0, false);
            }
            _ => {}
        }
    }
    let tenths = hit.min(found).saturating_mul(1000).checked_div(found);
    TestReport { results: None, coverage: tenths.filter(|_| is_lcov).map(tenths_of_percent) }
}

/// A percentage with at most one digit, rounded down: 99.96 is not 100.
fn percent(number: f64) -> Option<String> {
    if !(0.0..=100.0).contains(&number) {
        return None;
    }
    // The nearest thousandth first: 0.29 * 100.0 is a little less than 29.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is between 0 and 100000")]
    let thousandths = (number * 1000.0).round() as u64;
    Some(tenths_of_percent(thousandths / 100))
}

fn tenths_of_percent(tenths: u64) -> String {
    match (tenths / 10, tenths % 10) {
        (percent, 0) => format!("{percent}%"),
        (percent, tenth) => format!("{percent}.{tenth}%"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(passing: u64, failing: u64, skipped: u64) -> TestReport {
        TestReport { results: Some(Counts { passing, failing, skipped }), coverage: None }
    }

    fn coverage(text: &str) -> TestReport {
        TestReport { results: None, coverage: Some(text.to_owned()) }
    }

    const NEXTEST: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="4" failures="1" errors="0" uuid="9" time="0.1">
  <testsuite name="a" tests="3" disabled="0" errors="0" failures="1">
    <testcase name="one" classname="a" time="0.0"></testcase>
    <testcase name="two" classname="a"><failure type="test failure">&lt;x&gt;</failure><system-out>a</system-out></testcase>
    <testcase name="three" classname="a"><flakyFailure type="x"/></testcase>
  </testsuite>
  <testsuite name="b"><testcase name="four"/></testsuite>
</testsuites>"#;

    const PYTEST: &str = r#"<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest" errors="1" failures="0"
skipped="1" tests="3"><testcase classname="t" name="a"/><testcase name="b"><error message="m">e</error></testcase>
<testcase name="c"><skipped type="pytest.skip"/></testcase></testsuite></testsuites>"#;

    const LIBTEST: &str = r#"{ "type": "suite", "event": "started", "test_count": 2 }
{ "type": "test", "event": "started", "name": "a" }
{ "type": "test", "name": "a", "event": "ok" }
{ "type": "suite", "event": "failed", "passed": 1, "failed": 1, "ignored": 3, "measured": 0, "filtered_out": 0 }
{ "type": "suite", "event": "ok", "passed": 5, "failed": 0, "ignored": 0 }
"#;

    #[test]
    fn reports_of_known_test_runners_are_read() {
        for (text, expected) in [
            (NEXTEST, results(3, 1, 0)),
            (PYTEST, results(1, 1, 1)),
            (LIBTEST, results(6, 1, 3)),
            (
                r#"{"created":1,"summary":{"passed":3,"failed":1,"error":1,"xfailed":2,"skipped":4,"total":11}}"#,
                results(5, 2, 4),
            ),
            (r#"{"passing": 380, "failing": 0}"#, results(380, 0, 0)),
            (
                r#"{"passing": 380, "failing": 2, "coverage": "87%"}"#,
                TestReport { coverage: Some("87%".into()), ..results(380, 2, 0) },
            ),
            (r#"{"coverage": 87.25}"#, coverage("87.2%")),
            (r#"{"coverage": "0.87%"}"#, coverage("0.8%")),
            (r#"{"coverage": 0}"#, coverage("0%")),
            (r#"{"totals":{"percent_covered":0.87}}"#, coverage("0.8%")),
            (r#"{"meta":{},"totals":{"percent_covered":99.97}}"#, coverage("99.9%")),
            (r#"{"data":[{"totals":{"lines":{"percent":50}}}]}"#, coverage("50%")),
            (r#"<coverage line-rate="0.29" branch-rate="0"/>"#, coverage("29%")),
            (
                "TN:\nSF:a.rs\nDA:1,1\nLF:8\nLH:7\nend_of_record\nSF:b.rs\nLF:2\nLH:2\nend_of_record\n",
                coverage("90%"),
            ),
            ("SF:a.rs\nDA:1,1\nDA:2,0\nDA:3,5,hash\nend_of_record\n", coverage("66.6%")),
        ] {
            assert_eq!(TestReport::read(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn other_files_are_refused_with_the_reason() {
        testkit::limit_test();
        for (text, reason) in [
            ("", "not a test report"),
            ("hello", "not a test report"),
            ("{}", "not a test report"),
            ("<html/>", "not a test report"),
            (r#"{"coverage": 300}"#, "coverage is 300, expected a percentage from 0 to 100"),
            (r#"{"passing": 1, "failing": 0, "coverage": 187}"#, "coverage is 187, expected a percentage"),
            (r#"{"coverage": "high"}"#, "coverage is \"high\", expected a percentage"),
            (r#"{"coverage": 0.87}"#, "coverage is 0.87, which may be a fraction"),
            (r#"{"coverage": "0.87"}"#, "coverage is \"0.87\", which may be a fraction"),
            (r#"{"totals":{"percent_covered":101}}"#, "coverage is 101, expected"),
            (r#"<coverage line-rate="87"/>"#, "line-rate is 87, expected a fraction from 0 to 1"),
            (
                r#"{"passing": -1, "failing": 0}"#,
                "passing is -1, expected a whole number that is not negative",
            ),
            (r#"{"passing": 1, "failing": "0"}"#, "failing is \"0\", expected a whole number"),
            (r#"{"passing": 1}"#, "failing is missing"),
            (r#"{"summary":{"passed":1.5,"total":2}}"#, "passed is 1.5, expected a whole number"),
            ("{\"a\":", "not valid JSON"),
            ("<testsuites>", "not valid XML"),
            ("<!DOCTYPE a [<!ENTITY b \"c\">]><testsuites>&b;</testsuites>", "not valid XML"),
            ("SF:a\nLF:0\nLH:0\nend_of_record\n", "not a test report"),
        ] {
            let found = TestReport::read(text).expect_err(text);
            assert!(found.contains(reason), "{text}: {found}");
        }
    }

    #[test]
    fn results_add_up_and_coverage_comes_from_one_file() {
        let combined =
            combine(&[results(1, 2, 3), results(10, 0, 0), coverage("5%")], None).expect("one coverage");
        assert_eq!((combined.passing, combined.failing, combined.skipped), (11, 2, Some(3)));
        assert_eq!(combined.coverage.as_deref(), Some("5%"));
        assert!(combine(&[coverage("5%"), coverage("5%")], None).is_err());
        assert_eq!(combine(&[coverage("5%")], None).expect("one coverage").skipped, None);
    }

    #[test]
    fn parts_that_no_report_has_stay() {
        let previous = TestResults {
            passing: 380,
            failing: 2,
            skipped: Some(1),
            coverage: Some("87%".into()),
            reported_at: None,
        };
        let combined = |reports: &[TestReport]| combine(reports, Some(&previous)).expect("one coverage");
        assert_eq!(
            combined(&[coverage("5%")]),
            TestResults { coverage: Some("5%".into()), ..previous.clone() }
        );
        let counted = TestResults { passing: 3, failing: 0, skipped: Some(0), ..previous.clone() };
        assert_eq!(combined(&[results(3, 0, 0)]), counted);
    }
}
