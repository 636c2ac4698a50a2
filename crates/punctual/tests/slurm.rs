//! `punctual lab run --on slurm` with the real Slurm: a controller and two nodes on this machine,
//! with dying tasks and a dying node.

use crate::common::{
    Place, eventually, has_program, is_root, kill, processes_with, punctual, text,
};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Six cells of 0.3 s on any node.
const LAB: &str = r#"
[lab]
name = "cluster"

[axes]
"measure.timer.period" = ["1ms", "2ms", "3ms", "4ms", "5ms", "6ms"]

[[measure]]
name = "timer"
kind = "timer"
cpus = "0"
duration = "300ms"
"#;
/// Runs of LAB with two seeds.
const RUNS: usize = 12;
const NODES: [&str; 2] = ["n1", "n2"];

/// A controller and two nodes with a separate configuration; they end with the test.
struct Cluster {
    place: Place,
    controller: Child,
    nodes: Vec<Child>,
}

impl Cluster {
    /// `None`, with the missing prerequisite printed, if impossible.
    fn start(test: &str) -> Option<Cluster> {
        let needed = [("slurmctld", "slurmctld"), ("slurmd", "slurmd"), ("sbatch", "slurm-client")];
        if !is_root(test) || !needed.iter().all(|(name, package)| has_program(name, package)) {
            return None;
        }
        let place = Place::with("");
        for name in ["state", "n1", "n2"] {
            fs::create_dir(place.path().join(name)).expect("a directory");
        }
        place.write("slurm.conf", configuration(place.path()).as_bytes());
        place.write("lab.toml", LAB.as_bytes());
        let controller = daemon(&place, "slurmctld", &["-D", "-c"]);
        let nodes = NODES.map(|node| daemon(&place, "slurmd", &["-D", "-N", node]));
        let mut cluster = Cluster { place, controller, nodes: nodes.into() };
        let mut dead = false;
        eventually("both nodes are idle, or a daemon has ended", || {
            dead = cluster.daemons().any(|child| child.try_wait().expect("its state").is_some());
            dead || text(&cluster.slurm("sinfo", &["-h", "-N", "-o", "%T"])) == "idle\nidle\n"
        });
        if dead {
            let logs = ["controller.log", "n1.log", "n2.log"]
                .map(|log| fs::read_to_string(cluster.place.path().join(log)).unwrap_or_default());
            println!("SKIPPED: {test} lacks a Slurm that starts here: {}", logs.join(" "));
            return None;
        }
        Some(cluster)
    }

    fn daemons(&mut self) -> impl Iterator<Item = &mut Child> {
        self.nodes.iter_mut().chain([&mut self.controller])
    }

    fn slurm(&self, program: &str, words: &[&str]) -> Output {
        let mut command = Command::new(program);
        command.args(words).env("SLURM_CONF", self.place.path().join("slurm.conf"));
        command.output().expect("a command of Slurm")
    }

    /// Starts `punctual lab …` in the background.
    fn spawn(&self, words: &[&str]) -> Child {
        let mut command = punctual();
        command.args(words).current_dir(self.place.path()).stdin(Stdio::null());
        command.env("SLURM_CONF", self.place.path().join("slurm.conf"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("punctual starts")
    }

    /// The running tasks of this cluster's lab.
    fn tasks(&self) -> Vec<i32> {
        let program = self.place.path().join("lab/slurm/punctual");
        let all = processes_with(&format!("{}\0lab\0cell", program.display()));
        all.into_iter().filter(|pid| !is_of_shell(*pid)).collect()
    }

    fn lab(&self) -> PathBuf {
        self.place.path().join("lab")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.slurm("scancel", &["--state=PENDING", "--user=root"]);
        let path = self.place.path().display().to_string();
        self.daemons().for_each(|child| drop(child.kill().and_then(|()| child.wait())));
        // slurmstepd and the tasks below it outlive them.
        for pid in tree_of_steps().into_iter().chain(processes_with(&path)) {
            if belongs_to(pid, &path) {
                let _ = Command::new("kill")
                    .args(["-KILL", &pid.to_string()])
                    .stderr(Stdio::null())
                    .status();
            }
        }
    }
}

/// slurmstepd's command line does not identify the cluster, but its working directory does.
fn tree_of_steps() -> Vec<i32> {
    processes_with("slurmstepd")
}

fn belongs_to(pid: i32, path: &str) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let place = fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
    String::from_utf8_lossy(&line).contains(path) || place.starts_with(path)
}

fn is_of_shell(pid: i32) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim() != "punctual"
}

fn daemon(place: &Place, program: &str, words: &[&str]) -> Child {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(program);
    command.args(words).env("SLURM_CONF", place.path().join("slurm.conf"));
    command.env("PATH", format!("{path}:/usr/sbin")).current_dir(place.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("a daemon of Slurm")
}

/// No authentication and no munged: only this test can reach these ports. A node silent for 5 s is
/// down, and its tasks move to another.
fn configuration(place: &Path) -> String {
    let ports: Vec<TcpListener> =
        (0..3).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
    let port = |k: usize| ports[k].local_addr().expect("an address").port();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    let (host, place) = (host.trim(), place.display());
    let nodes: String = NODES
        .iter()
        .zip([port(1), port(2)])
        .map(|(node, port)| {
            format!("NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2\n")
        })
        .collect();
    format!(
        "ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={}
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation={place}/state
SlurmctldPidFile={place}/controller.pid
SlurmctldLogFile={place}/controller.log
SlurmdSpoolDir={place}/%n
SlurmdPidFile={place}/%n.pid
SlurmdLogFile={place}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,requeue_delay=1
MpiDefault=none
ReturnToService=2
SlurmdTimeout=5
KillWait=1
{nodes}PartitionName=all Nodes=ALL Default=YES State=UP
",
        port(0)
    )
}

/// The bundles below the lab's cells.
fn bundles(lab: &Path) -> Vec<PathBuf> {
    let cells = fs::read_dir(lab.join("cells")).into_iter().flatten().flatten();
    let runs = cells.flat_map(|cell| fs::read_dir(cell.path()).expect("a cell").flatten());
    let is_bundle = |path: &PathBuf| {
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        !hidden && path.join("lab-run.json").exists()
    };
    runs.map(|run| run.path()).filter(is_bundle).collect()
}

fn document(lab: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(lab.join("lab.json")).expect("lab.json")).expect("JSON")
}

#[test]
fn a_slurm_lab_completes_after_killed_tasks_nodes_and_controller() {
    let Some(mut cluster) = Cluster::start("a lab on Slurm") else { return };
    let lab = cluster.lab();
    let words = ["lab", "run", "lab.toml", "-o", "lab", "--seeds", "1..2", "--on", "slurm"];
    let mut first = cluster.spawn(&words);
    eventually("some runs are done", || bundles(&lab).len() >= 2);
    kill(first.id(), "KILL");
    first.wait().expect("it was killed");

    let second = cluster.spawn(&words);
    eventually("a task runs", || !cluster.tasks().is_empty());
    cluster.tasks().iter().for_each(|pid| {
        let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
    });
    // A node goes down with everything that runs on it.
    let node = cluster.place.path().join("n2").display().to_string();
    cluster.nodes[1].kill().expect("it ran");
    cluster.nodes[1].wait().expect("it was killed");
    let steps = tree_of_steps().into_iter().filter(|pid| belongs_to(*pid, &node));
    steps.for_each(|pid| drop(Command::new("kill").args(["-KILL", &pid.to_string()]).status()));

    let ran = second.wait_with_output().expect("it ended");
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    assert_eq!(bundles(&lab).len(), RUNS, "{}", text(&ran));
    let document = document(&lab);
    assert_eq!(document["finished"], true);
    for cell in document["cells"].as_array().expect("cells") {
        assert_eq!(cell["state"], "done", "{cell}");
        // Every seed counts once: samples of killed or second runs are not included.
        let counts = cell["seeds"].as_array().expect("seeds").iter();
        let counts: Vec<u64> =
            counts.map(|seed| seed["series"][0]["count"].as_u64().expect("a count")).collect();
        assert_eq!(counts.len(), 2, "{cell}");
        assert_eq!(cell["series"][0]["count"], counts.iter().sum::<u64>(), "{cell}");
    }
    // The same command again finds everything done.
    let again = cluster.spawn(&words).wait_with_output().expect("it ended");
    assert!(text(&again).contains("already done: 12 of 12 runs"), "{}", text(&again));
}

#[test]
fn a_cell_that_fails_by_itself_is_not_submitted_again() {
    let Some(cluster) = Cluster::start("a failing cell on Slurm") else { return };
    let storage = "[lab]\nname = 'f'\n[axes.way]\nmissing = { measure.'*'.kind = 'storage', \
                   measure.'*'.directory = '/nowhere/at/all' }\ngood = {}\n[[measure]]\nkind = \
                   'syscall'\nsamples = 100\n";
    cluster.place.write("f.toml", storage.as_bytes());
    let words = ["lab", "run", "f.toml", "-o", "lab", "--on", "slurm"];
    let ran = cluster.spawn(&words).wait_with_output().expect("it ended");
    assert_eq!(ran.status.code(), Some(1), "{}", text(&ran));
    assert!(text(&ran).contains("missing  FAILED"), "{}", text(&ran));
    let outputs = fs::read_dir(cluster.lab().join("slurm")).expect("it is there").flatten();
    let outputs = outputs.filter(|file| file.path().extension().is_some_and(|end| end == "out"));
    assert_eq!(outputs.count(), 2, "{}", text(&ran));
    assert_eq!(document(&cluster.lab())["cells"][1]["state"], "done");
}

#[test]
fn of_two_concurrent_runs_of_a_cell_one_counts() {
    let place = Place::with("");
    place.write("lab.toml", LAB.as_bytes());
    let prepare = ["lab", "run", "lab.toml", "-o", "lab", "--on", "none"];
    let prepared = place.punctual(&prepare);
    assert_eq!(prepared.status.code(), Some(1), "{}", text(&prepared));
    let run = || {
        let mut command = punctual();
        command.args(["lab", "cell", "lab", "0"]).current_dir(place.path()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("punctual starts")
    };
    let both = [run(), run()].map(|child| child.wait_with_output().expect("it ended"));
    for ran in &both {
        assert_eq!(ran.status.code(), Some(0), "{}", text(ran));
    }
    let cell = fs::read_dir(place.path().join("lab/cells/1ms")).expect("the cell").flatten();
    let mut names: Vec<String> =
        cell.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    assert_eq!(names, ["cell.toml", "r1", "r1.log"]);
    for wrong in ["6", "nobody/r1", "../r1"] {
        let refused = place.punctual(&["lab", "cell", "lab", wrong]);
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    }
    let names = fs::read_to_string(place.path().join("lab/runs")).expect("the list");
    for name in names.lines() {
        let ran = place.punctual(&["lab", "cell", "lab", name]);
        assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    }
    let collected = place.punctual(&prepare);
    assert_eq!(collected.status.code(), Some(0), "{}", text(&collected));
    assert_eq!(document(&place.path().join("lab"))["finished"], true);
}
