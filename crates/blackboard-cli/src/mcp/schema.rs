//! The schema of a tool's arguments, as short as strict clients allow.

use rmcp::model::JsonObject;
use rmcp::schemars::JsonSchema;
use rmcp::schemars::generate::SchemaSettings;
use serde_json::Value;

/// Keywords that tell a model nothing: limits of machine numbers, names of Rust types, and that unknown arguments are
/// refused.
const NOISE: [&str; 6] = ["$schema", "title", "format", "minimum", "default", "additionalProperties"];

/// The schema of `T`, and its doc comment.
pub fn of<T: JsonSchema>() -> (JsonObject, String) {
    let generator =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true).into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    simplify(&mut schema, false);
    let mut object = match schema {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    };
    let description = object.remove("description").and_then(|text| text.as_str().map(str::to_owned));
    object.entry("properties").or_insert_with(|| Value::Object(JsonObject::new()));
    (object, description.unwrap_or_default())
}

/// Removes these keywords and `null` types: optional arguments may be omitted. The members of `properties` are
/// arguments, whatever their names.
fn simplify(schema: &mut Value, are_names: bool) {
    match schema {
        Value::Object(object) => {
            if !are_names {
                object.retain(|name, _| !NOISE.contains(&name.as_str()));
                if let Some(Value::String(text)) = object.get_mut("description") {
                    *text = text.replace('\n', " ");
                }
            }
            for (name, member) in object.iter_mut() {
                match (name.as_str(), member) {
                    ("type", Value::Array(types)) if !are_names => types.retain(|kind| kind != "null"),
                    ("enum", Value::Array(values)) if !are_names => values.retain(|value| !value.is_null()),
                    (name, member) => simplify(member, !are_names && name == "properties"),
                }
            }
            if !are_names
                && let Some(Value::Array(types)) = object.get_mut("type")
                && types.len() == 1
            {
                let only = types.remove(0);
                object.insert("type".to_owned(), only);
            }
        }
        Value::Array(members) => members.iter_mut().for_each(|member| simplify(member, false)),
        _ => {}
    }
}
