//! `docs/exit-codes.md` says what `error.rs` says.

use std::fmt::Write;
use std::path::Path;

use blackboard::Code;

use crate::scratch::Scratch;

/// What each exit code means; the help text says the same.
const EXIT_CODES: &[(u8, &str)] = &[
    (0, "success"),
    (1, "internal error or I/O failure"),
    (2, "usage error"),
    (3, "not found"),
    (4, "refused: held by another session, or a condition did not hold"),
    (5, "permission denied"),
    (6, "timed out"),
];

#[test]
fn the_page_of_exit_codes_is_up_to_date() {
    testkit::limit_test();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/exit-codes.md");
    let page = page();
    if std::env::var_os("BLACKBOARD_WRITE_SNAPSHOTS").is_some() {
        std::fs::write(&path, page).unwrap();
    } else {
        let stored = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            stored == page,
            "docs/exit-codes.md differs: see tests/cli/transcript.rs for how to write it anew"
        );
    }
}

#[test]
fn the_help_text_knows_the_same_exit_codes() {
    let help = Scratch::new().run(["help", "exit-codes"]).success().stdout;
    for (exit_code, meaning) in EXIT_CODES {
        assert!(help.contains(&format!("\n  {exit_code}  {meaning}\n")), "{exit_code} is missing: {help}");
    }
    for code in Code::ALL {
        assert!(EXIT_CODES.iter().any(|(exit_code, _)| *exit_code == code.exit_code()), "{code}");
    }
}

fn page() -> String {
    let mut page = String::from(INTRODUCTION);
    for (exit_code, meaning) in EXIT_CODES {
        writeln!(page, "| {exit_code} | {meaning} |").unwrap();
    }
    page.push_str(CODES);
    for code in Code::ALL {
        writeln!(page, "| `{code}` | {} | {} |", code.exit_code(), code.meaning()).unwrap();
    }
    page
}

const INTRODUCTION: &str = "\
# Exit codes

<!-- Made from `error.rs` by a test; see crates/blackboard-cli/tests/cli/exit_codes.rs. -->

Every command ends with one of these. A script that needs more than this class looks at `code` in the JSON answer (`--json`):

| Exit code | Meaning |
|---|---|
";

const CODES: &str = "
A reader that goes away in the middle (`blackboard … | head -1`) is no failure: the command ends with 0. Once `lock run` has its
lock and `run` its work item, they end as the command that they run: with its exit code, with 128 and the number of the signal that
ended it, or with 127 or 126 if it cannot be started. A `demo` that a signal ends early ends with 128 and the number of that signal.
`hook` always ends with 0: agents would be stopped by any other.

Without `--json` an error stands on stderr, as what happened (`error:`), why (`cause:`, if something is broken) and what to do
(`hint:`), and nothing on stdout. With `--json` it is one object on stdout:

```json
{\"ok\": false, \"error\": \"work item fix-tests is claimed by Ivy (…) since …\", \"code\": \"already_claimed\",
 \"hint\": \"take another one: blackboard work claim --next\", \"held_by\": \"…\", \"held_by_name\": \"Ivy\", \"since\": \"…\", \"fence\": 5,
 \"timestamp\": \"…\"}
```

`error` and `hint` are sentences for people and may change; programs go by `code`. What else an object carries depends on its
code: `held_by`, `held_by_name`, `since` and `fence` name the holder, `holder_process` is `gone` if the process of that
session is gone, `causes` is what the operating system said.

Every JSON object, of an answer or an error, can have three more fields. `\"board\"` is `\"missing\"` if there is no board at the path, so
that the answer is that of an empty one and nothing was created; `\"created\"` if the command has created the board; `\"read_only\"` if
the board cannot be written and is read without locks. `ignored_session` is the value of `BLACKBOARD_SESSION_ID`, if that
session has ended or is not on this board and the command continued without it. Commands that act for a session refuse it instead.
`unreadable` lists the rows that a list left out because another program has written a value that cannot be read: `table`, `id`
(`null` if that cannot be read either) and `reason`. A row that a command names by its id is an error, with the fix as its hint.
`read --json`, `list --json` and `snapshot` keep their own shapes: a note on stderr reports a missing board and unreadable rows.

## Codes

| Code | Exit code | Meaning |
|---|---|---|
";
