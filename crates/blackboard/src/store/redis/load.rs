//! A board that is being loaded: rows and events come as they are, with their revisions.

use std::time::{Duration, Instant};

use uuid::Uuid;

use super::Redis;
use super::address::Address;
use super::faults::{self, ServerError};
use super::resp::{Reply, Request};
use super::{IfMissing, Inner, OpenedBoard, RedisOptions, bytes, layout, script};
use crate::clock::Timestamp;
use crate::entry::EntryVersion;
use crate::error::{Code, Fault, Result};
use crate::event::Event;
use crate::revision::Revision;
use crate::store::Row;
use crate::store::transfer::{Extent, LoadingBoard, Part, Recipient};

/// How long the replicas may take for everything.
const REPLICA_LIMIT: Duration = Duration::from_secs(30);

/// A board on a server that is being loaded. Its state says so from its first byte.
pub struct LoadingKeys {
    inner: Inner,
    extent: Extent,
    /// How many events it has, and the time of the last one.
    events: u64,
    last_time: Timestamp,
}

impl Redis {
    /// Creates a board at an address that is to be loaded. Refuses if there is one, unless it is one whose loading was
    /// interrupted and it is to be replaced.
    pub fn create_to_load(address: Address, options: &RedisOptions, replaces: bool) -> Result<LoadingKeys> {
        let if_missing = if replaces { IfMissing::ReplaceLoading } else { IfMissing::CreateLoading };
        let (inner, opened) = OpenedBoard::by(address, options, if_missing)?;
        let inner = Inner { board: opened.board, ..inner };
        Ok(LoadingKeys { inner, extent: Extent::default(), events: 0, last_time: Timestamp::EPOCH })
    }
}

impl LoadingKeys {
    /// Waits until the replicas that the address requires have everything. Asks them at least once.
    pub(super) fn wait_for_replicas(&self, limit: Duration) -> Result<()> {
        let (inner, address) = (&self.inner, &self.inner.pool.address);
        let wanted = i64::from(address.replicas);
        if wanted == 0 {
            return Ok(());
        }
        let end = Instant::now() + limit;
        loop {
            match inner.count_replicas(&mut inner.call(inner.patience))? {
                Reply::Integer(found) if found >= wanted => return Ok(()),
                Reply::Integer(found) if Instant::now() >= end => {
                    let message = format!("only {found} of {wanted} replicas of {address} have the copy");
                    return Err(Fault::new(Code::ServerUnavailable, message).into());
                }
                Reply::Integer(_) => {}
                _ => return Err(faults::odd_reply(address)),
            }
        }
    }
}

impl LoadingBoard for LoadingKeys {
    fn begin(&mut self, extent: &Extent) -> Result<()> {
        self.extent = *extent;
        self.load(Vec::new())
    }

    fn load(&mut self, parts: Vec<Part>) -> Result<()> {
        let stamp = &Uuid::new_v4().into_bytes()[..layout::STAMP];
        let mut batch = Batch::default();
        for part in parts {
            match part {
                Part::Row(row) => batch.add_row(&row, stamp)?,
                Part::Version(version) => batch.add_version(&version),
                Part::Event(event, version) => {
                    self.events += 1;
                    self.last_time = event.timestamp;
                    batch.add_event(&event, self.events, version.is_some());
                    if let Some(version) = version {
                        batch.add_version(&version);
                    }
                }
            }
        }
        let numbers = [
            self.extent.revision.to_string(),
            self.last_time.millis().max(0).to_string(),
            self.events.to_string(),
            self.extent.floor.to_string(),
        ];
        let inner = &self.inner;
        inner.call(inner.patience).retry(|call| {
            let run = call.connection()?.run.clone();
            let texts = [layout::LOADING, &inner.board, &run].map(str::as_bytes);
            let head = texts.into_iter().chain([stamp]).chain(numbers.iter().map(String::as_bytes));
            let head: Vec<&[u8]> = head.collect();
            let parts = inner.answer_of_script(call, &batch.request(inner, &head))?;
            match &parts[..] {
                [Reply::Bytes(outcome)] if outcome == b"ok" => Ok(()),
                parts => Err(ServerError::Final(inner.refusal(call, parts))),
            }
        })
    }

    fn dump(&self, to: &mut dyn Recipient) -> Result<()> {
        self.inner.dump(to)
    }

    fn open(&mut self) -> Result<()> {
        self.wait_for_replicas(REPLICA_LIMIT)?;
        self.inner.set_hold("copy", layout::LOADING, layout::VERSION, "").map(drop)
    }
}

/// What one call of the script stores.
#[derive(Default)]
struct Batch {
    /// Ids and values of events.
    events: Vec<Vec<u8>>,
    /// Fields and values of rows and versions.
    fields: Vec<Vec<u8>>,
    /// Scores and members of rows.
    members: Vec<Vec<u8>>,
}

impl Batch {
    fn add_row(&mut self, row: &Row, stamp: &[u8]) -> Result<()> {
        let (kind, _, payload) = layout::store_row(row)?;
        // Nothing in the row is pending, so only an entry needs its number.
        let number = if let Row::Entry(entry) = row { entry.revision } else { Revision::ZERO };
        self.fields.push(bytes::row_field(&row.key())?);
        let number = number.to_string();
        self.fields.push([stamp, kind.as_bytes(), number.as_bytes(), b"\0", &payload].concat());
        for member in bytes::members_of(row)? {
            self.members.extend([b"0".to_vec(), member.head]);
        }
        Ok(())
    }

    fn add_version(&mut self, version: &EntryVersion) {
        self.fields.push(layout::version_field(version.entry.revision));
        self.fields.push(format!("{}\0{}", Revision::ZERO, version.to_stored()).into_bytes());
    }

    fn add_event(&mut self, event: &Event, ordinal: u64, has_version: bool) {
        let offset = event.id.get() - event.commit_id.get();
        let kind = if has_version { 'v' } else { '-' };
        let head = format!("{} {offset} {ordinal} {kind}\0", event.timestamp.millis());
        self.events.push(event.id.to_string().into_bytes());
        self.events.push([head.into_bytes(), layout::store_event(event)].concat());
    }

    fn request(&self, inner: &Inner, head: &[&[u8]]) -> Request {
        let mut request = Request::default();
        let lists = [&self.events, &self.fields, &self.members];
        let count = head.len() + lists.len() + lists.iter().map(|list| list.len()).sum::<usize>();
        script::LOAD.begin(&mut request, &inner.keys.all(), count);
        for argument in head {
            request.argument(argument);
        }
        for (position, list) in lists.into_iter().enumerate() {
            // Events are counted in pairs.
            let length = if position == 0 { list.len() / 2 } else { list.len() };
            request.argument(length.to_string().as_bytes());
            for argument in list {
                request.argument(argument);
            }
        }
        request
    }
}
