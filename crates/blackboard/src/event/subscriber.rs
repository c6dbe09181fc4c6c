//! A subscription on its own thread: with a callback, or through a channel.
//!
//! Each has its own thread and its own position in the event log. A slow or failing one does not affect the others.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::{Batch, Event, Subscription};
use crate::error::{Code, Error, Fault, Result};
use crate::follow::{Follower, SLICE, StopHandle};
use crate::revision::Revision;

/// How many events are in memory at once, in addition to those in the channel.
const BATCH: usize = 1000;

/// The longest pause before a full channel is tried again.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// A subscription that calls a callback with its events. It ends when the value is dropped.
#[must_use = "the subscription ends when this is dropped"]
pub struct Subscriber {
    stop: StopHandle,
    thread: Option<JoinHandle<Result<()>>>,
}

/// The receiving end of a subscription's channel: an iterator that waits for the next event. The subscription ends when
/// it is dropped.
pub struct Receiver {
    events: mpsc::Receiver<Result<Event>>,
    stop: StopHandle,
    /// The last event that was received.
    taken: Option<Revision>,
    /// The last event that the receiver has processed.
    done: Arc<AtomicI64>,
}

impl Subscription {
    /// Calls a callback with each event, on its own thread.
    ///
    /// The callback also gets the errors of the subscription. After `Ok` the subscription continues, after an error
    /// it ends, and [`Subscriber::join`] returns the error. A panic ends it too. Other subscriptions are not
    /// affected. A named cursor stays before the batch in which that happened, so the next subscription gets the
    /// event again.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use blackboard::{Board, follow::Follow, work::Create};
    ///
    /// let board = Board::memory();
    /// let (heard, hearing) = mpsc::channel();
    /// let subscriber = board.subscribe(&Follow::default())?.on_thread(move |event| {
    ///     heard.send(event?.summary).ok();
    ///     Ok(())
    /// })?;
    /// board.work().create(&Create::new("design-schema", "Design SQL schema"))?;
    /// assert_eq!(hearing.recv().unwrap(), "Work item \"Design SQL schema\" created");
    /// subscriber.stop()?;
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn on_thread(
        mut self,
        mut callback: impl FnMut(Result<Event>) -> Result<()> + Send + 'static,
    ) -> Result<Subscriber> {
        let stop = self.stop_handle();
        Subscriber::start(stop, move || self.try_for_each(&mut callback))
    }

    /// Sends the events through a channel with space for `bound` of them. If it is full the subscription waits:
    /// nothing is dropped, the rest stays in the event log.
    ///
    /// A named cursor moves behind a batch when the receiver asks for the next event after it.
    ///
    /// ```
    /// use blackboard::{Board, follow::Follow, work::Create};
    ///
    /// let board = Board::memory();
    /// let (mut events, stop) = board.subscribe(&Follow::default())?.channel(16)?;
    /// board.work().create(&Create::new("design-schema", "Design SQL schema"))?;
    /// assert_eq!(events.next().unwrap()?.target_id.as_deref(), Some("design-schema"));
    /// stop.stop();
    /// assert!(events.next().is_none());
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    pub fn channel(self, bound: usize) -> Result<(Receiver, StopHandle)> {
        let stop = self.stop_handle();
        let done = Arc::new(AtomicI64::new(0));
        let (sender, events) = mpsc::sync_channel(bound.max(1));
        let line = Line { sender, stop: stop.clone(), done: Arc::clone(&done) };
        spawn(move || line.pass_on(self.follower))?;
        Ok((Receiver { events, stop: stop.clone(), taken: None, done }, stop))
    }
}

fn spawn<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>> {
    thread::Builder::new().name("blackboard subscription".to_owned()).spawn(f).map_err(|error| {
        Fault::new(Code::Io, "no thread could be started for a subscription").because(error).into()
    })
}

impl Subscriber {
    /// Runs `f` on its own thread, until it returns. The handle stops it.
    pub(crate) fn start(
        stop: StopHandle,
        f: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> Result<Subscriber> {
        Ok(Subscriber { stop, thread: Some(spawn(f)?) })
    }

    /// A handle to stop it.
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops it, and waits until it has ended.
    pub fn stop(self) -> Result<()> {
        self.stop.stop();
        self.join()
    }

    /// Waits until it ends: after a stop, or with the error that its callback returned.
    pub fn join(mut self) -> Result<()> {
        match self.thread.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(ended)) => ended,
            Some(Err(_)) => Err(Fault::new(Code::Internal, "the callback of a subscription panicked").into()),
        }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

impl Receiver {
    /// The next event; `None` if none came within this time, or if the subscription has ended.
    pub fn next_within(&mut self, timeout: Duration) -> Option<Result<Event>> {
        if let Some(taken) = self.taken {
            self.done.store(taken.get(), Ordering::Release);
        }
        let answer = match self.events.recv_timeout(timeout) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        };
        if let Ok(event) = &answer {
            self.taken = Some(event.id);
        }
        Some(answer)
    }
}

impl Iterator for Receiver {
    type Item = Result<Event, Error>;

    fn next(&mut self) -> Option<Result<Event, Error>> {
        loop {
            match self.next_within(SLICE) {
                None if !self.stop.is_stopped() => {}
                answer => return answer,
            }
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

/// The sending end.
struct Line {
    sender: SyncSender<Result<Event>>,
    stop: StopHandle,
    done: Arc<AtomicI64>,
}

impl Line {
    fn pass_on(self, mut follower: Follower) {
        // The batches in the channel, each by its last event and its end.
        let mut sent: VecDeque<(Revision, Revision)> = VecDeque::new();
        while !self.stop.is_stopped() {
            let done = Revision::new(self.done.load(Ordering::Acquire));
            let mut end = None;
            while let Some((_, last)) = sent.pop_front_if(|(event, _)| *event <= done) {
                end = Some(last);
            }
            let acknowledged = end.map_or(Ok(()), |end| follower.acknowledge(end));
            match acknowledged.and_then(|()| follower.next_batch(BATCH, SLICE)) {
                Ok(Some(Batch { events, last, .. })) => {
                    sent.extend(events.last().map(|event| (event.id, last)));
                    for event in events {
                        self.send(Ok(event));
                    }
                }
                Ok(None) => {}
                Err(error) => self.send(Err(error)),
            }
        }
    }

    /// Sends one event, as soon as the channel has space.
    fn send(&self, mut answer: Result<Event>) {
        let mut pause = Duration::from_micros(100);
        while !self.stop.is_stopped() {
            answer = match self.sender.try_send(answer) {
                Ok(()) => return,
                Err(TrySendError::Disconnected(_)) => return self.stop.stop(),
                Err(TrySendError::Full(answer)) => answer,
            };
            thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
