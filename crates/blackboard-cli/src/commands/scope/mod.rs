//! `blackboard scope …`

pub mod create;
pub mod delete;
pub mod list;
pub mod set;
pub mod show;

use blackboard::Result;
use blackboard::scope::{AccessRule, AccessRules, Effect};

/// The access rules of the options. Not a parser of clap's, which knows no effect.
fn access_rules(allow: &[String], deny: &[String]) -> Result<AccessRules> {
    let rules = |effect, texts: &[String]| -> Result<Vec<_>> {
        texts.iter().map(|text| AccessRule::parse(effect, text)).collect()
    };
    let mut all = rules(Effect::Allow, allow)?;
    all.extend(rules(Effect::Deny, deny)?);
    Ok(AccessRules::new(all))
}
