//! Projects: registering again updates a project, and removing one keeps its work.

use super::*;
use crate::project::{RegisterProject, RegisteredProject};

on_every_engine![
    project_registration_updates_the_given_fields,
    registered_projects_are_validated,
    project_with_open_work_is_removed_only_with_force,
    projects_are_listed_with_their_agents,
    the_status_of_a_project_shows_its_agents_and_open_work,
];

fn register(fixture: &Fixture, request: &RegisterProject) -> RegisteredProject {
    fixture.board.projects().register(request).unwrap()
}

fn create(fixture: &Fixture, id: &str, priority: Priority, project: &str) {
    let create =
        Create { project: Some(project.to_owned()), priority: Some(priority), ..Create::new(id, id) };
    fixture.board.work().create(&create).unwrap();
}

fn project_registration_updates_the_given_fields(fixture: &Fixture) {
    let first = RegisterProject { path: Some("/src/pai".to_owned()), ..RegisterProject::new("pai", "PAI") };
    let (registered, recorded) = fixture.events_of(|| register(fixture, &first));
    assert_eq!((registered.created, registered.updated), (true, false));
    assert_eq!(recorded, [EventType::ProjectRegistered]);
    let event = fixture.events().pop().unwrap();
    assert_eq!(event.summary, "Project \"PAI\" registered");
    assert_eq!((event.target_type, registered.project.revision), (Some(TargetType::Project), event.id));
    fixture.pass(10);
    let (again, recorded) = fixture.events_of(|| register(fixture, &first));
    assert_eq!((again.created, again.updated, recorded.len()), (false, false, 0));
    let repo = RegisterProject {
        id: "pai".to_owned(),
        repo: Some("owner/pai".to_owned()),
        ..RegisterProject::default()
    };
    let (updated, recorded) = fixture.events_of(|| register(fixture, &repo));
    assert_eq!((updated.created, updated.updated), (false, true));
    assert_eq!(recorded, [EventType::ProjectUpdated]);
    let project = fixture.board.projects().status("pai").unwrap().project;
    assert_eq!(updated.project, project);
    assert_eq!(
        (project.local_path.as_deref(), project.remote_repo.as_deref()),
        (Some("/src/pai"), Some("owner/pai"))
    );
    assert_eq!(project.registered_at, registered.project.registered_at);
}

fn registered_projects_are_validated(fixture: &Fixture) {
    let refused = |request: RegisterProject| code(fixture.board.projects().register(&request));
    assert_eq!(refused(RegisterProject::new("", "PAI")), Code::InvalidValue);
    assert_eq!(refused(RegisterProject::new("pai,api", "PAI")), Code::InvalidValue);
    let secret = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    assert_eq!(refused(RegisterProject::new(&secret, "PAI")), Code::SecretLooking);
    assert_eq!(refused(RegisterProject::new("pai", "")), Code::InvalidValue);
    assert_eq!(
        refused(RegisterProject { name: None, ..RegisterProject::new("pai", "") }),
        Code::InvalidValue
    );
    let long = Some("x".repeat(4097));
    assert_eq!(
        refused(RegisterProject { path: long, ..RegisterProject::new("pai", "P") }),
        Code::InvalidValue
    );
    assert!(fixture.events().is_empty());
}

fn project_with_open_work_is_removed_only_with_force(fixture: &Fixture) {
    let session = fixture.session("Ivy");
    register(fixture, &RegisterProject::new("pai", "PAI"));
    create(fixture, "x", Priority::P2, "pai");
    create(fixture, "done", Priority::P2, "pai");
    fixture.claim("done", &session);
    fixture.complete("done", &session);
    let refused = fixture.board.projects().remove("pai", false, None).unwrap_err();
    assert_eq!((refused.code(), &refused.details().unwrap()["open_items"]), (Code::InUse, &1.into()));
    let (removed, recorded) =
        fixture.events_of(|| fixture.board.projects().remove("pai", true, None).unwrap());
    assert_eq!(recorded, [EventType::ProjectRemoved]);
    assert_eq!(removed.detached_items, ["done", "x"]);
    assert_eq!((fixture.work("x").project_id, fixture.work("x").revision), (None, fixture.revision()));
    assert_eq!(code(fixture.board.projects().remove("pai", true, None)), Code::ProjectNotFound);
    register(fixture, &RegisterProject::new("empty", "Empty"));
    assert!(fixture.board.projects().remove("empty", false, None).unwrap().detached_items.is_empty());
}

fn projects_are_listed_with_their_agents(fixture: &Fixture) {
    for id in ["q", "p"] {
        register(fixture, &RegisterProject::new(id, id));
    }
    for name in ["Ivy", "Oak"] {
        fixture.register(&Register { project: Some("p".to_owned()), ..Register::named(name) });
    }
    let ended = fixture.register(&Register { project: Some("p".to_owned()), ..Register::named("Elm") });
    fixture.board.agents().deregister(&ended.session_id).unwrap();
    let listed = fixture.board.projects().list().unwrap();
    let listed: Vec<_> =
        listed.iter().map(|listed| (listed.project.project_id.as_str(), listed.active_agents)).collect();
    assert_eq!(listed, [("p", 2), ("q", 0)]);
}

fn the_status_of_a_project_shows_its_agents_and_open_work(fixture: &Fixture) {
    register(fixture, &RegisterProject::new("p", "P"));
    let session =
        fixture.register(&Register { project: Some("p".to_owned()), ..Register::named("Ivy") }).session_id;
    fixture.session("Elsewhere");
    for (id, priority) in [("late", Priority::P3), ("urgent", Priority::P1), ("done", Priority::P1)] {
        create(fixture, id, priority, "p");
    }
    fixture.item("elsewhere");
    fixture.claim("done", &session);
    fixture.complete("done", &session);
    let status = fixture.board.projects().status("p").unwrap();
    assert_eq!(
        status.active_agents.iter().map(|listed| listed.agent.agent_name.as_str()).collect::<Vec<_>>(),
        ["Ivy"]
    );
    assert_eq!(
        status.work_items.iter().map(|listed| listed.item.item_id.as_str()).collect::<Vec<_>>(),
        ["urgent", "late"]
    );
    assert_eq!(code(fixture.board.projects().status("q")), Code::ProjectNotFound);
}
