//! The agents and the work items of the demo.

/// The agents. Each is a separate process.
pub const AGENTS: &[&str] = &["Ivy", "Oak", "Elm", "Fern"];

/// The agent that is killed in the middle of its work.
pub const VICTIM: &str = "Fern";

/// The item that it works on then. It claims this item before the other agents start. Otherwise they might complete all
/// items first, and there would be nothing to take over.
pub const VICTIM_ITEM: &str = "write-guide";

/// The project of all items.
pub const PROJECT: &str = "orchard";

/// The lock that every merge needs.
pub const LOCK: &str = "main-branch";

/// A work item and how an agent works on it.
pub struct Task {
    /// Its id.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Its priority.
    pub priority: &'static str,
    /// The items that block it.
    pub after: &'static [&'static str],
    /// The files that it changes.
    pub files: &'static [&'static str],
    /// The progress notes of its agent.
    pub steps: &'static [&'static str],
    /// The key and value of an entry that other agents need.
    pub fact: (&'static str, &'static str),
    /// The part that a delegate does.
    pub delegated: Option<&'static str>,
}

/// All work items.
pub const TASKS: &[Task] = &[
    Task {
        id: "design-schema",
        title: "Design the database schema",
        priority: "P1",
        after: &[],
        files: &["db/schema.sql"],
        steps: &["Tables are done", "Indexes are done"],
        fact: ("schema:version", "3"),
        delegated: None,
    },
    Task {
        id: "parse-config",
        title: "Read the configuration file",
        priority: "P1",
        after: &[],
        files: &["src/config.rs"],
        steps: &["Keys are listed", "Comments are accepted"],
        fact: ("config:format", "\"jsonc\""),
        delegated: None,
    },
    Task {
        id: "write-guide",
        title: "Write the user's guide",
        priority: "P3",
        after: &[],
        files: &["docs/guide.md"],
        steps: &["The first page is written", "Examples are tried", "Links are checked"],
        fact: ("docs:pages", "7"),
        delegated: None,
    },
    Task {
        id: "fix-login",
        title: "Fix the login on slow networks",
        priority: "P2",
        after: &[],
        files: &["src/login/*"],
        steps: &["Reproduced it", "The timeout was too short", "It holds with packet loss"],
        fact: ("bug:login", "{\"cause\": \"timeout\", \"seconds\": 3}"),
        delegated: None,
    },
    Task {
        id: "store-orders",
        title: "Store orders",
        priority: "P1",
        after: &["design-schema"],
        files: &["src/orders/*"],
        steps: &["Inserts work", "Updates work"],
        fact: ("orders:ready", "true"),
        delegated: None,
    },
    Task {
        id: "serve-api",
        title: "Serve orders over HTTP",
        priority: "P2",
        after: &["store-orders", "parse-config"],
        files: &["src/api/*"],
        steps: &["Routes are there", "Errors are answered"],
        fact: ("api:port", "8080"),
        delegated: None,
    },
    Task {
        id: "test-all",
        title: "Test everything together",
        priority: "P2",
        after: &["serve-api", "fix-login"],
        files: &["tests/*"],
        steps: &["The tests are written", "All of them pass"],
        fact: ("tests:passed", "128"),
        delegated: Some("Running the test suite"),
    },
];

/// The task with this id.
pub fn task(id: &str) -> Option<&'static Task> {
    TASKS.iter().find(|task| task.id == id)
}
