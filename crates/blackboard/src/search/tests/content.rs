//! What an index has, in a form that is the same for a followed and a new one.

use std::collections::BTreeMap;

use crate::board::Board;
use crate::search::CatchUp;
use crate::search::document::Name;
use crate::search::find::name_of;
use crate::search::index::{Index, IndexLocation, SIZES, parts, size_at};
use crate::search::postings::decode;

/// A document: its part, revision, words, time, and terms with their counts.
type Content = BTreeMap<Name, (i64, u32, u32, BTreeMap<String, u32>)>;

/// Everything in an index. Fails if its tables contradict each other.
pub(super) fn content(index: &Index) -> Content {
    index
        .read(|connection| {
            let mut terms = BTreeMap::new();
            let mut statement = connection.prepare("SELECT id, term FROM terms")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                terms.insert(row.get::<_, u32>(0)?, row.get::<_, String>(1)?);
            }
            let (mut content, mut ids) = (Content::new(), BTreeMap::new());
            let mut lists: BTreeMap<(u32, u32), BTreeMap<u32, u32>> = BTreeMap::new();
            let mut sums: BTreeMap<u32, (i64, i64)> = BTreeMap::new();
            let mut statement = connection.prepare("SELECT id, part, revision, terms FROM documents")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let (id, part): (u32, u32) = (row.get(0)?, row.get(1)?);
                let name = name_of(connection, id)?.expect("a document has a part");
                let block: Vec<u8> =
                    connection.query_row("SELECT data FROM sizes WHERE block = ?1", [id / SIZES], |row| {
                        row.get(0)
                    })?;
                let (words, time) = size_at(&block, (id % SIZES) as usize);
                let mut counts = BTreeMap::new();
                for (term, count) in decode(0, row.get_ref(3)?.as_blob().unwrap()) {
                    counts.insert(terms[&term].clone(), count);
                    lists.entry((term, part)).or_default().insert(id, count);
                }
                let sum = sums.entry(part).or_default();
                *sum = (sum.0 + 1, sum.1 + i64::from(words));
                assert_eq!(ids.insert(name.clone(), id), None, "{name:?} is in the index twice");
                content.insert(name, (row.get(2)?, words, time, counts));
            }
            let mut stored: BTreeMap<(u32, u32), BTreeMap<u32, u32>> = BTreeMap::new();
            let mut statement = connection
                .prepare("SELECT term, part, first, last, data FROM postings ORDER BY term, part, first")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let (term, part, first, last): (u32, u32, u32, u32) =
                    (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
                let postings: Vec<_> = decode(first, row.get_ref(4)?.as_blob().unwrap()).collect();
                assert_eq!(postings.first().map(|(id, _)| *id), Some(first));
                assert_eq!(postings.last().map(|(id, _)| *id), Some(last));
                let counted = stored.entry((term, part)).or_default();
                for (id, count) in postings {
                    assert_eq!(counted.insert(id, count), None, "a document is in a list twice");
                }
            }
            assert_eq!(stored, lists, "the lists of terms are those of the documents");
            let used: std::collections::BTreeSet<u32> = lists.keys().map(|(term, _)| *term).collect();
            assert!(terms.keys().all(|term| used.contains(term)), "every term has a document");
            let counted: BTreeMap<u32, (i64, i64)> =
                parts(connection)?.into_iter().map(|part| (part.id, (part.documents, part.words))).collect();
            assert_eq!(counted, sums, "parts have the sums of their documents");
            Ok(content)
        })
        .unwrap()
}

/// What a new index of the board has.
pub(super) fn fresh(board: &Board) -> Content {
    let index = Index::open(&IndexLocation::Memory).unwrap();
    assert_eq!(index.update(board, CatchUp::COMPLETE).unwrap().behind, None);
    content(&index)
}
