use crate::machine::can;
use crate::scratch::Scratch;
use crate::transcript;
use testkit::process::RunToEnd as _;

#[test]
fn human_output_matches_transcript() {
    transcript::check("completions");
}

#[test]
fn completion_scripts_contain_the_commands() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let output = Scratch::new().run(["completions", shell]).success();
        assert!(output.stdout.contains("completions"), "{shell}");
        assert!(output.stdout.contains("version"), "{shell}");
    }
}

#[test]
fn aliases_are_not_offered() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = Scratch::new().run(["completions", shell]).success().stdout;
        let words = || script.split(|letter: char| !letter.is_alphanumeric());
        for alias in ["ready", "ls"] {
            assert!(!words().any(|word| word == alias), "{shell} offers {alias}");
        }
        // The word is also a value of `work import --from` and `export --what`.
        assert!(
            !script.contains("subcmd__tasks") && !script.contains("__tasks_commands"),
            "{shell} offers tasks"
        );
        assert!(words().any(|word| word == "reassign"), "{shell}");
    }
}

#[test]
fn completion_offers_the_platforms_of_a_hook_and_accepts_others() {
    let scratch = Scratch::new();
    let script = scratch.run(["completions", "bash"]).success().stdout;
    let (_, hook) = script.split_once("\n        blackboard__subcmd__hook)").unwrap();
    let options = hook.lines().find(|line| line.contains("opts=")).unwrap();
    let status = scratch.json(["setup", "status"]);
    let platforms = status["items"].as_array().unwrap().iter();
    let platforms: Vec<_> = platforms.map(|one| one["platform"].as_str().unwrap()).collect();
    assert!(platforms.contains(&"claude"), "{platforms:?}");
    assert!(options.ends_with(&format!(" {}\"", platforms.join(" "))), "{options}");
    scratch.run(["hook", "unheard-of"]).success();
}

#[test]
fn json_has_the_completion_script() {
    let json = Scratch::new().run(["completions", "fish", "--json"]).success().json();
    assert_eq!(json["shell"], "fish");
    assert!(json["script"].as_str().unwrap().contains("complete -c blackboard"));
}

#[test]
fn unknown_shell_is_a_usage_error_that_names_the_known_ones() {
    let output = Scratch::new().run(["completions", "ksh"]);
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("bash, zsh, fish, powershell"), "{output:?}");
}

#[test]
fn every_installed_shell_loads_its_script() {
    let scratch = Scratch::new();
    for (shell, check) in [
        ("bash", "bash -n"),
        ("bash", "bash -c '. ./script; complete -p blackboard'"),
        ("zsh", "zsh -n"),
        ("fish", "fish --no-execute"),
    ] {
        if !can("completion in a shell", shell, &["--version"]) {
            continue;
        }
        let script = scratch.run(["completions", shell]).success().stdout;
        std::fs::write(scratch.path().join("script"), script).unwrap();
        let line = if check.contains("script") { check.to_owned() } else { format!("{check} ./script") };
        let output = scratch.shell(&line).run_to_end();
        assert!(output.status.success() && output.stderr.is_empty(), "{check}: {output:?}");
    }
}
