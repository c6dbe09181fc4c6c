//! The brief of a session that starts: see `brief.rs`.

use super::{Fixture, code, on_every_engine};
use crate::agent::Register;
use crate::error::Code;
use crate::file::Reserve;
use crate::lock::Acquire;
use crate::project::RegisterProject;
use crate::work::{Create, Priority};

on_every_engine!(
    brief_lists_agents_and_work,
    brief_includes_events_of_the_last_hour,
    brief_of_an_unknown_session_is_refused,
);

fn brief_lists_agents_and_work(fixture: &Fixture) {
    for project in ["pai", "other"] {
        fixture.board.projects().register(&RegisterProject::new(project, project)).unwrap();
    }
    let of = |name: &str, project: &str| {
        let project = Some(project.to_owned());
        fixture.register(&Register { project, ..Register::named(name) }).session_id
    };
    let (ivy, _, oak) = (of("Ivy", "pai"), of("Elm", "other"), of("Oak", "pai"));
    let gone = of("Gone", "pai");
    fixture.board.agents().deregister(&gone).unwrap();
    for (id, project, priority) in [
        ("second", None, Priority::P2),
        ("first", Some("pai"), Priority::P1),
        ("elsewhere", Some("other"), Priority::P1),
        ("taken", Some("pai"), Priority::P1),
    ] {
        let (project, priority) = (project.map(str::to_owned), Some(priority));
        fixture.board.work().create(&Create { project, priority, ..Create::new(id, id) }).unwrap();
    }
    fixture.claim("taken", &oak);
    fixture.board.locks().acquire(&Acquire::of("deploy", &oak)).unwrap();
    fixture.board.files().reserve(&Reserve::of("/w", &["src/**"], &oak)).unwrap();
    let brief = fixture.board.brief(&ivy).unwrap();
    let names: Vec<_> = brief.agents.iter().map(|listed| listed.agent.agent_name.as_str()).collect();
    assert_eq!(names, ["Oak", "Elm"], "those of its project first");
    let ids = |items: &[crate::work::WorkItem]| -> Vec<String> {
        items.iter().map(|item| item.item_id.clone()).collect()
    };
    assert_eq!(
        (ids(&brief.available), ids(&brief.claimed)),
        (vec!["first".to_owned(), "second".to_owned()], vec!["taken".to_owned()])
    );
    assert_eq!((&*brief.locks[0].name, &*brief.files[0].pattern), ("deploy", "src/**"));
    assert_eq!((brief.revision, brief.agent.session_id), (fixture.revision(), ivy));
    assert!(brief.parent_name.is_none());
}

fn brief_includes_events_of_the_last_hour(fixture: &Fixture) {
    let ivy = fixture.session("Ivy");
    fixture.item("old");
    fixture.pass(3601);
    fixture.item("new");
    let delegate = fixture.register(&Register { parent: Some(ivy.clone()), ..Register::default() });
    let brief = fixture.board.brief(&delegate.session_id).unwrap();
    let recent: Vec<_> = brief.recent.events.iter().filter_map(|event| event.target_id.as_deref()).collect();
    assert_eq!(recent, ["new"]);
    assert_eq!(brief.parent_name.as_deref(), Some("Ivy"));
}

fn brief_of_an_unknown_session_is_refused(fixture: &Fixture) {
    assert_eq!(code(fixture.board.brief("unknown")), Code::AgentNotFound);
}
