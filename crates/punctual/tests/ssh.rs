//! `--target ssh:…` and `punctual ssh`, end to end: real ssh and sshd on the loopback interface.

use crate::common::{self, Place, eventually, kill, processes_with, text};
use crate::ssh_support::Sshd;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const TIMER: &str =
    "[[measure]]\nname = \"timer\"\nkind = \"timer\"\ncpus = \"0\"\nperiod = \"1ms\"\n";

fn lasting(duration: &str) -> String {
    format!("{TIMER}duration = \"{duration}\"\n")
}

#[track_caller]
fn assert_code(ran: &Output, code: i32) {
    assert_eq!(ran.status.code(), Some(code), "{}", text(ran));
}

fn count(place: &Place) -> u64 {
    let summary = place.summary();
    let series = &summary["phases"][0]["series"][0];
    assert_eq!(series["lost"], 0, "{series}");
    series["count"].as_u64().unwrap_or_else(|| panic!("no count: {summary}"))
}

fn files(below: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(below).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path()).iter().map(|file| format!("{name}/{file}"))),
            false => drop(found.insert(name)),
        }
    }
    found
}

#[test]
fn a_run_there_leaves_the_bundle_of_a_run_here_and_nothing_there() {
    let Some(sshd) = Sshd::start_alone("ssh target") else { return };
    let experiment = format!("{TIMER}samples = 1000\nrequire = [\"max < 1ns\"]\n");
    let ran = sshd.run(&experiment, &["--quiet", "--junit", "j.xml"]);
    assert_code(&ran, 3);
    sshd.assert_clean();
    assert!(String::from_utf8_lossy(&ran.stdout).contains("timer/cpu0"), "{}", text(&ran));
    assert!(fs::read_to_string(sshd.place().path().join("j.xml")).unwrap().contains("<failure"));
    assert_eq!(count(sshd.place()), 1000);
    let here = Place::with(&experiment);
    assert_code(&here.run(), 3);
    assert_eq!(files(&sshd.bundle()), files(&here.bundle()));
    let target = &sshd.place().summary()["target"];
    let fact = |name: &str| {
        target["facts"].as_array().unwrap().iter().any(|fact| fact[0] == name && fact[1] != "")
    };
    assert_eq!(target["kind"], "ssh");
    assert!(
        ["host", "kernel", "architecture", "user", "program"].iter().all(|name| fact(name)),
        "{target}"
    );
    assert_eq!(here.summary()["target"], serde_json::Value::Null);
    let experiment = |bundle: &Path| fs::read(bundle.join("experiment.toml")).unwrap();
    assert_eq!(experiment(&sshd.bundle()), experiment(&here.bundle()));
    // An existing bundle is not touched, and no connection is made for it.
    assert_code(&sshd.run(&lasting("1s"), &[]), 2);
}

#[test]
fn what_is_refused_there_is_told_here() {
    let Some(sshd) = Sshd::start("refusals of an ssh target") else { return };
    let refused = sshd.run(&lasting("1s").replace("\"0\"", "\"4000\""), &[]);
    assert_code(&refused, 2);
    assert!(
        text(&refused).contains("CPU 4000 does not exist") && !sshd.bundle().exists(),
        "{}",
        text(&refused)
    );
    let missing = sshd.run(
        &format!("{}[[load]]\nname = \"x\"\ncommand = \"no-such-program-1\"\n", lasting("1s")),
        &[],
    );
    assert_code(&missing, 2);
    assert!(text(&missing).contains("no-such-program-1"), "{}", text(&missing));
    let directory = "[[measure]]\nkind = \"storage\"\ndirectory = \"/not/there\"\npolicy = \
                     \"other\"\nsamples = 5\n";
    let lacking = sshd.run(directory, &[]);
    assert_code(&lacking, 2);
    assert!(text(&lacking).contains("/not/there") && !sshd.bundle().exists(), "{}", text(&lacking));
    sshd.assert_clean();
    let planned = sshd.run(&lasting("1s"), &["--plan"]);
    assert_code(&planned, 0);
    assert!(
        String::from_utf8_lossy(&planned.stdout).contains("SCHED_FIFO 80")
            && !sshd.bundle().exists(),
        "{}",
        text(&planned)
    );
    sshd.assert_clean();
}

#[test]
fn a_host_that_shows_no_known_key_gets_nothing() {
    let Some(sshd) = Sshd::start("host keys") else { return };
    sshd.know("");
    let unknown = sshd.run(&lasting("1s"), &[]);
    assert_code(&unknown, 2);
    let fingerprint = Command::new("ssh-keygen")
        .arg("-lf")
        .arg(sshd.place().path().join("host.pub"))
        .output()
        .unwrap();
    let fingerprint =
        String::from_utf8_lossy(&fingerprint.stdout).split_whitespace().nth(1).unwrap().to_owned();
    assert!(
        text(&unknown).contains(&fingerprint)
            && text(&unknown).contains("no key of this host is known"),
        "{}",
        text(&unknown)
    );
    sshd.know(&sshd.key("user"));
    let changed = sshd.run(&lasting("1s"), &[]);
    assert_code(&changed, 2);
    assert!(
        text(&changed).contains(&fingerprint) && text(&changed).contains("known:1"),
        "{}",
        text(&changed)
    );
    // No key was added on the way.
    assert_code(&sshd.run(&lasting("1s"), &[]), 2);
    let files: Vec<_> = fs::read_dir(sshd.tmp()).unwrap().collect();
    assert!(files.is_empty() && !sshd.bundle().exists(), "{files:?}");
}

#[test]
fn hostile_names_are_no_options_and_no_commands() {
    let place = Place::with(&lasting("1s"));
    for host in [
        "-oProxyCommand=touch started",
        "$(touch started)",
        "`touch started`",
        "a;touch started",
        "a\ntouch started",
    ] {
        for target in
            [format!("ssh:{host}"), format!("ssh:root@{host}"), format!("ssh:{host}@127.0.0.1:1")]
        {
            let refused =
                place.line(&format!("run experiment.toml --output bundle --target {target}"));
            assert_code(&refused, 2);
        }
        let listed = place.punctual(&["ssh", "list", "--", host]);
        assert_code(&listed, 2);
    }
    assert!(!place.path().join("started").exists());
}

#[test]
fn a_remote_run_continues_when_its_connection_is_cut() {
    let Some(sshd) = Sshd::start("a lost connection") else { return };
    let mut running = sshd.spawn(&lasting("12s"), &[]);
    sshd.measures();
    sshd.cut();
    eventually("it is noticed", || sshd.said().contains("is lost"));
    // Lines arrive again, so a remote process has the new connection.
    eventually("it is connected again", || {
        sshd.said().split("reconnected to ").nth(1).is_some_and(|said| said.contains("[main]"))
    });
    // Interrupts the connection once more, this time from this end: the process that holds the
    // connection may just be starting.
    eventually("it is noticed once more", || {
        let masters = processes_with("punctual-here")
            .into_iter()
            .filter(|pid| parent(*pid) == Some(running.id()));
        masters.for_each(|pid| kill(pid as u32, "KILL"));
        sshd.said().matches("is lost").count() >= 2
    });
    assert_eq!(running.wait().unwrap().code(), Some(0), "{}", sshd.said());
    assert!(sshd.place().summary()["findings"].to_string().contains("connection-lost"));
    // 12 s without a gap: the thread was not affected.
    assert!(count(sshd.place()) > 9000);
    sshd.assert_clean();
}

fn parent(pid: i32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn a_remote_run_can_be_resumed_after_its_client_was_killed() {
    let Some(sshd) = Sshd::start("kill -9 of the owner") else { return };
    let mut running = sshd.spawn(&lasting("4s"), &[]);
    sshd.measures();
    running.kill().unwrap();
    running.wait().unwrap();
    let id = sshd.id();
    let list = || text(&sshd.place().punctual(&["ssh", "list", &sshd.address()]));
    assert!(list().contains(&format!("{id}  experiment.toml  running")), "{}", list());
    let wrong =
        sshd.place().punctual(&["ssh", "fetch", &sshd.address(), "nobody", "--output", "bundle"]);
    assert_code(&wrong, 2);
    assert!(text(&wrong).contains(&id), "{}", text(&wrong));
    let fetched = sshd.run(&lasting("4s"), &["--quiet", "--resume", &id]);
    assert_code(&fetched, 0);
    assert!(count(sshd.place()) > 3000);
    assert!(list().contains("no runs"), "{}", list());
    sshd.assert_clean();
}

#[test]
fn a_directory_that_all_may_change_is_refused() {
    let Some(sshd) = Sshd::start("a shared directory") else { return };
    fs::set_permissions(sshd.tmp(), fs::Permissions::from_mode(0o1777)).unwrap();
    let refused = sshd.run(&lasting("1s"), &[]);
    assert_code(&refused, 2);
    assert!(text(&refused).contains("can be changed by other users"), "{}", text(&refused));
    sshd.assert_clean();
}

#[test]
fn a_full_disk_there_is_said_and_nothing_is_left_on_it() {
    let Some(sshd) = Sshd::start("a full disk") else { return };
    let Some(_full) = Mounted::tmpfs(&sshd.tmp(), "size=1M,mode=700") else { return };
    let full = sshd.run(&lasting("1s"), &[]);
    assert_code(&full, 2);
    assert!(text(&full).contains("No space left on device"), "{}", text(&full));
    sshd.assert_clean();
}

#[test]
fn a_place_for_no_programs_is_said() {
    let Some(sshd) = Sshd::start("noexec") else { return };
    let Some(_noexec) = Mounted::tmpfs(&sshd.tmp(), "size=300M,noexec,mode=700") else { return };
    let refused = sshd.run(&lasting("1s"), &[]);
    assert_code(&refused, 2);
    assert!(
        text(&refused).contains("does not run in") && text(&refused).contains("Permission denied"),
        "{}",
        text(&refused)
    );
    sshd.assert_clean();
}

#[test]
fn cells_of_a_host_that_fails_run_on_another() {
    let (Some(one), Some(mut other)) = (Sshd::start("a lab"), Sshd::start("its other host")) else {
        return;
    };
    let place = Place::with("");
    let periods = "[axes]\n'measure.timer.period' = ['1ms', '2ms', '3ms', '4ms', '5ms']\n";
    let lab = format!("[lab]\nname = 'hosts'\n{periods}{}", lasting("1s"));
    place.write("lab.toml", lab.as_bytes());
    let on = format!("{},{}", one.target(), other.target().replace("ssh:", ""));
    let mut command = common::punctual();
    command.args(["lab", "run", "lab.toml", "-o", "lab", "--on", &on]);
    command.current_dir(place.path()).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = command.spawn().expect("punctual starts");
    let runs_there = |sshd: &Sshd| !processes_with(&sshd.tmp().display().to_string()).is_empty();
    eventually("both hosts run something", || runs_there(&one) && runs_there(&other));
    other.die();
    let ran = running.wait_with_output().expect("it ended");
    assert_code(&ran, 0);
    assert!(text(&ran).contains("is not used any more"), "{}", text(&ran));
    let document = fs::read(place.path().join("lab/lab.json")).expect("lab.json");
    let document: serde_json::Value = serde_json::from_slice(&document).expect("JSON");
    let cells = document["cells"].as_array().expect("cells");
    assert!(cells.len() == 5 && cells.iter().all(|cell| cell["state"] == "done"), "{document}");
    assert!(cells.iter().all(|cell| cell["seeds"][0]["runs"].as_array().unwrap().len() == 1));
    one.assert_clean();
}

/// A mount, unmounted on drop.
struct Mounted(std::path::PathBuf);

impl Mounted {
    fn tmpfs(at: &Path, options: &str) -> Option<Mounted> {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "punctual-test"])
            .arg(at)
            .output()
            .unwrap();
        if !mounted.status.success() {
            println!("SKIPPED: lacks the right to mount a tmpfs: {}", text(&mounted));
            return None;
        }
        Some(Mounted(at.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
