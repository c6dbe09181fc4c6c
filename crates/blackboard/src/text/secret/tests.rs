use super::{find, unescape};

// The examples are assembled here, so that no scanner reports this file as a leak.
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
        ("eyJ", "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P", "a signed token (JWT)"),
    ] {
        for around in [("", ""), ("key=", " rest"), ("\"", "\""), ("é", "é"), ("https://", "@example.org")]
        {
            let text = format!("{}{prefix}{body}{}", around.0, around.1);
            assert_eq!(find(&text), Some(kind), "{text}");
        }
    }
}

/// This many letters and digits, as if random.
fn drawn(length: usize) -> String {
    DRAWN.chars().cycle().take(length).collect()
}

fn hex(length: usize) -> String {
    "0123456789abcdef".chars().cycle().take(length).collect()
}

#[test]
fn credentials_of_2026_are_found() {
    let jwt = format!("{}{}.{}{}.{}", "ey", "JhbGciOiJSUzI1NiJ9", "ey", "JpYXQiOjE3fQ", drawn(43));
    for (prefix, body, kind) in [
        ("ABIA", "IOSFODNN7EXAMPLE".to_owned(), "an AWS access key"),
        ("ACCA", "IOSFODNN7EXAMPLE".to_owned(), "an AWS access key"),
        ("ABSK", drawn(110), "an AWS Bedrock key"),
        ("bedrock-api-key-", drawn(80), "an AWS Bedrock key"),
        ("LTAI", drawn(20), "an Alibaba Cloud key"),
        ("AKID", drawn(32), "a Tencent Cloud key"),
        ("ghs_", format!("1234567_{jwt}"), "a GitHub token"),
        ("glffct-", drawn(20), "a GitLab token"),
        ("glimt-", drawn(25), "a GitLab token"),
        ("gloas-", drawn(64), "a GitLab token"),
        ("GR13489", format!("41{}", drawn(20)), "a GitLab token"),
        ("sk-", drawn(32), "an OpenAI key"),
        ("nvapi-", drawn(64), "an NVIDIA key"),
        ("lsv2_pt_", format!("{}_{}", hex(32), hex(10)), "a LangSmith key"),
        ("pcsk_", format!("{}_{}", drawn(6), drawn(40)), "a Pinecone key"),
        ("csk-", drawn(48), "a Cerebras key"),
        ("tvly-", format!("dev-{}", drawn(32)), "a Tavily key"),
        ("fw_", drawn(24), "a Fireworks key"),
        ("napi_", "a1b2c3d4e5".chars().cycle().take(64).collect(), "a Neon key"),
        ("phc_", drawn(43), "a PostHog key"),
        ("phx_", drawn(43), "a PostHog key"),
        ("api:", format!("key-{}", hex(32)), "a Mailgun key"),
        ("Mailgun ", format!("is used with key-{}", hex(32)), "a Mailgun key"),
        ("sk_", hex(48), "an ElevenLabs key"),
        ("sq0atp-", drawn(22), "a Square token"),
        ("xoxc-", format!("1234567890-{}", drawn(30)), "a Slack token"),
        ("xoxd-", drawn(40), "a Slack token"),
        ("hooks.slack.com/", format!("services/T01234567/B01234567/{}", drawn(24)), "a Slack webhook"),
        ("discord.com/api/", format!("webhooks/123456789012345678/{}", drawn(68)), "a Discord webhook"),
        ("1//0", drawn(60), "a Google token"),
        ("AQ.", format!("Ab{}", drawn(48)), "a Google key"),
        ("dckr_oat_", drawn(32), "a Docker token"),
        ("cio", drawn(32), "a crates.io token"),
        ("oy2", "a1b2c3d4e5".chars().cycle().take(43).collect(), "a NuGet key"),
        ("api_org_", drawn(34), "a Hugging Face token"),
        ("cfk_", drawn(48), "a Cloudflare token"),
        ("cfut_", drawn(48), "a Cloudflare token"),
        ("cfat_", drawn(48), "a Cloudflare token"),
        ("v1.0-", format!("{}-{}", hex(24), hex(146)), "a Cloudflare key"),
        ("fo1_", drawn(43), "a Fly token"),
        ("fm2_", drawn(120), "a Fly token"),
        ("vcp_", drawn(56), "a Vercel token"),
        ("vck_", drawn(56), "a Vercel token"),
        ("HRKU-", format!("AA{}", drawn(58)), "a Heroku key"),
        ("rnd_", drawn(32), "a Render key"),
        ("pscale_tkn_", drawn(43), "a PlanetScale token"),
        ("a1B2c3D4e5F6g7.", format!("atlasv1.{}", drawn(64)), "a Terraform token"),
        ("tskey-", format!("auth-k1234567CNTRL-{}", drawn(32)), "a Tailscale key"),
        ("dapi", format!("{}-2", hex(32)), "a Databricks token"),
        ("shpca_", hex(32), "a Shopify token"),
        ("shpss_", hex(32), "a Shopify token"),
        ("lin_oauth_", drawn(40), "a Linear key"),
        ("ATATT3", drawn(186), "an Atlassian token"),
        ("ATBB", drawn(32), "a Bitbucket password"),
        ("figd_", drawn(40), "a Figma token"),
        ("sl.", format!("u.{}", drawn(130)), "a Dropbox token"),
        ("EAAC", drawn(120), "a Facebook token"),
        ("secret_", drawn(43), "a Notion token"),
        ("sb_secret_", drawn(31), "a Supabase key"),
        ("glc_", drawn(80), "a Grafana token"),
        ("glsa_", format!("{}_{}", drawn(32), hex(8)), "a Grafana token"),
        ("sntryu_", hex(64), "a Sentry token"),
        ("sntrys_", drawn(90), "a Sentry token"),
        ("NRAK-", "A1B2C3D4E5F6G7H8I9J0K1L2M3N".to_owned(), "a New Relic key"),
        ("dt0c01.", format!("{}.{}", drawn(24), drawn(64)), "a Dynatrace token"),
        ("PMAK-", format!("{}-{}", hex(24), hex(34)), "a Postman key"),
        ("bkua_", hex(40), "a Buildkite token"),
        ("sgp_", hex(40), "a Sourcegraph token"),
        ("pnu_", drawn(36), "a Prefect key"),
        ("hvb.", drawn(140), "a Vault token"),
        ("dp.pt.", drawn(43), "a Doppler token"),
        ("dp.st.", format!("dev.{}", drawn(43)), "a Doppler token"),
        ("ops_", format!("eyJ{}", drawn(250)), "a 1Password token"),
        ("sha256~", drawn(43), "an OpenShift token"),
        ("SK", hex(32), "a Twilio key"),
        ("xkeysib-", format!("{}-{}", hex(64), drawn(16)), "a Brevo key"),
        ("123456789:", format!("AA{}", drawn(33)), "a Telegram bot token"),
        ("a1B2", format!("{}~{}", 'Q', drawn(34)), "a Microsoft Entra client secret"),
        (&drawn(52), format!("{}99{}", "JQQJ", drawn(26)), "an Azure key"),
        (&drawn(76), format!("AZ{}{}", "DO", drawn(4)), "an Azure DevOps token"),
        ("CLOUDFLARE_API_", format!("TOKEN={}", drawn(40)), "a value behind the name of a secret"),
        ("TWILIO_AUTH_", format!("TOKEN: \"{}\"", hex(32)), "a value behind the name of a secret"),
        ("-----BEGIN ", "SSH2 ENCRYPTED PRIVATE KEY-----".to_owned(), "a private key"),
    ] {
        for (before, after) in [("", ""), ("key=", " rest"), ("\"", "\""), ("see ", "\n")] {
            let text = format!("{before}{prefix}{body}{after}");
            assert_eq!(find(&text), Some(kind), "{text}");
        }
    }
}

#[test]
fn headers_passwords_and_more_tokens_are_found() {
    testkit::limit_test();
    let uuid = "550e8400-e29b-41d4-a716-446655440000";
    let header = "a token in an Authorization header";
    for (prefix, body, kind) in [
        ("Authorization: ", format!("Bearer {}", drawn(20)), header),
        ("authorization: ", format!("bearer {}", drawn(32)), header),
        ("AUTHORIZATION: ", format!("BEARER {}", hex(40)), header),
        ("Authorization: ", format!("Bearer {uuid}"), header),
        ("Authorization: ", format!("Bearer {}~{}.x_-=", drawn(20), drawn(9)), header),
        ("\"Authorization\": \"", format!("Bearer {}\"", drawn(24)), header),
        ("curl -H 'Authorization: ", format!("Bearer {}'", drawn(24)), header),
        ("Proxy-Authorization: ", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==".to_owned(), header),
        ("Authorization: ", format!("token {}", hex(40)), header),
        ("https://db.example.org/app?user=ivy&", "password=hunter2".to_owned(), "a password"),
        ("jdbc:postgresql://host/db?", "password=s3cr3t".to_owned(), "a password"),
        ("Server=db;Database=app;User Id=app;", "Password=Tr0ub4dor&3;".to_owned(), "a password"),
        ("Server=db;Uid=app;", "Passwd=correctHorse;Port=1".to_owned(), "a password"),
        ("host=db user=app ", "password=s3cr3tPa55 dbname=app".to_owned(), "a password"),
        ("host=db user=app ", "passwd='x9Xy-Zw7abc'".to_owned(), "a password"),
        ("PG", "PASSWORD=x9XyZw7abc psql".to_owned(), "a password"),
        ("DB_", "PASSWORD=\"x9Xy!Zw7abc\"".to_owned(), "a password"),
        ("MTk4NjIyNDgz", format!("NDcxOTI1MjQ4.Cl2FMQ.{}", &drawn(27)), "a Discord token"),
        ("OTY4NTU2MzQ4", format!("MzkwMzkxODU5.G49NjP.pD8PLpKp-{}", &drawn(29)), "a Discord token"),
        ("MTMwMTU5MDU2", format!("Nzk4OTU0NzAyOA.G5Nast.7_{}", &drawn(36)), "a Discord token"),
        ("FlyV1 ", format!("fm2_{},fm2_{}", drawn(40), drawn(40)), "a Fly token"),
        ("pat", format!("AbCdEf01234567.{}", hex(64)), "an Airtable token"),
        ("vercel_", drawn(24), "a Vercel token"),
    ] {
        for (before, after) in [("", ""), ("see ", " rest"), ("\n", "\n")] {
            let text = format!("{before}{prefix}{body}{after}");
            assert_eq!(find(&text), Some(kind), "{text}");
        }
    }
}

#[test]
fn text_about_headers_and_passwords_is_not_a_credential() {
    testkit::limit_test();
    for text in [
        "Authorization: Bearer <token>",
        "Authorization: Bearer $TOKEN",
        "Authorization: Bearer ${{ secrets.GITHUB_TOKEN }}",
        "Authorization: Bearer YOUR_ACCESS_TOKEN_GOES_HERE",
        "Authorization: Bearer your-token-of-2026-goes-here",
        "Authorization: Bearer xxxxxxxxxxxxxxxxxxxxxxxx",
        "Authorization: Bearer abc123",
        "Authorization: Basic dXNlcjpw",
        "Send it as `Authorization: Bearer`, as the documentation of 2026 says.",
        "authorization: the bearer of this letter",
        "Authorization is done by middleware2026AuthorizationLayer",
        "the authorization token rotates",
        "organization: Bearer a1B2c3D4e5F6g7H8i9J0",
        "password = changed by the user",
        "password = argon2id",
        "password=changed",
        "password=required&user=ivy",
        "?password=wrong",
        "/login?password=invalid&user=1",
        "password=$PASSWORD",
        "password=${DB_PASSWORD_2026}",
        "password=%DB_PASSWORD2%",
        "password=os.environ['DB_PASSWORD_2']",
        "password=config.database2.credential",
        "password=get_password1()",
        "password=hash2(salt1, value)",
        "password=<password1>",
        "password=********",
        "&password=***",
        ";Password=MyPassword1;",
        "?password=test1234",
        "password=changeme123",
        "password=",
        "PASSWORD_MIN_LENGTH=12345678a",
        "the passwd command and /etc/passwd",
        "password=20261117",
        "password=a1",
        "answer=a1B2c3D4e5F6",
        "MTk4NjIyNDgzNDcxOTI1MjQ4 is an id in base64",
        "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ",
        "MTIzNDU2Nzg5MDEyMzQ1Njc4.github.io.example.org",
        "NTFS.volume.management",
        "FlyV1 is the scheme of tokens",
        "FlyV1 tokens-are-macaroons-with-caveats-since-2023",
        "patent.pending",
        "patchworkAbCdEf1.txt",
        "vercel_deployments_of_the_team_2026",
        "vercel_xxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    ] {
        assert_eq!(find(text), None, "{text}");
    }
}

#[test]
fn hashes_ids_and_encoded_text_are_not_credentials() {
    let uuid = "550e8400-e29b-41d4-a716-446655440000";
    let prose =
        "VGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBsYXp5IGRvZy4gSXQgZG9lcyBzbyBhZ2FpbiBhbmQgYWdhaW4u";
    for text in [
        hex(32),
        hex(40),
        hex(64),
        hex(128),
        hex(40).to_uppercase(),
        format!("md5:{} sha1:{} sha256:{}", hex(32), hex(40), hex(64)),
        format!("sha256-{}=", drawn(43)),
        format!("sha512-{}==", drawn(86)),
        format!("image@sha256:{}", hex(64)),
        format!("git commit {} of branch sk-refactoring", hex(40)),
        format!("https://github.com/owner/repo/commit/{}", hex(40)),
        format!("session {uuid}"),
        format!("key-{}", hex(32)),
        format!("cache:v1.0-{}", hex(24)),
        prose.to_owned(),
        format!("data:image/png;base64,{prose}"),
        format!("eyJ{}", "0aXRsZSI6ICJBIHRpdGxlIn0gaXMgSlNPTiBpbiBiYXNlNjQ"),
        "CLOUDFLARE_API_TOKEN=$CLOUDFLARE_API_TOKEN".to_owned(),
        "CLOUDFLARE_API_TOKEN=your-cloudflare-api-token-goes-here-please".to_owned(),
        "OPENAI_API_KEY and ANTHROPIC_API_KEY have to be set".to_owned(),
        "export GITHUB_ACCESS_TOKEN=\"$(gh auth token)\"".to_owned(),
        format!("FOO_API_KEY_ID={}", hex(40)),
        "AZDO pipelines, AzSe and JQQJ99 are markers".to_owned(),
        "vcr_cassettes_are_recorded_once_per_test".to_owned(),
        "rnd_number_generator_of_the_simulation_2".to_owned(),
        "secret_santa_list_for_the_team_party_2026".to_owned(),
        "SK-II and API-KEY are words".to_owned(),
        "sl.setSelectedIndex(0).then(load)".to_owned(),
        "ratio 12:AAAA to 1:1".to_owned(),
        "IPv6 2001:db8::12345678:AAAA".to_owned(),
        "hooks.slack.com/services/T000/B000/XXXX".to_owned(),
        "sha256~ is the prefix of a token".to_owned(),
    ] {
        assert_eq!(find(&text), None, "{text}");
    }
}

#[test]
fn names_with_dashes_and_default_passwords_are_not_credentials() {
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
fn ordinary_text_has_no_credential() {
    testkit::limit_test();
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
fn json_escapes_are_decoded() {
    testkit::limit_test();
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
