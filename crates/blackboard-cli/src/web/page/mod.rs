//! The dashboard page: one HTML document with inline style and script, assembled from the files in this directory.
//!
//! Text from the board only ever becomes text nodes (`element.js`). The content security policy allows only the style
//! and the script that have the nonce of the response, and nothing from other origins. There is no build step: the
//! scripts are concatenated in this order inside one function.
//!
//! | File | Content |
//! |---|---|
//! | `element.js`, `time.js`, `rows.js` | elements, times, and lists of any length |
//! | `api.js`, `resource.js` | requests to the server, repeated when an event makes them outdated |
//! | `stream.js`, `connection.js` | the event stream, and the display of its state |
//! | `model.js`, `events.js` | data that several views share |
//! | `header.js` | the name of the board |
//! | `cards.js` … `quota.js` | the views |
//! | `drawer.js`, `details.js` | the details of one object |
//! | `views.js`, `keys.js`, `start.js` | navigation, keyboard shortcuts, startup |

use std::fmt::Write as _;

const DOCUMENT: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");

macro_rules! scripts {
    ($($name:literal)+) => {
        /// The scripts, in the order in which they are concatenated.
        const SCRIPTS: &[(&str, &str)] = &[$(($name, include_str!($name))),+];
    };
}

scripts! {
    "element.js" "time.js" "rows.js" "api.js" "views.js" "resource.js" "stream.js" "connection.js"
    "model.js" "events.js" "header.js" "cards.js" "overview.js" "agents.js" "work.js" "entries.js" "locks.js"
    "timeline.js" "lanes.js" "projects.js" "quota.js" "drawer.js" "details.js" "keys.js" "start.js"
}

/// The complete document for one response, whose policy has the same nonce. Commands that the page shows begin with
/// `program`. The view of the token quota is only in a document for a server that has one.
pub fn document(nonce: &str, program: &str, has_quota: bool) -> String {
    let script: String = SCRIPTS.iter().map(|(_, text)| *text).collect();
    DOCUMENT
        .replace("{quota}", if has_quota { "on" } else { "off" })
        .replace("{program}", &in_html(program))
        .replace("{nonce}", nonce)
        .replace("{style}", STYLE)
        .replace("{script}", &script)
}

/// Text for an element or an attribute. The name of a board may contain anything, also one of the placeholders.
fn in_html(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for character in blackboard::text::escape_for_terminal(text).chars() {
        match character {
            '&' | '<' | '>' | '"' | '\'' | '{' => {
                // Writing to a `String` cannot fail.
                let _ = write!(html, "&#{};", u32::from(character));
            }
            character => html.push(character),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use blackboard::event::EventType;

    use super::*;

    #[test]
    fn the_document_is_whole_and_has_one_style_and_one_script_with_the_nonce() {
        let document = document("0123abcd", "blackboard", true);
        assert_eq!(document.matches("nonce=\"0123abcd\"").count(), 2);
        assert_eq!(document.matches("<style").count(), 1);
        assert_eq!(document.matches("<script").count(), 1);
        assert_eq!(document.matches("</script").count(), 1, "a script contains its own end tag");
        assert_eq!(document.matches("</style").count(), 1, "a style contains its own end tag");
        for placeholder in ["{nonce}", "{style}", "{script}", "{program}", "{quota}"] {
            assert!(!document.contains(placeholder), "{placeholder}");
        }
    }

    #[test]
    fn no_text_becomes_html_or_a_program() {
        let forbidden = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "setHTML",
            "DOMParser",
            "createContextualFragment",
            "srcdoc",
            "document.write",
            "eval(",
            "Function(",
            "javascript:",
            "setAttribute(\"style\"",
            "cssText",
            "import(",
            "localStorage",
            "sessionStorage",
            "document.cookie",
            "postMessage",
        ];
        for (name, text) in SCRIPTS {
            for word in forbidden {
                assert!(!text.contains(word), "{name} has {word}");
            }
        }
    }

    #[test]
    fn page_loads_no_external_resource_and_has_no_inline_style() {
        let namespace = "http://www.w3.org/2000/svg";
        let scripts = SCRIPTS.iter().map(|(name, text)| (*name, *text));
        for (name, text) in scripts.chain([("page.html", DOCUMENT), ("page.css", STYLE)]) {
            let rest = text.replace(namespace, "");
            for word in
                ["http://", "https://", "//cdn", "@import", "url(", " style=", " onclick=", " onload="]
            {
                assert!(!rest.contains(word), "{name} has {word}");
            }
        }
    }

    #[test]
    fn empty_states_name_the_next_step() {
        let document = document("0123abcd", "blackboard", true);
        for text in [
            "No active agents. Connect yours with <code>blackboard setup</code>.",
            "No open work items. Add one with <code>blackboard work create</code>.",
            "No locks held.",
            "No files reserved.",
        ] {
            assert!(document.contains(text), "{text}");
        }
    }

    #[test]
    fn every_kind_of_event_has_a_filter() {
        let (_, events) = SCRIPTS.iter().find(|(name, _)| *name == "events.js").unwrap();
        for event_type in EventType::ALL {
            assert!(events.contains(&format!("\"{event_type}\"")), "events.js does not know {event_type}");
        }
    }
}
