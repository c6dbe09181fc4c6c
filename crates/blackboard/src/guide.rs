//! A guide to shared entries and to protocols, in examples. It has no code of its own.
//!
//! The program works with the same boards: what an example writes, `blackboard read` prints.
//!
//! # A scope with policies
//!
//! A board has any number of scopes, and a scope needs no declaration. One with policies obeys them in every process.
//!
//! ```
//! use blackboard::entry::{Value, Write};
//! use blackboard::scope::{CreateScope, Policies, ValueRules};
//! use blackboard::Board;
//!
//! let board = Board::memory();
//! let validation = ValueRules::new(vec!["config.*=dict".parse()?, "count.*=int".parse()?]);
//! let policies = Policies { validation, max_entries: Some(1000), ..Policies::default() };
//! board.scopes().create(&CreateScope::new("team-1", policies))?;
//!
//! let scope = board.scope("team-1");
//! scope.write(&Write::new("count.tasks", Value::of(&7)?))?;
//! assert!(scope.write(&Write::new("count.tasks", Value::of("seven")?)).is_err());
//! # Ok::<(), blackboard::Error>(())
//! ```
//!
//! # Write and read
//!
//! ```
//! use std::time::Duration;
//! use blackboard::entry::{Actor, Query, Value, Write};
//! use blackboard::{Board, Metadata};
//!
//! let board = Board::memory();
//! let scope = board.scope("team-1").acting_as(Actor::author("agent-123"));
//!
//! // With tags, metadata and a time to live.
//! scope.write(&Write {
//!     tags: vec!["analysis".to_owned(), "final".to_owned()],
//!     metadata: Some(Metadata::parse(r#"{"model": "small"}"#)?),
//!     ttl: Some(Duration::from_secs(3600)),
//!     ..Write::new("agent:123:results", Value::of(&["up 15%"])?)
//! })?;
//!
//! // The value, or the complete entry.
//! let value: Vec<String> = scope.read("agent:123:results")?.unwrap().to()?;
//! assert_eq!(value, ["up 15%"]);
//! let entry = scope.entry("agent:123:results")?.unwrap();
//! assert_eq!((entry.version, entry.tags.len(), entry.ttl()), (1, 2, Some(3600.0)));
//! assert_eq!((entry.created_by.as_str(), entry.updated_by.as_str()), ("agent-123", "agent-123"));
//! assert_eq!(entry.created_at, entry.updated_at);
//! assert_eq!(entry.metadata.unwrap().as_str(), r#"{"model": "small"}"#);
//!
//! // By pattern and tags.
//! let page = scope.query(&Query {
//!     pattern: Some("agent:*:results".to_owned()),
//!     tags: vec!["analysis".to_owned()],
//!     limit: Some(50),
//!     ..Query::default()
//! })?;
//! assert_eq!(page.entries.len(), 1);
//!
//! // Several keys at once; a batch is atomic.
//! let batch = |key: &str, number: u64| -> blackboard::Result<Write> {
//!     Ok(Write { tags: vec!["batch".to_owned()], ..Write::new(key, Value::of(&number)?) })
//! };
//! scope.write_batch(&[batch("key1", 1)?, batch("key2", 2)?])?;
//! assert_eq!(scope.read_batch(&["key1", "key2", "key3"])?.len(), 2);
//!
//! scope.delete("key1")?;
//! assert_eq!(scope.read("key1")?, None);
//! # Ok::<(), blackboard::Error>(())
//! ```
//!
//! # Transactions
//!
//! The closure gets the transaction as its argument: reads are recorded, and writes are buffered until it returns. If another
//! writer changed what it has read, it runs again. `try_transaction` runs once and returns the conflict.
//!
//! ```
//! use blackboard::entry::{Value, Write};
//! use blackboard::{Board, Code};
//!
//! let board = Board::memory();
//! let increment = || {
//!     board.transaction(|tx| {
//!         let mut scope = tx.scope("team-1");
//!         let count = scope.read("counter")?.map_or(Ok(0), |value| value.to::<u64>())?;
//!         scope.write(&Write::new("counter", Value::of(&(count + 1))?))
//!     })
//! };
//! increment()?;
//! increment()?;
//! let entry = board.scope("team-1").entry("counter")?.unwrap();
//! assert_eq!((entry.value, entry.version), (Value::of(&2)?, 2));
//!
//! let conflict = board.try_transaction(|tx| {
//!     let mut scope = tx.scope("team-1");
//!     scope.entry("counter")?;
//!     increment()?; // by another writer
//!     scope.write(&Write::new("counter", Value::of(&0)?))
//! });
//! let conflict = conflict.unwrap_err();
//! assert_eq!((conflict.code(), &conflict.details().unwrap()["key"]), (Code::Conflict, &"counter".into()));
//! # Ok::<(), blackboard::Error>(())
//! ```
//!
//! # Events
//!
//! Every change is an event of the one event log. A subscription reads the log from a position: nothing is missed, and a slow
//! subscriber delays no other one. There are three forms: a callback, an iterator, and a channel.
//!
//! ```
//! use std::sync::mpsc;
//! use blackboard::entry::{Actor, Value, Write};
//! use blackboard::event::{EventType, Filter};
//! use blackboard::follow::Follow;
//! use blackboard::Board;
//!
//! let board = Board::memory();
//! let follow = |filter: Filter| Follow { filters: vec![filter], ..Follow::default() };
//!
//! // A callback, on its own thread.
//! let (sender, lines) = mpsc::channel();
//! let subscriber = board.subscribe(&follow(Filter::of_keys("*:results:*")))?.on_thread(move |event| {
//!     let change = event?.entry.unwrap();
//!     sender.send(format!("Result updated by {}: {}", change.author, change.key)).ok();
//!     Ok(())
//! })?;
//!
//! // An iterator, which another thread can stop.
//! let mut analysis = board.subscribe(&follow(Filter::of_keys("scope:*:analysis:*")))?;
//! let stop = analysis.stop_handle();
//!
//! // A channel, only for writes of some keys.
//! let writes = Filter { types: vec!["write".parse()?], ..Filter::of_keys("agent:*:result:*") };
//! let (mut queue, _stop_queue) = board.subscribe(&follow(writes))?.channel(1000)?;
//!
//! let scope = board.scope("team-1").acting_as(Actor::author("agent-123"));
//! for key in ["agent:1:results:q4", "scope:a:analysis:1", "agent:1:result:q4"] {
//!     scope.write(&Write::new(key, Value::of("draft")?))?;
//! }
//! assert_eq!(lines.recv().unwrap(), "Result updated by agent-123: agent:1:results:q4");
//! assert_eq!(analysis.next().unwrap()?.entry.unwrap().key, "scope:a:analysis:1");
//! stop.stop();
//! assert!(analysis.next().is_none());
//!
//! let event = queue.next().unwrap()?;
//! assert_eq!(event.event_type, EventType::EntryWritten);
//! let change = event.entry.unwrap();
//! assert_eq!((change.key.as_str(), change.version, change.revision), ("agent:1:result:q4", 1, event.id));
//! assert_eq!((change.value, change.old_value), (Some(Value::of("draft")?), None));
//! subscriber.stop()?;
//! # Ok::<(), blackboard::Error>(())
//! ```
//!
//! All conditions of a filter have to hold; of several filters, one. A closure is a condition too.
//!
//! ```
//! use std::sync::Arc;
//! use blackboard::event::{EventType, Filter};
//!
//! let by_key = Filter::of_keys("agent:*:results");
//! let by_type = Filter::of_types([EventType::EntryWritten, EventType::EntryDeleted]);
//! let by_agent = Filter { agents: vec!["agent-123".to_owned()], ..Filter::default() };
//! let all_of_them = Filter { keys: by_key.keys, agents: by_agent.agents, ..by_type };
//! let with_a_closure =
//!     Filter { custom: Some(Arc::new(|event| event.summary.contains("urgent"))), ..all_of_them };
//! assert!(!with_a_closure.wants_everything());
//! ```
//!
//! # Keys are relative to their scope
//!
//! ```
//! use blackboard::entry::{Query, Value, Write};
//! use blackboard::Board;
//!
//! let board = Board::memory();
//! let scope = board.scope("team-1");
//! // Wrong: the key names the scope a second time.
//! assert!(scope.write(&Write::new("team-1:result:123", Value::null())).is_err());
//! assert!(scope.query(&Query { pattern: Some("team-1:*".to_owned()), ..Query::default() }).is_err());
//! // Right.
//! scope.write(&Write::new("result:123", Value::null()))?;
//! assert_eq!(scope.query(&Query { pattern: Some("*".to_owned()), ..Query::default() })?.entries.len(), 1);
//! # Ok::<(), blackboard::Error>(())
//! ```
//!
//! The scope of a level, for one agent, one session or all agents, has one name everywhere: see
//! [`Level::scope_name`](crate::protocol::Level::scope_name). `agent:abc123:working:record:action+success:a1b2c3d4`,
//! `game:hypothesis-42:state:current` and `task:analysis-7:result:summary` are keys; a type that knows its own is
//! [`Publishable`](crate::protocol::Publishable).
//!
//! # A protocol of your own
//!
//! A protocol is an agreement on keys. Build keys and patterns from the same names, or from a template.
//!
//! ```
//! use blackboard::protocol::{Template, format_key, parse_key, pattern_key};
//!
//! let key = format_key(&[("agent_id", "ivy"), ("my_request", "7")])?;
//! assert_eq!(key, "agent_id:ivy:my_request:7");
//! assert_eq!(pattern_key(&[("agent_id", Some("ivy")), ("my_request", None)])?, "agent_id:ivy:my_request:*");
//! assert_eq!(pattern_key(&[("agent_id", None), ("my_request", None)])?, "agent_id:*:my_request:*");
//! assert_eq!(parse_key(&key).unwrap()[1].1, "7");
//!
//! let task = Template::new("analysis_task:{ns?}:{task_id}")?;
//! assert_eq!(task.key(&[("ns", "my_analysis"), ("task_id", "7")])?, "analysis_task:my_analysis:7");
//! assert_eq!(task.pattern(&[("ns", "my_analysis")])?, "analysis_task:my_analysis:*");
//! assert_eq!(task.parse("analysis_task:my_analysis:7").unwrap()["task_id"], "7");
//! # Ok::<(), blackboard::Error>(())
//! ```
//!
//! # A capability that answers requests
//!
//! A capability declares handlers by their templates. The patterns that it subscribes to follow from them.
//!
//! ```
//! use std::time::Duration;
//! use blackboard::entry::Value;
//! use blackboard::protocol::{AgentRun, Call, Dispatch, Dispatcher, Handlers, Level, Template};
//! use blackboard::Board;
//!
//! let board = Board::memory();
//! let name = Level::Colony.scope_name(None, Some("compliance"))?;
//! let scope = board.scope(&name);
//!
//! let task = Template::new("analysis_task:{task_id}")?;
//! let result = Template::new("analysis_result:{task_id}")?;
//! let handlers = Handlers::new()
//!     .answer_runs(Some("compliance"), |request| Value::of(&format!("checked {}", request.values["id"])))
//!     .answer(&task, &[], &result, |request| Value::of(&request.values["task_id"]));
//! assert_eq!(handlers.patterns()?, ["analysis_task:*", "request:run:compliance:*"]);
//! let capability = Dispatcher::open(&scope, &Dispatch::new("compliance"), handlers)?.on_thread()?;
//!
//! // Another agent calls it, and gets exactly the result of its own request.
//! let call = Call {
//!     id: Some("req_abc123".to_owned()),
//!     timeout: Some(Duration::from_secs(60)),
//!     ..Call::new("compliance", Value::of("the contract")?)
//! };
//! let answer = AgentRun::call(&scope, &call, |event| println!("{}: {}", event.name, event.value.as_str()))?;
//! assert_eq!(answer.key, "result:run:compliance:req_abc123");
//! assert_eq!(answer.value, Value::of("checked req_abc123")?);
//! capability.stop()?;
//! # Ok::<(), blackboard::Error>(())
//! ```
//!
//! A capability that only watches subscribes to the pattern of a message:
//!
//! ```
//! use blackboard::entry::{Value, Write};
//! use blackboard::event::Filter;
//! use blackboard::follow::Follow;
//! use blackboard::protocol::built_in;
//! use blackboard::Board;
//!
//! let board = Board::memory();
//! let cluster = &built_in("WorkingSetState.cluster")?.template;
//! let filters = vec![Filter::of_keys(&cluster.pattern(&[])?)];
//! let mut states = board.subscribe(&Follow { filters, ..Follow::default() })?;
//! board.scope("colony").write(&Write::new(&cluster.key(&[])?, Value::of("ready")?))?;
//! assert_eq!(states.next().unwrap()?.entry.unwrap().value, Some(Value::of("ready")?));
//! # Ok::<(), blackboard::Error>(())
//! ```
//!
//! Work assignments and lifecycle signals are shared by all agents, so their keys name the agent:
//! [`WorkAssignment`](crate::protocol::WorkAssignment), [`LifecycleSignal`](crate::protocol::LifecycleSignal).
