//! The statements that read a range, composed from the declaration of its index.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use rusqlite::types::ToSqlOutput;
use rusqlite::{ToSql, params_from_iter};

use super::cells::HEAD_COLUMNS;
use crate::store::record::{Cell, Index, IndexValue};
use crate::store::{Range, Row};

/// What a statement selects from a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Select {
    /// All rows, in the order of [`sort_ties`].
    AllRows,
    /// The first rows.
    Rows,
    /// The first entries without their values.
    Heads,
    /// The keys of the first rows.
    Keys,
    /// Whether there is a row.
    Any,
    /// How many rows there are.
    Count,
}

/// What determines the text of a statement.
#[derive(PartialEq, Eq, Hash)]
struct Shape {
    index: &'static Index,
    select: Select,
    from: Bound<usize>,
    until: Bound<usize>,
    backwards: bool,
}

/// All composed statements. There are few: one for each index and each way to read it.
static STATEMENTS: LazyLock<Mutex<HashMap<Shape, Arc<str>>>> = LazyLock::new(Mutex::default);

/// The statement that reads a range. Its parameters are [`parameters`].
pub(super) fn statement(select: Select, range: &Range) -> Arc<str> {
    let length = |bound: &Bound<Vec<IndexValue>>| bound.as_ref().map(Vec::len);
    let shape = Shape {
        index: range.index,
        select,
        from: length(&range.from),
        until: length(&range.until),
        backwards: range.is_backwards(),
    };
    let mut statements = STATEMENTS.lock().unwrap_or_else(PoisonError::into_inner);
    statements.entry(shape).or_insert_with(|| compose(select, range).into()).clone()
}

fn compose(select: Select, range: &Range) -> String {
    let Range { index, .. } = range;
    let table = (index.table)();
    let owner = index.each.as_ref().map_or(table.name, |each| each.table);
    let qualified = |columns: &[&str], end: &str| -> Vec<String> {
        columns.iter().map(|column| format!("{owner}.{column}{end}")).collect()
    };
    let columns = match select {
        // The table of the elements has columns of the same names. The columns of a join name their tables already.
        Select::AllRows | Select::Rows if index.each.is_some() && table.sql.join.is_empty() => {
            let read = &table.columns[..table.columns.len() - table.computed];
            read.iter().map(|column| format!("{}.{column}", table.name)).collect::<Vec<_>>().join(", ")
        }
        Select::AllRows | Select::Rows => table.sql.columns.to_owned(),
        Select::Heads => HEAD_COLUMNS.to_owned(),
        Select::Keys => table.sql.key.to_owned(),
        Select::Any => "1".to_owned(),
        Select::Count => "count(*)".to_owned(),
    };
    let mut sql = format!("SELECT {columns} FROM {owner}");
    if index.each.is_some() {
        let key = table.columns[..table.key_columns].join(", ");
        sql = format!("{sql} CROSS JOIN {} USING ({key})", table.name);
    }
    if matches!(select, Select::AllRows | Select::Rows) {
        sql.push_str(table.sql.join);
    }
    let mut conditions = qualified(index.partition, " = ?");
    conditions.extend(index.condition.map(str::to_owned));
    for (bound, included, excluded) in [(&range.from, ">=", ">"), (&range.until, "<=", "<")] {
        let (values, comparison) = match bound {
            Bound::Unbounded => continue,
            Bound::Included(values) => (values, included),
            Bound::Excluded(values) => (values, excluded),
        };
        let columns = qualified(&index.order[..values.len()], "");
        conditions.push(match &columns[..] {
            [column] => format!("{column} {comparison} ?"),
            columns => {
                let marks = vec!["?"; columns.len()].join(", ");
                format!("({}) {comparison} ({marks})", columns.join(", "))
            }
        });
    }
    for (place, condition) in conditions.iter().enumerate() {
        sql.push_str(if place == 0 { " WHERE " } else { " AND " });
        sql.push_str(condition);
    }
    let ordered_by =
        |columns: &[&str]| qualified(columns, if range.is_backwards() { " DESC" } else { "" }).join(", ");
    match select {
        Select::AllRows => {
            let order = before_key(index).unwrap_or(index.order);
            sql = format!("{sql} ORDER BY {}", ordered_by(order));
        }
        Select::Rows | Select::Heads | Select::Keys => {
            sql = format!("{sql} ORDER BY {} LIMIT ?", ordered_by(index.order));
        }
        Select::Any => sql.push_str(" LIMIT 1"),
        Select::Count => {}
    }
    sql
}

/// The columns of an index before the key of its rows, if the key is its last column.
///
/// The index in the file ends before that column too, so SQLite would sort the rows by it: one at a time, each with all
/// of its columns. That takes more than reading them.
fn before_key(index: &Index) -> Option<&'static [&'static str]> {
    let table = (index.table)();
    let key = &table.columns[..table.key_columns];
    match index.order.split_last() {
        Some((last, before)) if !before.is_empty() && key == [*last] => Some(before),
        _ => None,
    }
}

/// Sorts rows of [`Select::AllRows`] by their key, where they are equal in all other columns of the index.
pub(super) fn sort_ties(range: &Range, rows: &mut [Row]) {
    let index = range.index;
    let Some(before) = before_key(index) else { return };
    let columns = (index.table)().columns;
    let compared: Vec<usize> =
        before.iter().filter_map(|name| columns.iter().position(|column| column == name)).collect();
    let is_tie = |a: &[Cell<'_>], b: &[Cell<'_>]| compared.iter().all(|&column| a[column] == b[column]);
    // Almost always there are none.
    let mut ties = Vec::new();
    let mut previous: Option<Vec<Cell<'_>>> = None;
    for (place, row) in rows.iter().enumerate() {
        let cells = row.cells();
        if previous.is_some_and(|previous| is_tie(&previous, &cells)) {
            ties.push(place);
        }
        previous = Some(cells);
    }
    for tied in ties.chunk_by(|a, b| a + 1 == *b) {
        let (Some(first), Some(last)) = (tied.first(), tied.last()) else { continue };
        let group = &mut rows[first - 1..=*last];
        group.sort_by_cached_key(Row::key);
        if range.is_backwards() {
            group.reverse();
        }
    }
}

/// The parameters of a statement on a range: the values of its partition and bounds, and the limit if the statement
/// has one.
pub(super) fn parameters(range: &Range, limit: Option<i64>) -> impl rusqlite::Params + '_ {
    let values = range.partition.iter().chain(values(&range.from)).chain(values(&range.until));
    params_from_iter(values.map(Parameter::Value).chain(limit.map(Parameter::Limit)))
}

fn values(bound: &Bound<Vec<IndexValue>>) -> &[IndexValue] {
    match bound {
        Bound::Unbounded => &[],
        Bound::Included(values) | Bound::Excluded(values) => values,
    }
}

enum Parameter<'a> {
    Value(&'a IndexValue),
    Limit(i64),
}

impl ToSql for Parameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Parameter::Value(value) => value.to_sql(),
            Parameter::Limit(limit) => limit.to_sql(),
        }
    }
}
