//! `hook`: what a platform's hooks do, on a board in its own repository.

mod delegates;
mod edits;
mod failures;
mod quota;
mod sessions;
mod usage;

use std::fs;

use blackboard::agent::label;
use blackboard::id::session_id_from_hint;
use serde_json::{Value, json};

use crate::scratch::{Output, Scratch};
use crate::transcript;

testkit::on_each_engine![human_output_matches_transcript,];

fn human_output_matches_transcript() {
    transcript::check("hook");
}

/// A repository with its own board, in which everything happens.
struct Stage {
    scratch: Scratch,
}

impl Stage {
    fn new() -> Stage {
        let scratch = Scratch::new();
        fs::create_dir_all(scratch.path().join("project/.git")).unwrap();
        fs::create_dir_all(scratch.path().join("project/src")).unwrap();
        let config = "[remote \"origin\"]\n\turl = git@github.com:owner/collab.git\n";
        fs::write(scratch.path().join("project/.git/config"), config).unwrap();
        Stage { scratch }
    }

    fn directory(&self) -> String {
        self.scratch.path().canonicalize().unwrap().join("project").to_str().unwrap().to_owned()
    }

    /// Runs a hook with an environment, and returns everything about it.
    fn run(&self, platform: &str, input: &[u8], environment: &[(&str, &str)]) -> Output {
        let mut command = self.scratch.command(["hook", platform]);
        Output::fed(command.envs(environment.iter().copied()), input)
    }

    /// Runs a hook that has to succeed, and returns its output.
    #[track_caller]
    fn hook(&self, platform: &str, session: &str, event: &str, more: Value) -> Option<Value> {
        self.hook_in(platform, session, event, more, &[])
    }

    #[track_caller]
    fn hook_in(
        &self,
        platform: &str,
        session: &str,
        event: &str,
        more: Value,
        environment: &[(&str, &str)],
    ) -> Option<Value> {
        let Value::Object(more) = more else { panic!("{more} is no object") };
        let mut call = json!({"cwd": self.directory(), "session_id": session, "hook_event_name": event});
        call.as_object_mut().unwrap().extend(more);
        let output = self.run(platform, call.to_string().as_bytes(), environment);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
        (!output.stdout.is_empty()).then(|| output.json())
    }

    fn agent(&self, hint: &str) -> Value {
        self.scratch.json(["agent", "show", &session_id_from_hint(hint)])
    }

    /// The lines of all hook logs: a board on a server has one of its own.
    fn log(&self) -> String {
        self.logs().into_iter().map(|(_, content)| String::from_utf8(content).unwrap()).collect()
    }

    /// The mode and the content of each hook log.
    fn logs(&self) -> Vec<(u32, Vec<u8>)> {
        let files = self.scratch.contents().into_iter().filter(|(path, ..)| path.ends_with("hook.log"));
        files.map(|(_, mode, content)| (mode, content)).collect()
    }

    fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.directory())
    }

    fn configure(&self, text: &str) {
        fs::write(self.scratch.home_file("config.json"), text).unwrap();
    }
}

/// The name of a session of a platform whose user gave none.
fn generated_name(hint: &str) -> String {
    let (platform, _) = hint.split_once(':').unwrap();
    format!("{platform}-{}", &session_id_from_hint(hint)[..4])
}

/// Such a session as messages name it.
fn label_of(hint: &str) -> String {
    label(&generated_name(hint), &session_id_from_hint(hint))
}

/// Everything that is text in an answer.
fn text_of(said: &Value) -> String {
    match said {
        Value::String(text) => text.clone(),
        Value::Object(fields) => fields.values().map(text_of).collect(),
        _ => String::new(),
    }
}

const NONE: fn() -> Value = || json!({});
