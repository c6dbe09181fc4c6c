use crate::scratch::{Scratch, with_dying_process};
use crate::shapes::{AGENT, is_list};
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_a_list_of_agents,
    list_and_details_both_show_that_a_process_is_gone,
    overviews_show_that_a_process_is_gone,
];

fn human_output_matches_transcript() {
    transcript::check("agent list");
}

fn json_has_a_list_of_agents() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    scratch.json(["agent", "register", "--parent", "ivy"]);
    let agents = scratch.json(["agent", "list", "--status", "active"]);
    is_list(&agents, AGENT);
    assert_eq!(agents["items"][1]["parent_id"], agents["items"][0]["session_id"]);
}

fn list_and_details_both_show_that_a_process_is_gone() {
    let scratch = Scratch::new();
    scratch.json(["agent", "register", "--name", "Ivy", "--session-hint", "ivy"]);
    let dead = with_dying_process(|pid| {
        scratch.json(["agent", "register", "--name", "Oak", "--session-hint", "oak", "--pid", pid]);
        pid.to_owned()
    });
    let agents = scratch.json(["agent", "list"]);
    for (place, name, process) in [(0, "ivy", "alive"), (1, "oak", "dead")] {
        assert_eq!(agents["items"][place]["process"], process);
        assert_eq!(scratch.json(["agent", "show", name])["process"], process);
    }
    for (call, gone) in [(&["agent", "list"][..], "gone"), (&["agent", "show", "oak"], "(gone)")] {
        let text = scratch.run(call).success().stdout;
        assert!(text.contains(&format!("{dead} {gone}")), "{call:?}: {text}");
    }
}

fn overviews_show_that_a_process_is_gone() {
    let scratch = Scratch::new();
    scratch.json(["project", "register", "pai", "--name", "PAI"]);
    let register = |name: &str, pid: Option<&str>| {
        let call = ["agent", "register", "--name", name, "--session-hint", name, "--project", "pai"];
        scratch.json(call.into_iter().chain(pid.map(|_| "--pid")).chain(pid));
    };
    register("ivy", None);
    with_dying_process(|pid| register("oak", Some(pid)));
    for call in [&["status"][..], &["project", "status", "pai"]] {
        let agents = scratch.json(call)["active_agents"].clone();
        let processes: Vec<_> = agents.as_array().unwrap().iter().map(|agent| &agent["process"]).collect();
        assert_eq!(processes, ["alive", "dead"], "{call:?}");
        let text = scratch.run(call).success().stdout;
        let gone: Vec<_> = text.lines().filter(|line| line.contains("process gone")).collect();
        assert!(matches!(gone[..], [line] if line.contains("oak (")), "{call:?}: {text}");
    }
    let project = &scratch.json(["project", "list"])["items"][0];
    assert_eq!((&project["active_agents"], &project["gone_agents"]), (&2.into(), &1.into()));
    assert!(scratch.run(["project", "list"]).success().stdout.contains("2 active, 1 gone"));
}
