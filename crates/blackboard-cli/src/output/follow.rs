//! Events as they happen, for people and programs.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use blackboard::clock::{Clock, SystemClock};
use blackboard::event::{Event, Subscription};
use blackboard::{Code, Error};

use super::event::described;
use super::{Result, Screen, has_left, time};
use crate::envelope::{Answer, Failure};
use crate::outcome::Render;

/// How long one wait is: the end of the reader or of the time is noticed after this.
const TICK: Duration = Duration::from_millis(200);

/// The answer of `observe --follow`, which has no end of its own.
pub struct Followed {
    subscription: RefCell<Subscription>,
    limit: usize,
    until: Option<Instant>,
}

/// What is shown next.
enum Next<'a> {
    Events(&'a [Event]),
    /// Events are missing here.
    Compacted(&'a Error),
}

impl Followed {
    /// The events of `subscription`, about `limit` of them, until this time is over.
    pub fn new(subscription: Subscription, limit: Option<usize>, timeout: Option<Duration>) -> Followed {
        Followed {
            subscription: RefCell::new(subscription),
            limit: limit.unwrap_or(usize::MAX),
            until: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
        }
    }

    /// Shows each batch, and stores how far that is once it has left this process.
    fn each(&self, mut show: impl FnMut(Next<'_>) -> Result) -> Result {
        let mut subscription = self.subscription.borrow_mut();
        let mut shown = 0;
        while shown < self.limit {
            let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
            subscription.set_batch_size(self.limit - shown);
            match subscription.next_batch(left.map_or(TICK, |left| left.min(TICK))) {
                Ok(Some(batch)) => {
                    show(Next::Events(&batch.events))?;
                    shown += batch.events.len();
                    subscription.acknowledge(batch.last)?;
                }
                // What was there when the time was over is shown, however far one has to look for it.
                Ok(None) if is_over(left) && subscription.has_caught_up() || has_left() => break,
                Ok(None) => {}
                Err(error) if error.code() == Code::Compacted => show(Next::Compacted(&error))?,
                // Others have been writing for so long that the cursor could not be stored. Nothing is lost by that.
                Err(error) if error.code() == Code::Busy && !is_over(left) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

fn is_over(left: Option<Duration>) -> bool {
    left.is_some_and(|left| left.is_zero())
}

impl Render for Followed {
    fn json(&self, answer: &mut Answer<'_>) -> Result {
        self.each(|next| match next {
            Next::Events(events) => answer.lines(events),
            Next::Compacted(error) => answer.lines(&[Failure::new(error, SystemClock.now())]),
        })
    }

    fn human(&self, screen: &mut Screen<'_>) -> Result {
        let mut day = screen.now().midnight();
        self.each(|next| {
            match next {
                Next::Events(events) => {
                    for event in events {
                        if event.timestamp.midnight() != day {
                            day = event.timestamp.midnight();
                            screen.line(format_args!("{}:", time::date(day)))?;
                        }
                        let time = time::of_day(event.timestamp);
                        screen.line(format_args!("{time}  {}", described(event)))?;
                    }
                }
                Next::Compacted(_) => screen.line(format_args!(
                    "Older events have been pruned; this goes on with the oldest that is kept."
                ))?,
            }
            screen.flush()
        })
    }
}
