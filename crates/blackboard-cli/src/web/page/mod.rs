//! The page: one document with its style and its script inside, put together from the files beside this one.
//!
//! Text of the board becomes text nodes and nothing else (`element.js`); the policy that the server sends
//! allows the one style and the one script that carry the nonce of the answer, and nothing from elsewhere.
//! There is no build step: the scripts are joined in this order inside of one function.
//!
//! | File | What it is about |
//! |---|---|
//! | `element.js`, `time.js`, `rows.js` | elements, times, and lists of any length |
//! | `api.js`, `resource.js` | asking the server, and asking again when an event says so |
//! | `stream.js`, `connection.js` | following what happens, and saying so |
//! | `model.js`, `events.js` | what several views show |
//! | `header.js` | the name of the board |
//! | `cards.js` … `projects.js` | the views |
//! | `drawer.js`, `details.js` | everything about one thing |
//! | `views.js`, `keys.js`, `start.js` | going around, and putting it together |

const DOCUMENT: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");

macro_rules! scripts {
    ($($name:literal)+) => {
        /// The scripts, in the order in which they are joined.
        const SCRIPTS: &[(&str, &str)] = &[$(($name, include_str!($name))),+];
    };
}

scripts! {
    "element.js" "time.js" "rows.js" "api.js" "views.js" "resource.js" "stream.js" "connection.js"
    "model.js" "events.js" "header.js" "cards.js" "overview.js" "agents.js" "work.js" "entries.js" "locks.js"
    "timeline.js" "lanes.js" "projects.js" "drawer.js" "details.js" "keys.js" "start.js"
}

/// The whole document, for one answer: its policy names the same nonce.
pub fn document(nonce: &str) -> String {
    let script: String = SCRIPTS.iter().map(|(_, text)| *text).collect();
    DOCUMENT.replace("{nonce}", nonce).replace("{style}", STYLE).replace("{script}", &script)
}

#[cfg(test)]
mod tests {
    use blackboard::event::EventType;

    use super::*;

    #[test]
    fn the_document_is_whole_and_has_one_style_and_one_script_with_the_nonce() {
        let document = document("0123abcd");
        assert_eq!(document.matches("nonce=\"0123abcd\"").count(), 2);
        assert_eq!(document.matches("<style").count(), 1);
        assert_eq!(document.matches("<script").count(), 1);
        assert_eq!(document.matches("</script").count(), 1, "a script that ends itself");
        assert_eq!(document.matches("</style").count(), 1, "a style that ends itself");
        for placeholder in ["{nonce}", "{style}", "{script}"] {
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
    fn nothing_comes_from_elsewhere_and_no_style_is_inline() {
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
        for text in [
            "No active agents. Connect yours with <code>blackboard setup</code>.",
            "No open work items. Add one with <code>blackboard work create</code>.",
            "No locks held.",
            "No files reserved.",
        ] {
            assert!(DOCUMENT.contains(text), "{text}");
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
