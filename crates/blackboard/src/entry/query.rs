//! `query`: entries by pattern, prefix, tags, author and time.
//!
//! The literal prefix of a pattern and the first tag are looked up in an index. The order comes from an index too:
//! newest first walks the index of revisions, unless prefix or tag leave few enough entries to sort here. Values are
//! read only for matching keys, and only where the index has not decided.

use serde::Serialize;

use super::{Entry, EntryHead, Glob, Scope, check_known_scope, check_pattern, known_tag_set};
use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::event::FIRST_VALUES;
use crate::revision::Revision;
use crate::scope::Guard;
use crate::store::{Key, Prefetch, Range, Tx};

/// How many entries a page has by default.
pub const DEFAULT_LIMIT: usize = 100;

/// How many heads are read together.
const CHUNK: usize = 512;

/// How many heads are sorted here instead of walking the index of revisions.
const FEW: usize = 10_000;

/// Conditions for entries. Every condition has to hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// The key matches this pattern, in which `*` also matches `:`.
    pub pattern: Option<String>,
    /// The key starts with this.
    pub prefix: Option<String>,
    /// It has all of these tags.
    pub tags: Vec<String>,
    /// This author wrote it last.
    pub author: Option<String>,
    /// It was written at this moment or later.
    pub updated_since: Option<Timestamp>,
    /// The order of the entries.
    pub order: Order,
    /// The most entries; 100 by default.
    pub limit: Option<usize>,
    /// A page ends with the entry whose value and metadata make it this many bytes; unlimited by default.
    pub most_bytes: Option<usize>,
    /// How many to skip first. To continue after a page, use `after`: it stays correct while others write.
    pub offset: usize,
    /// Continues after a page: its `next`.
    pub after: Option<String>,
}

/// The order of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The last written entry comes first.
    #[default]
    Newest,
    /// By key.
    Key,
}

/// A page of entries.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueryPage {
    /// The entries.
    pub entries: Vec<Entry>,
    /// Where the next page starts, if there is more. In key order no entry is missed or seen twice, whatever others
    /// write. With newest first, an entry that is written meanwhile moves to the front and is not seen again.
    pub next: Option<String>,
    /// The revision of the board at that moment.
    pub revision: Revision,
}

/// A page of entries, and how many there are.
#[derive(Clone, Debug, PartialEq)]
pub struct CountedEntries {
    /// The page.
    pub page: QueryPage,
    /// How many entries the query finds without its limit.
    pub total: usize,
}

impl Scope<'_> {
    /// Finds entries.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Query, Value, Write}};
    /// # let board = Board::memory();
    /// let scope = board.scope("team-1");
    /// for agent in ["a", "b"] {
    ///     let key = format!("agent:{agent}:results");
    ///     scope.write(&Write { tags: vec!["analysis".to_owned()], ..Write::new(&key, Value::null()) })?;
    /// }
    /// let query = Query {
    ///     pattern: Some("agent:*:results".to_owned()),
    ///     tags: vec!["analysis".to_owned()],
    ///     limit: Some(1),
    ///     ..Query::default()
    /// };
    /// let page = scope.query(&query)?;
    /// assert_eq!(page.entries[0].key, "agent:b:results");
    /// let rest = scope.query(&Query { after: page.next, ..query })?;
    /// assert_eq!(rest.entries[0].key, "agent:a:results");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn query(&self, query: &Query) -> Result<QueryPage> {
        let query = query.checked(&self.name)?;
        self.list_guarded(query.prefetch(&self.name), |tx, guard| query.page(tx, guard, &self.name))
    }

    /// The same entries, and how many there are without the limit. The values of the others are read only if the query
    /// has to compare them.
    ///
    /// ```
    /// # use blackboard::{Board, entry::{Query, Value, Write}};
    /// # let board = Board::memory();
    /// let scope = board.scope("team-1");
    /// for key in ["a", "b", "c"] {
    ///     scope.write(&Write::new(key, Value::null()))?;
    /// }
    /// let counted = scope.query_counted(&Query { limit: Some(1), ..Query::default() })?;
    /// assert_eq!((counted.page.entries.len(), counted.total), (1, 3));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn query_counted(&self, query: &Query) -> Result<CountedEntries> {
        let query = query.checked(&self.name)?;
        self.list_guarded(query.prefetch(&self.name), |tx, guard| {
            query.counted_page(tx, guard, &self.name, true)
        })
    }
}

/// A query whose parts were checked.
pub(crate) struct CheckedQuery {
    query: Query,
    glob: Option<Glob>,
    /// What every key starts with.
    prefix: String,
    /// Whether no key can match: the prefix and the pattern contradict each other.
    impossible: bool,
    after: Option<PageToken>,
}

/// Where a page ended.
enum PageToken {
    Revision(Revision),
    Key(String),
}

/// Where a query looks, and for whom.
#[derive(Clone, Copy)]
struct QueriedScope<'a, 'g> {
    tx: &'a dyn Tx,
    guard: &'g Guard<'g>,
    scope: &'a str,
}

/// A head that a query found. Its entry is read if the caller needs it.
pub(super) struct QueriedEntry<'a> {
    tx: &'a dyn Tx,
    scope: &'a str,
    pub(super) head: EntryHead,
    /// Whether an index says that it has the first tag.
    tagged: bool,
    /// Whether its entry is announced. Others are rarely needed: a page without an unreadable entry has one more.
    is_announced: bool,
    read: Option<Entry>,
}

impl QueriedEntry<'_> {
    /// The entry.
    pub(super) fn entry(&mut self) -> Result<Option<Entry>> {
        if self.read.is_none() {
            if !self.is_announced {
                self.tx.prefetch(&[Prefetch::Entry(self.scope, &self.head.key)])?;
            }
            self.read = self.tx.row::<Entry>(&Key::Entry(self.scope.to_owned(), self.head.key.clone()))?;
        }
        Ok(self.read.clone())
    }
}

impl Query {
    /// The same with sorted tags, if everything about it is allowed.
    pub(super) fn checked(&self, scope: &str) -> Result<CheckedQuery> {
        check_known_scope(scope)?;
        self.checked_in_stored_scope(scope)
    }

    /// The same in a scope that is stored, whatever its name. A crafted board, or one of an older version, may have
    /// names that are refused today.
    pub(crate) fn checked_in_stored_scope(&self, scope: &str) -> Result<CheckedQuery> {
        if let Some(pattern) = &self.pattern {
            check_pattern(scope, pattern)?;
        }
        if let Some(prefix) = self.prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
            check_pattern(scope, prefix)?;
        }
        let query = Query { tags: known_tag_set(self.tags.clone())?, ..self.clone() };
        let glob = query.pattern.as_deref().map(Glob::new);
        let literal = glob.as_ref().map_or("", |glob| glob.literal_prefix());
        let given = query.prefix.as_deref().unwrap_or("");
        let (longer, shorter) = if given.len() > literal.len() { (given, literal) } else { (literal, given) };
        let (prefix, impossible) = (longer.to_owned(), !longer.starts_with(shorter));
        let after = match (&query.after, query.order) {
            (None, _) => None,
            (Some(key), Order::Key) => Some(PageToken::Key(key.clone())),
            (Some(revision), Order::Newest) => Some(PageToken::Revision(Revision::new(
                revision
                    .parse()
                    .map_err(|_| Error::invalid("invalid page token; use `next` of the previous page"))?,
            ))),
        };
        Ok(CheckedQuery { query, glob, prefix, impossible, after })
    }
}

/// Which of the matching entries are read with their values: a remote engine reads those together.
#[derive(Clone, Copy)]
pub(super) enum Values<'v> {
    /// All from the match `from` up to the match `until`, which are counted from 0. If `in_groups`, the caller may stop
    /// before, because of their size.
    Page { from: usize, until: usize, in_groups: bool },
    /// Only those whose values the query has to compare.
    Compared,
    /// The same, but only of these heads.
    ComparedOf(&'v dyn Fn(&EntryHead) -> bool),
}

/// How far a query is.
struct Progress<'v> {
    values: Values<'v>,
    /// How many heads were offered.
    offered: usize,
    /// How many heads the next group has if it is not known how many values are needed.
    at_once: usize,
}

impl Progress<'_> {
    fn new(values: Values<'_>) -> Progress<'_> {
        Progress { values, offered: 0, at_once: FIRST_VALUES }
    }
}

impl CheckedQuery {
    /// What a page reads first.
    pub(crate) fn prefetch(&self, scope: &str) -> Vec<Prefetch<'static>> {
        let first = (!self.impossible).then(|| match (self.query.order, self.is_narrow()) {
            (Order::Key, _) => Prefetch::Heads(self.rest(scope), CHUNK),
            (Order::Newest, true) => Prefetch::Heads(self.narrow(scope), FEW + 1),
            (Order::Newest, false) => Prefetch::Heads(Range::newest_entries(scope, self.older_than()), CHUNK),
        });
        [Prefetch::Revision].into_iter().chain(first).collect()
    }

    /// What [`CheckedQuery::each_by_key`] and [`CheckedQuery::heads_since`] read first.
    pub(super) fn prefetch_by_key(&self, scope: &str) -> Vec<Prefetch<'static>> {
        let first = (!self.impossible).then(|| Prefetch::Heads(self.narrow(scope), CHUNK));
        [Prefetch::Revision].into_iter().chain(first).collect()
    }

    /// A page. What [`CheckedQuery::prefetch`] names is announced by then.
    pub(crate) fn page(&self, tx: &dyn Tx, guard: &Guard<'_>, scope: &str) -> Result<QueryPage> {
        self.counted_page(tx, guard, scope, false).map(|counted| counted.page)
    }

    /// The same, with the number of all matches if `counts`.
    fn counted_page(
        &self,
        tx: &dyn Tx,
        guard: &Guard<'_>,
        scope: &str,
        counts: bool,
    ) -> Result<CountedEntries> {
        let limit = self.query.limit.unwrap_or(DEFAULT_LIMIT);
        let until = self.query.offset.saturating_add(limit);
        let in_groups = self.query.most_bytes.is_some();
        let values = Values::Page { from: self.query.offset, until, in_groups };
        let most_bytes = self.query.most_bytes.unwrap_or(usize::MAX);
        let (mut skipped, mut bytes, mut total, mut next) = (0, 0, 0, None);
        let mut entries: Vec<Entry> = Vec::new();
        self.each(tx, guard, scope, values, |found| {
            if skipped < self.query.offset {
                skipped += 1;
                return Ok(true);
            }
            total += 1;
            if entries.len() == limit || (bytes >= most_bytes && !entries.is_empty()) {
                next = entries.last().map(|last| match self.query.order {
                    Order::Newest => last.revision.to_string(),
                    Order::Key => last.key.clone(),
                });
                return Ok(counts);
            }
            if let Some(entry) = found.entry()? {
                bytes = bytes.saturating_add(entry.bytes());
                entries.push(entry);
            }
            Ok(true)
        })?;
        let page = QueryPage { entries, next, revision: tx.revision()? };
        Ok(CountedEntries { page, total })
    }

    /// The heads of all matching entries, by key, if `known` were found at the revision `at`. An entry that was not
    /// written since then still matches, so only the values of the others are read.
    pub(super) fn heads_since(
        &self,
        tx: &dyn Tx,
        guard: &Guard<'_>,
        scope: &str,
        known: &[(String, Revision)],
        at: Revision,
    ) -> Result<Vec<(String, Revision)>> {
        let mut heads = Vec::new();
        if self.impossible {
            return Ok(heads);
        }
        let is_known = |head: &EntryHead| {
            let place = known.binary_search_by(|(key, _)| key.cmp(&head.key));
            place.is_ok_and(|place| known[place].1 == head.revision)
        };
        // An entry that was expired then may be visible if the clock was set back.
        let may_be_new =
            |head: &EntryHead| !is_known(head) && (head.revision > at || head.expires_at.is_some());
        let source = QueriedScope { tx, guard, scope };
        self.walk_heads(&source, self.narrow(scope), Values::ComparedOf(&may_be_new), |found| {
            if is_known(&found.head) || (may_be_new(&found.head) && self.fits_entry(found)?) {
                heads.push((found.head.key.clone(), found.head.revision));
            }
            Ok(true)
        })?;
        Ok(heads)
    }

    /// Calls `f`, which reads every entry, for each match, by key.
    pub(super) fn each_by_key<'a>(
        &self,
        tx: &'a dyn Tx,
        guard: &Guard<'_>,
        scope: &'a str,
        f: &mut dyn FnMut(&mut QueriedEntry<'a>) -> Result<()>,
    ) -> Result<()> {
        if self.impossible {
            return Ok(());
        }
        let values = Values::Page { from: 0, until: usize::MAX, in_groups: false };
        let source = QueriedScope { tx, guard, scope };
        self.walk(&source, self.narrow(scope), values, |found| f(found).map(|()| true))
    }

    /// Calls `f` for each match, in order, until it returns that it has enough. `values` says which entries `f`
    /// reads.
    pub(super) fn each<'a>(
        &self,
        tx: &'a dyn Tx,
        guard: &Guard<'_>,
        scope: &'a str,
        values: Values<'_>,
        mut f: impl FnMut(&mut QueriedEntry<'a>) -> Result<bool>,
    ) -> Result<()> {
        if self.impossible {
            return Ok(());
        }
        let source = QueriedScope { tx, guard, scope };
        if self.query.order == Order::Key {
            return self.walk(&source, self.rest(scope), values, f);
        }
        if self.is_narrow() {
            let range = self.narrow(scope);
            tx.prefetch(&[Prefetch::Heads(range.clone(), FEW + 1)])?;
            let mut heads = tx.heads(&range, FEW + 1)?;
            if heads.len() <= FEW {
                heads.sort_by_key(|head| std::cmp::Reverse(head.revision));
                if let Some(PageToken::Revision(after)) = self.after {
                    heads.retain(|head| head.revision < after);
                }
                let offer = |found: &mut QueriedEntry<'a>| Ok(!self.fits_entry(found)? || f(found)?);
                return self.offer(&source, &range, heads, &mut Progress::new(values), offer).map(drop);
            }
        }
        self.walk(&source, Range::newest_entries(scope, self.older_than()), values, f)
    }

    /// Whether a prefix or a tag excludes a part of the scope.
    fn is_narrow(&self) -> bool {
        !self.prefix.is_empty() || !self.query.tags.is_empty()
    }

    /// By key, the smallest range with everything after the page before.
    fn rest(&self, scope: &str) -> Range {
        match &self.after {
            Some(PageToken::Key(key)) => self.narrow(scope).after(key.as_str()),
            Some(PageToken::Revision(_)) | None => self.narrow(scope),
        }
    }

    /// Newest first, the last revision of the page before.
    fn older_than(&self) -> Option<Revision> {
        match self.after {
            Some(PageToken::Revision(revision)) => Some(revision),
            Some(PageToken::Key(_)) | None => None,
        }
    }

    /// The smallest range by key that contains all matches.
    fn narrow(&self, scope: &str) -> Range {
        match self.query.tags.first() {
            Some(tag) => Range::entries_tagged(scope, tag, &self.prefix),
            None => Range::entries(scope, &self.prefix),
        }
    }

    fn walk<'a>(
        &self,
        source: &QueriedScope<'a, '_>,
        range: Range,
        values: Values<'_>,
        mut f: impl FnMut(&mut QueriedEntry<'a>) -> Result<bool>,
    ) -> Result<()> {
        self.walk_heads(source, range, values, |found| Ok(!self.fits_entry(found)? || f(found)?))
    }

    /// Calls `f` for every visible head in the range whose key matches, until it returns that it has enough.
    fn walk_heads<'a>(
        &self,
        source: &QueriedScope<'a, '_>,
        mut range: Range,
        values: Values<'_>,
        mut f: impl FnMut(&mut QueriedEntry<'a>) -> Result<bool>,
    ) -> Result<()> {
        let QueriedScope { tx, scope, .. } = *source;
        // Entries below this revision are too old. If the event log is pruned, the revision alone cannot tell.
        let too_old = match self.query.updated_since.filter(|_| range.is_backwards()) {
            Some(since) => {
                tx.prefetch(&[Prefetch::RevisionBefore(since), Prefetch::Revision])?;
                let (bound, floor) = (tx.revision_before(since)?, tx.floor()?);
                (bound > floor).then_some(bound)
            }
            None => None,
        };
        let mut progress = Progress::new(values);
        loop {
            tx.prefetch(&[Prefetch::Heads(range.clone(), CHUNK)])?;
            let heads = tx.heads(&range, CHUNK)?;
            let Some(last) = heads.last() else { return Ok(()) };
            let is_end = heads.len() < CHUNK || too_old.is_some_and(|bound| last.revision <= bound);
            let rest = if range.is_backwards() {
                Range::newest_entries(scope, Some(last.revision))
            } else {
                range.clone().after(last.key.as_str())
            };
            if !self.offer(source, &range, heads, &mut progress, &mut f)? || is_end {
                return Ok(());
            }
            range = rest;
        }
    }

    /// Offers the visible heads of a range whose keys match. Returns whether more are wanted.
    fn offer<'a>(
        &self,
        source: &QueriedScope<'a, '_>,
        range: &Range,
        heads: Vec<EntryHead>,
        progress: &mut Progress<'_>,
        mut f: impl FnMut(&mut QueriedEntry<'a>) -> Result<bool>,
    ) -> Result<bool> {
        let QueriedScope { tx, guard, scope } = *source;
        let tagged = range.index == Entry::TAGGED;
        let compares = self.compares_entries(tagged);
        let values = progress.values;
        let is_read = |place: usize, head: &EntryHead| match values {
            Values::Page { from, until, .. } => compares || (from <= place && place < until),
            Values::Compared => compares,
            Values::ComparedOf(is_compared) => compares && is_compared(head),
        };
        let now = tx.now();
        let mut fitting = Vec::with_capacity(heads.len());
        for head in heads {
            if !head.is_expired(now) && self.fits_key(&head.key) && guard.may_read(scope, &head.key)? {
                fitting.push(head);
            }
        }
        let mut fitting = fitting.into_iter();
        let mut group = Vec::new();
        loop {
            let at_once = match (values, compares) {
                (_, true) | (Values::Page { in_groups: true, .. }, _) => progress.at_once,
                // The head after the last one shows that there is more, and is not read.
                (Values::Page { until, .. }, false) => {
                    until.saturating_sub(progress.offered).saturating_add(1)
                }
                (Values::Compared | Values::ComparedOf(_), false) => 1,
            };
            group.extend(fitting.by_ref().take(at_once));
            if group.is_empty() {
                return Ok(true);
            }
            let read = group.iter().zip(progress.offered..).filter(|(head, place)| is_read(*place, head));
            let read: Vec<_> = read.map(|(head, _)| Prefetch::Entry(scope, &head.key)).collect();
            if !read.is_empty() {
                tx.prefetch(&read)?;
                progress.at_once = progress.at_once.saturating_mul(2).min(CHUNK);
            }
            for head in group.drain(..) {
                let is_announced = is_read(progress.offered, &head);
                progress.offered += 1;
                let mut found = QueriedEntry { tx, scope, head, tagged, is_announced, read: None };
                if !f(&mut found)? {
                    return Ok(false);
                }
            }
        }
    }

    /// Whether a match depends on more than the key.
    fn compares_entries(&self, tagged: bool) -> bool {
        let Query { tags, author, updated_since, .. } = &self.query;
        tags.len() > usize::from(tagged) || author.is_some() || updated_since.is_some()
    }

    fn fits_entry(&self, found: &mut QueriedEntry<'_>) -> Result<bool> {
        if !self.compares_entries(found.tagged) {
            return Ok(true);
        }
        Ok(found.entry()?.is_some_and(|entry| self.fits_beyond_key(&entry)))
    }

    fn fits_key(&self, key: &str) -> bool {
        key.starts_with(&self.prefix) && self.glob.as_ref().is_none_or(|glob| glob.matches(key))
    }

    fn fits_beyond_key(&self, entry: &Entry) -> bool {
        let Query { tags, author, updated_since, .. } = &self.query;
        tags.iter().all(|tag| entry.tags.contains(tag))
            && author.as_ref().is_none_or(|author| entry.updated_by == *author)
            && updated_since.is_none_or(|since| entry.updated_at >= since)
    }

    /// Whether an entry that is not stored would match.
    pub(super) fn fits(&self, entry: &Entry) -> bool {
        !self.impossible && self.fits_key(&entry.key) && self.fits_beyond_key(entry)
    }

    /// The part of the matches that the query asks for. An entry without a revision is newer than every other.
    pub(super) fn part_of(&self, mut entries: Vec<Entry>) -> Vec<Entry> {
        match self.query.order {
            Order::Key => entries.sort_by(|a, b| a.key.cmp(&b.key)),
            Order::Newest => entries.sort_by_key(|entry| match entry.revision {
                Revision::ZERO => std::cmp::Reverse(Revision::new(i64::MAX)),
                revision => std::cmp::Reverse(revision),
            }),
        }
        match &self.after {
            Some(PageToken::Key(key)) => entries.retain(|entry| entry.key > *key),
            Some(PageToken::Revision(after)) => entries.retain(|entry| entry.revision < *after),
            None => {}
        }
        let limit = self.query.limit.unwrap_or(DEFAULT_LIMIT);
        entries.into_iter().skip(self.query.offset).take(limit).collect()
    }
}
