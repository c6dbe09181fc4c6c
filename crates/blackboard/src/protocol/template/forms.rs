//! [`KeyForm`]: a set of keys, of which two can be compared without listing them.

use super::{Kind, Part, Template};
use crate::protocol::escape::escape;

/// What is known about a value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::protocol) enum KnownValue<'a> {
    /// It is this text.
    Is(&'a str),
    /// The key has one.
    Given,
    /// The key has none.
    Missing,
    /// The key may have one.
    Unknown,
}

/// Keys of the same form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::protocol) struct KeyForm {
    /// The parts; `None` for any text.
    parts: Vec<Option<String>>,
    /// Whether any other parts follow, at least one.
    has_rest: bool,
}

impl KeyForm {
    /// Whether a key can have both forms. It may say so of forms that differ only in what can be escaped.
    pub(in crate::protocol) fn overlaps(&self, other: &KeyForm) -> bool {
        let (one, two) = (self.parts.len(), other.parts.len());
        let lengths_match = match (self.has_rest, other.has_rest) {
            (false, false) => one == two,
            (true, false) => one < two,
            (false, true) => two < one,
            (true, true) => true,
        };
        let mut pairs = self.parts.iter().zip(&other.parts);
        lengths_match && pairs.all(|(one, two)| one.is_none() || two.is_none() || one == two)
    }
}

impl Template {
    /// The forms of all keys with such values: two if one may be missing, and none if a required one is.
    pub(in crate::protocol) fn forms<'a>(&self, known: impl Fn(&str) -> KnownValue<'a>) -> Vec<KeyForm> {
        let mut forms = vec![KeyForm { parts: Vec::with_capacity(self.parts.len()), has_rest: false }];
        for part in &self.parts {
            match part {
                Part::Word(word) => forms.iter_mut().for_each(|form| form.parts.push(Some(word.clone()))),
                Part::Value { name, kind } => match (known(name), kind) {
                    (KnownValue::Is(text), kind) => {
                        let escaped = escape(text, kind.colons());
                        for form in &mut forms {
                            form.parts.extend(escaped.split(':').map(|part| Some(part.to_owned())));
                        }
                    }
                    (KnownValue::Missing, Kind::Optional) => {}
                    (KnownValue::Missing, Kind::Required | Kind::Rest) => return Vec::new(),
                    (KnownValue::Given | KnownValue::Unknown, Kind::Rest) => {
                        for form in &mut forms {
                            form.has_rest = true;
                        }
                    }
                    (KnownValue::Unknown, Kind::Optional) => {
                        let mut with = forms.clone();
                        for form in &mut with {
                            form.parts.push(None);
                        }
                        forms.extend(with);
                    }
                    (KnownValue::Given, Kind::Required | Kind::Optional)
                    | (KnownValue::Unknown, Kind::Required) => {
                        for form in &mut forms {
                            form.parts.push(None);
                        }
                    }
                },
            }
        }
        forms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_overlap_if_a_key_has_both() {
        for (one, other, expected) in [
            ("a:{x}", "a:{y}", true),
            ("a:{x}", "b:{x}", false),
            ("a:{x}", "a:{y}:{z}", false),
            ("a:{x?}:{y}", "a:b:{y}", true),
            ("a:{x?}:{y}", "a:{z}", true),
            ("a:{x?}:b", "a:c", false),
            ("a:b", "a:{x...}", true),
            ("a", "a:{x...}", false),
            ("a:{x...}", "a:b:{y...}", true),
            ("a:c:{x...}", "a:b:{y...}", false),
        ] {
            let forms = |text| Template::new(text).unwrap().forms(|_| KnownValue::Unknown);
            let (ones, others) = (forms(one), forms(other));
            let overlap = ones.iter().any(|one| others.iter().any(|other| one.overlaps(other)));
            assert_eq!(overlap, expected, "{one} {other}");
            let overlap = others.iter().any(|other| ones.iter().any(|one| other.overlaps(one)));
            assert_eq!(overlap, expected, "{other} {one}");
        }
    }

    #[test]
    fn known_values_restrict_the_forms() {
        let parts = |template: &str, known: KnownValue<'_>| {
            let known = |name: &str| if name == "x" { known } else { KnownValue::Unknown };
            let forms = Template::new(template).unwrap().forms(known);
            let text = |form: &KeyForm| {
                let mut parts: Vec<_> =
                    form.parts.iter().map(|part| part.as_deref().unwrap_or("*")).collect();
                parts.extend(form.has_rest.then_some("..."));
                parts.join(":")
            };
            forms.iter().map(text).collect::<Vec<_>>()
        };
        for (template, known, expected) in [
            ("a:{x?}:{y}", KnownValue::Unknown, &["a:*", "a:*:*"][..]),
            ("a:{x?}:{y}", KnownValue::Given, &["a:*:*"]),
            ("a:{x?}:{y}", KnownValue::Missing, &["a:*"]),
            ("a:{x?}:{y}", KnownValue::Is("1:2"), &["a:1%3A2:*"]),
            ("a:{x}", KnownValue::Missing, &[]),
            ("a:{x...}", KnownValue::Unknown, &["a:..."]),
            ("a:{x...}", KnownValue::Is("1:2"), &["a:1:2"]),
        ] {
            assert_eq!(parts(template, known), expected, "{template} {known:?}");
        }
    }
}
