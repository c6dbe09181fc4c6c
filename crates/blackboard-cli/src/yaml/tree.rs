//! A document as a tree whose every node knows its line and column, so that all errors of a file can be reported.

use std::collections::{HashMap, HashSet};

use granit_parser::{Event, Parser, ScalarStyle, Span, StrInput, Tag};

use super::{Limits, YamlError};

/// A scalar, a list or a mapping.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Node {
    /// The line where it begins, from 1. A node behind an alias has the position of the alias.
    pub line: usize,
    /// The column where it begins, in characters, from 1.
    pub column: usize,
    /// What it is.
    pub value: Value,
}

/// What a node is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Value {
    /// Text, a number, a boolean or null. Which one it is depends on what the caller asks for.
    Scalar {
        /// The text, without its quotes.
        text: String,
        /// Whether it is written without quotes, so that it may be a number, a boolean or null.
        plain: bool,
    },
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order of the file. No key occurs twice.
    Map(Vec<(Key, Node)>),
}

/// The key of a mapping, and where it is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Key {
    /// The key.
    pub text: String,
    /// Its line, from 1.
    pub line: usize,
    /// Its column, from 1.
    pub column: usize,
}

impl Node {
    /// The value of a key, if this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|(each, _)| each.text == key).map(|(_, value)| value)
    }

    /// The entries of a mapping. Anything else has none.
    pub fn entries(&self) -> &[(Key, Node)] {
        if let Value::Map(entries) = &self.value { entries } else { &[] }
    }

    /// The items of a list.
    pub fn items(&self) -> Option<&[Node]> {
        if let Value::List(items) = &self.value { Some(items) } else { None }
    }

    /// Whether this is a mapping.
    pub fn is_map(&self) -> bool {
        matches!(self.value, Value::Map(_))
    }

    /// Whether this is null: nothing, `~` or `null`, without quotes.
    pub fn is_null(&self) -> bool {
        matches!(self.plain(), Some("" | "~" | "null" | "Null" | "NULL"))
    }

    /// The text of a scalar that is not null. A number or a boolean is the text that it is written with.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar { text, .. } if !self.is_null() => Some(text),
            _ => None,
        }
    }

    /// A boolean as YAML 1.2 has them. `yes` and `on` are texts to many readers, and are none.
    pub fn boolean(&self) -> Option<bool> {
        match self.plain()? {
            "true" | "True" | "TRUE" => Some(true),
            "false" | "False" | "FALSE" => Some(false),
            _ => None,
        }
    }

    /// What a text without quotes is to some readers: those of YAML 1.1 know more booleans.
    pub fn other_kind(&self) -> Option<&'static str> {
        const BOOLEANS: [&str; 8] = ["y", "n", "yes", "no", "on", "off", "true", "false"];
        let text = self.plain()?;
        if BOOLEANS.iter().any(|word| word.eq_ignore_ascii_case(text)) {
            return Some("a boolean");
        }
        self.number().map(|_| "a number")
    }

    /// A decimal number that is not negative.
    pub fn count(&self) -> Option<u64> {
        let text = self.plain()?;
        // A leading zero makes a number octal to readers of YAML 1.1.
        let decimal =
            text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
        if decimal { text.parse().ok() } else { None }
    }

    /// A number that is finite.
    pub fn number(&self) -> Option<f64> {
        let text = self.plain()?;
        let written = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
        text.parse().ok().filter(|number: &f64| number.is_finite() && text.bytes().all(written))
    }

    /// What kind of value it is, for messages.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::Scalar { .. } if self.is_null() => "nothing",
            Value::Scalar { .. } if self.boolean().is_some() => "a boolean",
            Value::Scalar { .. } if self.number().is_some() => "a number",
            Value::Scalar { .. } => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }

    /// An error at this node.
    pub fn error(&self, message: &str) -> YamlError {
        YamlError::new(self.line, self.column, message)
    }

    fn plain(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar { text, plain: true } => Some(text),
            _ => None,
        }
    }

    /// What a copy of it needs.
    fn size(&self) -> Size {
        let mut size = Size { nodes: 1, bytes: 0 };
        match &self.value {
            Value::Scalar { text, .. } => size.bytes = text.len(),
            Value::List(items) => items.iter().for_each(|item| size.add(item.size())),
            Value::Map(entries) => {
                for (key, value) in entries {
                    size.add(Size { nodes: 1, bytes: key.text.len() });
                    size.add(value.size());
                }
            }
        }
        size
    }
}

/// The nodes of a tree, and the bytes of their texts.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    nodes: usize,
    bytes: usize,
}

impl Size {
    fn add(&mut self, other: Size) {
        self.nodes = self.nodes.saturating_add(other.nodes);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// The tree of the only document of a file. An empty file is null.
pub fn tree(text: &str) -> Result<Node, YamlError> {
    tree_within(text, Limits::FILE)
}

/// The tree of the only document of a text. An empty text is null.
pub fn tree_within(text: &str, limits: Limits) -> Result<Node, YamlError> {
    if text.len() > limits.bytes {
        return Err(YamlError::new(0, 0, &format!("the text has more than {} bytes", limits.bytes)));
    }
    let options = granit_parser::options! {
        flow_nesting_limit: limits.depth + 1,
        block_nesting_limit: limits.depth + 1,
    };
    let parser = Parser::new_from_str_with_options(text, options);
    let mut builder = Builder { parser, limits, nodes: 0, copied_bytes: 0, anchors: HashMap::new() };
    builder.document()
}

/// Builds a tree from the events of the parser.
struct Builder<'text> {
    parser: Parser<'text, StrInput<'text>>,
    limits: Limits,
    nodes: usize,
    /// The bytes of texts that were copied for anchors and aliases.
    copied_bytes: usize,
    /// The complete nodes that have an anchor.
    anchors: HashMap<usize, Node>,
}

/// One event of the parser, and its position.
struct Located<'text> {
    event: Event<'text>,
    line: usize,
    column: usize,
}

impl<'text> Builder<'text> {
    fn document(&mut self) -> Result<Node, YamlError> {
        let mut root = Node { line: 1, column: 1, value: Value::Scalar { text: String::new(), plain: true } };
        let mut has_ended = false;
        while let Some(located) = self.next()? {
            match located.event {
                Event::DocumentStart(..) if has_ended => {
                    let message = "a second document begins here: a file may have only one";
                    return Err(YamlError::new(located.line, located.column, message));
                }
                Event::StreamStart | Event::DocumentStart(..) => {}
                Event::DocumentEnd => has_ended = true,
                Event::StreamEnd => break,
                _ => root = self.node(located, 0)?,
            }
        }
        Ok(root)
    }

    fn node(&mut self, located: Located<'text>, depth: usize) -> Result<Node, YamlError> {
        let Located { event, line, column, .. } = located;
        let refuse = |message: &str| YamlError::new(line, column, message);
        self.add_nodes(1, line, column)?;
        if depth > self.limits.depth {
            return Err(refuse(&format!("more than {} levels of lists and mappings", self.limits.depth)));
        }
        let (anchor, value) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain && !tag.is_some_and(|tag| is_text(&tag));
                (anchor, Value::Scalar { text: text.into_owned(), plain })
            }
            Event::SequenceStart(_, anchor, _) => (anchor, Value::List(self.list(depth)?)),
            Event::MappingStart(_, anchor, _) => (anchor, Value::Map(self.map(depth)?)),
            Event::Alias(anchor) => return self.repeated(anchor, line, column),
            _ => return Err(refuse("a value is missing here")),
        };
        let node = Node { line, column, value };
        if anchor != 0 {
            self.add_copy(node.size(), line, column)?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, YamlError> {
        let mut items = Vec::new();
        while let Some(located) = self.next()? {
            if matches!(located.event, Event::SequenceEnd) {
                break;
            }
            items.push(self.node(located, depth + 1)?);
        }
        Ok(items)
    }

    fn map(&mut self, depth: usize) -> Result<Vec<(Key, Node)>, YamlError> {
        let mut entries = Vec::new();
        let mut keys = HashSet::new();
        while let Some(located) = self.next()? {
            if matches!(located.event, Event::MappingEnd) {
                break;
            }
            let key = self.key(located, depth)?;
            if !keys.insert(key.text.clone()) {
                return Err(YamlError::new(
                    key.line,
                    key.column,
                    &format!("the key {} occurs twice", key.text),
                ));
            }
            let Some(located) = self.next()? else { break };
            let value = self.node(located, depth + 1)?;
            entries.push((key, value));
        }
        Ok(entries)
    }

    fn key(&mut self, located: Located<'text>, depth: usize) -> Result<Key, YamlError> {
        let node = self.node(located, depth + 1)?;
        let (line, column) = (node.line, node.column);
        match node.value {
            Value::Scalar { text, plain: true } if text == "<<" => {
                Err(YamlError::new(line, column, "merge keys (<<) are not supported"))
            }
            Value::Scalar { text, .. } => Ok(Key { text, line, column }),
            Value::List(_) | Value::Map(_) => Err(YamlError::new(line, column, "a key has to be a scalar")),
        }
    }

    /// A copy of the node that has the anchor. Nodes and bytes are counted first, which limits copies of copies.
    fn repeated(&mut self, anchor: usize, line: usize, column: usize) -> Result<Node, YamlError> {
        let size = self.anchors.get(&anchor).map(Node::size).unwrap_or_default();
        self.add_copy(size, line, column)?;
        match self.anchors.get(&anchor) {
            Some(node) => Ok(Node { line, column, value: node.value.clone() }),
            None => Err(YamlError::new(line, column, "this alias is part of the value that it names")),
        }
    }

    fn add_copy(&mut self, size: Size, line: usize, column: usize) -> Result<(), YamlError> {
        self.add_nodes(size.nodes, line, column)?;
        self.copied_bytes = self.copied_bytes.saturating_add(size.bytes);
        if self.copied_bytes > self.limits.bytes {
            let message = format!("anchors and aliases that copy more than {} bytes", self.limits.bytes);
            return Err(YamlError::new(line, column, &message));
        }
        Ok(())
    }

    fn add_nodes(&mut self, count: usize, line: usize, column: usize) -> Result<(), YamlError> {
        self.nodes = self.nodes.saturating_add(count);
        if self.nodes > self.limits.nodes {
            let message = format!("more than {} values, or aliases that repeat too many", self.limits.nodes);
            return Err(YamlError::new(line, column, &message));
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Located<'text>>, YamlError> {
        let Some(parsed) = self.parser.next_event() else { return Ok(None) };
        let (event, span): (_, Span) = parsed.map_err(|error| {
            let at = error.marker();
            YamlError::new(at.line(), at.col() + 1, &error.kind().to_string())
        })?;
        let start = span.start;
        Ok(Some(Located { event, line: start.line(), column: start.col() + 1 }))
    }
}

/// Whether a tag says that a scalar is text, although it has no quotes.
fn is_text(tag: &Tag) -> bool {
    tag.suffix() == "str" || tag.handle() == "!" && tag.suffix().is_empty()
}
