//! `blackboard scope …`

pub mod create;
pub mod delete;
pub mod list;
pub mod set;
pub mod show;

use blackboard::protocol::Schema;
use blackboard::scope::{AccessRule, AccessRules, Effect, ValueRule, ValueRules};
use blackboard::text::escape_for_terminal;
use blackboard::{Error, Result};

use super::entry::input::read_schema;

/// The rules of `--validate`, `--validate-schema` and `--validate-protocol`, in this order.
fn value_rules(types: Vec<ValueRule>, schemas: &[String], protocols: &[String]) -> Result<ValueRules> {
    let mut rules = types;
    for text in schemas {
        // A schema may contain `=`; a pattern with one is written with `?` in its place.
        let (keys, schema) = text.split_once('=').ok_or_else(|| not_of_form(text, "PATTERN=JSON|FILE"))?;
        rules.push(ValueRule::schema(keys, Schema::parse(&read_schema(schema.to_owned())?)?));
    }
    for text in protocols {
        let (keys, protocol) = text.rsplit_once('=').ok_or_else(|| not_of_form(text, "PATTERN=PROTOCOL"))?;
        rules.push(ValueRule::protocol(keys, protocol));
    }
    Ok(ValueRules::new(rules))
}

/// The access rules of the options. Not a parser of clap's, which knows no effect.
fn access_rules(allow: &[String], deny: &[String]) -> Result<AccessRules> {
    let rules = |effect, texts: &[String]| -> Result<Vec<_>> {
        texts.iter().map(|text| AccessRule::parse(effect, text)).collect()
    };
    let mut all = rules(Effect::Allow, allow)?;
    all.extend(rules(Effect::Deny, deny)?);
    Ok(AccessRules::new(all))
}

fn not_of_form(text: &str, form: &str) -> Error {
    Error::invalid(format!("\"{}\" is not {form}", escape_for_terminal(text)))
}
