//! `blackboard hook`

use std::ffi::{OsStr, OsString};

use blackboard::Result;
use clap::builder::PossibleValue;
use serde_json::Value;

use crate::commands::Run;
use crate::context::Context;
use crate::envelope::Answer;
use crate::hooks::deadline;
use crate::hooks::handle::{HookOutcome, handle};
use crate::hooks::log::HookLog;
use crate::hooks::request::{self, HookEvent, HookRequest, Payload};
use crate::outcome::{Outcome, Render};
use crate::output::{self, Screen};
use crate::platforms::{PLATFORMS, Platform};

#[derive(clap::Args, Debug)]
#[command(about = SUMMARY, long_about = long_help())]
pub struct Hook {
    #[arg(value_name = "PLATFORM", value_parser = AnyPlatform, help = "Platform that calls the hook")]
    pub platform: String,
}

const SUMMARY: &str = "Handle a hook call from an agent platform (internal)";

fn long_help() -> String {
    format!(
        "{SUMMARY}\n\n\
         Called by agent platforms with JSON on standard input; you do not run it yourself. Registers the session, sends its \
         heartbeat, delivers updates and warns before an edit of a reserved file. Always exits with 0; errors go to hook.log \
         next to the board.\n\n\
         Examples:\n  \
         echo '{{\"session_id\":\"1\",\"hook_event_name\":\"Stop\"}}' | blackboard hook claude"
    )
}

impl Run for Hook {
    fn run(self, context: &Context) -> Result<Outcome> {
        Ok(self.answer(context).unwrap_or_else(|| Outcome::new(HookOutput(None))))
    }
}

/// The output for the platform: one line of JSON in its format, or nothing.
struct HookOutput(Option<Value>);

impl Hook {
    /// The call of a platform: `hook PLATFORM` and nothing else. Agents call it after every tool, and a parser would take
    /// longer than the rest. `arguments` is argv without the name of the program.
    pub fn of_platform(arguments: &[OsString]) -> Option<Hook> {
        let [hook, platform] = arguments else { return None };
        let platform = platform.to_str().filter(|word| hook == "hook" && !word.starts_with('-'))?;
        Some(Hook { platform: platform.to_owned() })
    }

    /// The output, and what runs after it; `None` if there is nothing to do. A failure is never an error of the call: it is
    /// written to the hook log.
    fn answer(&self, context: &Context) -> Option<Outcome> {
        let Some(deadline) = deadline::start() else {
            // Without a limit nothing is begun.
            let log = HookLog::default();
            log.called_by(&self.platform, context.db());
            log.write_from_anywhere("no thread could be started to keep the time");
            return None;
        };
        let log = &deadline.log;
        log.called_by(&self.platform, context.db());
        log.write_panics();
        let (platform, request, input) = match self.read(context) {
            Ok(read) => read,
            Err(reason) => {
                log.locate(&context.request());
                log.write(&reason);
                return None;
            }
        };
        log.about(&request.event_name);
        if request.event == HookEvent::Nothing {
            return None;
        }
        match handle(platform, &request, &input, context, deadline) {
            Ok(HookOutcome { reply, afterwards }) => {
                let json = (platform.replies.format_reply)(&request.event_name, &reply);
                Some(Outcome::new(HookOutput(json)).after_flush(afterwards))
            }
            Err(error) => {
                log.write(&format!("{}: {error}", error.code()));
                None
            }
        }
    }

    /// Which platform calls, about what, and with which input.
    fn read(
        &self,
        context: &Context,
    ) -> std::result::Result<(&'static Platform, HookRequest, String), String> {
        let platform = Platform::find(&self.platform).ok_or("unknown platform")?;
        let input = request::input()?;
        let request = Payload::parse(&input).and_then(|payload| {
            let platform = platform.resolve(&payload, context.environment());
            Some((platform, platform.payload.read(&payload)?))
        });
        let (platform, request) = request.ok_or("the input names no event and no session")?;
        Ok((platform, request, input))
    }
}

impl Render for HookOutput {
    fn json(&self, answer: &mut Answer<'_>) -> output::Result {
        match &self.0 {
            Some(json) => answer.raw(json),
            None => Ok(()),
        }
    }

    fn human(&self, screen: &mut Screen<'_>) -> output::Result {
        match &self.0 {
            Some(json) => screen.verbatim(format_args!("{json}\n")),
            None => Ok(()),
        }
    }
}

/// Any word is a platform, because a hook may not fail; only the names of the real ones are offered to a shell.
#[derive(Clone)]
struct AnyPlatform;

impl clap::builder::TypedValueParser for AnyPlatform {
    type Value = String;

    fn parse_ref(
        &self,
        _command: &clap::Command,
        _argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> std::result::Result<String, clap::Error> {
        Ok(value.to_string_lossy().into_owned())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(PLATFORMS.iter().map(|platform| PossibleValue::new(platform.id))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_of_a_platform_needs_no_parser() {
        testkit::limit_test();
        for (line, expected) in [
            ("hook claude", Some("claude")),
            ("hook other", Some("other")),
            ("hook claude --json", None),
            ("hook --help", None),
            ("--json hook", None),
            ("hook", None),
            ("status claude", None),
        ] {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let found = Hook::of_platform(&arguments).map(|hook| hook.platform);
            assert_eq!(found.as_deref(), expected, "{line}");
        }
    }
}
