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
    form("an Anthropic key", "sk-ant-", word_or_dash, AtLeast(32)),
    form("an OpenAI key", "sk-proj-", word_or_dash, AtLeast(32)),
    form("a Stripe key", "sk_live_", alphanumeric, AtLeast(16)),
    form("a Stripe key", "rk_live_", alphanumeric, AtLeast(16)),
    form("a Slack token", "xoxa-", alphanumeric_or_dash, AtLeast(20)),
    form("a Slack token", "xoxb-", alphanumeric_or_dash, AtLeast(20)),
    form("a Slack token", "xoxp-", alphanumeric_or_dash, AtLeast(20)),
    form("a Google key", "AIza", word_or_dash, Exactly(35)),
    form("an npm token", "npm_", alphanumeric, Exactly(36)),
    form("a Hugging Face token", "hf_", alphanumeric, AtLeast(30)),
];

/// The kind of the first credential in the text, with its article; never the credential itself.
pub(super) fn find(text: &str) -> Option<&'static str> {
    let vendor = FORMS
        .iter()
        .find(|form| occurrences(text, form.prefix, word).any(|after| form.is_followed_by(after.as_bytes())));
    vendor.map(|form| form.kind).or_else(|| {
        if contains_private_key(text) {
            Some("a private key")
        } else {
            occurrences(text, "eyJ", word_or_dash).any(is_signed_token).then_some("a signed token (JWT)")
        }
    })
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
        ends && body.iter().all(|&byte| (self.allowed)(byte)) && looks_drawn(body)
    }
}

/// Placeholders (`ghp_xxxxxxxx…`) and words are not drawn by lot: those are lower case or repeat few characters.
fn looks_drawn(body: &[u8]) -> bool {
    let mut different = body.to_vec();
    different.sort_unstable();
    different.dedup();
    different.len() > 5 && different.iter().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// What follows the prefix wherever a word begins with it: after a character that is no part of one.
fn occurrences<'text>(
    text: &'text str,
    prefix: &'static str,
    is_part: fn(u8) -> bool,
) -> impl Iterator<Item = &'text str> {
    text.match_indices(prefix)
        .filter(move |&(start, _)| !text.as_bytes()[..start].last().is_some_and(|&byte| is_part(byte)))
        .map(move |(start, _)| &text[start + prefix.len()..])
}

/// `-----BEGIN RSA PRIVATE KEY-----` and its like.
fn contains_private_key(text: &str) -> bool {
    text.match_indices("-----BEGIN ").any(|(start, begin)| {
        let label = &text[start + begin.len()..];
        let end = label.find(|character: char| !character.is_ascii_uppercase() && character != ' ');
        end.is_some_and(|end| {
            let (label, after) = label.split_at(end);
            after.starts_with("-----")
                && (label.ends_with("PRIVATE KEY") || label.ends_with("PRIVATE KEY BLOCK"))
        })
    })
}

/// Header, claims and signature: `eyJ….eyJ….…`, where header and claims are JSON objects in base64.
fn is_signed_token(after_prefix: &str) -> bool {
    let part = |text: &str| text.bytes().take_while(|&byte| word_or_dash(byte)).count();
    let header = part(after_prefix);
    let Some(claims) = after_prefix[header..].strip_prefix(".eyJ") else { return false };
    let length = part(claims);
    let Some(signature) = claims[length..].strip_prefix('.') else { return false };
    header >= 10 && length >= 4 && part(signature) >= 20
}

fn upper_or_digit(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
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
    use super::find;

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
            &long_word,
        ] {
            assert_eq!(find(text), None, "{text}");
        }
    }
}
