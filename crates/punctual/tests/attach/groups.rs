//! Two containers whose tasks run on the CPU of a program, as control groups of version 2 show
//! them.

use super::{OWN, attached, compiled, measure};
use crate::common::{is_root, text};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// A control group with two tasks that are always ready; without it, neither is left.
struct Container {
    group: PathBuf,
    tasks: Vec<Child>,
}

impl Container {
    fn started(mount: &Path, of: &str) -> Container {
        let group = mount.join(of);
        fs::create_dir_all(&group).unwrap();
        let mut container = Container { group, tasks: Vec::new() };
        for _ in 0..2 {
            let busy = ["-c", "0", "sh", "-c", "while :; do :; done"];
            let task = Command::new("taskset").args(busy).spawn().unwrap();
            fs::write(container.group.join("cgroup.procs"), task.id().to_string()).unwrap();
            container.tasks.push(task);
        }
        container
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        for task in &mut self.tasks {
            let _ = task.kill();
            let _ = task.wait();
        }
        // Above it are the directories of its kind alone, if they are empty.
        let mut group = self.group.as_path();
        while fs::remove_dir(group).is_ok() {
            let Some(above) = group.parent() else { break };
            group = above;
        }
    }
}

fn version_2() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    mounts.find(|of| of.get(2) == Some(&"cgroup2")).map(|of| PathBuf::from(of[1]))
}

#[test]
fn the_containers_that_delay_a_program_are_named() {
    if !is_root("containers") {
        return;
    }
    let Some(mount) = version_2() else {
        println!("SKIPPED: containers lack control groups of version 2");
        return;
    };
    let Some(place) = compiled() else { return };
    let id = |digit: &str| digit.repeat(64);
    let groups = [
        format!("docker/{}", id("a")),
        format!("kubepods/burstable/pod8a41c2d0-11-22/{}", id("b")),
    ];
    let running = groups.map(|of| Container::started(&mount, &of));
    let program = ["taskset", "-c", "0", "./periodic", "absolute", "1000", "0"];
    let output = attached(&place, &[], &program);
    drop(running);
    assert_eq!(output.status.code(), OWN, "{}", text(&output));
    let summary = place.summary();
    let tables = measure(&summary, "periodic")["notes"]["tables"].as_array().unwrap();
    let table = tables.iter().find(|table| table["name"] == "culprit-groups");
    let rows = table.expect("the table")["rows"].as_array().unwrap();
    for name in ["docker aaaaaaaaaaaa", "pod 8a41c2d0 container bbbbbbbbbbbb"] {
        assert!(rows.iter().any(|row| row[0] == name), "{name}: {rows:#?}");
    }
}
