//! The forms of credentials that are recognized by the prefix of their word.

use Length::{AtLeast, Exactly};

/// The form of a vendor's credentials.
pub(super) struct Form {
    pub(super) kind: &'static str,
    pub(super) prefix: &'static str,
    pub(super) allowed: fn(u8) -> bool,
    pub(super) length: Length,
}

/// How many characters follow the prefix.
#[derive(Clone, Copy)]
pub(super) enum Length {
    Exactly(usize),
    AtLeast(usize),
}

const fn form(kind: &'static str, prefix: &'static str, allowed: fn(u8) -> bool, length: Length) -> Form {
    Form { kind, prefix, allowed, length }
}

/// Grouped by vendor, from the prefixes of `gitleaks` and GitHub's secret scanning. A form is matched at the start of
/// a word. Test keys of payment services are not secrets.
pub(super) const FORMS: &[Form] = &[
    form("an AWS access key", "AKIA", upper_or_digit, Exactly(16)),
    form("an AWS access key", "ASIA", upper_or_digit, Exactly(16)),
    form("an AWS access key", "ABIA", upper_or_digit, Exactly(16)),
    form("an AWS access key", "ACCA", upper_or_digit, Exactly(16)),
    form("an AWS Bedrock key", "ABSK", base64, AtLeast(100)),
    form("an AWS Bedrock key", "bedrock-api-key-", base64, AtLeast(60)),
    form("an Alibaba Cloud key", "LTAI", alphanumeric, Exactly(20)),
    form("a Tencent Cloud key", "AKID", alphanumeric, Exactly(32)),
    form("a GitHub token", "ghp_", alphanumeric, AtLeast(36)),
    form("a GitHub token", "gho_", alphanumeric, AtLeast(36)),
    form("a GitHub token", "ghu_", alphanumeric, AtLeast(36)),
    form("a GitHub token", "ghs_", alphanumeric, AtLeast(36)),
    form("a GitHub token", "ghr_", alphanumeric, AtLeast(36)),
    form("a GitHub token", "github_pat_", word, AtLeast(40)),
    // An installation token is the number of the app and a signed token.
    form("a GitHub token", "ghs_", dotted, AtLeast(60)),
    form("a GitLab token", "glpat-", word_or_dash, AtLeast(20)),
    form("a GitLab token", "glrt-", word_or_dash, AtLeast(20)),
    form("a GitLab token", "glrtr-", word_or_dash, AtLeast(20)),
    form("a GitLab token", "gldt-", word_or_dash, AtLeast(20)),
    form("a GitLab token", "glptt-", word_or_dash, AtLeast(20)),
    form("a GitLab token", "glcbt-", word_or_dash, AtLeast(20)),
    form("a GitLab token", "glft-", word_or_dash, AtLeast(20)),
    form("a GitLab token", "glsoat-", word_or_dash, AtLeast(20)),
    form("a GitLab token", "glagent-", word_or_dash, AtLeast(20)),
    form("a GitLab token", "glffct-", word_or_dash, AtLeast(20)),
    form("a GitLab token", "glimt-", word_or_dash, AtLeast(20)),
    form("a GitLab token", "gloas-", word_or_dash, AtLeast(20)),
    form("a GitLab token", "glwt-", word_or_dash, AtLeast(20)),
    form("a GitLab token", "GR1348941", word_or_dash, AtLeast(20)),
    form("a GitLab session", "_gitlab_session=", lower_hex, Exactly(32)),
    form("an Anthropic key", "sk-ant-", word_or_dash, AtLeast(32)),
    form("an OpenAI key", "sk-proj-", word_or_dash, AtLeast(32)),
    form("an OpenAI key", "sk-svcacct-", word_or_dash, AtLeast(32)),
    form("an OpenAI key", "sk-admin-", word_or_dash, AtLeast(32)),
    form("an OpenAI key", "sk-", alphanumeric, AtLeast(32)),
    form("an OpenRouter key", "sk-or-v1-", alphanumeric, AtLeast(32)),
    form("a Groq key", "gsk_", alphanumeric, AtLeast(40)),
    form("an xAI key", "xai-", alphanumeric, AtLeast(60)),
    form("a Perplexity key", "pplx-", alphanumeric, AtLeast(40)),
    form("a Replicate token", "r8_", alphanumeric, AtLeast(37)),
    form("an NVIDIA key", "nvapi-", word_or_dash, AtLeast(60)),
    form("a LangSmith key", "lsv2_pt_", word, AtLeast(32)),
    form("a LangSmith key", "lsv2_sk_", word, AtLeast(32)),
    form("a Pinecone key", "pcsk_", word, AtLeast(40)),
    form("a Cerebras key", "csk-", alphanumeric, AtLeast(40)),
    form("a Together key", "tgp_v1_", word_or_dash, AtLeast(32)),
    form("an E2B key", "e2b_", lower_hex, Exactly(40)),
    form("a Fireworks key", "fw_", alphanumeric_or_dash, AtLeast(22)),
    form("a Tavily key", "tvly-", word_or_dash, AtLeast(32)),
    form("an ElevenLabs key", "sk_", lower_hex, Exactly(48)),
    form("a Firecrawl key", "fc-", lower_hex, Exactly(32)),
    form("a Stripe key", "sk_live_", alphanumeric, AtLeast(16)),
    form("a Stripe key", "rk_live_", alphanumeric, AtLeast(16)),
    form("a Stripe key", "whsec_", alphanumeric, AtLeast(32)),
    form("a Square token", "sq0atp-", word_or_dash, AtLeast(22)),
    form("a Square token", "sq0csp-", word_or_dash, AtLeast(40)),
    form("a Shippo token", "shippo_live_", hex, Exactly(40)),
    form("a Duffel token", "duffel_live_", word_or_dash, AtLeast(43)),
    form("an EasyPost key", "EZAK", alphanumeric, Exactly(54)),
    form("a Slack token", "xoxa-", alphanumeric_or_dash, AtLeast(20)),
    form("a Slack token", "xoxb-", alphanumeric_or_dash, AtLeast(20)),
    form("a Slack token", "xoxe-", alphanumeric_or_dash, AtLeast(20)),
    form("a Slack token", "xoxp-", alphanumeric_or_dash, AtLeast(20)),
    form("a Slack token", "xoxr-", alphanumeric_or_dash, AtLeast(20)),
    form("a Slack token", "xoxs-", alphanumeric_or_dash, AtLeast(20)),
    form("a Slack token", "xapp-1-", alphanumeric_or_dash, AtLeast(30)),
    form("a Slack token", "xoxc-", alphanumeric_or_dash, AtLeast(20)),
    form("a Slack token", "xoxd-", alphanumeric_or_dash, AtLeast(20)),
    form("a Slack token", "xoxo-", alphanumeric_or_dash, AtLeast(20)),
    form("a Slack token", "xwfp-", alphanumeric_or_dash, AtLeast(20)),
    form("a Slack webhook", "hooks.slack.com/services/", path, AtLeast(40)),
    form("a Slack webhook", "hooks.slack.com/workflows/", path, AtLeast(40)),
    form("a Slack webhook", "hooks.slack.com/triggers/", path, AtLeast(40)),
    form("a Discord webhook", "discord.com/api/webhooks/", path, AtLeast(60)),
    form("a Discord webhook", "discordapp.com/api/webhooks/", path, AtLeast(60)),
    form("a Teams webhook", "webhook.office.com/webhookb2/", teams_path, AtLeast(100)),
    form("a Google key", "AIza", word_or_dash, Exactly(35)),
    form("a Google token", "ya29.", word_or_dash, AtLeast(30)),
    form("a Google secret", "GOCSPX-", word_or_dash, AtLeast(28)),
    form("a Google token", "1//0", word_or_dash, AtLeast(40)),
    form("a Google key", "AQ.Ab", word_or_dash, AtLeast(40)),
    form("an npm token", "npm_", alphanumeric, Exactly(36)),
    form("a PyPI token", "pypi-AgE", word_or_dash, AtLeast(50)),
    form("a RubyGems key", "rubygems_", lower_hex, Exactly(48)),
    form("a Docker token", "dckr_pat_", word_or_dash, AtLeast(27)),
    form("a Docker token", "dckr_oat_", word_or_dash, AtLeast(27)),
    form("a NuGet key", "oy2", lower_or_digit, Exactly(43)),
    form("a crates.io token", "cio", alphanumeric, Exactly(32)),
    form("a Clojars token", "CLOJARS_", hex, Exactly(60)),
    form("an Artifactory key", "AKCp", alphanumeric, Exactly(69)),
    form("an Artifactory key", "cmVmd", alphanumeric, Exactly(59)),
    form("a Hugging Face token", "hf_", alphanumeric, AtLeast(30)),
    form("a Hugging Face token", "api_org_", alphanumeric, Exactly(34)),
    form("a DigitalOcean token", "dop_v1_", lower_hex, Exactly(64)),
    form("a DigitalOcean token", "doo_v1_", lower_hex, Exactly(64)),
    form("a DigitalOcean token", "dor_v1_", lower_hex, Exactly(64)),
    form("a Cloudflare token", "cfk_", alphanumeric, AtLeast(40)),
    form("a Cloudflare token", "cfut_", alphanumeric, AtLeast(40)),
    form("a Cloudflare token", "cfat_", alphanumeric, AtLeast(40)),
    form("a Cloudflare key", "v1.0-", hex_or_dash, AtLeast(171)),
    form("a Fly token", "fo1_", word_or_dash, AtLeast(43)),
    form("a Fly token", "fm1a_", base64, AtLeast(100)),
    form("a Fly token", "fm1r_", base64, AtLeast(100)),
    form("a Fly token", "fm2_", base64, AtLeast(100)),
    // The scheme of its header, before any of these.
    form("a Fly token", "FlyV1 ", base64_or_word, AtLeast(24)),
    form("a Vercel token", "vcp_", alphanumeric, AtLeast(24)),
    form("a Vercel token", "vci_", alphanumeric, AtLeast(24)),
    form("a Vercel token", "vca_", alphanumeric, AtLeast(24)),
    form("a Vercel token", "vcr_", alphanumeric, AtLeast(24)),
    form("a Vercel token", "vck_", alphanumeric, AtLeast(24)),
    form("a Vercel token", "vercel_blob_rw_", word, AtLeast(30)),
    form("a Vercel token", "vercel_", alphanumeric, AtLeast(24)),
    form("a Heroku key", "HRKU-", word_or_dash, AtLeast(36)),
    form("a Render key", "rnd_", alphanumeric, AtLeast(28)),
    form("a Neon key", "napi_", lower_or_digit, AtLeast(40)),
    form("a PlanetScale token", "pscale_tkn_", word_or_dash, AtLeast(32)),
    form("a PlanetScale token", "pscale_pw_", word_or_dash, AtLeast(32)),
    form("a PlanetScale token", "pscale_oauth_", word_or_dash, AtLeast(32)),
    form("a Terraform token", "atlasv1.", word_or_dash, AtLeast(60)),
    form("a Tailscale key", "tskey-", alphanumeric_or_dash, AtLeast(30)),
    form("a PostHog key", "phc_", alphanumeric, AtLeast(39)),
    form("a PostHog key", "phx_", alphanumeric, AtLeast(39)),
    form("a Databricks token", "dapi", lower_hex, AtLeast(32)),
    form("a Shopify token", "shpat_", hex, Exactly(32)),
    form("a Shopify token", "shpca_", hex, Exactly(32)),
    form("a Shopify token", "shppa_", hex, Exactly(32)),
    form("a Shopify token", "shpss_", hex, Exactly(32)),
    form("a Shopify token", "shptka_", hex, Exactly(32)),
    form("a Linear key", "lin_api_", alphanumeric, AtLeast(40)),
    form("a Linear key", "lin_oauth_", alphanumeric, AtLeast(40)),
    form("an Atlassian token", "ATATT3", word_or_dash, AtLeast(100)),
    form("an Atlassian token", "ATCTT3", word_or_dash, AtLeast(100)),
    form("a Bitbucket password", "ATBB", alphanumeric, Exactly(32)),
    form("a Figma token", "figd_", word_or_dash, AtLeast(40)),
    form("a Contentful token", "CFPAT-", word_or_dash, AtLeast(43)),
    form("a Typeform token", "tfp_", word_or_dash, AtLeast(40)),
    form("a Dropbox token", "sl.", dotted, AtLeast(100)),
    form("a Facebook token", "EAAC", alphanumeric, AtLeast(100)),
    form("a Facebook token", "EAAM", alphanumeric, AtLeast(100)),
    form("a Notion token", "ntn_", alphanumeric, AtLeast(40)),
    form("a Notion token", "secret_", alphanumeric, Exactly(43)),
    form("a Supabase token", "sbp_", lower_hex, Exactly(40)),
    form("a Supabase token", "sbp_v0_", lower_hex, Exactly(40)),
    form("a Supabase key", "sb_secret_", word_or_dash, AtLeast(31)),
    form("a Grafana token", "glsa_", word, AtLeast(32)),
    form("a Grafana token", "glc_", base64, AtLeast(32)),
    form("a Grafana key", "eyJrIjoi", alphanumeric, AtLeast(70)),
    form("a Sentry token", "sntryu_", lower_hex, Exactly(64)),
    form("a Sentry token", "sntrys_", base64, AtLeast(60)),
    form("a New Relic key", "NRAK-", upper_or_digit, Exactly(27)),
    form("a New Relic key", "NRII-", word_or_dash, AtLeast(32)),
    form("a Dynatrace token", "dt0c01.", dotted, AtLeast(89)),
    form("a Postman key", "PMAK-", hex_or_dash, AtLeast(59)),
    form("a Buildkite token", "bkua_", lower_hex, Exactly(40)),
    form("a CircleCI token", "CCIPAT_", word, AtLeast(60)),
    form("an Octopus Deploy key", "API-", upper_or_digit, Exactly(26)),
    form("a Sourcegraph token", "sgp_", word, AtLeast(40)),
    form("a Prefect key", "pnu_", alphanumeric, Exactly(36)),
    form("a ReadMe key", "rdme_", lower_or_digit, Exactly(70)),
    form("an Infracost key", "ico-", alphanumeric, Exactly(32)),
    form("a Vault token", "hvs.", word_or_dash, AtLeast(24)),
    form("a Vault token", "hvb.", word_or_dash, AtLeast(60)),
    form("a Vault token", "hvr.", word_or_dash, AtLeast(24)),
    form("a Doppler token", "dp.pt.", alphanumeric, AtLeast(40)),
    form("a Doppler token", "dp.ct.", alphanumeric, AtLeast(40)),
    form("a Doppler token", "dp.sa.", alphanumeric, AtLeast(40)),
    form("a Doppler token", "dp.scim.", alphanumeric, AtLeast(40)),
    form("a Doppler token", "dp.audit.", alphanumeric, AtLeast(40)),
    form("a Doppler token", "dp.st.", dotted, AtLeast(40)),
    form("a 1Password token", "ops_eyJ", base64, AtLeast(100)),
    form("a Pulumi token", "pul-", lower_hex, Exactly(40)),
    form("an Azure key", "AccountKey=", base64, AtLeast(80)),
    form("an Azure key", "SharedAccessKey=", base64, AtLeast(40)),
    form("an age key", "AGE-SECRET-KEY-1", upper_or_digit, AtLeast(58)),
    form("an OpenShift token", "sha256~", word_or_dash, Exactly(43)),
    form("a Twilio key", "SK", lower_hex, Exactly(32)),
    form("a Mapbox token", "sk.eyJ", dotted, AtLeast(60)),
    form("a Brevo key", "xkeysib-", alphanumeric_or_dash, AtLeast(64)),
    form("a Brevo key", "xsmtpsib-", alphanumeric_or_dash, AtLeast(64)),
];

/// The byte pairs that the word of a credential can begin with. They rule out most words.
pub(super) static BEGINNINGS: [u64; 1024] = {
    // A SendGrid key, a signed token, an Airtable token, a Mailgun key and a Discord token have their own parsers. The last
    // one begins with two digits in base64.
    let mut bits = bits_of(&[
        *b"SG", *b"ey", *b"pa", *b"ke", *b"MD", *b"MT", *b"Mj", *b"Mz", *b"ND", *b"NT", *b"Nj", *b"Nz",
        *b"OD", *b"OT",
    ]);
    let mut index = 0;
    while index < FORMS.len() {
        let prefix = FORMS[index].prefix.as_bytes();
        bits = with_bit(bits, prefix[0], prefix[1]);
        index += 1;
    }
    bits
};

/// A set of pairs of bytes, a bit each.
pub(super) const fn bits_of(pairs: &[[u8; 2]]) -> [u64; 1024] {
    let mut bits = [0; 1024];
    let mut index = 0;
    while index < pairs.len() {
        bits = with_bit(bits, pairs[index][0], pairs[index][1]);
        index += 1;
    }
    bits
}

const fn with_bit(mut bits: [u64; 1024], first: u8, second: u8) -> [u64; 1024] {
    bits[first as usize * 4 + second as usize / 64] |= 1 << (second % 64);
    bits
}

/// Whether a pair is in the set.
pub(super) fn has_bit(bits: &[u64; 1024], first: u8, second: u8) -> bool {
    bits[usize::from(first) * 4 + usize::from(second) / 64] & (1 << (second % 64)) != 0
}

pub(super) fn upper_or_digit(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

pub(super) fn lower_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

pub(super) fn base64(byte: u8) -> bool {
    alphanumeric(byte) || matches!(byte, b'+' | b'/' | b'=')
}

pub(super) fn alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn alphanumeric_or_dash(byte: u8) -> bool {
    alphanumeric(byte) || byte == b'-'
}

pub(super) fn word(byte: u8) -> bool {
    alphanumeric(byte) || byte == b'_'
}

pub(super) fn word_or_dash(byte: u8) -> bool {
    word(byte) || byte == b'-'
}

fn lower_or_digit(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

fn hex_or_dash(byte: u8) -> bool {
    hex(byte) || byte == b'-'
}

fn dotted(byte: u8) -> bool {
    word_or_dash(byte) || byte == b'.'
}

fn base64_or_word(byte: u8) -> bool {
    base64(byte) || word_or_dash(byte)
}

fn path(byte: u8) -> bool {
    word_or_dash(byte) || byte == b'/'
}

fn teams_path(byte: u8) -> bool {
    path(byte) || byte == b'@'
}
