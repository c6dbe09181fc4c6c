//! `blackboard quota`: the ledger of tokens.

pub mod check;
mod edit;
pub mod fold;
pub mod history;
pub mod init;
pub mod record;
pub mod release;
pub mod set;
pub mod status;

use std::path::PathBuf;

use blackboard::Result;

use crate::config::CONFIG_FILE;
use crate::context::Context;
use crate::location;
use crate::quota::not_configured;

/// The home configuration.
fn home_config(context: &Context) -> Result<PathBuf> {
    match location::home(&context.request()) {
        Some(home) => Ok(home.join(CONFIG_FILE)),
        None => Err(not_configured()),
    }
}

/// Parses a number of tokens: `30000`, `30_000`, `30k` or `1.5M`.
fn tokens(text: &str) -> Result<u64, String> {
    const ALLOWED: &str = "allowed: a whole number of tokens, for example 30000, 30k or 1.5M";
    let plain: String = text.trim().chars().filter(|character| *character != '_').collect();
    let (digits, factor) = match plain.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000_u64),
        None => match plain.strip_suffix(['m', 'M']) {
            Some(digits) => (digits, 1_000_000),
            None => (plain.as_str(), 1),
        },
    };
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty()
        || !is_number(whole)
        || !is_number(decimals)
        || (digits.contains('.') && decimals.is_empty())
    {
        return Err(ALLOWED.to_owned());
    }
    let number = || {
        let mut number = whole.parse::<u64>().ok()?.checked_mul(factor)?;
        let mut part = factor;
        for digit in decimals.bytes() {
            if part % 10 != 0 {
                return None;
            }
            part /= 10;
            number = number.checked_add(u64::from(digit - b'0') * part)?;
        }
        (number <= 1_000_000_000_000_000).then_some(number)
    };
    number().ok_or_else(|| ALLOWED.to_owned())
}

#[cfg(test)]
mod tests {
    use super::tokens;

    #[test]
    fn tokens_may_have_a_unit() {
        for (text, expected) in [
            ("0", Some(0)),
            ("30000", Some(30_000)),
            ("30_000", Some(30_000)),
            ("30k", Some(30_000)),
            ("1.5M", Some(1_500_000)),
            ("1.234567M", Some(1_234_567)),
            ("1.2345678M", None),
            ("1.5", None),
            ("", None),
            ("k", None),
            ("-1", None),
            ("1.k", None),
            ("99999999999999999999", None),
            ("1000000000000001", None),
        ] {
            assert_eq!(tokens(text).ok(), expected, "{text}");
        }
    }
}
