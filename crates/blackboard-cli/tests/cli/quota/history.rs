use blackboard::Code;

use super::configured;
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
    let scratch = configured();
    scratch.json(["quota", "record", "--input-tokens", "7"]);
    let text = scratch.run(["export", "--format", "yaml", "--what", "quota"]).success().stdout;
    for line in [
        "quota:",
        "  provider: 'a'",
        "      budget: 1000",
        "      used: 7",
        "    operator: 200",
        "  currentLoad:",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
}

fn the_past_is_required() {
    let scratch = configured();
    for since in ["0", "2100-01-01T00:00:00Z"] {
        scratch.run(["quota", "history", "--since", since, "--json"]).refused(Code::InvalidValue);
    }
}
