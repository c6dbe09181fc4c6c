//! The members of a JSON object that another program wrote.

use serde_json::{Map, Value};

/// An object of a file.
pub struct Object(Map<String, Value>);

impl Object {
    /// Reads one.
    pub fn parse(text: &str) -> Result<Object, String> {
        match serde_json::from_str(text) {
            Ok(value) => Object::of(value),
            Err(error) => Err(format!("it is not JSON: {error}")),
        }
    }

    /// The object of a value.
    pub fn of(value: Value) -> Result<Object, String> {
        match value {
            Value::Object(members) => Ok(Object(members)),
            _ => Err("it is not a JSON object".to_owned()),
        }
    }

    /// The first of these members that is not null.
    pub fn get(&self, names: &[&str]) -> Option<&Value> {
        names.iter().filter_map(|&name| self.0.get(name)).find(|value| !value.is_null())
    }

    /// A text, or a number as its text.
    pub fn text(&self, names: &[&str]) -> Result<Option<String>, String> {
        match self.get(names) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(_) => Err(format!("{} is not a text", names[0])),
        }
    }

    /// A text that is needed.
    pub fn required(&self, names: &[&str]) -> Result<String, String> {
        let text = self.text(names)?.filter(|text| !text.trim().is_empty());
        text.ok_or_else(|| format!("it has no {}", names[0]))
    }

    /// A list of texts, or of objects with this member. One text is a list too.
    pub fn texts(&self, names: &[&str], member: &str) -> Result<Option<Vec<String>>, String> {
        let not_texts = || format!("{} is not a list of texts", names[0]);
        match self.get(names) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(vec![text.clone()])),
            Some(Value::Array(list)) => {
                let texts = list.iter().map(|one| match one {
                    Value::String(text) => Ok(text.clone()),
                    Value::Object(object) => {
                        object.get(member).and_then(Value::as_str).map(str::to_owned).ok_or_else(not_texts)
                    }
                    _ => Err(not_texts()),
                });
                texts.collect::<Result<_, _>>().map(Some)
            }
            Some(_) => Err(not_texts()),
        }
    }
}
