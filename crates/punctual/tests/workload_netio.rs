//! `punctual measure netio`: its claims match the kernel's counters, nothing is left behind, and
//! obstacles are reported with their cause.

use crate::common::{self, Place, is_root, text};
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory on a disk if possible: /tmp may be memory.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").expect("a directory in /var/tmp")
}

/// A unique name for a bundle.
fn bundle() -> String {
    static LAST: AtomicU32 = AtomicU32::new(0);
    format!("bundle-{}", LAST.fetch_add(1, Ordering::Relaxed))
}

fn measured(place: &Place, directory: &Path, settings: &[&str]) -> serde_json::Value {
    let directory = format!("directory={}", directory.display());
    let name = bundle();
    let mut arguments =
        vec!["measure", "netio", "--quiet", "--json", "--policy", "other", "--output", &name];
    arguments.extend(["-s", "period=1ms", "--count", "47"]);
    settings.iter().for_each(|setting| arguments.extend(["-s", *setting]));
    if !settings.contains(&"writing=none") {
        arguments.extend(["-s", &directory]);
    }
    let output = place.punctual(&arguments);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output)))
}

fn notes(summary: &serde_json::Value) -> &serde_json::Value {
    &summary["phases"][0]["measures"][0]["notes"]
}

fn counts(summary: &serde_json::Value) -> Vec<(String, u64)> {
    let series = summary["phases"][0]["series"].as_array().expect("series").iter();
    series
        .map(|one| {
            (one["name"].as_str().unwrap_or("").to_owned(), one["count"].as_u64().unwrap_or(0))
        })
        .collect()
}

fn agrees(summary: &serde_json::Value, what: &str) {
    for validation in notes(summary)["validations"].as_array().expect("validations") {
        match validation["counted"].get("known") {
            Some(_) => assert_eq!(validation["agrees"], true, "{what}: {validation}"),
            None => println!("SKIPPED: not counted here: {what}: {validation}"),
        }
    }
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).expect("the directory").next().is_none()
}

#[test]
fn every_transport_and_every_way_to_write_is_counted_by_the_kernel() {
    let (place, directory) = (Place::with(""), directory());
    let direct = ["whole", "send", "recv", "encrypt", "open", "write", "close"];
    for (settings, parts) in [
        (&["transport=tcp"][..], &direct[..]),
        (&["transport=udp"], &direct),
        (&["request=last"], &direct),
        (&["transport=unix", "message=100KiB"], &direct),
        (&["cipher=none", "writing=none"], &["whole", "send", "recv"]),
        (&["writing=none", "transport=udp", "message=1B"], &["whole", "send", "recv", "encrypt"]),
    ] {
        let what = settings.join(" ");
        let summary = measured(&place, directory.path(), settings);
        let expected: Vec<_> = parts.iter().map(|part| (format!("netio/{part}"), 47)).collect();
        let lost = summary["findings"].to_string().contains("netio-lost");
        assert!(lost || counts(&summary) == expected, "{what}: {:?}", counts(&summary));
        agrees(&summary, &what);
        let claims = notes(&summary)["validations"].to_string();
        let read_back = claims.contains("read back and decrypted");
        assert_eq!(read_back, parts.contains(&"write"), "{what}: {claims}");
        assert!(is_empty(directory.path()), "{what} left something");
    }
}

#[test]
fn the_writer_thread_accounts_for_every_record() {
    let (place, directory) = (Place::with(""), directory());
    for settings in
        [&["writing=buffered"][..], &["writing=forced"], &["writing=forced", "forcing=fsync"]]
    {
        let what = settings.join(" ");
        let summary = measured(&place, directory.path(), settings);
        let counted = counts(&summary);
        assert_eq!(counted[0], ("netio/whole".to_owned(), 47), "{what}");
        let figure = |name: &str| {
            let figures = notes(&summary)["figures"].as_array().expect("figures").iter();
            figures
                .filter(|one| one["name"] == name)
                .find_map(|one| one["value"].as_u64().or(one["value"].as_f64().map(|v| v as u64)))
        };
        // On a very slow machine the writer may have missed some.
        let (unwritten, dropped) = (figure("unwritten-records"), figure("dropped-records"));
        let written =
            counted.last().filter(|(name, _)| name == "netio/safe-write").map(|(_, count)| *count);
        let all = written
            .zip(unwritten)
            .zip(dropped)
            .map(|((written, unwritten), dropped)| written * 10 + unwritten + dropped);
        assert_eq!(all, Some(47), "{what}: {}", notes(&summary));
        agrees(&summary, &what);
        assert!(is_empty(directory.path()), "{what} left something");
    }
}

#[test]
#[ignore = "a score: it is a share or a time, which no busy machine guarantees; ./x test --all"]
fn forced_writes_are_slower_than_buffered_ones() {
    let (place, directory) = (Place::with(""), directory());
    let median = |writing: &str| {
        let summary = measured(&place, directory.path(), &[writing, "batch=2"]);
        let memory = summary["findings"].to_string().contains("storage-in-memory");
        let series = summary["phases"][0]["series"].as_array().and_then(|all| all.last().cloned());
        (!memory).then(|| series.and_then(|one| one["median"].as_i64())).flatten()
    };
    let (mut buffered, mut forced) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let Some(slow) = median("writing=forced") else {
            return println!("SKIPPED: lacks a disk: /var/tmp is memory");
        };
        forced.push(slow);
        buffered.extend(median("writing=buffered"));
    }
    buffered.sort_unstable();
    forced.sort_unstable();
    // The median of three alternating rounds.
    assert!(forced[1] > buffered[1], "forced {forced:?}, buffered {buffered:?}");
}

fn refused(place: &Place, settings: &[&str]) -> String {
    let name = bundle();
    let mut arguments =
        vec!["measure", "netio", "-q", "--policy", "other", "--count", "5", "--output", &name];
    settings.iter().for_each(|setting| arguments.extend(["-s", *setting]));
    let output = place.punctual(&arguments);
    common::assert_refused(&output, &place.path().join(&name));
    text(&output)
}

#[test]
fn a_port_that_is_in_use_and_a_directory_that_is_not_there_are_refused() {
    let place = Place::with("");
    let (tcp, udp) = (
        TcpListener::bind("127.0.0.1:0").expect("a port"),
        UdpSocket::bind("127.0.0.1:0").expect("a port"),
    );
    for (transport, address) in [("tcp", tcp.local_addr()), ("udp", udp.local_addr())] {
        let port = address.expect("an address").port();
        let said = refused(&place, &[&format!("transport={transport}"), &format!("port={port}")]);
        assert!(
            said.contains("another program has it") && said.contains(&port.to_string()),
            "{said}"
        );
    }
    let missing = refused(&place, &["directory=/var/tmp/punctual-is-not-there"]);
    assert!(
        missing.contains("No such file") && missing.contains("/var/tmp/punctual-is-not-there"),
        "{missing}"
    );
    let file = refused(&place, &["directory=experiment.toml"]);
    assert!(file.contains("Not a directory"), "{file}");
    let large = refused(&place, &["writing=buffered", "message=16MiB", "batch=100"]);
    assert!(large.contains("a batch would be larger"), "{large}");
    let datagram = refused(&place, &["transport=udp", "message=100KiB"]);
    assert!(datagram.contains("65507"), "{datagram}");
}

#[test]
fn a_full_or_read_only_directory_is_refused() {
    if !is_root("mounting a file system") {
        return;
    }
    let (place, at) = (Place::with(""), directory());
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "none"])
        .arg(at.path())
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        return println!("SKIPPED: lacks the right to mount a tmpfs");
    }
    let setting = format!("directory={}", at.path().display());
    let _ = std::fs::write(at.path().join("everything"), vec![1; 1 << 17]);
    let full = refused(&place, &[&setting, "message=4KiB"]);
    let remounted = Command::new("mount").args(["-o", "remount,ro"]).arg(at.path()).status();
    let read_only = refused(&place, &[&setting]);
    let _ = Command::new("umount").arg(at.path()).status();
    assert!(remounted.is_ok_and(|status| status.success()), "remounting");
    assert!(full.contains("No space left"), "{full}");
    assert!(read_only.contains("Read-only"), "{read_only}");
}

#[test]
fn nothing_stays_behind_after_kill_9() {
    let (place, directory) = (Place::with(""), directory());
    for writing in ["writing=direct", "writing=forced"] {
        let setting = format!("directory={}", directory.path().display());
        let mut command = common::punctual();
        command.args([
            "measure",
            "netio",
            "-q",
            "--policy",
            "other",
            "--duration",
            "1h",
            "-s",
            writing,
            "-s",
            &setting,
        ]);
        command.args(["--output", writing]).current_dir(place.path()).stdout(Stdio::null());
        let mut child = command.spawn().expect("punctual");
        common::eventually("a checkpoint with samples", || {
            let shown = place.punctual(&["show", "--json", writing]);
            let summary: serde_json::Value =
                serde_json::from_slice(&shown.stdout).unwrap_or_default();
            summary["phases"][0]["series"][0]["count"].as_u64().is_some_and(|count| count > 0)
        });
        assert!(is_empty(directory.path()), "the file has a name while it is written");
        common::kill(child.id(), "KILL");
        child.wait().expect("its end");
        assert!(is_empty(directory.path()));
        let word = directory.path().to_string_lossy().into_owned();
        common::eventually("the end of every process", || common::processes_with(&word).is_empty());
    }
}
