//! Files that are no experiment files, and the display of problems.

use crate::support::{context, resolved};
use punctual_plan::{
    LoadOptions, MAX_FILE_BYTES, ResolveContext, Weight, load_and_resolve, load_experiment,
};
use std::path::Path;

fn refused(bytes: &[u8]) -> String {
    load_experiment(Path::new("test.toml"), bytes, &LoadOptions::default()).unwrap_err().to_string()
}

#[test]
fn an_empty_file_is_refused() {
    insta::assert_snapshot!(refused(b""), @r"
    error: the file is empty
    --> test.toml
     = help: it needs at least a `[[measure]]`: see punctual-experiment(5)
    ");
    assert_eq!(refused(b""), refused(b" \n\n"));
}

#[test]
fn an_oversized_file_is_refused_immediately() {
    insta::assert_snapshot!(refused(&vec![b'['; 100 << 20]), @r"
    error: the file has more than 1048576 bytes: not an experiment file
    --> test.toml
     = help: check the path
    ");
    assert!(
        load_experiment(
            Path::new("test.toml"),
            &vec![b'#'; MAX_FILE_BYTES],
            &LoadOptions::default()
        )
        .is_ok()
    );
}

#[test]
fn a_file_that_is_not_text_is_refused_with_the_place() {
    insta::assert_snapshot!(refused(b"[experiment]\nname = \"caf\xe9\"\n"), @r#"
    error: the file is not UTF-8 text: byte 24 (0xe9) begins no character
     --> test.toml:2:12
      |
    2 | name = "caf�"
      |            ^
      |
      = help: save it as UTF-8
    "#);
    insta::assert_snapshot!(refused(b"\xff\xfe["), @r"
    error: the file is not UTF-8 text: byte 0 (0xff) begins no character
     --> test.toml:1:1
      |
    1 | ��[
      | ^
      |
      = help: save it as UTF-8
    ");
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let toml = "[[measure]]\nkind = \"\\u001b[31m\\u202e\"\n[experiment]\n\"\\n\\u0007\" = 1 # \
                \u{202e}\nname = '\u{200b}'\nx = \u{1b}\n";
    let problems = resolved("evil\u{1b}[2J\n.toml", toml).unwrap_err();
    insta::assert_snapshot!(problems, @r#"
    error: `kind`: `\u{1b}[31m\u{202e}` is not a kind of measure
     --> evil\u{1b}[2J\n.toml:2:8
      |
    2 | kind = "\u001b[31m\u202e"
      |        ^^^^^^^^^^^^^^^^^^
      |
      = help: one of `timer`, `syscall`, `switch`, `irq`, `mutex`, `heap`, `storage`, `netio`, `spin`, `testpoint-cost`, `program`, `entries`

    error: `\n\u{7}` is not known in `[experiment]`
     --> evil\u{1b}[2J\n.toml:4:1
      |
    4 | "\n\u0007" = 1 # �
      | ^^^^^^^^^^
      |
      = help: known are name, cpus, refresh, memory_lock, dma_latency, seed, output, cool_below, cool_wait, governor, frequency, smt, cpu_load, keep_samples, require_real_time, force, on_violation, forever, calibrate

    error: `name`: `\u{200b}` cannot be a name: it contains a character that is not printable
     --> evil\u{1b}[2J\n.toml:5:8
      |
    5 | name = '�'
      |        ^^^

    error: a string must be quoted
     --> evil\u{1b}[2J\n.toml:6:5
      |
    6 | x = ␛
      |     ^
    "#);
    insta::assert_snapshot!(problems.format_lines(), @r"
    evil\u{1b}[2J\n.toml:2:8: error: `kind`: `\u{1b}[31m\u{202e}` is not a kind of measure; one of `timer`, `syscall`, `switch`, `irq`, `mutex`, `heap`, `storage`, `netio`, `spin`, `testpoint-cost`, `program`, `entries`
    evil\u{1b}[2J\n.toml:4:1: error: `\n\u{7}` is not known in `[experiment]`; known are name, cpus, refresh, memory_lock, dma_latency, seed, output, cool_below, cool_wait, governor, frequency, smt, cpu_load, keep_samples, require_real_time, force, on_violation, forever, calibrate
    evil\u{1b}[2J\n.toml:5:8: error: `name`: `\u{200b}` cannot be a name: it contains a character that is not printable
    evil\u{1b}[2J\n.toml:6:5: error: a string must be quoted
    ");
}

#[test]
fn problems_beyond_the_limit_are_counted_instead_of_shown() {
    let text: String = (0..5_000).map(|k| format!("key{k} = 1\n")).collect();
    let problems = resolved("test.toml", &text).unwrap_err();
    assert_eq!(problems.error_count(), 5_000);
    let shown = problems.to_string();
    assert_eq!(shown.matches("error: ").count(), 50);
    assert!(
        shown.ends_with("… and 4950 more problems in this file\n"),
        "{}",
        &shown[shown.len() - 100..]
    );
}

#[test]
fn a_very_long_line_is_shown_truncated() {
    let line = format!("x = \"{}\" ; y = \"{}\"", "a".repeat(100_000), "b".repeat(100_000));
    let shown = resolved("test.toml", &line).unwrap_err().to_string();
    assert!(shown.len() < 10_000, "{}", shown.len());
    assert!(shown.contains("test.toml:1:100008"), "{shown}");
}

#[test]
fn errors_are_formatted_like_those_of_a_compiler() {
    let toml = "\
[[measure]]
name = \"timer\"
kind = \"timer\"
cpus = \"2-7\"
priorty = 80
histogram = { range = \"10s\", resolution = \"100ns\" }

[[measure]]
name = \"timer\"
kind = \"timer\"
require = [\"max < 100\", \"mx < 1ms\"]

[[load]]
command = \"no-such-program --fork 2\"
";
    insta::assert_snapshot!(resolved("experiment.toml", toml).unwrap_err(), @r#"
    error: CPUs 4-7 do not exist
     --> experiment.toml:4:8
      |
    4 | cpus = "2-7"
      |        ^^^^^
      |
      = help: this system has CPUs 0-3

    error: CPU 3 is offline
     --> experiment.toml:4:8
      |
    4 | cpus = "2-7"
      |        ^^^^^
      |
      = help: online are 0-2

    error: `priorty` is not known in `[[measure]]`
     --> experiment.toml:5:1
      |
    5 | priorty = 80
      | ^^^^^^^
      |
      = help: did you mean `priority`?

    error: there are two measures called `timer`
     --> experiment.toml:9:8
      |
    9 | name = "timer"
      |        ^^^^^^^
      |
     ::: experiment.toml:2:8
      |
    2 | name = "timer"
      |        ------- the first is here
      |
      = help: give one another name

    error: `require`: `100` has no unit: write `100ns`, `100us`, `100ms`, `100s`, `100min`, `100h` or `100d`
      --> experiment.toml:11:12
       |
    11 | require = ["max < 100", "mx < 1ms"]
       |            ^^^^^^^^^^^

    error: `require`: `mx` is not a figure of a series: did you mean `max`?
      --> experiment.toml:11:25
       |
    11 | require = ["max < 100", "mx < 1ms"]
       |                         ^^^^^^^^^^

    error: cannot run `no-such-program`: no such program in PATH
      --> experiment.toml:14:11
       |
    14 | command = "no-such-program --fork 2"
       |           ^^^^^^^^^^^^^^^^^^^^^^^^^^
       |
       = help: install it, or write the path of the program
    "#);
}

#[test]
fn consequential_errors_are_not_reported() {
    // The measure's own duration is invalid: the endless phase that follows from it is no error of
    // the file.
    let toml = "[[measure]]\nkind = 'timer'\nduration = '1 secnd'\n[[phase]]\nname = \
                'a'\n[[phase]]\nname = 'b'\n";
    insta::assert_snapshot!(resolved("test.toml", toml).unwrap_err().format_lines(), @"test.toml:3:12: error: `duration`: `secnd` is not a unit of time (ns, us, ms, s, min, h, d)");
}

#[test]
fn problems_are_available_as_machine_readable_rows() {
    let problems =
        resolved("test.toml", "[[measure]]\nkind = 'timer'\n[[phase]]\n[[load]]\ncommand = 'x'\n")
            .unwrap();
    let rows: Vec<_> = problems.warnings.problem_rows().collect();
    assert_eq!(
        (rows.len(), rows[0].weight, rows[0].file.as_str()),
        (1, Weight::Warning, "test.toml")
    );
    assert_eq!(rows[0].place.map(|place| (place.line, place.column)), Some((4, 1)));
}

#[test]
fn unknown_keys_of_toml_can_be_allowed_too() {
    let toml = b"[[measure]]\nkind = 'timer'\ncolour = 'red'\n";
    let allowed = LoadOptions { allow_unknown: true };
    let (_, resolved) =
        load_and_resolve(Path::new("test.toml"), toml, &allowed, &context()).unwrap();
    assert!(resolved.warnings.format_lines().contains("warning: `colour` is not known"));
}

#[test]
fn a_system_without_cpus_is_refused() {
    let nothing =
        ResolveContext { online: Default::default(), present: Default::default(), ..context() };
    let toml = b"[[measure]]\nkind = 'timer'\n";
    let refused = load_and_resolve(Path::new("test.toml"), toml, &LoadOptions::default(), &nothing);
    assert!(refused.unwrap_err().format_lines().contains("which CPUs"));
}

#[test]
fn hostile_references_are_counted_quickly() {
    let loads: String =
        (0..1_000).map(|k| format!("[[load]]\nname = 'load{k}'\ncommand = 'x'\n")).collect();
    let list = "'laod',".repeat(100_000);
    let toml = format!("[[measure]]\nkind = 'timer'\n{loads}[[phase]]\nloads = [{list}]\n");
    // A search for the nearest name of each would take minutes.
    assert_eq!(resolved("test.toml", &toml).unwrap_err().error_count(), 100_000);
}
