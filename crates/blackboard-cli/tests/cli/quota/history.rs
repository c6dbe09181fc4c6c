use blackboard::Code;

use super::{configured, with_quota};
use crate::shapes::is_object;
use crate::transcript;

testkit::on_each_engine![
    human_output_matches_transcript,
    json_has_points_without_gaps,
    a_chart_is_only_on_a_terminal,
    exported_yaml_has_the_form_of_the_file,
    the_past_is_required,
];

fn human_output_matches_transcript() {
    transcript::check("quota history");
}

fn json_has_points_without_gaps() {
    let scratch = configured();
    scratch.json(["quota", "record", "--input-tokens", "7"]);
    let history = scratch.json(["quota", "history", "--since", "2d"]);
    is_object(&history, &["histories"]);
    let history = &history["histories"][0];
    assert_eq!((&history["provider"], &history["step"]), (&"a".into(), &"hour".into()));
    let points = history["points"].as_array().unwrap();
    assert!((48..=50).contains(&points.len()), "{}", points.len());
    assert_eq!(points.iter().filter_map(|point| point["tokens"].as_u64()).sum::<u64>(), 7);
    let days = scratch.json(["quota", "history", "--since", "3000d"]);
    assert_eq!(days["histories"][0]["points"].as_array().unwrap().len(), 400);
}

fn a_chart_is_only_on_a_terminal() {
    let scratch = configured();
    scratch.json(["quota", "record", "--input-tokens", "7"]);
    let piped = scratch.run(["quota", "history"]).success().stdout;
    assert!(piped.is_ascii() && piped.contains("a: 7 tokens"), "{piped}");
    let shown = scratch.on_terminal(80, ["quota", "history"]);
    assert!(shown.contains("████"), "{shown}");
}

fn exported_yaml_has_the_form_of_the_file() {
    let scratch = with_quota(
        r#"{"models": {"m-*": "a", "n-*": "b"}, "providers": {
            "a": {"tier": "scale", "rateLimit": {"tokensPerMinute": 80000, "requestsPerMinute": 60},
                "windows": {"5h": {"budget": 1000}, "7d": {"budget": 5000}},
                "reservation": {"operator": 200, "agents": {"maxConcurrent": 3, "maxPerAgent": 500}}},
            "b": {"windows": {"1h": {"budget": 70}}}}}"#,
    );
    scratch.json(["quota", "record", "--model", "m-1", "--input-tokens", "100"]);
    scratch.json(["quota", "check", "--provider", "a", "--tokens", "50", "--reserve"]);
    let status = scratch.json(["quota", "status"]);
    let frees_at = |window: usize| {
        let moment = &status["providers"][0]["windows"][window]["frees_at"];
        moment.as_str().unwrap().to_owned()
    };
    let text = scratch.run(["export", "--what", "quota"]).success().stdout;
    let expected = format!(
        "quota:
  - provider: 'a'
    plan:
      tier: 'scale'
      rateLimit:
        tokensPerMinute: 80000
        requestsPerMinute: 60
    windows:
      5h:
        budget: 1000
        used: 100
        reserved: 50
        remaining: 850
        resetAt: '{}'
      7d:
        budget: 5000
        used: 100
        reserved: 50
        remaining: 4850
        resetAt: '{}'
    reservation:
      operator: 200
      agents:
        maxConcurrent: 3
        maxPerAgent: 500
    currentLoad:
      activeAgents: 0
      combinedRate: 20
      headroom: 79980
  - provider: 'b'
    plan:
      rateLimit: {{}}
    windows:
      1h:
        budget: 70
        used: 0
        reserved: 0
        remaining: 70
    reservation:
      agents: {{}}
    currentLoad:
      activeAgents: 0
      combinedRate: 0
",
        frees_at(0),
        frees_at(1)
    );
    assert_eq!(text, expected);
    let same = scratch.run(["export", "--format", "yaml", "--what", "quota"]).success().stdout;
    assert_eq!(same, text);
    // One provider is an object, not a list.
    let one = configured();
    let text = one.run(["export", "--what", "quota"]).success().stdout;
    assert!(text.starts_with("quota:\n  provider: 'a'\n"), "{text}");
}

fn the_past_is_required() {
    let scratch = configured();
    for since in ["0", "2100-01-01T00:00:00Z"] {
        scratch.run(["quota", "history", "--since", since, "--json"]).refused(Code::InvalidValue);
    }
}
