use proptest::prelude::*;

use super::*;
use crate::entry::{Glob, MAX_KEY_BYTES};

#[test]
fn templates_that_give_a_key_two_meanings_are_refused() {
    testkit::limit_test();
    for (text, problem) in [
        ("", "is empty"),
        ("{id}", "begins with a value"),
        ("polymathera:{id}", "begins with the name of a scope"),
        ("a::b", "has an empty part"),
        ("a:", "has an empty part"),
        (":a", "has an empty part"),
        ("a:{id", "has the part \"{id\""),
        ("a:x{id}", "has the part \"x{id}\""),
        ("a:{}", "has the part \"{}\""),
        ("a:{1}", "has the part \"{1}\""),
        ("a:{two words}", "has the part"),
        ("a:*", "has the part \"*\""),
        ("a:50%", "has the part \"50%\""),
        ("a: b", "has the part \" b\""),
        ("a:{id}:{id}", "has two values of the same name"),
        ("a:{x?}:{y?}", "has more than one value"),
        ("a:{x?}:{y...}", "has more than one value"),
        ("a:{x...}:b", "has a part after the rest"),
    ] {
        let error = Template::new(text).unwrap_err();
        assert_eq!(error.code(), Code::InvalidValue);
        assert!(error.to_string().contains(problem), "{text}: {error}");
        assert!(error.hint().is_some(), "{text}");
    }
    assert!(Template::new(&"a".repeat(MAX_TEMPLATE_BYTES + 1)).is_err());
    assert!(Template::new(&format!("a{}", ":b".repeat(MAX_PARTS))).is_err());
}

#[test]
fn patterns_have_a_wildcard_for_each_missing_value() {
    for (template, values, pattern) in [
        ("request:run:{ns?}:{id}", &[][..], "request:run:*"),
        ("request:run:{ns?}:{id}", &[("ns", "n")], "request:run:n:*"),
        ("request:run:{ns?}:{id}", &[("id", "1")], "request:run:*1"),
        ("event:run:{ns?}:{id}:{name}", &[("ns", "n"), ("id", "1")], "event:run:n:1:*"),
        ("event:run:{ns?}:{id}:{name}", &[("name", "done")], "event:run:*:done"),
        ("agent_id:{a}:result_type:{t}:{id?}", &[], "agent_id:*:result_type:*"),
        ("agent_id:{a}:result_type:{t}:{id?}", &[("t", "final")], "agent_id:*:result_type:final*"),
        ("agent_id:{a}:scope:terminated", &[], "agent_id:*:scope:terminated"),
        ("task:{id...}", &[], "task:*"),
        ("task:{id...}", &[("id", "a:b")], "task:a:b"),
        ("state:cluster", &[], "state:cluster"),
        ("state:{game}", &[("game", "a*b")], "state:a%2Ab"),
        ("a:{x}:{y}", &[], "a:*:*"),
        ("a:{x?}:b:{y}", &[], "a:*b:*"),
    ] {
        assert_eq!(Template::new(template).unwrap().pattern(values).unwrap(), pattern, "{template}");
    }
}

#[test]
fn unknown_repeated_and_missing_values_are_refused() {
    let template = Template::new("request:run:{ns?}:{id}").unwrap();
    for (values, problem) in [
        (&[("ns", "n")][..], "the template request:run:{ns?}:{id} needs a value for id"),
        (&[("id", "1"), ("name", "x")], "the template request:run:{ns?}:{id} has no value name"),
        (&[("id", "1"), ("id", "2")], "the value id is given twice"),
    ] {
        assert_eq!(template.key(values).unwrap_err().to_string(), problem);
    }
    assert!(template.pattern(&[("name", "x")]).is_err());
}

#[test]
fn keys_that_are_too_long_are_refused_when_they_are_built() {
    testkit::limit_test();
    let template = Template::new("t:{id}").unwrap();
    let longest = "x".repeat(MAX_KEY_BYTES - 2);
    assert_eq!(template.key(&[("id", &longest)]).unwrap().len(), MAX_KEY_BYTES);
    let error = template.key(&[("id", &format!("{longest}x"))]).unwrap_err();
    assert!(error.to_string().contains("1025 bytes; 1024 are allowed"), "{error}");
    // A colon takes three bytes.
    assert!(template.key(&[("id", &":".repeat(400))]).is_err());
}

/// Templates of every form, with the names of their values.
const TEMPLATES: &[(&str, &[&str])] = &[
    ("state:{a}", &["a"]),
    ("request:run:{a?}:{b}", &["b", "a"]),
    ("event:run:{a?}:{b}:{c}", &["b", "c", "a"]),
    ("agent_id:{b}:result_type:{c}:{a?}", &["b", "c", "a"]),
    ("task:{a...}", &["a"]),
    ("x:{b}:y:{a...}", &["b", "a"]),
    ("x:{a?}:y:{b}", &["b", "a"]),
];

/// Text with many characters that have a meaning in keys, or that keys refuse.
fn any_text() -> impl Strategy<Value = String> {
    let special = prop::sample::select(vec![
        ':',
        '%',
        '*',
        '?',
        '[',
        ']',
        '{',
        '}',
        ' ',
        '\n',
        '\t',
        '\0',
        '\u{7f}',
        '\u{85}',
        '\u{a0}',
        '\u{ad}',
        '\u{200b}',
        '\u{202e}',
        '\u{2028}',
        '\u{3000}',
        '\u{301}',
        '\u{308}',
        '\u{338}',
        '\u{34f}',
        '\u{feff}',
        '\u{e0001}',
        'e',
        'A',
        '=',
        '3',
        'é',
        '가',
        '\u{1100}',
        '\u{1161}',
        'Å',
        '\u{212b}',
    ]);
    let character = prop_oneof![3 => special, 1 => any::<char>()];
    prop::collection::vec(character, 0..12).prop_map(String::from_iter)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn every_text_can_be_read_back_from_its_key(
        form in 0..TEMPLATES.len(),
        texts in prop::collection::vec(any_text(), 3),
        with_optional in any::<bool>(),
        in_pattern in any::<[bool; 3]>(),
    ) {
        testkit::limit_test();
        let (template, names) = TEMPLATES[form];
        let has_optional = template.contains('?');
        let template = Template::new(template).unwrap();
        let count = names.len() - usize::from(has_optional && !with_optional);
        let values: Vec<_> = names[..count].iter().copied().zip(texts.iter().map(String::as_str)).collect();

        let key = template.key(&values).unwrap();
        let parsed = template.parse(&key).unwrap();
        let expected: Values = values.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        prop_assert_eq!(&parsed, &expected);
        check_key("default", &key).unwrap();

        let some: Vec<_> = values.iter().zip(in_pattern).filter(|(_, keep)| *keep).map(|(pair, _)| *pair).collect();
        let pattern = template.pattern(&some).unwrap();
        prop_assert!(Glob::new(&pattern).matches(&key), "{pattern} does not match {key}");
    }

    #[test]
    fn a_key_that_parses_is_the_one_that_its_values_build(form in 0..TEMPLATES.len(), end in any_text()) {
        testkit::limit_test();
        let template = Template::new(TEMPLATES[form].0).unwrap();
        let key = format!("{}:{end}", template.first_word());
        if let Some(values) = template.parse(&key) {
            let values: Vec<_> = values.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
            prop_assert_eq!(template.key(&values).unwrap(), key);
        }
    }
}
