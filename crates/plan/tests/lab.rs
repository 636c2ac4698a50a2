//! Lab files: their content, their mistakes, and the cells that result.

use punctual_plan::LoadOptions;
use punctual_plan::lab::{Lab, load_lab};
use std::path::Path;

fn read(text: &str) -> Result<Lab, String> {
    let read_file = |path: &Path| match path == Path::new("base.toml") {
        true => Ok(b"[[measure]]\nkind = 'timer'\nduration = '1s'\n".to_vec()),
        false => Err("no such file".to_owned()),
    };
    load_lab(Path::new("test.toml"), text.as_bytes(), &LoadOptions::default(), &read_file)
        .map_err(|problems| problems.format_lines().replace("test.toml:", ""))
}

fn lab(text: &str) -> Lab {
    read(text).unwrap_or_else(|problems| panic!("{problems}"))
}

const TWO_KERNELS: &str = r#"
[lab]
name = "two"
seeds = "1..3"
repeat = 2
require = { timer = "p100 < 100us" }
isolated = "3"

[axes]
kernel = ["6.1", "6.12"]
preemption = ["voluntary", "rt"]
load = ["idle", "loaded"]

[[exclude]]
kernel = "6.12"
preemption = ["voluntary"]

[target]
kind = "vm"
cmdline = "quiet"

[[measure]]
name = "timer"
kind = "timer"
duration = "1s"

[[load]]
name = "busy"
command = "stress-ng --cpu 1"
"#;

#[test]
fn every_combination_but_the_excluded_is_a_cell() {
    let lab = lab(TWO_KERNELS);
    let cells = lab.list_cells().unwrap();
    let names: Vec<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "6.1_voluntary_idle",
            "6.1_voluntary_loaded",
            "6.1_rt_idle",
            "6.1_rt_loaded",
            "6.12_rt_idle",
            "6.12_rt_loaded"
        ]
    );
    assert_eq!((lab.repeat, lab.seeds.unwrap().count(), lab.requirements.len()), (2, 3, 1));
    assert_eq!(
        cells[0].experiment_with_seed(Some(7)),
        "[experiment]\nname = \"two\"\nseed = 7\n\n[[measure]]\nduration = \"1s\"\nkind = \
         \"timer\"\nname = \"timer\"\n\n[target]\ncmdline = \"quiet preempt=voluntary\"\nkernel = \
         \"6.1\"\nkind = \"vm\"\n"
    );
    let loaded = cells[5].experiment_with_seed(None);
    assert!(
        loaded.contains("kernel = \"6.12-rt\"")
            && loaded.contains("stress-ng")
            && !loaded.contains("seed"),
        "{loaded}"
    );
}

#[test]
fn isolation_of_a_lab_uses_isolcpus_or_a_partition() {
    let text = |isolated: &str| {
        format!(
            "[lab]\nexperiment = 'base.toml'\n{isolated}\n[axes]\nisolation = ['none', \
             'isolcpus', 'cpuset']\n"
        )
    };
    let cells = lab(&text("isolated = '3'")).list_cells().unwrap();
    let texts: Vec<String> = cells.iter().map(|cell| cell.experiment_with_seed(None)).collect();
    assert!(!texts[0].contains('3'), "{}", texts[0]);
    assert!(texts[1].contains("cmdline = \"isolcpus=3\""), "{}", texts[1]);
    assert!(texts[2].contains("[partition]\ncpus = \"3\""), "{}", texts[2]);
    assert!(read(&text("")).unwrap_err().contains("isolated CPUs are not specified"));
}

#[test]
fn an_axis_is_a_path_or_a_table_of_settings() {
    let lab = lab("[[measure]]\nname = 'a'\nkind = 'timer'\n[[measure]]\nname = 'b'\nkind = \
                   'timer'\n[axes]\n'measure.a.period' = ['1ms', '500us']\npolicy = ['fifo', \
                   'rr']\n[axes.way]\nplain = {}\ntight = { measure.'*'.stop_above = '1ms', \
                   experiment.keep_samples = 10 }\n");
    let cells = lab.list_cells().unwrap();
    assert_eq!(cells.len(), 8);
    assert_eq!(cells[7].name, "500us_rr_tight");
    let text = cells[7].experiment_with_seed(None);
    assert_eq!(text.matches("stop_above").count(), 2, "{text}");
    assert_eq!(
        (text.matches("period").count(), text.matches("policy = \"rr\"").count()),
        (1, 2),
        "{text}"
    );
    cells
        .iter()
        .for_each(|cell| drop(cell.check_experiment(&lab, &LoadOptions::default()).unwrap()));
}

#[test]
fn mistakes_are_reported_with_their_place() {
    for (text, said) in [
        (
            "[axes]\nkernel = '6.1'\n[[measure]]\nkind = 'timer'\n",
            "2:10: error: `kernel`: expected an array of values",
        ),
        (
            "[axes]\nperiod = ['1ms']\n[[measure]]\nkind = 'timer'\n",
            "2:1: error: `period`: no axis is known by this name",
        ),
        (
            "[axes]\nkernl = ['6.1', '6.12']\n[[measure]]\nkind = 'timer'\n",
            "2:1: error: `kernl`: no axis is known by this name; did you mean `kernel`? known are \
             kernel, cmdline,",
        ),
        (
            "[axes]\nkernel = []\n[[measure]]\nkind = 'timer'\n",
            "2:10: error: `kernel`: an axis has 1 to 256 values, not 0",
        ),
        (
            "[axes]\npreemption = ['none', 'some']\n[[measure]]\nkind = 'timer'\n",
            "2:23: error: `preemption`: `some` is not a value",
        ),
        ("[axes]\nkernel = ['a', 'a']\n[[measure]]\nkind = 'timer'\n", "stands twice"),
        (
            "[lab]\nexperiment = 'base.toml'\n[[exclude]]\nkernel = 'x'\n",
            "3:1: error: there is no axis `kernel`",
        ),
        (
            "[lab]\nseeds = '3..1'\nexperiment = 'base.toml'\n",
            "2:9: error: `seeds`: the range of seeds `3..1` is empty",
        ),
        (
            "[lab]\nrequire = 'p100 100'\nexperiment = 'base.toml'\n",
            "2:11: error: `require`: a requirement is",
        ),
        ("[lab]\npublished = 'P9'\nexperiment = 'base.toml'\n", "known are P2, P4"),
        (
            "[lab]\nexperiment = 'gone.toml'\n",
            "the experiment `gone.toml` cannot be read: no such file",
        ),
        (
            "[lab]\nexperiment = 'base.toml'\n[[measure]]\nkind = 'timer'\n",
            "and `measure` of one stands here",
        ),
        (
            "[lab]\nnaem = 'x'\nexperiment = 'base.toml'\n",
            "2:1: error: `naem` is not known in `[lab]`; did you mean `name`?",
        ),
        ("[lab]\n", "this lab has no experiment"),
        ("[lab\n", "1:"),
        ("", "the file is empty"),
    ] {
        let problems = read(text).expect_err(text);
        assert!(problems.contains(said), "{text}\n{problems}");
    }
}

#[test]
fn axes_that_contradict_the_experiment_are_refused() {
    let cells = |axes: &str| {
        lab(&format!("[lab]\nexperiment = 'base.toml'\n[axes]\n{axes}\n"))
            .list_cells()
            .unwrap_err()
            .to_string()
    };
    assert!(cells("load = ['x']").contains("no load called `x`"));
    assert!(cells("'measure.x.period' = ['1ms']").contains("no `[[measure]]` called `x`"));
    assert!(cells("preemption = ['rt']").contains("no `kernel` to take the -rt flavour of"));
    let many = (0..100).map(|k| format!("'{k}'")).collect::<Vec<_>>().join(",");
    assert!(cells(&format!("'a.b' = [{many}]\n'a.c' = [{many}]")).contains("10000 cells"));
    let all =
        lab("[lab]\nexperiment = 'base.toml'\n[axes]\npolicy = ['rr']\n[[exclude]]\npolicy = \
             'rr'\n");
    assert!(all.list_cells().unwrap_err().to_string().contains("is excluded"));
}

mod any {
    use super::read;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_text_panics(
            text in "(\\[?\\[?(lab|axes|exclude|measure|published)\\]?\\]?\
                     |[a-z.'\"=\\[\\]{}, \n0-9]{0,6}){0,12}",
        ) {
            if let Ok(lab) = read(&text) {
                let _ = lab.list_cells().map(|cells| {
                    cells.iter().map(|cell| cell.experiment_with_seed(Some(1))).collect::<Vec<_>>()
                });
            }
        }
    }
}

#[test]
fn the_documented_file_is_one() {
    let read = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
        std::fs::read_to_string(path).unwrap()
    };
    let (page, reference) = (read("lab.md"), read("reference/lab.md"));
    let section = page.split("## The file").nth(1).unwrap().split("\n## ").next().unwrap();
    let example: String =
        section.lines().filter_map(|line| line.strip_prefix("    ")).collect::<Vec<_>>().join("\n");
    let lab = lab(&example);
    let cells = lab.list_cells().unwrap();
    assert_eq!(cells.len(), 10);
    cells
        .iter()
        .for_each(|cell| drop(cell.check_experiment(&lab, &LoadOptions::default()).unwrap()));
    let axes = ["kernel", "cmdline", "preemption", "isolation", "governor", "load", "policy"];
    for axis in axes {
        assert!(reference.contains(&format!("\n| `{axis}`")), "{axis}");
    }
}

#[test]
fn a_cell_has_the_governor_frequency_and_smt_of_its_values() {
    let lab =
        lab("[axes]\ngovernor = ['performance', 'powersave']\nfrequency = ['600MHz']\nsmt = \
                   [false]\n[[measure]]\nkind = 'timer'\n");
    let cells = lab.list_cells().unwrap();
    assert_eq!(cells[1].name, "powersave_600MHz_false");
    let cell = cells[1].check_experiment(&lab, &LoadOptions::default()).unwrap().settings;
    assert_eq!(cell.governor.map(|at| at.value).as_deref(), Some("powersave"));
    assert_eq!(cell.frequency.map(|at| at.value.0), Some(600_000));
    assert_eq!(cell.smt.map(|at| at.value), Some(false));
    let lab = read("[axes]\nfrequency = ['fast']\n[[measure]]\nkind = 'timer'\n").unwrap();
    let wrong =
        lab.list_cells().unwrap()[0].check_experiment(&lab, &LoadOptions::default()).unwrap_err();
    assert!(wrong.format_lines().contains("`fast` is not a frequency"), "{}", wrong.format_lines());
}

#[test]
fn an_error_in_an_axis_is_reported_once() {
    for text in ["kernl = ['6.1', '6.12']", "policy = [1]", "preemption = ['some']"] {
        let text = format!("[axes]\n{text}\n[[measure]]\nkind = 'timer'\n");
        let said = read(&text).expect_err(&text);
        assert!(!said.contains("values, not"), "{said}");
        assert_eq!(said.matches("error:").count(), 1, "{said}");
    }
}
