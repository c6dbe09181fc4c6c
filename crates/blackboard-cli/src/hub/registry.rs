//! The tables of `REGISTRY.md`: `## Active Projects` and `## Agent Registry`.
//!
//! The file is written by hand, so columns are found by their headers, and whatever is no table is ignored.

/// How many rows of a table are read.
const MOST_ROWS: usize = 2000;

/// The two tables.
#[derive(Debug, Default, PartialEq)]
pub struct Registry {
    /// The projects, if the file has that table.
    pub projects: Option<Vec<ProjectRow>>,
    /// The agents.
    pub agents: Vec<AgentRow>,
}

/// A row of `## Active Projects`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProjectRow {
    /// The name, which is that of the directory in `projects/` or that of the project.
    pub name: String,
    /// The directory that a cell links to.
    pub directory: Option<String>,
    /// The handle of the maintainer.
    pub maintainer: String,
    /// The status.
    pub status: String,
    /// The repository, unless the cell links into the hub.
    pub source: Option<String>,
    /// The handles of the contributors.
    pub contributors: Vec<String>,
}

/// A row of `## Agent Registry`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentRow {
    /// The name of the agent.
    pub agent: String,
    /// The handle of its operator.
    pub operator: String,
    /// The platform.
    pub platform: String,
    /// What it can do.
    pub skills: String,
    /// open, busy or offline.
    pub availability: String,
    /// What it works on.
    pub current_work: String,
}

/// A cell: what it shows, and where its first link leads.
#[derive(Clone, Debug, Default, PartialEq)]
struct Cell {
    text: String,
    link: Option<String>,
}

/// A table: the position of each column, and its rows.
struct Table {
    headers: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl Registry {
    /// Reads both tables.
    pub fn parse(text: &str) -> Registry {
        let projects = Table::below(text, "active projects");
        let projects = projects.map(|table| (0..table.rows.len()).map(|row| table.project(row)).collect());
        let agents = Table::below(text, "agent registry");
        let agents = agents.map(|table| (0..table.rows.len()).map(|row| table.agent(row)).collect());
        Registry { projects, agents: agents.unwrap_or_default() }
    }
}

impl Table {
    /// The first table below a heading that begins with these words, before the next heading.
    fn below(text: &str, heading: &str) -> Option<Table> {
        let is_heading = |line: &str| line.starts_with('#');
        let is_wanted = |line: &&str| {
            is_heading(line) && line.trim_start_matches('#').trim().to_lowercase().starts_with(heading)
        };
        let mut lines = text.lines().map(str::trim).skip_while(|line| !is_wanted(line)).skip(1);
        let mut lines =
            lines.by_ref().take_while(|line| !is_heading(line)).skip_while(|line| !line.starts_with('|'));
        let headers = cells(lines.next()?).into_iter().map(|cell| cell.text.to_lowercase()).collect();
        let rows = lines
            .take_while(|line| line.starts_with('|'))
            .map(cells)
            .filter(|cells| !cells.iter().all(|cell| is_rule(&cell.text)))
            .take(MOST_ROWS)
            .collect();
        Some(Table { headers, rows })
    }

    fn cell(&self, row: usize, header: &str) -> Cell {
        let column = self.headers.iter().position(|each| each == header);
        column.and_then(|column| self.rows[row].get(column)).cloned().unwrap_or_default()
    }

    fn project(&self, row: usize) -> ProjectRow {
        let (name, source) = (self.cell(row, "project"), self.cell(row, "source"));
        let links = [&name.link, &source.link];
        let directory = links.into_iter().flatten().find_map(|link| directory_of(link));
        ProjectRow {
            directory,
            maintainer: handle(&self.cell(row, "maintainer").text),
            status: self.cell(row, "status").text.to_lowercase(),
            source: repository(&source),
            contributors: handles(&self.cell(row, "contributors").text),
            name: name.text,
        }
    }

    fn agent(&self, row: usize) -> AgentRow {
        let text = |header| self.cell(row, header).text;
        AgentRow {
            agent: text("agent"),
            operator: handle(&text("operator")),
            platform: text("platform"),
            skills: text("skills"),
            availability: text("availability"),
            current_work: text("current work"),
        }
    }
}

/// The line between the headers and the rows has only hyphens and colons.
fn is_rule(text: &str) -> bool {
    text.contains('-') && text.chars().all(|letter| matches!(letter, '-' | ':'))
}

/// The cells of a line. `\|` is no border.
fn cells(line: &str) -> Vec<Cell> {
    let line = line.strip_prefix('|').unwrap_or(line);
    let (mut cells, mut cell) = (Vec::new(), String::new());
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => cell.extend(letters.next()),
            '|' => cells.push(Cell::parse(&std::mem::take(&mut cell))),
            letter => cell.push(letter),
        }
    }
    if !cell.trim().is_empty() {
        cells.push(Cell::parse(&cell));
    }
    cells
}

impl Cell {
    /// Replaces `[text](url)` with its text, and removes emphasis and code marks.
    fn parse(markdown: &str) -> Cell {
        let (mut text, mut link) = (String::new(), None);
        let mut rest = markdown;
        while let Some((before, label, url, after)) = next_link(rest) {
            text.push_str(before);
            text.push_str(label);
            link.get_or_insert_with(|| url.trim().to_owned());
            rest = after;
        }
        text.push_str(rest);
        let text = text.replace("**", "").replace('`', "");
        Cell { text: text.trim().to_owned(), link }
    }
}

/// What is before the first link, its text, its URL, and what is after it.
fn next_link(text: &str) -> Option<(&str, &str, &str, &str)> {
    let middle = text.find("](")?;
    let start = text[..middle].rfind('[')?;
    let end = middle + text[middle..].find(')')?;
    Some((&text[..start], &text[start + 1..middle], &text[middle + 2..end], &text[end + 1..]))
}

/// The directory in `projects/` that a link leads to.
fn directory_of(link: &str) -> Option<String> {
    let path = link.trim_start_matches("./").strip_prefix("projects/")?;
    let name = path.split('/').next()?;
    (!name.is_empty() && !name.starts_with('.')).then(|| name.to_owned())
}

/// The repository that a cell names or links to. A link into the hub names none.
fn repository(source: &Cell) -> Option<String> {
    match &source.link {
        Some(link) if link.contains("://") => Some(link.trim_end_matches('/').to_owned()),
        Some(_) => None,
        None => {
            let text = source.text.split_whitespace().next()?;
            (text.contains('/') || text.contains(':')).then(|| text.to_owned())
        }
    }
}

/// A handle without its `@`.
pub fn handle(text: &str) -> String {
    let text = text.trim().trim_start_matches('@');
    text.split([' ', '(', ',']).next().unwrap_or_default().to_owned()
}

/// Every `@handle` of a cell; the rest of it is a remark.
fn handles(text: &str) -> Vec<String> {
    let parts = text.split(',').map(str::trim).filter(|part| part.starts_with('@'));
    parts.map(handle).filter(|handle| !handle.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTRY: &str = "# Community Registry

| Project | Maintainer |
|---|---|
| decoy | @elm |

## Active Projects

Some text.

| Project | Maintainer | Status | Source | Contributors |
|---------|:----------:|--------|--------|--------------|
| signal | @ivy | contrib-prep | [PROJECT.yaml](projects/signal/PROJECT.yaml) | @ivy (build), seeking reviewers |
| [Oak tools](projects/oak-tools/) | oak | Shipped | [oak/tools](https://example.org/oak/tools) | @oak, @elm (review) |
| `a\\|b` | | | fern/spoke |

Text after the table.
| no | row |

## Agent Registry (Daemon Entries)

| Agent | Operator | Skills | Availability | Current Work |
|---|---|---|---|---|
| Luna | @ivy | Rust, **SQL** | open | See [signal](projects/signal/) now |
";

    #[test]
    fn both_tables_are_read_by_their_headers() {
        testkit::limit_test();
        let registry = Registry::parse(REGISTRY);
        let signal = ProjectRow {
            name: "signal".to_owned(),
            directory: Some("signal".to_owned()),
            maintainer: "ivy".to_owned(),
            status: "contrib-prep".to_owned(),
            source: None,
            contributors: vec!["ivy".to_owned()],
        };
        let tools = ProjectRow {
            name: "Oak tools".to_owned(),
            directory: Some("oak-tools".to_owned()),
            maintainer: "oak".to_owned(),
            status: "shipped".to_owned(),
            source: Some("https://example.org/oak/tools".to_owned()),
            contributors: vec!["oak".to_owned(), "elm".to_owned()],
        };
        let bare = ProjectRow {
            name: "a|b".to_owned(),
            source: Some("fern/spoke".to_owned()),
            ..ProjectRow::default()
        };
        assert_eq!(registry.projects, Some(vec![signal, tools, bare]));
        let luna = AgentRow {
            agent: "Luna".to_owned(),
            operator: "ivy".to_owned(),
            skills: "Rust, SQL".to_owned(),
            availability: "open".to_owned(),
            current_work: "See signal now".to_owned(),
            platform: String::new(),
        };
        assert_eq!(registry.agents, [luna]);
    }

    #[test]
    fn anything_that_is_no_table_is_ignored() {
        testkit::limit_test();
        let cut = "## Active Projects\n| Project";
        assert_eq!(Registry::parse(cut).projects, Some(Vec::new()));
        for text in ["", "## Active Projects", "## Active Projects\n## Other\n| Project |\n|-|\n| a |\n"] {
            assert_eq!(Registry::parse(text), Registry::default(), "{text}");
        }
        let odd = "## Active Projects\n| Project |\n|-|\n| [a](b |\n| ](( |\n| [](x) |\n|||||\n|";
        let names: Vec<_> =
            Registry::parse(odd).projects.unwrap().into_iter().map(|project| project.name).collect();
        assert_eq!(names, ["[a](b", "]((", "", ""]);
    }
}
