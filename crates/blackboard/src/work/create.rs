//! `work create`: creates a work item.

use serde::Serialize;

use super::dependencies::{
    Blocker, NamedBlocker, blocked_event, blockers_of, missing_among, named_blockers, open_among,
    prefetch_named,
};
use super::details::{check_estimate, check_label_count, clean_labels};
use super::{Dependency, Priority, Status, Work, WorkItem, details};
use crate::agent::prefetch_agent;
use crate::clock::Timestamp;
use crate::error::{Code, Error, Refusal, Result};
use crate::event::{EventType, NewEvent, TargetType};
use crate::hint::Hint;
use crate::metadata::Metadata;
use crate::revision::{Pending, Revision};
use crate::store::{Changes, Key, Prefetch, Range, Tx};
use crate::text::{Cleaner, Kind, TextChanges, TextRules, check_id};

/// A new work item.
#[derive(Clone, Debug, Default)]
pub struct Create {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its description.
    pub description: Option<String>,
    /// The registered project that it belongs to.
    pub project: Option<String>,
    /// Its source, one of [`SOURCES`] or `word:…`; `local` by default.
    pub source: Option<String>,
    /// Its reference at the source.
    pub source_ref: Option<String>,
    /// Its priority; P2 by default.
    pub priority: Option<Priority>,
    /// Its blockers.
    pub blocked_by: Vec<String>,
    /// Its labels.
    pub labels: Vec<String>,
    /// The tokens that it is expected to need.
    pub estimate: Option<u64>,
    /// Its metadata.
    pub metadata: Option<Metadata>,
    /// The session that creates it.
    pub session: Option<String>,
}

impl Create {
    /// An item with this id and title only.
    pub fn new(id: &str, title: &str) -> Create {
        Create { id: id.to_owned(), title: title.to_owned(), ..Create::default() }
    }
}

/// The known sources of items. Any other source is a word with a colon, for example `jira:PROJ-7`.
pub const SOURCES: &[&str] = &["local", "github", "operator"];

/// An existing item.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Created {
    /// The item.
    #[serde(flatten)]
    pub item: WorkItem,
    /// Whether this call created it. `false` if the same item existed already.
    pub created: bool,
    /// Its open blockers.
    pub open_blockers: Vec<String>,
    /// Its blockers that do not exist yet.
    pub missing_blockers: Vec<String>,
    /// The changes to its text.
    #[serde(flatten)]
    pub text: TextChanges,
}

impl Pending for Created {
    fn resolve(&mut self, first: Revision) {
        self.item.resolve(first);
    }
}

impl Work<'_> {
    /// Creates a work item. Creating the same one again changes nothing.
    ///
    /// ```
    /// # use blackboard::{Board, work::Create};
    /// # let board = Board::memory();
    /// assert!(board.work().create(&Create::new("fix-tests", "Fix the tests"))?.created);
    /// assert!(!board.work().create(&Create::new("fix-tests", "Fix the tests"))?.created);
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn create(&self, create: &Create) -> Result<Created> {
        let (create, text) = create.cleaned(&self.board.settings().text)?;
        self.board.commit("work create", &create.prefetch(), |tx| {
            let known = ExistingItem::read(tx, &create)?;
            if known.is_none() {
                create.its_project_must_exist(tx)?;
            }
            let named = named_blockers(tx, &create.id, &create.blocked_by)?;
            let (mut changes, mut created) = decide(&create, known, named, tx.now())?;
            created.text.clone_from(&text);
            self.board.agents().record_activity_of(tx, create.session.as_deref(), &mut changes)?;
            Ok((changes, created))
        })
    }

    /// Creates a work item with an id that is generated from its title: its words in lower case, joined by `-`. If an item
    /// has that id, the new one gets `-2`, `-3` and so on. The id of the request is ignored.
    ///
    /// ```
    /// # use blackboard::{Board, work::Create};
    /// # let board = Board::memory();
    /// let create = Create::new("", "Fix the login!");
    /// assert_eq!(board.work().create_with_generated_id(&create)?.item.item_id, "fix-the-login");
    /// assert_eq!(board.work().create_with_generated_id(&create)?.item.item_id, "fix-the-login-2");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn create_with_generated_id(&self, create: &Create) -> Result<Created> {
        // The filter comes first: what it removes from the title must not be in the id.
        let unnamed = Create { id: generated_id("", 1), ..create.clone() };
        let (mut first, text) = unnamed.cleaned(&self.board.settings().text)?;
        first.id = generated_id(&first.title, 1);
        self.board.commit("work create", &first.prefetch(), |tx| {
            let mut create = first.clone();
            let mut number = 1;
            while tx.row::<WorkItem>(&Key::WorkItem(create.id.clone()))?.is_some() {
                number += 1;
                create.id = generated_id(&create.title, number);
                tx.prefetch(&create.prefetch())?;
            }
            create.its_project_must_exist(tx)?;
            let named = named_blockers(tx, &create.id, &create.blocked_by)?;
            let (mut changes, mut created) = decide(&create, None, named, tx.now())?;
            created.text.clone_from(&text);
            self.board.agents().record_activity_of(tx, create.session.as_deref(), &mut changes)?;
            Ok((changes, created))
        })
    }
}

/// The most characters of a generated id.
const MAX_GENERATED: usize = 40;

/// The id of the nth item with this title: as many of its words as fit, and the number from the second one on.
fn generated_id(title: &str, number: usize) -> String {
    let suffix = if number == 1 { String::new() } else { format!("-{number}") };
    let space = MAX_GENERATED.saturating_sub(suffix.len());
    let mut id = String::new();
    let mut length = 0;
    let words = title.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    for word in words.map(str::to_lowercase) {
        let separator = usize::from(length > 0);
        let letters = word.chars().count();
        if length + separator + letters > space {
            if length == 0 {
                id = word.chars().take(space).collect();
            }
            break;
        }
        if separator == 1 {
            id.push('-');
        }
        id.push_str(&word);
        length += separator + letters;
    }
    if id.is_empty() {
        "item".clone_into(&mut id);
    }
    id + &suffix
}

impl Create {
    /// What its creation will read.
    pub(super) fn prefetch(&self) -> Vec<Prefetch<'static>> {
        let mut prefetch = vec![
            Prefetch::Row(Key::WorkItem(self.id.clone())),
            Prefetch::Range(Range::blockers_of(&self.id)),
        ];
        prefetch.extend(self.project.iter().map(|project| Prefetch::Row(Key::Project(project.clone()))));
        prefetch.extend(prefetch_agent(self.session.as_deref()));
        prefetch.extend(prefetch_named(&self.id, &self.blocked_by));
        prefetch
    }

    /// The same with filtered text and checked ids, and the changes to the text.
    pub(super) fn cleaned(&self, rules: &TextRules) -> Result<(Create, TextChanges)> {
        rules.check_listed_id("work item", &self.id)?;
        for blocker in &self.blocked_by {
            rules.check_listed_id("blocking work item", blocker)?;
        }
        rules.check_unaltered(self.source.as_deref())?;
        rules.check_json(self.metadata.as_ref().map(Metadata::as_str))?;
        self.metadata.as_ref().map_or(Ok(()), details::check_given)?;
        let mut texts = Cleaner::new(rules);
        let mut cleaned = self.clone();
        cleaned.title = texts.clean("title", Kind::Field, &self.title)?;
        if cleaned.title.is_empty() {
            return Err(Error::invalid("the title of a work item cannot be empty"));
        }
        cleaned.description = texts.maybe("description", Kind::Description, self.description.as_ref())?;
        cleaned.source_ref = texts.maybe("source_ref", Kind::Field, self.source_ref.as_ref())?;
        if let Some(source) = &self.source {
            check_id("source", source)?;
            check_source(source)?;
        }
        cleaned.metadata = self.metadata_with_details(&mut texts)?;
        Ok((cleaned, texts.changes()))
    }

    /// The metadata with the labels and the estimate.
    fn metadata_with_details(&self, texts: &mut Cleaner<'_>) -> Result<Option<Metadata>> {
        if self.labels.is_empty() && self.estimate.is_none() {
            return Ok(self.metadata.clone());
        }
        let labels = clean_labels(texts, &self.labels)?;
        check_label_count(labels.len())?;
        check_estimate(self.estimate)?;
        let mut item = blank_item(self, Timestamp::EPOCH);
        if !labels.is_empty() {
            item.set_labels(&labels)?;
        }
        if self.estimate.is_some() {
            item.set_estimate(self.estimate)?;
        }
        Ok(item.metadata)
    }

    /// The given fields that differ from an existing item.
    pub(super) fn differing_from(&self, item: &WorkItem, blockers: &[Blocker]) -> Vec<&'static str> {
        fn differs<T: PartialEq>(given: Option<&T>, stored: Option<&T>) -> bool {
            given.is_some() && given != stored
        }
        let is_new = |id: &String| !blockers.iter().any(|blocker| blocker.id() == id);
        let fields = [
            ("title", self.title != item.title),
            ("description", differs(self.description.as_ref(), item.description.as_ref())),
            ("project", differs(self.project.as_ref(), item.project_id.as_ref())),
            ("source", differs(self.source.as_ref(), Some(&item.source))),
            ("source_ref", differs(self.source_ref.as_ref(), item.source_ref.as_ref())),
            ("priority", differs(self.priority.as_ref(), Some(&item.priority))),
            ("metadata", differs(self.metadata.as_ref(), item.metadata.as_ref())),
            ("blocked_by", self.blocked_by.iter().any(is_new)),
        ];
        fields.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
    }

    pub(super) fn its_project_must_exist(&self, tx: &dyn Tx) -> Result<()> {
        let project = self.project.as_deref();
        project.map_or(Ok(()), |project| crate::project::existing(tx, project).map(drop))
    }
}

pub(super) fn check_source(source: &str) -> Result<()> {
    let is_own_word = source.split_once(':').is_some_and(|(word, rest)| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        !word.is_empty() && word.bytes().all(is_plain) && !rest.is_empty()
    });
    if is_own_word || SOURCES.contains(&source) {
        return Ok(());
    }
    let message = format!("\"{}\" is not a source of work items", crate::text::escape_for_terminal(source));
    Err(Refusal::new(Code::InvalidValue, message)
        .hint(format!("use {}, or a word of your own with a colon, such as jira:PROJ-7", SOURCES.join(", ")))
        .detail("allowed", SOURCES.to_vec())
        .into())
}

/// The existing item with the same id.
struct ExistingItem {
    item: WorkItem,
    blockers: Vec<Blocker>,
}

impl ExistingItem {
    fn read(tx: &dyn Tx, create: &Create) -> Result<Option<ExistingItem>> {
        let item = tx.row::<WorkItem>(&Key::WorkItem(create.id.clone()))?;
        item.map(|item| Ok(ExistingItem { item, blockers: blockers_of(tx, &create.id)? })).transpose()
    }
}

fn decide(
    create: &Create,
    known: Option<ExistingItem>,
    named: Vec<NamedBlocker>,
    now: Timestamp,
) -> Result<(Changes, Created)> {
    if let Some(known) = known {
        return already_there(create, known, &named).map(|created| (Changes::new(), created));
    }
    let NewItem { item, open_blockers, missing_blockers, mut changes } =
        new_item(create, named, now, Changes::new())?;
    changes.put(item.clone());
    Ok((
        changes,
        Created { item, created: true, open_blockers, missing_blockers, text: TextChanges::default() },
    ))
}

/// An item that is about to be created, with its events and dependencies. The caller puts it.
pub(super) struct NewItem {
    pub(super) item: WorkItem,
    pub(super) open_blockers: Vec<String>,
    pub(super) missing_blockers: Vec<String>,
    pub(super) changes: Changes,
}

/// The item of a cleaned request, after the earlier changes of the same commit.
pub(super) fn new_item(
    create: &Create,
    named: Vec<NamedBlocker>,
    now: Timestamp,
    mut changes: Changes,
) -> Result<NewItem> {
    check_id("work item", &create.id)?;
    let mut item = blank_item(create, now);
    let session = create.session.as_deref();
    let summary = format!("Work item \"{}\" created", item.title);
    item.revision = changes.event(
        NewEvent::new(EventType::WorkCreated, TargetType::WorkItem, &item.item_id, summary).by(session),
    );
    let mut missing_blockers = Vec::new();
    let mut open = Vec::new();
    for blocker in named {
        blocker.must_not_close_a_cycle(&item.item_id)?;
        match blocker.status {
            Some(Status::Completed) => continue,
            Some(_) => {}
            None => missing_blockers.push(blocker.id.clone()),
        }
        changes.put(Dependency {
            item_id: item.item_id.clone(),
            blocked_by: blocker.id.clone(),
            created_at: now,
        });
        open.push(blocker.id);
    }
    // In the order of the index, so that the first one stays the first.
    open.sort();
    if let Some(first) = open.first() {
        item.status = Status::Blocked;
        item.blocked_by = Some(first.clone());
        let summary = format!("\"{}\" is blocked by {}", item.title, open.join(", "));
        item.revision = changes.event(blocked_event(&item, &open, summary, session));
    }
    Ok(NewItem { item, open_blockers: open, missing_blockers, changes })
}

/// The requested item, before any change.
pub(crate) fn blank_item(create: &Create, now: Timestamp) -> WorkItem {
    WorkItem {
        item_id: create.id.clone(),
        project_id: create.project.clone(),
        title: create.title.clone(),
        description: create.description.clone(),
        source: create.source.clone().unwrap_or_else(|| "local".to_owned()),
        source_ref: create.source_ref.clone(),
        status: Status::Available,
        priority: create.priority.unwrap_or_default(),
        claimed_by: None,
        claimed_by_name: None,
        claimed_at: None,
        fence: None,
        completed_at: None,
        summary: None,
        blocked_by: None,
        created_at: now,
        metadata: create.metadata.clone(),
        revision: Revision::ZERO,
    }
}

/// The answer to a request for an existing item: accepted if it is the same one.
fn already_there(create: &Create, known: ExistingItem, named: &[NamedBlocker]) -> Result<Created> {
    let ExistingItem { item, blockers } = known;
    let asked = blank_item(create, item.created_at);
    let open_blockers = open_among(&blockers);
    // A completed item blocks nothing, whether it was named again or not.
    let mut named = named.iter().filter(|blocker| blocker.status != Some(Status::Completed));
    let has_other_blockers = named.clone().count() != open_blockers.len()
        || named.any(|blocker| !open_blockers.contains(&blocker.id));
    let what_differs = [
        ("title", item.title != asked.title),
        ("description", item.description != asked.description),
        ("project", item.project_id != asked.project_id),
        ("source", item.source != asked.source),
        ("source_ref", item.source_ref != asked.source_ref),
        ("priority", item.priority != asked.priority),
        ("metadata", item.metadata != asked.metadata),
        ("blocked_by", has_other_blockers),
    ];
    let differing: Vec<_> =
        what_differs.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect();
    if differing.is_empty() {
        let missing_blockers = missing_among(&blockers);
        let text = TextChanges::default();
        return Ok(Created { item, created: false, open_blockers, missing_blockers, text });
    }
    Err(Refusal::new(
        Code::AlreadyExists,
        format!("work item {} already exists with a different {}", item.item_id, differing.join(", ")),
    )
    .hint(Hint::ShowItem(item.item_id.clone()))
    .detail("differs", differing)
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_ids_are_words_of_the_title() {
        testkit::limit_test();
        for (title, number, expected) in [
            ("Fix the login", 1, "fix-the-login"),
            ("Fix the login", 12, "fix-the-login-12"),
            ("  Re-write  foo/bar.rs, (again)! ", 1, "re-write-foo-bar-rs-again"),
            ("Ärger mit Ümläuten", 1, "ärger-mit-ümläuten"),
            ("修复 登录", 1, "修复-登录"),
            ("!?", 1, "item"),
            ("!?", 2, "item-2"),
            ("one two three four five six seven eight nine", 1, "one-two-three-four-five-six-seven-eight"),
            ("one two three four five six seven eight nine", 2, "one-two-three-four-five-six-seven-2"),
        ] {
            assert_eq!(generated_id(title, number), expected);
        }
        let long = generated_id(&"x".repeat(200), 100);
        assert_eq!((long.chars().count(), long.ends_with("x-100")), (MAX_GENERATED, true), "{long}");
    }

    #[test]
    fn a_source_is_a_known_word_or_a_word_with_a_colon() {
        for (source, is_allowed) in [
            ("local", true),
            ("github", true),
            ("operator", true),
            ("github:owner/repo#7", true),
            ("jira:PROJ-7", true),
            ("gh.enterprise_2:x:y", true),
            ("", false),
            ("gihtub", false),
            ("GitHub", false),
            ("local ", false),
            (":x", false),
            ("jira:", false),
            ("two words:x", false),
        ] {
            let checked = check_source(source).map_err(|error| error.code());
            assert_eq!(checked, if is_allowed { Ok(()) } else { Err(Code::InvalidValue) }, "{source:?}");
        }
    }

    #[test]
    fn only_given_fields_can_differ_from_an_existing_item() {
        let stored = Create {
            source: Some("github".to_owned()),
            priority: Some(Priority::P1),
            ..Create::new("x", "X")
        };
        let item = blank_item(&stored, Timestamp::EPOCH);
        assert_eq!(Create::new("x", "X").differing_from(&item, &[]), Vec::<&str>::new());
        assert_eq!(stored.differing_from(&item, &[]), Vec::<&str>::new());
        let other = Create {
            description: Some("long".to_owned()),
            project: Some("pai".to_owned()),
            source: Some("local".to_owned()),
            source_ref: Some("7".to_owned()),
            priority: Some(Priority::P3),
            metadata: Some(Metadata::parse("{}").unwrap()),
            blocked_by: vec!["a".to_owned()],
            ..Create::new("x", "Y")
        };
        let all =
            ["title", "description", "project", "source", "source_ref", "priority", "metadata", "blocked_by"];
        assert_eq!(other.differing_from(&item, &[]), all);
    }

    #[test]
    fn creating_the_same_item_again_is_accepted() {
        let blocker = |id: &str, status| NamedBlocker {
            id: id.to_owned(),
            status,
            is_known: false,
            waits_for_item: false,
        };
        let stored = |id: &str, status| Blocker {
            dependency: Dependency {
                item_id: "x".to_owned(),
                blocked_by: id.to_owned(),
                created_at: Timestamp::EPOCH,
            },
            status,
        };
        let (open, done) = (Some(Status::Available), Some(Status::Completed));
        for (title, blockers, named, expected) in [
            ("X", vec![], vec![], Ok(())),
            ("Y", vec![], vec![], Err(Code::AlreadyExists)),
            ("X", vec![stored("a", open)], vec![blocker("a", open)], Ok(())),
            ("X", vec![stored("a", None)], vec![blocker("a", None)], Ok(())),
            ("X", vec![], vec![blocker("a", open)], Err(Code::AlreadyExists)),
            ("X", vec![stored("a", open)], vec![], Err(Code::AlreadyExists)),
            ("X", vec![stored("a", open)], vec![blocker("b", open)], Err(Code::AlreadyExists)),
            ("X", vec![stored("a", done)], vec![], Ok(())),
            ("X", vec![], vec![blocker("a", done)], Ok(())),
        ] {
            let create = Create::new("x", "X");
            let item = WorkItem { title: title.to_owned(), ..blank_item(&create, Timestamp::EPOCH) };
            let context = format!("{title}, {blockers:?}, {named:?}");
            let missing = missing_among(&blockers);
            let decided = decide(&create, Some(ExistingItem { item, blockers }), named, Timestamp::EPOCH);
            if let Ok((changes, created)) = &decided {
                assert!(changes.is_empty() && !created.created, "{context}");
                assert_eq!(created.missing_blockers, missing, "{context}");
            }
            assert_eq!(decided.map(drop).map_err(|error| error.code()), expected, "{context}");
        }
    }
}
