//! The changes of a file in the format of `diff -u`.
//!
//! `similar` could format them too, but would bring all its algorithms, a tenth of the size of this program.

use std::fmt::Write;
use std::ops::Range;

use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::{DiffOp, DiffTag, group_diff_ops};

/// The number of context lines.
const AROUND: usize = 3;

/// The diff of two texts under the names of their files; empty if they are equal.
///
/// `shown` maps each text to what is printed, with the same number of lines.
pub fn unified(from: &str, to: &str, [old, new]: [&str; 2], shown: [&str; 2]) -> String {
    let lines = |text| str::split_inclusive(text, '\n').collect::<Vec<&str>>();
    let [old, new, shown_old, shown_new] = [old, new, shown[0], shown[1]].map(lines);
    let mut text = String::new();
    for hunk in hunks(&old, &new) {
        let [Some(first), Some(last)] = [hunk.first(), hunk.last()] else { continue };
        if text.is_empty() {
            text = format!("--- {from}\n+++ {to}\n");
        }
        let place = |range: fn(&DiffOp) -> Range<usize>| place(range(first).start..range(last).end);
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "@@ -{} +{} @@", place(DiffOp::old_range), place(DiffOp::new_range));
        for part in &hunk {
            let removed = shown_old.get(part.old_range()).unwrap_or_default();
            let added = shown_new.get(part.new_range()).unwrap_or_default();
            if part.tag() == DiffTag::Equal {
                add(&mut text, ' ', removed);
            } else {
                add(&mut text, '-', removed);
                add(&mut text, '+', added);
            }
        }
    }
    text
}

/// A group of changes with its context lines.
fn hunks(old: &[&str], new: &[&str]) -> Vec<Vec<DiffOp>> {
    let mut found = Compact::new(Replace::new(Capture::new()), old, new);
    let Ok(()) = myers::diff(&mut found, old, 0..old.len(), new, 0..new.len());
    group_diff_ops(found.into_inner().into_inner().into_ops(), AROUND)
}

/// A range of lines: start and count. A single line needs no count; an empty range starts at the line before it.
fn place(lines: Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        count => format!("{},{count}", lines.start + 1),
    }
}

fn add(text: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        text.push(sign);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_looks_as_diff_shows_it() {
        let lines: Vec<String> = (1..21).map(|line| line.to_string()).collect();
        let old = lines.join("\n") + "\n";
        let new = old.replace("4\n5\n", "4\nfive\n").replace("\n18\n", "\n") + "21";
        for (old, new, expected) in [
            (old.as_str(), old.as_str(), String::new()),
            ("", "a\nb\n", "--- x\n+++ y\n@@ -0,0 +1,2 @@\n+a\n+b\n".to_owned()),
            ("a\n", "", "--- x\n+++ y\n@@ -1 +0,0 @@\n-a\n".to_owned()),
            (
                "a\nb",
                "a\nb\n",
                "--- x\n+++ y\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n".to_owned(),
            ),
            ("a\r\nb\r\n", "a\r\nc\r\n", "--- x\n+++ y\n@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n".to_owned()),
        ] {
            assert_eq!(unified("x", "y", [old, new], [old, new]), expected, "{old:?}");
        }
        let expected = "--- x\n+++ y\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n\
                        @@ -15,6 +15,6 @@\n 15\n 16\n 17\n-18\n 19\n 20\n+21\n\\ No newline at end of file\n";
        assert_eq!(unified("x", "y", [&old, &new], [&old, &new]), expected);
        let hidden = unified("x", "y", ["a\nb\n", "a\nc\n"], ["1\n2\n", "1\n3\n"]);
        assert_eq!(hidden, "--- x\n+++ y\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n");
    }
}
