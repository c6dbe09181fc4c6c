//! [`Handlers`]: the functions that a [`Dispatcher`](super::Dispatcher) calls, each with the keys of one template.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::cycle::find_cycle;
use super::template::{KeyForm, KnownValue};
use super::{Template, Values, built_in};
use crate::entry::{Scope, Value, Write, Written};
use crate::error::{Code, Error, Fault, Result};
use crate::revision::Revision;
use crate::text::shown;

/// The value of the keys of events that a handler gives.
const EVENT_NAME: &str = "name";

/// An entry that was written, for the handler of its template.
pub struct Request<'a> {
    /// Its key.
    pub key: &'a str,
    /// The values of its key, by their names in the template.
    pub values: &'a Values,
    /// Its value.
    pub value: &'a Value,
    /// The event that wrote it.
    pub revision: Revision,
    /// Its author.
    pub author: &'a str,
    pub(super) scope: Scope<'a>,
    /// The form of the keys of its events.
    pub(super) events: Option<&'a Template>,
}

impl Request<'_> {
    /// The scope of the entry, for the actor of the dispatcher.
    pub fn scope(&self) -> &Scope<'_> {
        &self.scope
    }

    /// Writes an event of the run, which the caller receives before the result. An event with the same name replaces the
    /// one before; the caller receives both. If the request is handled again after a crash, its events repeat.
    pub fn emit(&self, name: &str, value: &Value) -> Result<Written> {
        let Some(template) = self.events else {
            let message = format!("the key {} has no events; only requests of AgentRun do", shown(self.key));
            return Err(Error::invalid(message));
        };
        let values = self.values.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let values: Vec<_> = values.chain([(EVENT_NAME, name)]).collect();
        self.scope.write(&Write::new(&template.key(&values)?, value.clone()))
    }
}

/// A failure that stopped neither the dispatcher nor other handlers.
#[derive(Debug)]
pub struct HandlerFailure<'a> {
    /// The key of the request; none if the dispatcher has missed events.
    pub key: Option<&'a str>,
    /// What the handler returned. A panic has the code `internal`.
    pub error: &'a Error,
}

type Handle = Box<dyn FnMut(&Request<'_>) -> Result<Option<Value>> + Send>;
type Observer = Box<dyn FnMut(&HandlerFailure<'_>) + Send>;

/// The handlers of a [`Dispatcher`](super::Dispatcher), each for the keys of one template.
///
/// A handler may return an error or panic: the dispatcher continues with the next request. The caller of a request gets the
/// error as its result.
#[derive(Default)]
pub struct Handlers {
    pub(super) routes: Vec<Route>,
    on_failure: Option<Observer>,
}

/// One handler, and the keys that it gets.
pub(super) struct Route {
    template: Template,
    /// The values that a key must have; `None` if it must not have one.
    fixed: Vec<(String, Option<String>)>,
    /// The form of the keys of results.
    result: Option<Template>,
    /// The form of the keys of events.
    pub(super) events: Option<Template>,
    handle: Handle,
}

impl Handlers {
    /// No handlers.
    pub fn new() -> Handlers {
        Handlers::default()
    }

    /// Calls a handler with each write of a key of the template that has these values. It answers nothing.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    /// use blackboard::Board;
    /// use blackboard::entry::{Value, Write};
    /// use blackboard::protocol::{Dispatch, Dispatcher, Handlers, built_in};
    ///
    /// let board = Board::memory();
    /// let scope = board.scope("colony");
    /// let (ended, names) = mpsc::channel();
    /// let terminated = &built_in("LifecycleSignal.terminated")?.template;
    /// let handlers = Handlers::new().on(terminated, &[], move |signal| {
    ///     ended.send(signal.values["agent_id"].clone()).ok();
    ///     Ok(())
    /// });
    /// let mut dispatcher = Dispatcher::open(&scope, &Dispatch::new("memory"), handlers)?;
    /// scope.write(&Write::new("agent_id:ivy:scope:agent_terminated", Value::null()))?;
    /// assert_eq!(dispatcher.handle_next(Duration::from_secs(60))?, 1);
    /// assert_eq!(names.recv().unwrap(), "ivy");
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    #[must_use]
    pub fn on(
        self,
        template: &Template,
        values: &[(&str, &str)],
        mut handler: impl FnMut(&Request<'_>) -> Result<()> + Send + 'static,
    ) -> Handlers {
        self.route(template, values, None, Box::new(move |request| handler(request).map(|()| None)))
    }

    /// Calls a handler with each request, and writes what it returns under the key of the result. The template of the result
    /// has values of the request.
    ///
    /// A request is answered once. One that was deleted, has expired or was written again before it was handled is left out,
    /// and so is one that has a result.
    ///
    /// The result may be a request of another handler, but not if that leads back to the first: a dispatcher refuses handlers
    /// that could answer without end. It cannot know the handlers of other dispatchers.
    ///
    /// ```
    /// use std::time::Duration;
    /// use blackboard::Board;
    /// use blackboard::entry::{Value, Write};
    /// use blackboard::protocol::{Dispatch, Dispatcher, Handlers, Template};
    ///
    /// let task = Template::new("analysis_task:{ns?}:{task_id}")?;
    /// let result = Template::new("analysis_result:{ns?}:{task_id}")?;
    /// let board = Board::memory();
    /// let scope = board.scope("session:84a674b5");
    /// let handlers = Handlers::new().answer(&task, &[("ns", "my_analysis")], &result, |request| {
    ///     Value::of(&format!("analyzed {}", request.values["task_id"]))
    /// });
    /// let mut dispatcher = Dispatcher::open(&scope, &Dispatch::new("analysis"), handlers)?;
    /// scope.write(&Write::new(&task.key(&[("ns", "my_analysis"), ("task_id", "7")])?, Value::null()))?;
    /// dispatcher.handle_next(Duration::from_secs(60))?;
    /// assert_eq!(scope.read("analysis_result:my_analysis:7")?, Some(Value::of("analyzed 7")?));
    /// # Ok::<(), blackboard::Error>(())
    /// ```
    #[must_use]
    pub fn answer(
        self,
        request: &Template,
        values: &[(&str, &str)],
        result: &Template,
        mut handler: impl FnMut(&Request<'_>) -> Result<Value> + Send + 'static,
    ) -> Handlers {
        let handle: Handle = Box::new(move |request| handler(request).map(Some));
        self.route(request, values, Some(result), handle)
    }

    /// Answers the requests of [`AgentRun::call`](super::AgentRun::call) with this namespace, or those without one. The handler
    /// may write events of the run with [`Request::emit`].
    #[must_use]
    pub fn answer_runs(
        self,
        namespace: Option<&str>,
        handler: impl FnMut(&Request<'_>) -> Result<Value> + Send + 'static,
    ) -> Handlers {
        let template = |message| built_in(message).map(|message| &message.template);
        // The table of protocols has both.
        let (Ok(request), Ok(result)) = (template("AgentRun.request"), template("AgentRun.result")) else {
            return self;
        };
        let mut handlers = self.answer(request, &[], result, handler);
        if let Some(route) = handlers.routes.last_mut() {
            route.fixed = vec![("ns".to_owned(), namespace.map(str::to_owned))];
            route.events = template("AgentRun.event").ok().cloned();
        }
        handlers
    }

    /// Calls an observer with each failure of a handler. Without one, only callers see failures, as their results.
    #[must_use]
    pub fn on_failure(mut self, observer: impl FnMut(&HandlerFailure<'_>) + Send + 'static) -> Handlers {
        self.on_failure = Some(Box::new(observer));
        self
    }

    /// The patterns of all keys that the handlers get, each once. None of them matches every key.
    pub fn patterns(&self) -> Result<Vec<String>> {
        let mut patterns = self.routes.iter().map(Route::pattern).collect::<Result<Vec<_>>>()?;
        patterns.sort_unstable();
        patterns.dedup();
        Ok(patterns)
    }

    /// Refuses no handlers at all, and handlers that could not answer or would answer their own answers.
    pub(super) fn check(&self) -> Result<()> {
        if self.routes.is_empty() {
            return Err(Error::invalid("a dispatcher without handlers would receive every event"));
        }
        self.routes.iter().try_for_each(Route::check)?;
        self.check_ends()
    }

    /// Refuses handlers whose answers lead to answers without end. A result that another handler answers is allowed.
    fn check_ends(&self) -> Result<()> {
        let answering: Vec<_> = self.routes.iter().filter(|route| route.result.is_some()).collect();
        let received: Vec<_> = answering.iter().map(|route| route.received_forms()).collect();
        let written: Vec<_> = answering.iter().map(|route| route.written_forms()).collect();
        let leads_to = |from: usize, to: usize| {
            written[from].iter().any(|key| received[to].iter().any(|request| key.overlaps(request)))
        };
        let Some(cycle) = find_cycle(answering.len(), leads_to) else { return Ok(()) };
        let templates: Vec<_> = cycle.iter().map(|index| answering[*index].template.as_str()).collect();
        let message = match templates.as_slice() {
            [one] => format!("the handler of {one} would answer its own answers without end"),
            several => format!("the handlers of {} would answer each other without end", several.join(", ")),
        };
        Err(Error::invalid(message))
    }

    pub(super) fn report(&mut self, key: Option<&str>, error: &Error) {
        if let Some(observer) = &mut self.on_failure {
            let failure = HandlerFailure { key, error };
            // An observer that panics must not stop the handlers either.
            let _ = catch_unwind(AssertUnwindSafe(|| observer(&failure)));
        }
    }

    fn route(
        mut self,
        template: &Template,
        values: &[(&str, &str)],
        result: Option<&Template>,
        handle: Handle,
    ) -> Handlers {
        let fixed = values.iter().map(|(name, value)| ((*name).to_owned(), Some((*value).to_owned())));
        let (template, result) = (template.clone(), result.cloned());
        self.routes.push(Route { template, fixed: fixed.collect(), result, events: None, handle });
        self
    }
}

impl Route {
    fn pattern(&self) -> Result<String> {
        let given = self.fixed.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_deref()?)));
        self.template.pattern(&given.collect::<Vec<_>>())
    }

    fn check(&self) -> Result<()> {
        let Some(result) = &self.result else { return Ok(()) };
        let has = |name: &str| self.template.names().any(|(known, required)| known == name && required);
        let is_fixed = |name: &str| self.fixed.iter().any(|(known, value)| known == name && value.is_some());
        match result.names().find(|(name, required)| *required && !has(name) && !is_fixed(name)) {
            Some((name, _)) => {
                let message = format!(
                    "the result {result} needs a value for {name}, which not every key of {} has",
                    self.template
                );
                Err(Error::invalid(message))
            }
            None => Ok(()),
        }
    }

    /// The forms of the keys that the handler gets.
    fn received_forms(&self) -> Vec<KeyForm> {
        self.template.forms(|name| self.known(name))
    }

    /// The forms of the keys of its answers and events.
    fn written_forms(&self) -> Vec<KeyForm> {
        let result = self.result.iter().flat_map(|result| result.forms(|name| self.known(name)));
        let of_event = |name: &str| if name == EVENT_NAME { KnownValue::Given } else { self.known(name) };
        result.chain(self.events.iter().flat_map(|events| events.forms(of_event))).collect()
    }

    /// What is known about a value of the keys that the handler gets.
    fn known(&self, name: &str) -> KnownValue<'_> {
        if let Some((_, value)) = self.fixed.iter().find(|(fixed, _)| fixed == name) {
            return value.as_deref().map_or(KnownValue::Missing, KnownValue::Is);
        }
        match self.template.names().find(|(known, _)| *known == name) {
            Some((_, true)) => KnownValue::Given,
            Some((_, false)) => KnownValue::Unknown,
            None => KnownValue::Missing,
        }
    }

    /// The values of a key; `None` if it is not one of the handler.
    pub(super) fn values(&self, key: &str) -> Option<Values> {
        let values = self.template.parse(key)?;
        let matches = self.fixed.iter().all(|(name, value)| values.get(name) == value.as_ref());
        matches.then_some(values)
    }

    /// The key of the result, if the handler answers.
    pub(super) fn result_key(&self, values: &Values) -> Option<Result<String>> {
        let template = self.result.as_ref()?;
        let given = template.names().filter_map(|(name, _)| Some((name, values.get(name)?.as_str())));
        Some(template.key(&given.collect::<Vec<_>>()))
    }

    /// Calls the handler. A panic becomes an error.
    pub(super) fn call(&mut self, request: &Request<'_>) -> Result<Option<Value>> {
        let called = catch_unwind(AssertUnwindSafe(|| (self.handle)(request)));
        called.unwrap_or_else(|panic| {
            let text = panic_text(&*panic);
            Err(Fault::new(Code::Internal, format!("the handler panicked{text}")).into())
        })
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    match text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)) {
        Some(text) => format!(": {}", shown(text)),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &str) -> Template {
        Template::new(text).unwrap()
    }

    #[test]
    fn patterns_are_the_union_of_the_templates_and_never_everything() {
        let null = |_: &Request<'_>| Ok(Value::null());
        let handlers = Handlers::new()
            .answer_runs(Some("compliance"), null)
            .answer_runs(None, null)
            .on(&template("state:{game}"), &[], |_| Ok(()))
            .on(&template("state:{other}"), &[], |_| Ok(()))
            .on(&template("plan:{agent_id}"), &[("agent_id", "ivy")], |_| Ok(()));
        assert_eq!(
            handlers.patterns().unwrap(),
            ["plan:ivy", "request:run:*", "request:run:compliance:*", "state:*"]
        );
        for message in super::super::built_in_protocols().iter().flat_map(|protocol| &protocol.messages) {
            let pattern = Handlers::new().on(&message.template, &[], |_| Ok(())).patterns().unwrap();
            assert!(!pattern[0].starts_with('*'), "{pattern:?}");
        }
        assert!(Handlers::new().check().is_err());
    }

    #[test]
    fn handler_gets_only_keys_that_parse_and_have_its_values() {
        let null = |_: &Request<'_>| Ok(Value::null());
        let handlers = Handlers::new().answer_runs(Some("compliance"), null).answer_runs(None, null).on(
            &template("state:{game}"),
            &[],
            |_| Ok(()),
        );
        for (key, expected) in [
            ("request:run:compliance:7", [true, false, false]),
            ("request:run:other:7", [false, false, false]),
            ("request:run:7", [false, true, false]),
            ("request:run:compliance:7:8", [false, false, false]),
            ("state:chess", [false, false, true]),
            ("state:working_set:cluster", [false, false, false]),
        ] {
            let called: Vec<_> = handlers.routes.iter().map(|route| route.values(key).is_some()).collect();
            assert_eq!(called, expected, "{key}");
        }
    }

    #[test]
    fn result_needs_values_of_the_request() {
        for (request, fixed, result, allowed) in [
            ("task:{id}", &[][..], "result:{id}", true),
            ("task:{ns?}:{id}", &[], "result:{ns?}:{id}", true),
            ("task:{ns?}:{id}", &[], "result:{ns}:{id}", false),
            ("task:{ns?}:{id}", &[("ns", "a")], "result:{ns}:{id}", true),
            ("task:{id}", &[], "result:{other}", false),
            ("task:{id}", &[], "result:{other?}:{id}", true),
        ] {
            let (request, result) = (template(request), template(result));
            let handlers = Handlers::new().answer(&request, fixed, &result, |_| Ok(Value::null()));
            assert_eq!(handlers.check().is_ok(), allowed, "{request} {result}");
        }
    }

    /// Answering handlers: the request, its fixed values, and the result.
    type Routes = [(&'static str, &'static [(&'static str, &'static str)], &'static str)];

    fn answering(routes: &Routes) -> Handlers {
        routes.iter().fold(Handlers::new(), |handlers, (request, fixed, result)| {
            handlers.answer(&template(request), fixed, &template(result), |_| Ok(Value::null()))
        })
    }

    #[test]
    fn handlers_that_answer_without_end_are_refused() {
        testkit::limit_test();
        let cases: &[(&Routes, bool)] = &[
            (&[("task:{id}", &[], "task:{id}")], false),
            (&[("task:{ns?}:{id}", &[], "task:done:{id}")], false),
            (&[("task:{ns?}:{id}", &[("ns", "open")], "task:done:{id}")], true),
            (&[("task:{ns?}:{id}", &[("ns", "done")], "task:done:{id}")], false),
            (&[("task:{ns?}:{id}", &[("ns", "open")], "task:{ns?}:{id}")], false),
            (&[("task:{id...}", &[], "task:done:{id...}")], false),
            (&[("task:{id...}", &[], "done:{id...}")], true),
            (&[("ping:{id}", &[], "pong:{id}"), ("pong:{id}", &[], "ping:{id}")], false),
            (&[("ping:{id}", &[("id", "1")], "pong:{id}"), ("pong:{id}", &[("id", "2")], "ping:{id}")], true),
            // One after the other.
            (&[("task:{id}", &[], "review:{id}"), ("review:{id}", &[], "result:{id}")], true),
            (&[("a:{x}", &[], "b:{x}"), ("b:{x}", &[], "c:{x}"), ("c:{x}", &[], "a:{x}")], false),
        ];
        for (routes, is_allowed) in cases {
            let handlers = answering(routes);
            assert_eq!(handlers.check().is_ok(), *is_allowed, "{routes:?}");
            // What the rule says is what happens.
            let mut keys: Vec<_> =
                ["task:7", "task:open:7", "task:done:7", "ping:1", "ping:2", "a:7"].map(str::to_owned).into();
            for _ in 0..10 {
                let answers = keys.iter().flat_map(|key| {
                    handlers
                        .routes
                        .iter()
                        .filter_map(|route| route.result_key(&route.values(key)?).transpose().unwrap())
                });
                keys = answers.collect();
            }
            assert_eq!(keys.is_empty(), *is_allowed, "{routes:?}: {keys:?}");
        }
        // An event that is a request of its own run.
        let event = &built_in("AgentRun.event").unwrap().template;
        let request = &built_in("AgentRun.request").unwrap().template;
        let null = |_: &Request<'_>| Ok(Value::null());
        let runs = || Handlers::new().answer_runs(None, null).answer_runs(Some("ns"), null);
        assert!(runs().check().is_ok());
        let error = runs().answer(event, &[], request, null).check().unwrap_err();
        assert!(error.to_string().contains("would answer each other without end"), "{error}");
        // A handler that does not answer ends every chain.
        assert!(runs().on(request, &[], |_| Ok(())).check().is_ok());
    }
}
