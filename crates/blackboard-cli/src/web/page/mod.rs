//! The page: one document with its style and its script inside, put together from the files beside this one.
//!
//! Text of the board becomes text nodes and nothing else (`element.js`); the policy that the server sends allows the one
//! style and the one script that carry the nonce of the answer, and nothing from elsewhere. There is no build step: the
//! scripts are joined in this order inside of one function.
//!
//! | File | What it is about |
//! |---|---|
//! | `element.js`, `time.js`, `rows.js` | elements, times, and lists of any length |
//! | `api.js`, `resource.js` | asking the server, and asking again when an event says so |
//! | `stream.js`, `connection.js` | following what happens, and saying so |
//! | `model.js`, `events.js` | what several views show |
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
    "element.js" "time.js" "rows.js" "api.js" "views.js" "resource.js" "stream.js" "connection.js" "model.js" "events.js"
    "cards.js" "overview.js" "agents.js" "work.js" "entries.js" "locks.js" "timeline.js" "lanes.js" "projects.js"
    "drawer.js" "details.js" "keys.js" "start.js"
}

/// The whole document, for one answer: its policy names the same nonce.
pub fn document(nonce: &str) -> String {
    let script: String = SCRIPTS.iter().map(|(_, text)| *text).collect();
    DOCUMENT.replace("{nonce}", nonce).replace("{style}", STYLE).replace("{script}", &script)
}
