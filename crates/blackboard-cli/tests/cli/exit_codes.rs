//! `docs/exit-codes.md` agrees with `error.rs` and with the help.

use std::fmt::Write;
use std::path::Path;

use blackboard::Code;

use crate::scratch::Scratch;

/// What each exit code means, as in `help exit-codes`.
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
            "docs/exit-codes.md differs: see tests/cli/transcript.rs for how to write it again"
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

<!-- Generated from `error.rs` by a test: crates/blackboard-cli/tests/cli/exit_codes.rs. -->

Every command exits with one of these codes. A script that needs more detail reads `code` in the JSON output (`--json`):

| Exit code | Meaning |
|---|---|
";

const CODES: &str = "
If a reader closes the pipe early (`blackboard … | head -1`), the command exits with 0. Once `lock run` has its lock and `run` its
work item, they exit with the exit code of their command. If a signal ends that command, they exit with 128 plus the number of the
signal. If it cannot be started, they exit with 127 or 126. A `demo` that a signal ends exits with 128 plus the number of the signal.
`hook` always exits with 0, because agents stop at any other code.

Without `--json`, an error is printed on stderr: what failed (`error:`), why (`cause:`, for an internal error or an I/O failure), and
the next step (`hint:`). Nothing is printed on stdout. With `--json` an error is one object on stdout:

```json
{\"ok\": false, \"error\": \"work item fix-tests is already claimed by Ivy (84a674b5)\", \"code\": \"already_claimed\",
 \"hint\": \"claim another item: blackboard work claim --next\", \"held_by\": \"…\", \"held_by_name\": \"Ivy\", \"since\": \"…\", \"fence\": 5,
 \"timestamp\": \"…\"}
```

`error` and `hint` are text for people and may change; a script compares `code`. The other fields depend on the code: `held_by`,
`held_by_name`, `since` and `fence` describe the holder, `holder_process` is `gone` if the process of that session is gone, and
`causes` lists the errors of the operating system.

Every JSON object, of a result or an error, can have three more fields:

- `board` is `missing` if there is no board at the path: the result is that of an empty board, and nothing was created. It is `created`
  if the command has created the board, and `read_only` if the board cannot be written.
- `ignored_session` is the value of `BLACKBOARD_SESSION_ID`, if that session has ended or is not on this board and the command
  continued without it. A command that needs a session refuses it instead.
- `unreadable` lists the rows that a list left out because another program has written a value that cannot be read: `table`, `id`
  (`null` if the id cannot be read either) and `reason`. A row that a command names by its id is an error, and the hint has the fix.

`read --json`, `list --json` and `snapshot` keep their own shapes: a note on stderr reports a missing board and unreadable rows.

## Codes

| Code | Exit code | Meaning |
|---|---|---|
";
