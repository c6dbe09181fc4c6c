//! Tests that cannot run on this machine, as reported by `testkit::skip`.

use std::fs;
use std::process::Command;

use tempfile::TempPath;

use crate::Result;

/// The file to which tests report.
pub struct Skips(TempPath);

impl Skips {
    pub fn new() -> Result<Skips> {
        Ok(Skips(tempfile::NamedTempFile::new()?.into_temp_path()))
    }

    /// Makes the tests of a command report to this file.
    pub fn collect_from(&self, tests: &mut Command) {
        tests.env(testkit::SKIPS_VARIABLE, &*self.0);
    }

    /// The skipped tests, each with the reason.
    pub fn list(&self) -> Result<Vec<String>> {
        let mut lines: Vec<String> =
            fs::read_to_string(&self.0)?.lines().map(|line| line.replace('\t', ": ")).collect();
        lines.sort_unstable();
        lines.dedup();
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_reports_twice_is_listed_once() {
        testkit::limit_test();
        let skips = Skips::new().unwrap();
        fs::write(
            &skips.0,
            "b b::second\tit needs root\na first\tit needs git\nb b::second\tit needs root\n",
        )
        .unwrap();
        assert_eq!(skips.list().unwrap(), ["a first: it needs git", "b b::second: it needs root"]);
    }
}
