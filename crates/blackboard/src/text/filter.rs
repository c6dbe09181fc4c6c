//! Removes markup and template markers from fields; comparisons, generics and plain braces stay.
//!
//! Each pass reads the text once. Passes repeat until nothing changes, because removing `<b>` from `<scr<b>ipt>`
//! makes a new tag.

use std::borrow::Cow;

use super::{TextRules, cut_to};

const CODE_BLOCK: &str = "[code block removed]";

/// The maximum number of passes. Only text that was made to defeat the filter needs more.
const ROUNDS: usize = 8;

/// Text without these characters contains nothing to remove.
const MARKERS: [char; 5] = ['<', '{', '}', '$', '`'];

/// Text without markup, and its changes.
pub(super) struct Cleaned {
    pub(super) text: String,
    /// Whether markup was removed.
    pub(super) filtered: bool,
    /// Whether text was cut off.
    pub(super) shortened: bool,
}

/// Removes markup from text without control characters, joins its spaces and cuts it.
pub(super) fn clean(text: &str, rules: &TextRules, limit: usize) -> Cleaned {
    let mut cleaned = Cleaned { text: text.to_owned(), filtered: false, shortened: false };
    for _ in 0..ROUNDS {
        let before = cleaned.text;
        let without = remove_markup(&before, rules);
        cleaned.filtered |= *without != *before;
        let (line, cut) = one_line(&without, limit);
        cleaned.text = line;
        cleaned.shortened |= cut;
        if cleaned.text == before {
            return cleaned;
        }
    }
    cleaned.text.retain(|character| !MARKERS.contains(&character));
    cleaned.text = one_line(&cleaned.text, limit).0;
    Cleaned { filtered: true, ..cleaned }
}

fn remove_markup<'text>(text: &'text str, rules: &TextRules) -> Cow<'text, str> {
    if !text.contains(MARKERS) {
        return Cow::Borrowed(text);
    }
    let mut text = text.to_owned();
    if rules.strip_code_blocks {
        // If a fence has no end, only its marker is removed, and the text after it stays.
        text = replace_enclosed(&text, "```", "```", CODE_BLOCK).replace("```", "");
    }
    if rules.strip_html_tags {
        text = remove_tags(&replace_enclosed(&text, "<!--", "-->", "").replace("<!--", ""));
    }
    text = replace_enclosed(&text, "${", "}", "");
    Cow::Owned(replace_enclosed(&text, "{{", "}}", ""))
}

/// The text with single spaces, at most `limit` characters of it, and whether there were more.
fn one_line(text: &str, limit: usize) -> (String, bool) {
    let mut line = String::with_capacity(text.len().min(limit));
    for character in text.trim().chars() {
        if character != ' ' || !line.ends_with(' ') {
            line.push(character);
        }
    }
    let cut = cut_to(&mut line, limit);
    line.truncate(line.trim_end().len());
    (line, cut)
}

/// Replaces everything from `open` to the next `close`. An `open` without `close` stays.
///
/// An opening that is longer than necessary, as in `{{{x}}}` or a fence of four, matches an equally long end. The
/// markers are ASCII.
fn replace_enclosed(text: &str, open: &str, close: &str, replacement: &str) -> String {
    let (open_again, close_again) = (&open[open.len() - 1..], &close[close.len() - 1..]);
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, opened)) = rest.split_once(open) {
        let inside = opened.trim_start_matches(open_again);
        // If this marker has no end, those after it have none either. So each character is searched once.
        let Some((_, after)) = inside.split_once(close) else { break };
        clean.push_str(before);
        clean.push_str(replacement);
        let surplus = opened.len() - inside.len();
        let after_all = after.trim_start_matches(close_again);
        rest = &after[surplus.min(after.len() - after_all.len())..];
    }
    clean.push_str(rest);
    clean
}

/// Removes tags. A tag ends at the first `>`, so each piece of text up to a `>` contains at most one tag.
fn remove_tags(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for piece in text.split_inclusive('>') {
        let last_assignment = last_assignment(piece);
        let tag = piece.match_indices('<').find(|&(start, _)| is_tag(piece, start, last_assignment));
        clean.push_str(&piece[..tag.map_or(piece.len(), |(start, _)| start)]);
    }
    clean
}

/// The position of the last `=` that assigns a value to an attribute and is not a comparison.
fn last_assignment(piece: &str) -> Option<usize> {
    let bytes = piece.as_bytes();
    let compares = |byte: Option<&u8>| matches!(byte, Some(b'=' | b'!' | b'<'));
    piece.rmatch_indices('=').map(|(at, _)| at).find(|&at| {
        !compares(at.checked_sub(1).and_then(|before| bytes.get(before))) && !compares(bytes.get(at + 1))
    })
}

/// Whether the `<` at `start` begins a tag: the name of an element has to follow, and it must not be code.
fn is_tag(piece: &str, start: usize, last_assignment: Option<usize>) -> bool {
    let after = &piece[start + 1..];
    let named = after.strip_prefix(['/', '!']).unwrap_or(after);
    let name_length = named.find(|character: char| !character.is_ascii_alphanumeric()).unwrap_or(named.len());
    let (name, tail) = named.split_at(name_length);
    if !contains_name(ELEMENTS, name) || !(tail.is_empty() || tail.starts_with([' ', '/', '>'])) {
        return false;
    }
    let is_closed = piece.ends_with('>');
    if named.len() < after.len() || ((is_closed || tail.is_empty()) && contains_name(ACTING_ALONE, name)) {
        return true;
    }
    let arguments = tail.trim_start();
    // In `Future<Output = T>`, the `=` follows the name directly. In a tag, an attribute is between them.
    let has_attribute = last_assignment.is_some_and(|at| at > piece.len() - arguments.len());
    has_attribute || (is_closed && !is_comparison(arguments) && !is_generic(&piece[..start], name))
}

/// `a <b && c> d`
fn is_comparison(arguments: &str) -> bool {
    arguments.starts_with("&&") || arguments.starts_with("||")
}

/// `Option<Data>`, `collect::<Data>`
fn is_generic(before: &str, name: &str) -> bool {
    before.ends_with(|character: char| character.is_alphanumeric() || character == '_' || character == ':')
        && name.starts_with(|character: char| character.is_ascii_uppercase())
        && name.contains(|character: char| character.is_ascii_lowercase())
}

fn contains_name(sorted: &[&str], name: &str) -> bool {
    let lower_case = || name.bytes().map(|byte| byte.to_ascii_lowercase());
    sorted.binary_search_by(|element| element.bytes().cmp(lower_case())).is_ok()
}

/// Elements that change the meaning of the rest of a page without an attribute: none of them is accepted as code.
const ACTING_ALONE: &[&str] = &[
    "embed",
    "frameset",
    "iframe",
    "math",
    "noembed",
    "noframes",
    "noscript",
    "plaintext",
    "script",
    "style",
    "svg",
    "template",
    "textarea",
    "title",
    "xmp",
];

/// The elements of HTML, obsolete ones included, and those of SVG that run something.
#[rustfmt::skip]
pub(super) const ELEMENTS: &[&str] = &[
    "a", "abbr", "acronym", "address", "animate", "animatemotion", "animatetransform", "applet", "area", "article",
    "aside", "audio", "b", "base", "basefont", "bdi", "bdo", "bgsound", "big", "blink", "blockquote", "body", "br",
    "button", "canvas", "caption", "center", "cite", "code", "col", "colgroup", "data", "datalist", "dd", "del",
    "details", "dfn", "dialog", "dir", "div", "dl", "doctype", "dt", "em", "embed", "fieldset", "figcaption",
    "figure", "font", "footer", "foreignobject", "form", "frame", "frameset", "h1", "h2", "h3", "h4", "h5", "h6",
    "head", "header", "hgroup", "hr", "html", "i", "iframe", "image", "img", "input", "ins", "isindex", "kbd",
    "keygen", "label", "legend", "li", "link", "listing", "main", "map", "mark", "marquee", "math", "menu",
    "menuitem", "meta", "meter", "nav", "nobr", "noembed", "noframes", "noscript", "object", "ol", "optgroup",
    "option", "output", "p", "param", "picture", "plaintext", "portal", "pre", "progress", "q", "rb", "rp", "rt",
    "rtc", "ruby", "s", "samp", "script", "search", "section", "select", "slot", "small", "source", "span",
    "strike", "strong", "style", "sub", "summary", "sup", "svg", "table", "tbody", "td", "template", "textarea",
    "tfoot", "th", "thead", "time", "title", "tr", "track", "tt", "u", "ul", "var", "video", "wbr", "xmp",
];
