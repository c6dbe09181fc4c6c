//! Credentials of well-known forms: a vendor's prefix with enough after it, private keys, signed tokens.
//!
//! Only forms that no ordinary text has. A filter that guesses from randomness alone would refuse commit hashes, and
//! people would switch it off.

use Length::{AtLeast, Exactly};

/// What a credential of one vendor looks like.
struct Form {
    kind: &'static str,
    prefix: &'static str,
    allowed: fn(u8) -> bool,
    length: Length,
}

/// How many characters follow the prefix.
#[derive(Clone, Copy)]
enum Length {
    Exactly(usize),
    AtLeast(usize),
}

const fn form(kind: &'static str, prefix: &'static str, allowed: fn(u8) -> bool, length: Length) -> Form {
    Form { kind, prefix, allowed, length }
}

/// Grouped by vendor. A form is looked for where a word begins.
const FORMS: &[Form] = &[
    form("an AWS access key", "AKIA", upper_or_digit, Exactly(16)),
    form("an AWS access key", "ASIA", upper_or_digit, Exactly(16)),
    form("a GitHub token", "ghp_", alphanumeric, AtLeast(36)),
    form("a GitHub token", "gho_", alphanumeric, AtLeast(36)),
    form("a GitHub token", "ghu_", alphanumeric, AtLeast(36)),
    form("a GitHub token", "ghs_", alphanumeric, AtLeast(36)),
    form("a GitHub token", "ghr_", alphanumeric, AtLeast(36)),
    form("a GitHub token", "github_pat_", word, AtLeast(40)),
    form("a GitLab token", "glpat-", word_or_dash, AtLeast(20)),
    form("a GitLab token", "glrt-", word_or_dash, AtLeast(20)),
    form("a GitLab token", "glrtr-", word_or_dash, AtLeast(20)),
    form("a GitLab token", "gldt-", word_or_dash, AtLeast(20)),
    form("a GitLab token", "glptt-", word_or_dash, AtLeast(20)),
    form("a GitLab token", "glcbt-", word_or_dash, AtLeast(20)),
    form("a GitLab token", "glft-", word_or_dash, AtLeast(20)),
    form("a GitLab token", "glsoat-", word_or_dash, AtLeast(20)),
    form("a GitLab token", "glagent-", word_or_dash, AtLeast(20)),
    form("an Anthropic key", "sk-ant-", word_or_dash, AtLeast(32)),
    form("an OpenAI key", "sk-proj-", word_or_dash, AtLeast(32)),
    form("an OpenAI key", "sk-svcacct-", word_or_dash, AtLeast(32)),
    form("an OpenAI key", "sk-admin-", word_or_dash, AtLeast(32)),
    form("an OpenAI key", "sk-", alphanumeric, AtLeast(40)),
    form("an OpenRouter key", "sk-or-v1-", alphanumeric, AtLeast(32)),
    form("a Groq key", "gsk_", alphanumeric, AtLeast(40)),
    form("an xAI key", "xai-", alphanumeric, AtLeast(60)),
    form("a Perplexity key", "pplx-", alphanumeric, AtLeast(40)),
    form("a Replicate token", "r8_", alphanumeric, AtLeast(37)),
    form("a Stripe key", "sk_live_", alphanumeric, AtLeast(16)),
    form("a Stripe key", "rk_live_", alphanumeric, AtLeast(16)),
    form("a Stripe key", "whsec_", alphanumeric, AtLeast(32)),
    form("a Slack token", "xoxa-", alphanumeric_or_dash, AtLeast(20)),
    form("a Slack token", "xoxb-", alphanumeric_or_dash, AtLeast(20)),
    form("a Slack token", "xoxe-", alphanumeric_or_dash, AtLeast(20)),
    form("a Slack token", "xoxp-", alphanumeric_or_dash, AtLeast(20)),
    form("a Slack token", "xoxr-", alphanumeric_or_dash, AtLeast(20)),
    form("a Slack token", "xoxs-", alphanumeric_or_dash, AtLeast(20)),
    form("a Slack token", "xapp-1-", alphanumeric_or_dash, AtLeast(30)),
    form("a Google key", "AIza", word_or_dash, Exactly(35)),
    form("a Google token", "ya29.", word_or_dash, AtLeast(30)),
    form("a Google secret", "GOCSPX-", word_or_dash, AtLeast(28)),
    form("an npm token", "npm_", alphanumeric, Exactly(36)),
    form("a PyPI token", "pypi-AgE", word_or_dash, AtLeast(50)),
    form("a RubyGems key", "rubygems_", lower_hex, Exactly(48)),
    form("a Docker token", "dckr_pat_", word_or_dash, AtLeast(27)),
    form("a Hugging Face token", "hf_", alphanumeric, AtLeast(30)),
    form("a DigitalOcean token", "dop_v1_", lower_hex, Exactly(64)),
    form("a DigitalOcean token", "doo_v1_", lower_hex, Exactly(64)),
    form("a DigitalOcean token", "dor_v1_", lower_hex, Exactly(64)),
    form("a Databricks token", "dapi", lower_hex, Exactly(32)),
    form("a Shopify token", "shpat_", lower_hex, Exactly(32)),
    form("a Linear key", "lin_api_", alphanumeric, AtLeast(40)),
    form("a Notion token", "ntn_", alphanumeric, AtLeast(40)),
    form("a Supabase token", "sbp_", lower_hex, Exactly(40)),
    form("a Grafana token", "glsa_", word, AtLeast(32)),
    form("a Vault token", "hvs.", word_or_dash, AtLeast(24)),
    form("a Pulumi token", "pul-", lower_hex, Exactly(40)),
    form("an Azure key", "AccountKey=", base64, AtLeast(80)),
    form("an Azure key", "SharedAccessKey=", base64, AtLeast(40)),
    form("an age key", "AGE-SECRET-KEY-1", upper_or_digit, AtLeast(58)),
];

/// What the word of a credential can begin with.
const BEGINNINGS: [bool; 256] = {
    let mut beginnings = [false; 256];
    let mut index = 0;
    while index < FORMS.len() {
        beginnings[FORMS[index].prefix.as_bytes()[0] as usize] = true;
        index += 1;
    }
    beginnings[b'S' as usize] = true;
    beginnings[b'e' as usize] = true;
    beginnings
};

/// The kind of the first credential in the text, with its article; never the credential itself.
///
/// The text is read once for words, and once for each of three signs that stand inside of words.
pub(super) fn find(text: &str) -> Option<&'static str> {
    find_word(text.as_bytes())
        .or_else(|| contains_private_key(text).then_some("a private key"))
        .or_else(|| contains_password_in_url(text).then_some("a password in a URL"))
        .or_else(|| contains_aws_secret_key(text).then_some("an AWS secret key"))
}

/// A credential that is recognized by how its word begins.
fn find_word(text: &[u8]) -> Option<&'static str> {
    let mut before = b' ';
    for (start, &byte) in text.iter().enumerate() {
        let begins_word = !word(before);
        let follows_dash = before == b'-';
        before = byte;
        if !begins_word || !BEGINNINGS[usize::from(byte)] {
            continue;
        }
        let rest = &text[start..];
        let form = FORMS.iter().find(|form| {
            rest.strip_prefix(form.prefix.as_bytes()).is_some_and(|after| form.is_followed_by(after))
        });
        if let Some(form) = form {
            return Some(form.kind);
        }
        if rest.strip_prefix(b"SG.").is_some_and(is_sendgrid_key) {
            return Some("a SendGrid key");
        }
        if !follows_dash && rest.strip_prefix(b"eyJ").is_some_and(is_signed_token) {
            return Some("a signed token (JWT)");
        }
    }
    None
}

impl Form {
    fn is_followed_by(&self, after: &[u8]) -> bool {
        // Looking no further than needed keeps a megabyte of prefixes from costing a megabyte each.
        let (Exactly(enough) | AtLeast(enough)) = self.length;
        let Some((body, next)) = after.split_at_checked(enough) else { return false };
        let ends = match self.length {
            Exactly(_) => !next.first().is_some_and(|&byte| word_or_dash(byte)),
            AtLeast(_) => true,
        };
        ends && body.iter().all(|&byte| (self.allowed)(byte))
            && looks_drawn(body)
            && (!(self.allowed)(b'-') || has_drawn_run(after, self.allowed))
    }
}

/// No token has more characters before its longest run.
const LONGEST_TOKEN: usize = 256;

/// How many letters and digits stand together in a token, and in no name whose words are joined by dashes.
const DRAWN_RUN: usize = 16;

/// The same for a run with this many changes between digits, lower case and upper case: dashes may cut a token into short runs.
const SHORT_DRAWN_RUN: usize = 10;
const DRAWN_CHANGES: usize = 3;

/// Whether a run between dashes and underscores is drawn by lot. In `gldt-deploy-token-rotation-2026` none is.
fn has_drawn_run(after: &[u8], allowed: fn(u8) -> bool) -> bool {
    let token = &after[..after.len().min(LONGEST_TOKEN)];
    let token = &token[..token.iter().position(|&byte| !allowed(byte)).unwrap_or(token.len())];
    token.split(|byte| !alphanumeric(*byte)).any(|run| {
        let is_mixed = run.iter().any(u8::is_ascii_digit) && run.iter().any(u8::is_ascii_alphabetic);
        // A capital at the beginning of a word is no change.
        let changes = run.windows(2).filter(|pair| {
            pair[0].is_ascii_digit() != pair[1].is_ascii_digit()
                || (pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
        });
        (run.len() >= DRAWN_RUN && is_mixed)
            || (run.len() >= SHORT_DRAWN_RUN && changes.count() >= DRAWN_CHANGES)
    })
}

/// Placeholders (`ghp_xxxxxxxx…`) and words are not drawn by lot: those are lower case or repeat few characters.
fn looks_drawn(body: &[u8]) -> bool {
    let mut different = body.to_vec();
    different.sort_unstable();
    different.dedup();
    different.len() > 5 && different.iter().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// No label of a PEM block is longer.
const LONGEST_LABEL: usize = 64;

/// `-----BEGIN RSA PRIVATE KEY-----` and its like.
fn contains_private_key(text: &str) -> bool {
    text.match_indices("-----BEGIN ").any(|(start, begin)| {
        let label = &text[start + begin.len()..];
        let end =
            label.bytes().take(LONGEST_LABEL).position(|byte| !byte.is_ascii_uppercase() && byte != b' ');
        end.is_some_and(|end| {
            let (label, after) = label.split_at(end);
            after.starts_with("-----")
                && (label.ends_with("PRIVATE KEY") || label.ends_with("PRIVATE KEY BLOCK"))
        })
    })
}

/// Header, claims and signature: `eyJ….eyJ….…`, where header and claims are JSON objects in base64.
fn is_signed_token(after_prefix: &[u8]) -> bool {
    let Some((header, rest)) = part(after_prefix) else { return false };
    let Some((claims, rest)) = rest.strip_prefix(b".eyJ").and_then(part) else { return false };
    let Some((signature, _)) = rest.strip_prefix(b".").and_then(part) else { return false };
    header >= 10 && claims >= 4 && signature >= 20
}

/// `SG.`, 22 characters, a dot, 43 characters.
fn is_sendgrid_key(after_prefix: &[u8]) -> bool {
    let key = after_prefix.split_at_checked(22 + 1 + 43).map(|(key, _)| key);
    key.is_some_and(|key| {
        let (id, secret) = (&key[..22], &key[23..]);
        key[22] == b'.' && id.iter().chain(secret).all(|&byte| word_or_dash(byte)) && looks_drawn(secret)
    })
}

/// How long the part of a token is that the text begins with, and what follows it. Longer ones than any token has are none.
fn part(text: &[u8]) -> Option<(usize, &[u8])> {
    let longest = text.len().min(LONGEST_PART);
    let length = text[..longest].iter().take_while(|&&byte| word_or_dash(byte)).count();
    (length < LONGEST_PART).then(|| (length, &text[length..]))
}

const LONGEST_PART: usize = 8 * 1024;

/// `postgres://user:password@host` and its like, unless the password is a variable or a placeholder.
fn contains_password_in_url(text: &str) -> bool {
    text.match_indices("://").any(|(at, separator)| {
        let has_scheme = text[..at].ends_with(|character: char| character.is_ascii_alphanumeric());
        let rest = &text.as_bytes()[at + separator.len()..];
        let rest = &rest[..rest.len().min(LONGEST_AUTHORITY)];
        let ends = |&byte: &u8| {
            matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\\' | b'`' | b'|' | b',' | b';') || byte <= b' '
        };
        let authority = &rest[..rest.iter().position(ends).unwrap_or(rest.len())];
        let user = authority.iter().rposition(|&byte| byte == b'@').map(|end| &authority[..end]);
        let named = user.and_then(|user| {
            let colon = user.iter().position(|&byte| byte == b':')?;
            Some((&user[..colon], &user[colon + 1..]))
        });
        // The default of many development servers has the name of the user as password.
        has_scheme && named.is_some_and(|(user, password)| user != password && !is_placeholder(password))
    })
}

const LONGEST_AUTHORITY: usize = 512;

/// Whether what stands for a password is none: a variable, a mask, or the word itself.
fn is_placeholder(password: &[u8]) -> bool {
    let is_word = ["password", "passwd", "pass", "secret", "token"]
        .iter()
        .any(|word| password.eq_ignore_ascii_case(word.as_bytes()));
    let Some((first, rest)) = password.split_first() else { return true };
    is_word || b"$<{[%*(".contains(first) || !first.is_ascii() || rest.iter().all(|byte| byte == first)
}

/// 40 characters of base64 behind `aws_secret_access_key` or its like.
fn contains_aws_secret_key(text: &str) -> bool {
    let bytes = text.as_bytes();
    ["ccess", "CCESS"].iter().flat_map(|sign| text.match_indices(sign)).any(|(at, sign)| {
        let before = &bytes[..at.saturating_sub(1)];
        let before = before.strip_suffix(b"_").or(before.strip_suffix(b"-")).unwrap_or(before);
        let names_secret = before.len() >= 6 && before[before.len() - 6..].eq_ignore_ascii_case(b"secret");
        let after = &bytes[at + sign.len()..];
        let after = after.strip_prefix(b"_").or(after.strip_prefix(b"-")).unwrap_or(after);
        let Some((name, after)) = after.split_at_checked(3) else { return false };
        if !names_secret || !name.eq_ignore_ascii_case(b"key") {
            return false;
        }
        let separators = after.iter().take(8).take_while(|byte| b"\"' :=>\\\t".contains(byte)).count();
        let Some((body, next)) = after[separators..].split_at_checked(40) else { return false };
        separators > 0
            && body.iter().all(|&byte| base64(byte) && byte != b'=')
            && !next.first().is_some_and(|&byte| base64(byte))
            && looks_drawn(body)
    })
}

/// The text of JSON without the escapes in its strings, if it has any. What is no escape stays.
pub(super) fn unescape(text: &str) -> Option<String> {
    if !text.contains('\\') {
        return None;
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escaped)) = rest.split_once('\\') {
        plain.push_str(before);
        let unit =
            || escaped.strip_prefix('u')?.get(..4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let mut letters = escaped.chars();
        rest = match letters.next() {
            Some('u') if let Some(unit) = unit() => {
                // Half of a pair is of no letter that a credential has.
                plain.push(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
                &escaped[5..]
            }
            Some('n' | 'r' | 't' | 'b' | 'f') => {
                plain.push(' ');
                letters.as_str()
            }
            Some(letter) => {
                plain.push(letter);
                letters.as_str()
            }
            None => "",
        };
    }
    plain.push_str(rest);
    Some(plain)
}

fn upper_or_digit(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn lower_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

fn base64(byte: u8) -> bool {
    alphanumeric(byte) || matches!(byte, b'+' | b'/' | b'=')
}

fn alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn alphanumeric_or_dash(byte: u8) -> bool {
    alphanumeric(byte) || byte == b'-'
}

fn word(byte: u8) -> bool {
    alphanumeric(byte) || byte == b'_'
}

fn word_or_dash(byte: u8) -> bool {
    word(byte) || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::{find, unescape};

    // The examples are put together here, so that no scanner takes this file for a leak.
    const DRAWN: &str = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6";

    #[test]
    fn credentials_are_found_wherever_a_word_begins() {
        for (prefix, body, kind) in [
            ("AKIA", "IOSFODNN7EXAMPLE", "an AWS access key"),
            ("ASIA", "IOSFODNN7EXAMPLE", "an AWS access key"),
            ("ghp_", &DRAWN[..36], "a GitHub token"),
            ("gho_", &DRAWN[..36], "a GitHub token"),
            ("ghu_", &DRAWN[..36], "a GitHub token"),
            ("ghs_", &DRAWN[..36], "a GitHub token"),
            ("ghr_", &DRAWN[..40], "a GitHub token"),
            ("github_pat_", "11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ0123456789", "a GitHub token"),
            ("glpat-", "x9Xy-Zw_7abcDEF12345", "a GitLab token"),
            ("sk-ant-", "api03-a1B2c3D4e5F6g7H8i9J0k1L2m3N4-AA", "an Anthropic key"),
            ("sk-proj-", &DRAWN[..48], "an OpenAI key"),
            ("sk_live_", &DRAWN[..24], "a Stripe key"),
            ("rk_live_", &DRAWN[..24], "a Stripe key"),
            ("xoxb-", "123456789012-123456789012-aBcDeFgHiJkL", "a Slack token"),
            ("xoxp-", "123456789012-123456789012-aBcDeFgHiJkL", "a Slack token"),
            ("xoxa-", "2-123456789012-aBcDeFgHiJkL", "a Slack token"),
            ("AIza", "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q", "a Google key"),
            ("npm_", &DRAWN[..36], "an npm token"),
            ("hf_", &DRAWN[..34], "a Hugging Face token"),
            ("-----BEGIN ", "PRIVATE KEY-----", "a private key"),
            ("-----BEGIN ", "RSA PRIVATE KEY-----", "a private key"),
            ("-----BEGIN ", "OPENSSH PRIVATE KEY----- b3BlbnNzaC1rZXk", "a private key"),
            ("-----BEGIN ", "PGP PRIVATE KEY BLOCK-----", "a private key"),
            ("glrt-", "t1_x9XyZw7abcDEF12345", "a GitLab token"),
            ("sk-", &DRAWN[..48], "an OpenAI key"),
            ("sk-", "a1B2c3D4e5F6g7H8i9J0T3BlbkFJa1B2c3D4e5F6g7H8i9J0", "an OpenAI key"),
            ("sk-svcacct-", &DRAWN[..48], "an OpenAI key"),
            (
                "sk-or-",
                "v1-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                "an OpenRouter key",
            ),
            ("gsk_", &DRAWN[..52], "a Groq key"),
            ("xai-", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6a1B2c3D4e5F6", "an xAI key"),
            ("pplx-", &DRAWN[..48], "a Perplexity key"),
            ("r8_", &DRAWN[..37], "a Replicate token"),
            ("whsec_", &DRAWN[..32], "a Stripe key"),
            ("SG.", "a1B2c3D4e5F6g7H8i9J0kL.a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V", "a SendGrid key"),
            ("xapp-", "1-A0123456789-0123456789012-0123456789abcdef0123456789abcdef", "a Slack token"),
            ("xoxe-", "1-My0xLTEyMzQ1Njc4OTAxMi0xMjM0", "a Slack token"),
            ("ya29.", "a0AfH6SMBx-a1B2c3D4e5F6g7H8i9J0k1L2m3", "a Google token"),
            ("GOCSPX-", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4", "a Google secret"),
            ("pypi-", "AgEIcHlwaS5vcmcCJGExQjJjM0Q0LWU1RjYtZzdIOC1pOUowLWsxTDJtM040bzVQ", "a PyPI token"),
            ("dckr_pat_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N", "a Docker token"),
            (
                "dop_v1_",
                "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                "a DigitalOcean token",
            ),
            ("dapi", "0123456789abcdef0123456789abcdef", "a Databricks token"),
            ("shpat_", "0123456789abcdef0123456789abcdef", "a Shopify token"),
            ("lin_api_", &DRAWN[..40], "a Linear key"),
            ("ntn_", &DRAWN[..46], "a Notion token"),
            ("sbp_", "0123456789abcdef0123456789abcdef01234567", "a Supabase token"),
            ("hvs.", "CAESIa1B2c3D4e5F6g7H8i9J0k1L2m3N4", "a Vault token"),
            ("pul-", "0123456789abcdef0123456789abcdef01234567", "a Pulumi token"),
            (
                "AccountKey=",
                "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4y5Z6a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7==",
                "an Azure key",
            ),
            ("SharedAccessKey=", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V=", "an Azure key"),
            ("AGE-SECRET-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE", "an age key"),
            ("aws_secret_access_", "key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYa1b2c3d4e5", "an AWS secret key"),
            ("AWS_SECRET_ACCESS_", "KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYa1b2c3d4e5", "an AWS secret key"),
            ("Secret", "AccessKey\": \"wJalrXUtnFEMI/K7MDENG/bPxRfiCYa1b2c3d4e5", "an AWS secret key"),
            ("postgres://", "user:pw@db.example.org/app", "a password in a URL"),
            ("postgresql+asyncpg://", "app:s3cr3t@10.0.0.1:5432", "a password in a URL"),
            ("mysql://", "root:hunter2@localhost", "a password in a URL"),
            ("mongodb+srv://", "u:p%40ss@cluster0.mongodb.net", "a password in a URL"),
            ("redis://", ":s3cr3t@cache:6379/0", "a password in a URL"),
            ("amqp://", "guest:gu3st@broker", "a password in a URL"),
            ("https://", "ivy:hunter2@example.org", "a password in a URL"),
            (
                "eyJ",
                "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
                "a signed token (JWT)",
            ),
        ] {
            for around in
                [("", ""), ("key=", " rest"), ("\"", "\""), ("é", "é"), ("https://", "@example.org")]
            {
                let text = format!("{}{prefix}{body}{}", around.0, around.1);
                assert_eq!(find(&text), Some(kind), "{text}");
            }
        }
    }

    #[test]
    fn names_with_dashes_and_default_passwords_are_no_credentials() {
        for text in [
            "xapp-mobile-rewrite-sprint-2026-planning",
            "xapp-1-mobile-rewrite-for-Android-and-iOS",
            "glagent-kubernetes-cluster-prod-1",
            "glagent-Kubernetes-Cluster-Production-EU-1",
            "gldt-deploy-token-rotation-2026",
            "glrt-runner-registration-for-team-2",
            "glft-feed-token-of-the-Release-2026-11",
            "glptt-trigger-pipeline-2026-11-16-nightly",
            "glpat-rotation-schedule-Q4-2026-draft-2",
            "sk-proj-migration-of-the-2026-billing-database-v2",
            "sk-ant-hill-simulation-2026-benchmark-run-number-17",
            "sk-admin-console-redesign-2026-phase-2-frontend",
            "xoxb-rotation-plan-2026-11-16-for-slack",
            "xoxp-legacy-tokens-removal-sprint-42",
            "dckr_pat_rotation-2026-11-16-production-cluster",
            "hvs.vault-migration-2026-plan-for-team-b",
            "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-11-16-plan",
            "ya29.oauth-tokens-explained-for-Team-4-in-2026",
            "postgres://postgres:postgres@localhost/app",
            "postgresql://app:app@db:5432/app_test",
            "amqp://guest:guest@localhost:5672/",
            "mysql://root:root@127.0.0.1/test",
            "mongodb://admin:admin@mongo:27017",
            "https://elastic:elastic@localhost:9200",
        ] {
            assert_eq!(find(text), None, "{text}");
        }
    }

    #[test]
    fn ordinary_text_carries_no_credential() {
        let long_word = "x".repeat(60);
        for text in [
            "",
            "Fix the tests",
            "550e8400-e29b-41d4-a716-446655440000",
            "16597bd",
            "da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "sk-learn",
            "sk-ant- is the prefix of a key",
            "sk-ant-api03",
            "task-ant-a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
            "risk-proj-a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
            "sk-proj-the-name-of-a-project-that-is-rather-long",
            "glpat-this-is-only-a-placeholder",
            "SGVsbG8gd29ybGQsIHRoaXMgaXMgYmFzZTY0IHRleHQgb2Ygc29tZSBsZW5ndGg=",
            "AKIA",
            "AKIAXXXXXXXXXXXXXXXX",
            "AKIAIOSFODNN7EXAMPLELONGER",
            "SAKIAIOSFODNN7EXAMPLE",
            "AIzawa",
            "ghp_",
            "ghp_short1A",
            "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "github_pat_is_what_they_call_fine_grained_personal_tokens",
            "npm_config_registry",
            "npm_lifecycle_event=test",
            "hf_hub_download(repo_id, filename)",
            "hf_transfer",
            "xoxb-your-token-here",
            "sk_live_ and sk_test_ keys",
            "sk_test_a1B2c3D4e5F6g7H8i9J0k1L2",
            "-----BEGIN CERTIFICATE-----",
            "-----BEGIN PUBLIC KEY-----",
            "-----BEGIN the PRIVATE KEY-----",
            "eyJ",
            "eyJhbGciOiJIUzI1NiJ9 is a header",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.short",
            "password: correct horse battery staple",
            "sk-learn-and-some-other-words-that-make-it-rather-long",
            "sk-0123456789",
            "task-a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V2w3X4",
            "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "sk-or-v1-your-key-goes-here-and-nowhere-else-please",
            "gsk_your_api_key_here",
            "SG.your-key",
            "SG.xxxxxxxxxxxxxxxxxxxxxx.xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "xapp-your-token",
            "AccountKey=<key>",
            "AccountName=devstoreaccount1;AccountKey=",
            "pypi-publish@v1",
            "pip install pypi-AgentTools",
            "dop_v1_ is the prefix",
            "dapibus ac facilisis in",
            "ya29.short",
            "AGE-SECRET-KEY-1 is the prefix of an age key",
            "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p",
            "glrt-runner",
            "glsa_ and hvs. are prefixes",
            "r8_unorm_srgb",
            "AWS_SECRET_ACCESS_KEY=",
            "AWS_SECRET_ACCESS_KEY=${AWS_SECRET_ACCESS_KEY}",
            "aws_secret_access_key = da39a3ee5e6b4b0d3255bfef95601890afd8070901",
            "secret access keys are forty characters long and this is no key",
            "commit wJalrXUtnFEMIK7MDENGbPxRfiCYa1b2c3d4e5aa",
            "postgres://localhost/app",
            "postgres://user@localhost:5432/app",
            "postgres://user:$PASSWORD@localhost",
            "postgres://user:${DB_PASSWORD}@localhost",
            "postgres://<user>:<password>@host",
            "postgres://user:password@localhost/app",
            "postgres://user:***@localhost/app",
            "postgres://user:xxx@localhost/app",
            "postgres://user:@localhost/app",
            "https://example.org:8080/@ivy",
            "https://example.org/a:b@c",
            "see https://example.org: ask ivy@example.org",
            "ssh://git@example.org:22/repo",
            "git@github.com:owner/repo.git",
            "http://[::1]:8080/",
            "a://b",
            "://a:b@c",
            &long_word,
        ] {
            assert_eq!(find(text), None, "{text}");
        }
    }

    #[test]
    fn escapes_of_json_are_undone() {
        for (text, expected) in [
            ("plain", None),
            (r#""gh\u0070_x""#, Some(r#""ghp_x""#)),
            (r#""gh\u0070\u005fx""#, Some(r#""ghp_x""#)),
            (r#""a\/b\"c\\d""#, Some(r#""a/b"c\d""#)),
            (r#""a\nb""#, Some(r#""a b""#)),
            (r#""\ud83d\ude00""#, Some("\"\u{fffd}\u{fffd}\"")),
            (r"\u00", Some("u00")),
            (r"\uü", Some("uü")),
            ("\\", Some("")),
        ] {
            assert_eq!(unescape(text).as_deref(), expected, "{text}");
        }
    }
}
