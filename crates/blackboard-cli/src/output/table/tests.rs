//! Tables at several widths.

use super::*;

const PLAIN: Styles = Styles::new(false);

fn items() -> Table {
    let mut table = Table::new([
        Column::typed("ITEM"),
        Column::text("TITLE").importance(5),
        Column::detail("PROJECT").importance(1).if_different(),
        Column::fixed("STATUS").importance(6),
        Column::fixed("PRIORITY").or_narrow("PRI").importance(3),
        Column::name("CLAIMED BY").importance(4),
        Column::fixed("AGE").importance(2),
    ]);
    for [item, title, status, priority, holder, age] in [
        ["design-schema", "Design local blackboard SQL schema", "claimed", "P1", "Ivy", "47m"],
        ["post-proposal", "Post proposal to issue #78", "blocked (2)", "P2", "", "2h"],
        [
            "gh:mellanon/pai-collab#77",
            "Draft response to change awareness discussion",
            "available",
            "P3",
            "",
            "3d",
        ],
    ] {
        table.row([
            Cell::new(item),
            Cell::new(title),
            Cell::new("pai-collab"),
            Cell::word(status),
            Cell::word(priority),
            Cell::new(holder),
            Cell::new(age),
        ]);
    }
    table
}

#[test]
fn narrow_table_shortens_texts_and_omits_a_constant_project() {
    assert_eq!(
        items().layout(Some(80), PLAIN),
        "ITEM                       TITLE               STATUS       PRI  CLAIMED BY  AGE\n\
         design-schema              Design local blac…  claimed      P1   Ivy         47m\n\
         post-proposal              Post proposal to …  blocked (2)  P2   --          2h\n\
         gh:mellanon/pai-collab#77  Draft response to…  available    P3   --          3d\n"
    );
}

#[test]
fn wide_table_has_all_columns() {
    assert_eq!(
        items().layout(Some(120), PLAIN),
        "ITEM                       TITLE                                      PROJECT     STATUS       PRIORITY  CLAIMED BY  AGE\n\
         design-schema              Design local blackboard SQL schema         pai-collab  claimed      P1        Ivy         47m\n\
         post-proposal              Post proposal to issue #78                 pai-collab  blocked (2)  P2        --          2h\n\
         gh:mellanon/pai-collab#77  Draft response to change awareness discu…  pai-collab  available    P3        --          3d\n"
    );
}

#[test]
fn piped_table_shortens_nothing_and_a_long_cell_moves_only_its_row() {
    testkit::limit_test();
    let mut table = Table::new([Column::text("NOTE"), Column::fixed("AGE")]);
    table.row([Cell::new("short"), Cell::new("1s")]);
    table.row([Cell::new("x".repeat(ALIGNED)), Cell::new("2s")]);
    table.row([Cell::new("y".repeat(ALIGNED + 1)), Cell::new("3s")]);
    let expected =
        format!("{:40}  AGE\n{:40}  1s\n{}  2s\n{}  3s\n", "NOTE", "short", "x".repeat(40), "y".repeat(41));
    assert_eq!(table.layout(None, PLAIN), expected);
}

#[test]
fn table_is_never_wider_than_its_terminal() {
    for width in 26..200 {
        for line in items().layout(Some(width), PLAIN).lines() {
            assert!(width_of(line) <= usize::from(width), "{width}: {line}");
        }
    }
}

#[test]
fn holder_is_shortened_after_note_and_worktree() {
    testkit::limit_test();
    let mut table = Table::new([
        Column::typed("PATTERN"),
        Column::fixed("MODE").importance(5),
        Column::name("RESERVED BY").importance(6),
        Column::fixed("AGE").importance(3),
        Column::text("NOTE").importance(4),
        Column::detail("WORKTREE").importance(1),
    ]);
    let mut row = |pattern: &str, holder: &str| {
        let cells = [pattern, "exclusive", holder, "5m", "rewriting the engine", "pai-collab"];
        table.row(cells.map(Cell::new));
    };
    row("crates/store/**", "claude-84a6");
    row("docs/", "Ivy-84a6 (delegate)");
    row("src/", "Ivy");
    row("crates/blackboard/src/store/sqlite/**", "codex-7749");
    assert_eq!(
        table.layout(Some(80), PLAIN),
        "PATTERN            MODE       RESERVED BY          AGE  NOTE          WORKTREE\n\
         crates/store/**    exclusive  claude-84a6          5m   rewriting t…  pai-collab\n\
         docs/              exclusive  Ivy-84a6 (delegate)  5m   rewriting t…  pai-collab\n\
         src/               exclusive  Ivy                  5m   rewriting t…  pai-collab\n\
         crates/blackboard/src/store/sqlite/**  exclusive  codex-7749  5m  rewritin…  p…\n"
    );
    let shown = table.layout(Some(72), PLAIN);
    assert!(shown.contains("Ivy-84a6 (delegate)  5m   rewriti…"), "{shown}");
}

#[test]
fn one_long_name_does_not_take_the_space_of_texts() {
    testkit::limit_test();
    let mut table = Table::new([Column::typed("ITEM"), Column::text("TITLE"), Column::name("CLAIMED BY")]);
    table.row(["a", &"title ".repeat(20), &"n".repeat(90)].map(Cell::new));
    let shown = table.layout(Some(80), PLAIN);
    let header = shown.lines().next().unwrap();
    assert_eq!(header.find("CLAIMED BY"), Some(80 - LONGEST_NAME), "{shown}");
}

#[test]
fn what_a_user_types_is_complete_at_every_width() {
    for width in 1..200 {
        assert!(items().layout(Some(width), PLAIN).contains("gh:mellanon/pai-collab#77"), "{width}");
    }
}

#[test]
fn a_long_id_takes_the_space_of_its_own_row() {
    testkit::limit_test();
    let mut table = Table::new([Column::typed("KEY"), Column::text("VALUE"), Column::fixed("AGE")]);
    table.row([Cell::new("a"), Cell::new("the value of a"), Cell::new("1s")]);
    table.row([Cell::new("b".repeat(24)), Cell::new("the value of b"), Cell::new("2s")]);
    assert_eq!(
        table.layout(Some(40), PLAIN),
        "KEY                    VALUE         AGE\n\
         a                      the value o…  1s\n\
         bbbbbbbbbbbbbbbbbbbbbbbb  the valu…  2s\n"
    );
}

#[test]
fn a_column_without_any_value_is_omitted() {
    let mut table = Table::new([Column::typed("KEY"), Column::fixed("TTL"), Column::text("TAGS")]);
    table.row([Cell::new("a"), Cell::new(""), Cell::optional(None::<&str>)]);
    table.row([Cell::new("b"), Cell::new("1m"), Cell::new("")]);
    assert_eq!(table.layout(None, PLAIN), "KEY  TTL\na    --\nb    1m\n");
}

#[test]
fn a_narrow_terminal_shows_the_last_directory() {
    let mut table = Table::new([Column::detail("WORKTREE")]);
    table.row([Cell::directory("/home/ivy/pai-collab/")]);
    assert_eq!(table.layout(Some(80), PLAIN), "WORKTREE\npai-collab\n");
    assert_eq!(table.layout(Some(100), PLAIN), "WORKTREE\n/home/ivy/pai-collab/\n");
}

#[test]
fn colors_do_not_move_the_columns() {
    let colored = items().layout(Some(80), Styles::new(true));
    assert!(colored.contains("\u{1b}[34mclaimed\u{1b}[0m"), "{colored}");
    let codes =
        ["\u{1b}[34m", "\u{1b}[33m", "\u{1b}[32m", "\u{1b}[2m", "\u{1b}[1m", "\u{1b}[31m", "\u{1b}[0m"];
    let plain = codes.iter().fold(colored, |text, code| text.replace(code, ""));
    assert_eq!(plain, items().layout(Some(80), PLAIN));
}

#[test]
fn text_can_neither_add_rows_nor_colors() {
    let mut table = Table::new([Column::typed("NAME"), Column::fixed("STATUS")]);
    table.row([Cell::new("a\nroot  active\u{1b}[0m\u{e0001}x\u{e007f}"), Cell::word("idle\n")]);
    let text = table.layout(Some(80), Styles::new(true));
    assert_eq!(text.lines().count(), 2);
    assert!(text.contains("a\\nroot  active\\u{1b}[0m\\u{e0001}x\\u{e007f}"), "{text}");
}

#[test]
fn wide_letters_take_two_columns() {
    let mut table = Table::new([Column::typed("NAME"), Column::fixed("STATUS")]);
    table.row([Cell::new("漢字"), Cell::word("active")]);
    table.row([Cell::new("abcd"), Cell::word("active")]);
    assert_eq!(table.layout(None, PLAIN), "NAME  STATUS\n漢字  active\nabcd  active\n");
}

#[test]
fn a_cut_never_divides_a_visible_character() {
    for (text, width, expected) in [
        ("漢字かな", 8, "漢字かな"),
        ("漢字かな", 7, "漢字か…"),
        ("漢字かな", 6, "漢字…"),
        ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…"),
        ("👩\u{200d}👩\u{200d}👧 family", 4, "👩\u{200d}👩\u{200d}👧 …"),
        ("👩\u{200d}👩\u{200d}👧 family", 2, "…"),
        ("abc", 1, "…"),
        ("", 0, ""),
    ] {
        let short = cut(text, width);
        assert_eq!(short, expected);
        assert!(width_of(&short) <= width, "{text}");
    }
}

#[test]
fn row_with_a_long_id_continues_below_its_headers() {
    let mut table = items();
    let id = "gh:an-organization-with-a-long-name/a-repository-whose-name-is-long-as-well#1077-and-more";
    let cells = [id, "A title", "pai-collab", "claimed", "P1", "Ivy (84a674b5)", "1h"];
    table.row(cells.map(Cell::new));
    let text = table.layout(Some(80), PLAIN);
    let lines: Vec<_> = text.lines().collect();
    let header = lines[0];
    let [first, second] = lines[lines.len() - 2..] else { panic!("{text}") };
    assert_eq!(first, id);
    for (name, cell) in [("STATUS", "claimed"), ("CLAIMED BY", "Ivy (84a674b5)"), ("AGE", "1h")] {
        assert_eq!(second.find(cell), header.find(name), "{text}");
    }
    assert!(second.len() <= 80, "{text}");
}
