//! What a platform says on standard input: one JSON object, of which a few fields matter.
//!
//! Platforms change their formats, so nothing here insists on anything: a field that is missing, unknown or of another
//! type is as good as absent. Values that do not matter (prompts, file contents, what tools answered) are skipped
//! without being copied.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// An object whose values are looked at only on demand.
pub struct Payload<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Payload<'a> {
    /// The object in a text.
    pub fn parse(text: &'a str) -> Option<Payload<'a>> {
        serde_json::from_str(text).ok().map(Payload)
    }

    /// The first of these fields that is a text, and not an empty one.
    pub fn text(&self, names: &[&str]) -> Option<String> {
        let mut texts =
            names.iter().filter_map(|name| serde_json::from_str::<String>(self.0.get(*name)?.get()).ok());
        texts.find(|text| !text.is_empty())
    }

    /// The first of these fields that is a list with texts in it.
    pub fn texts(&self, names: &[&str]) -> Vec<String> {
        let lists = names.iter().filter_map(|name| {
            let list = serde_json::from_str::<Vec<serde_json::Value>>(self.0.get(*name)?.get()).ok()?;
            Some(list.into_iter().filter_map(|value| value.as_str().map(str::to_owned)).collect::<Vec<_>>())
        });
        lists.into_iter().find(|texts| !texts.is_empty()).unwrap_or_default()
    }

    /// The first of these fields that is an object, or a text that is one. `f` looks at it.
    pub fn inside<T>(&self, names: &[&str], f: impl Fn(&Payload<'_>) -> T) -> Option<T> {
        names.iter().find_map(|name| {
            let raw = self.0.get(*name)?.get();
            if let Some(object) = Payload::parse(raw) {
                return Some(f(&object));
            }
            let text = serde_json::from_str::<String>(raw).ok()?;
            Payload::parse(&text).map(|object| f(&object))
        })
    }

    /// Every field that is a text, and every text of a field that is a list of texts.
    pub fn all_texts(&self) -> Vec<String> {
        let texts = self.0.values().flat_map(|raw| match serde_json::from_str::<String>(raw.get()) {
            Ok(text) => vec![text],
            Err(_) => serde_json::from_str::<Vec<String>>(raw.get()).unwrap_or_default(),
        });
        texts.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_another_type_are_as_good_as_absent() {
        let text = r#"{"a": 1, "b": "", "c": "x", "d": null, "e": [1, "y"], "f": {"g": "z"}, "h": "{\"g\": \"w\"}"}"#;
        let payload = Payload::parse(text).unwrap();
        assert_eq!(payload.text(&["a", "b", "d", "missing", "c"]).as_deref(), Some("x"));
        assert_eq!(payload.text(&["a", "e", "f"]), None);
        assert_eq!(payload.texts(&["a", "e"]), ["y"]);
        assert_eq!(payload.inside(&["c", "f"], |inner| inner.text(&["g"])), Some(Some("z".to_owned())));
        assert_eq!(payload.inside(&["h"], |inner| inner.text(&["g"])), Some(Some("w".to_owned())));
        assert_eq!(payload.inside(&["a", "c"], |_| ()), None);
    }

    #[test]
    fn what_is_no_object_is_nothing() {
        for text in ["", "null", "[]", "1", "\"x\"", "{", "{\"a\": }", "not json", "{\"a\":1} trailing"] {
            assert!(Payload::parse(text).is_none(), "{text}");
        }
        // What nobody looks at may be nested as deep as it likes.
        let deep = format!("{{\"a\": {}{}, \"b\": \"x\"}}", "[".repeat(100_000), "]".repeat(100_000));
        let payload = Payload::parse(&deep).unwrap();
        assert_eq!((payload.text(&["a", "b"]).as_deref(), payload.texts(&["a"]).len()), (Some("x"), 0));
    }
}
