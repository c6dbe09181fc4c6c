//! Credentials of well-known forms: a vendor's prefix with enough after it, private keys, signed tokens, values behind a
//! name such as `Authorization` or `password`.
//!
//! Only forms that ordinary text does not have. A filter that only checks for randomness would refuse commit hashes, and
//! users would disable it.

mod forms;
#[cfg(test)]
mod tests;

use forms::{BEGINNINGS, FORMS, Form, Length, alphanumeric, base64, word, word_or_dash};

/// The kind of the first credential in the text, with its article; never the credential itself.
///
/// The text is read once for words, and once for each marker inside words.
pub(super) fn find(text: &str) -> Option<&'static str> {
    find_word(text.as_bytes())
        .or_else(|| contains_private_key(text).then_some("a private key"))
        .or_else(|| contains_password_in_url(text).then_some("a password in a URL"))
        .or_else(|| contains_aws_secret_key(text).then_some("an AWS secret key"))
        .or_else(|| find_sign(text.as_bytes()))
}

/// A credential that is recognized by the prefix of its word.
fn find_word(text: &[u8]) -> Option<&'static str> {
    let mut before = b' ';
    for (start, &byte) in text.iter().enumerate() {
        let begins_word = !word(before);
        let follows_dash = before == b'-';
        before = byte;
        if !begins_word
            || !forms::has_bit(&BEGINNINGS, byte, text.get(start + 1).copied().unwrap_or_default())
        {
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
        if rest.strip_prefix(b"pat").is_some_and(is_airtable_token) {
            return Some("an Airtable token");
        }
        if rest.strip_prefix(b"key-").is_some_and(|after| is_mailgun_key(&text[..start], after)) {
            return Some("a Mailgun key");
        }
        if is_discord_token(rest) {
            return Some("a Discord token");
        }
        if !follows_dash && rest.strip_prefix(b"eyJ").is_some_and(is_signed_token) {
            return Some("a signed token (JWT)");
        }
    }
    None
}

impl Form {
    fn is_followed_by(&self, after: &[u8]) -> bool {
        // No more than needed is read. Otherwise each prefix in a text of a megabyte could cost a megabyte.
        let (Length::Exactly(enough) | Length::AtLeast(enough)) = self.length;
        let Some((body, next)) = after.split_at_checked(enough) else { return false };
        let ends = match self.length {
            Length::Exactly(_) => !next.first().is_some_and(|&byte| word_or_dash(byte)),
            Length::AtLeast(_) => true,
        };
        ends && body.iter().all(|&byte| (self.allowed)(byte))
            && looks_drawn(body)
            && (!(self.allowed)(b'-') || has_drawn_run(after, self.allowed))
    }
}

/// How many characters of a token are checked. No token has its longest run later.
const LONGEST_TOKEN: usize = 256;

/// The length of a run of letters and digits that a random token has. Names whose words are joined by dashes have no run of
/// this length.
const DRAWN_RUN: usize = 16;

/// The same for a run with this many changes between digits, lower case and upper case. Dashes may divide a token into short
/// runs.
const SHORT_DRAWN_RUN: usize = 10;
const DRAWN_CHANGES: usize = 3;

/// Whether a run between dashes and underscores is random. In `gldt-deploy-token-rotation-2026` none is.
fn has_drawn_run(after: &[u8], allowed: fn(u8) -> bool) -> bool {
    let token = &after[..after.len().min(LONGEST_TOKEN)];
    let token = &token[..token.iter().position(|&byte| !allowed(byte)).unwrap_or(token.len())];
    token.split(|byte| !alphanumeric(*byte)).any(|run| {
        let is_mixed = run.iter().any(u8::is_ascii_digit) && run.iter().any(u8::is_ascii_alphabetic);
        // A capital at the beginning of a word is not a change.
        let changes = run.windows(2).filter(|pair| {
            pair[0].is_ascii_digit() != pair[1].is_ascii_digit()
                || (pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
        });
        (run.len() >= DRAWN_RUN && is_mixed)
            || (run.len() >= SHORT_DRAWN_RUN && changes.count() >= DRAWN_CHANGES)
    })
}

/// Whether a value looks random. Placeholders (`ghp_xxxxxxxx…`) repeat few characters, and words are lower case.
fn looks_drawn(body: &[u8]) -> bool {
    let mut different = body.to_vec();
    different.sort_unstable();
    different.dedup();
    different.len() > 5 && different.iter().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// The maximum length of the label of a PEM block.
const LONGEST_LABEL: usize = 64;

/// `-----BEGIN RSA PRIVATE KEY-----` and similar.
fn contains_private_key(text: &str) -> bool {
    text.match_indices("-----BEGIN ").any(|(start, begin)| {
        let label = &text[start + begin.len()..];
        let end =
            label.bytes().take(LONGEST_LABEL).position(|byte| !forms::upper_or_digit(byte) && byte != b' ');
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

/// `pat`, 14 letters and digits, a dot, 64 hexadecimal digits.
fn is_airtable_token(after_prefix: &[u8]) -> bool {
    let token = after_prefix.split_at_checked(14 + 1 + 64);
    token.is_some_and(|(token, next)| {
        let (id, secret) = (&token[..14], &token[15..]);
        token[14] == b'.'
            && id.iter().all(|&byte| alphanumeric(byte))
            && secret.iter().all(|&byte| forms::lower_hex(byte))
            && !next.first().is_some_and(|&byte| word_or_dash(byte))
            && looks_drawn(secret)
    })
}

/// How far before its key the name of Mailgun may be.
const MAILGUN_NEAR: usize = 64;

/// `key-` and 32 hexadecimal digits, with its vendor or its user `api` before it. Alone, that is also the name of a hash.
fn is_mailgun_key(before: &[u8], after_prefix: &[u8]) -> bool {
    let near = &before[before.len().saturating_sub(MAILGUN_NEAR)..];
    let names_vendor = || near.windows(7).any(|word| word.eq_ignore_ascii_case(b"mailgun"));
    after_prefix.split_at_checked(32).is_some_and(|(key, next)| {
        key.iter().all(|&byte| forms::lower_hex(byte))
            && !next.first().is_some_and(|&byte| word_or_dash(byte))
            && looks_drawn(key)
            && (near.ends_with(b"api:") || names_vendor())
    })
}

/// The number of a user in base64, a time, and a signature: `MTk4NjIy….Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs`.
fn is_discord_token(text: &[u8]) -> bool {
    // Most words end the check at their third character.
    let digits = text.get(..23).is_some_and(encodes_digits);
    let token = &text[..text.len().min(27 + 1 + 7 + 1 + 46)];
    let Some((id, rest)) = part(token).filter(|_| digits) else { return false };
    let Some((time, rest)) = rest.strip_prefix(b".").and_then(part) else { return false };
    let Some(rest) = rest.strip_prefix(b".") else { return false };
    let Some((signature, _)) = part(rest) else { return false };
    (23..=27).contains(&id)
        && (6..=7).contains(&time)
        && (27..=45).contains(&signature)
        && encodes_digits(&text[..id])
        && looks_drawn(&rest[..signature])
}

/// Whether it is base64 of decimal digits.
fn encodes_digits(text: &[u8]) -> bool {
    let (mut bits, mut count) = (0_u32, 0);
    text.iter().all(|byte| {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            _ => return false,
        };
        (bits, count) = (bits << 6 | u32::from(value), count + 6);
        if count < 8 {
            return true;
        }
        count -= 8;
        (bits >> count).to_le_bytes()[0].is_ascii_digit()
    })
}

/// The length of the token part at the start of the text, and the text after it. A part that is longer than in any
/// token does not count.
fn part(text: &[u8]) -> Option<(usize, &[u8])> {
    let longest = text.len().min(LONGEST_PART);
    let length = text[..longest].iter().take_while(|&&byte| word_or_dash(byte)).count();
    (length < LONGEST_PART).then(|| (length, &text[length..]))
}

const LONGEST_PART: usize = 8 * 1024;

/// `postgres://user:password@host` and similar, unless the password is a variable or a placeholder.
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
        // Many development servers have the user's name as the default password.
        has_scheme && named.is_some_and(|(user, password)| user != password && !is_placeholder(password))
    })
}

const LONGEST_AUTHORITY: usize = 512;

/// Whether a password is only a placeholder: a variable, a mask, or the word itself.
fn is_placeholder(password: &[u8]) -> bool {
    let is_word = ["password", "passwd", "pass", "secret", "token"]
        .iter()
        .any(|word| password.eq_ignore_ascii_case(word.as_bytes()));
    let Some((first, rest)) = password.split_first() else { return true };
    is_word || b"$<{[%*(".contains(first) || !first.is_ascii() || rest.iter().all(|byte| byte == first)
}

/// 40 characters of base64 after `aws_secret_access_key` or a similar name.
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

/// The byte pairs that begin a marker inside a credential. One pass looks for all of them.
static SIGNS: [u64; 1024] = forms::bits_of(&[
    *b"Q~", *b":A", *b"_A", *b"_C", *b"_P", *b"_S", *b"T3", *b"JQ", *b"AZ", *b"Az", *b"za", *b"ZA", *b"sw",
    *b"SW",
]);

/// A credential that is recognized by a marker inside or before it.
fn find_sign(text: &[u8]) -> Option<&'static str> {
    text.windows(2).enumerate().filter(|(_, pair)| forms::has_bit(&SIGNS, pair[0], pair[1])).find_map(
        |(at, pair)| match pair {
            b"Q~" => is_entra_secret(text, at).then_some("a Microsoft Entra client secret"),
            b":A" => is_telegram_token(text, at).then_some("a Telegram bot token"),
            b"za" | b"ZA" => is_authorization(text, at).then_some("a token in an Authorization header"),
            b"sw" | b"SW" => is_password(text, at).then_some("a password"),
            [b'_', _] => is_named_secret(&text[at + 1..]).then_some("a value behind the name of a secret"),
            _ => MARKERS.iter().find(|marker| marker.is_at(text, at)).map(|marker| marker.kind),
        },
    )
}

/// The endings of environment variables whose value is a secret.
const SECRET_NAMES: [&[u8]; 7] = [
    b"API_KEY",
    b"API_TOKEN",
    b"AUTH_TOKEN",
    b"ACCESS_TOKEN",
    b"SECRET_KEY",
    b"CLIENT_SECRET",
    b"PRIVATE_TOKEN",
];

/// The maximum number of characters that are read of a value after such a name, and the minimum length of a secret.
const LONGEST_SECRET: usize = 256;
const SHORTEST_SECRET: usize = 32;

/// `CLOUDFLARE_API_TOKEN=…` and similar, starting at `API`. The name shows that the value is a token, in whatever form.
fn is_named_secret(text: &[u8]) -> bool {
    let after = SECRET_NAMES.iter().find_map(|name| text.strip_prefix(*name));
    after.is_some_and(|after| {
        let separators = after.iter().take(8).take_while(|byte| b"\"' :=>\\\t".contains(byte)).count();
        let value = &after[separators..];
        let value = &value[..value.len().min(LONGEST_SECRET)];
        let value = &value[..value.iter().position(|&byte| !of_value(byte)).unwrap_or(value.len())];
        separators > 0
            && value.len() >= SHORTEST_SECRET
            && looks_drawn(value)
            && has_drawn_run(value, of_value)
    })
}

/// The schemes of `Authorization` headers that are followed by a credential.
const SCHEMES: [&[u8]; 4] = [b"bearer", b"basic", b"token", b"bot"];

/// The minimum length of a credential in an `Authorization` header. Shorter values are examples.
const SHORTEST_AUTHORIZATION: usize = 16;

/// `Authorization: Bearer …` in any case, with `za` at this position. Also in JSON and in the arguments of `curl`.
fn is_authorization(text: &[u8], at: usize) -> bool {
    let Some(after) = surrounded(text, at, b"authori", b"tion") else { return false };
    let separators = after.iter().take(8).take_while(|byte| b"\"' :=>\\\t".contains(byte)).count();
    let after = &after[separators..];
    let scheme =
        SCHEMES.iter().find(|scheme| starts_with_word(after, scheme)).map_or(0, |scheme| scheme.len());
    let after = &after[scheme..];
    let spaces = after.iter().take(8).take_while(|byte| **byte == b' ').count();
    let value = &after[spaces..];
    let value = &value[..value.len().min(LONGEST_SECRET)];
    let value =
        &value[..value.iter().position(|&byte| !of_value(byte) && byte != b'~').unwrap_or(value.len())];
    let is_uuid = value.len() == 36 && value.iter().all(|&byte| byte.is_ascii_hexdigit() || byte == b'-');
    separators > 0
        && scheme > 0
        && spaces > 0
        && value.len() >= SHORTEST_AUTHORIZATION
        && looks_drawn(value)
        && (is_uuid || has_drawn_run(value, |_| true))
}

/// The minimum length of a password in a URL or a connection string, and after any other `password=`.
const SHORTEST_PASSWORD: usize = 6;
const SHORTEST_ASSIGNED_PASSWORD: usize = 8;

/// `password=…` or `passwd=…` in any case, with `sw` at this position: in the query of a URL, in a connection string, or as
/// an assignment. Words (`password=changed`) and code (`password=config.password`) are not passwords.
fn is_password(text: &[u8], at: usize) -> bool {
    let after = surrounded(text, at, b"pas", b"ord=").or_else(|| surrounded(text, at, b"pas", b"d="));
    let Some(after) = after else { return false };
    let before = at.checked_sub(4).map(|before| text[before]);
    let is_parameter = matches!(before, Some(b'?' | b'&' | b';'));
    let quotes = after.iter().take(2).take_while(|byte| b"\"'\\".contains(byte)).count();
    let value = &after[quotes..];
    let value = &value[..value.len().min(LONGEST_SECRET)];
    let ends = |&byte: &u8| byte <= b' ' || b"&;,\"'`\\<>|#".contains(&byte);
    let value = &value[..value.iter().position(ends).unwrap_or(value.len())];
    let has = |test: fn(&u8) -> bool| value.iter().any(test);
    let looks_secret = if is_parameter {
        value.len() >= SHORTEST_PASSWORD && has(|byte| !byte.is_ascii_lowercase())
    } else {
        value.len() >= SHORTEST_ASSIGNED_PASSWORD
            && has(u8::is_ascii_digit)
            && has(u8::is_ascii_alphabetic)
            && !value.contains(&b'.')
            && looks_drawn(value)
    };
    let is_code = || value.iter().any(|byte| b"()[]{}$".contains(byte));
    looks_secret && !is_code() && !is_placeholder(value) && !names_placeholder(value)
}

/// Whether a value contains a word that only placeholders and names of variables contain.
fn names_placeholder(value: &[u8]) -> bool {
    let words: [&[u8]; 9] =
        [b"pass", b"secret", b"token", b"example", b"change", b"your", b"test", b"dummy", b"placeholder"];
    words.iter().any(|word| value.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word)))
}

/// The text after `before`, the two bytes at this position, and `after`, in any case.
fn surrounded<'a>(text: &'a [u8], at: usize, before: &[u8], after: &[u8]) -> Option<&'a [u8]> {
    let start = at.checked_sub(before.len())?;
    let (found, rest) = text[at + 2..].split_at_checked(after.len())?;
    let is_found = text[start..at].eq_ignore_ascii_case(before) && found.eq_ignore_ascii_case(after);
    is_found.then_some(rest)
}

fn starts_with_word(text: &[u8], start: &[u8]) -> bool {
    text.split_at_checked(start.len()).is_some_and(|(found, _)| found.eq_ignore_ascii_case(start))
}

fn of_value(byte: u8) -> bool {
    word_or_dash(byte) || base64(byte) || byte == b'.'
}

/// Three characters, a digit, `Q~` at this position, and at least 31 more.
fn is_entra_secret(text: &[u8], at: usize) -> bool {
    let allowed = |byte: &u8| word_or_dash(*byte) || matches!(byte, b'~' | b'.');
    let Some(start) = at.checked_sub(4) else { return false };
    let begins_word = start.checked_sub(1).is_none_or(|before| !allowed(&text[before]));
    let Some((body, _)) = text[at + 2..].split_at_checked(31) else { return false };
    begins_word
        && text[start..at - 1].iter().all(allowed)
        && text[at - 1].is_ascii_digit()
        && body.iter().all(allowed)
        && looks_drawn(body)
}

/// The number of a bot, a colon at this position, and 35 characters that begin with `AA`.
fn is_telegram_token(text: &[u8], at: usize) -> bool {
    let digits = text[..at].iter().rev().take(11).take_while(|byte| byte.is_ascii_digit()).count();
    let body = text[at + 1..].split_at_checked(35).map(|(body, _)| body);
    (8..=10).contains(&digits)
        && body.is_some_and(|body| {
            body.starts_with(b"AA") && body.iter().all(|&byte| word_or_dash(byte)) && looks_drawn(body)
        })
}

/// A marker inside a credential, with this many letters and digits before and after it.
struct Marker {
    kind: &'static str,
    sign: &'static [u8],
    before: usize,
    after: usize,
}

const MARKERS: [Marker; 6] = [
    Marker { kind: "an OpenAI key", sign: b"T3BlbkFJ", before: 20, after: 20 },
    Marker { kind: "an Azure key", sign: b"JQQJ99", before: 52, after: 26 },
    Marker { kind: "an Azure DevOps token", sign: b"AZDO", before: 76, after: 4 },
    Marker { kind: "an Azure Search key", sign: b"AzSe", before: 42, after: 5 },
    Marker { kind: "an Azure Cache key", sign: b"AzCa", before: 33, after: 6 },
    Marker { kind: "an Azure Functions key", sign: b"AzFu", before: 44, after: 5 },
];

impl Marker {
    fn is_at(&self, text: &[u8], at: usize) -> bool {
        let Some(after) = text[at..].strip_prefix(self.sign) else { return false };
        let Some(start) = at.checked_sub(self.before) else { return false };
        let Some((after, _)) = after.split_at_checked(self.after) else { return false };
        let before = &text[start..at];
        before.iter().chain(after).all(|&byte| word_or_dash(byte)) && looks_drawn(before)
    }
}

/// The text of JSON without the escapes in its strings, if it has any. Invalid escapes stay.
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
                // No letter of a credential needs a surrogate pair.
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
