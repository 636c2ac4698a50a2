//! `punctual measure netio`: its claims match the kernel's counters, nothing is left behind, and
//! obstacles are reported with their cause.

use crate::common::measured::{agrees, counts, figure, notes, refused};
use crate::common::{self, Place, is_root};
use serde_json::Value;
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};

/// A directory on a disk if possible: /tmp may be memory.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").expect("a directory in /var/tmp")
}

fn measured(place: &Place, directory: &Path, settings: &str) -> Value {
    let line = format!("netio --policy other --count 47 -s period=1ms {settings}");
    let line = match settings.contains("writing=none") {
        true => line,
        false => format!("{line} -s directory={}", directory.display()),
    };
    common::measured::measured(place, &line)
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).expect("the directory").next().is_none()
}

#[test]
fn every_transport_and_every_way_to_write_is_counted_by_the_kernel() {
    let (place, directory) = (Place::with(""), directory());
    let direct = ["whole", "send", "recv", "encrypt", "open", "write", "close"];
    for (what, parts) in [
        ("-s transport=tcp", &direct[..]),
        ("-s transport=udp", &direct),
        ("-s request=last", &direct),
        ("-s transport=unix -s message=100KiB", &direct),
        ("-s cipher=none -s writing=none", &["whole", "send", "recv"]),
        ("-s writing=none -s transport=udp -s message=1B", &["whole", "send", "recv", "encrypt"]),
    ] {
        let summary = measured(&place, directory.path(), what);
        let expected: Vec<_> = parts.iter().map(|part| (format!("netio/{part}"), 47)).collect();
        let lost = summary["findings"].to_string().contains("netio-lost");
        assert!(lost || counts(&summary) == expected, "{what}: {:?}", counts(&summary));
        agrees(&summary, what);
        let claims = notes(&summary)["validations"].to_string();
        let read_back = claims.contains("read back and decrypted");
        assert_eq!(read_back, parts.contains(&"write"), "{what}: {claims}");
        assert!(is_empty(directory.path()), "{what} left something");
    }
}

/// Series of each message's driver and softirqs, and claims that the kernel counts as well.
fn has_shares(summary: &Value, what: &str) {
    let lost = summary["findings"].to_string().contains("netio-lost");
    for part in ["netio/driver", "netio/softirq"] {
        let counted = counts(summary).into_iter().find(|(name, _)| name == part);
        assert!(lost || counted.is_some_and(|(_, count)| count == 47), "{what}: {summary}");
    }
    let shares = ["driver-share", "softirq-share"].map(|name| figure(summary, name));
    assert!(
        shares.iter().all(|share| share.is_some_and(|share| share > 0.0)),
        "{what}: {shares:?}"
    );
    agrees(summary, what);
}

/// The devices of this network namespace.
fn devices() -> Vec<String> {
    let names = std::fs::read_dir("/sys/class/net").expect("devices").flatten();
    names.map(|name| name.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_veth_pair_has_the_frames_of_its_devices_and_leaves_nothing() {
    if !is_root("network namespaces") {
        return;
    }
    let (place, directory, before) = (Place::with(""), directory(), devices());
    for transport in ["tcp", "udp"] {
        let line = format!("-s interface=veth -s shares=true -s transport={transport}");
        let summary = measured(&place, directory.path(), &line);
        has_shares(&summary, &line);
        let frames = notes(&summary)["validations"].as_array().and_then(|all| {
            all.iter().find(|one| one["what"] == "frames that the driver took").cloned()
        });
        let frames = frames.and_then(|one| one["claimed"].as_u64());
        // A request and an answer each.
        assert!(frames.is_some_and(|frames| frames >= 2 * 47), "{line}: {}", notes(&summary));
        assert!(summary.to_string().contains("198.18.0.2"), "{line}: {summary}");
    }
    assert_eq!(devices(), before);
}

/// The server of docs/reference/workloads.md.
fn documented_server() -> String {
    let page = include_str!("../../../docs/reference/workloads.md");
    let begin = page.find("python3 -c '").expect("a server") + "python3 -c '".len();
    let code = &page[begin..][..page[begin..].find('\'').expect("its end")];
    code.lines().map(str::trim_start).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_named_interface_leads_to_a_server_that_another_program_is() {
    if !is_root("network namespaces") {
        return;
    }
    let (place, directory) = (Place::with(""), directory());
    let mut server = Command::new("unshare")
        .args(["--net", "python3", "-c", &format!("input()\n{}", documented_server())])
        .stdin(Stdio::piped())
        .spawn()
        .expect("unshare of util-linux");
    let (ours, pid) = (format!("pnct{}", std::process::id() % 100_000), server.id().to_string());
    let ip = |words: &str| {
        let done = Command::new("ip").args(words.split(' ')).status().expect("iproute2");
        assert!(done.success(), "ip {words}");
    };
    let own = std::fs::read_link("/proc/self/ns/net").expect("a namespace");
    let other = || std::fs::read_link(format!("/proc/{pid}/ns/net")).is_ok_and(|is| is != own);
    common::eventually("its namespace", other);
    ip(&format!("link add {ours} type veth peer name beyond netns {pid}"));
    ip(&format!("address add 198.18.7.1/30 dev {ours}"));
    ip(&format!("link set {ours} up"));
    let inside = "ip address add 198.18.7.2/30 dev beyond && ip link set beyond up";
    let entered = ["--target", &pid, "--net", "sh", "-c", inside];
    assert!(Command::new("nsenter").args(entered).status().is_ok_and(|done| done.success()));
    drop(server.stdin.take().map(|mut input| std::io::Write::write_all(&mut input, b"\n")));
    let connects = || {
        let listening = std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap_or_default();
        listening.contains(&format!(":{:04X} 00000000:0000 0A", 7000))
    };
    common::eventually("the server listens", connects);
    let nobody = refused_with(&place, &format!("-s interface={ours} -s server=198.18.7.2:7001"));
    assert!(
        nobody.contains("Connection refused") && nobody.contains("198.18.7.2:7001"),
        "{nobody}"
    );
    let missing = refused_with(&place, "-s interface=none7 -s server=198.18.7.2:7000");
    assert!(missing.contains("there is no such interface"), "{missing}");
    // The server ends with its connection, and the devices with it.
    let line = format!("-s interface={ours} -s server=198.18.7.2:7000 -s shares=true");
    let summary = measured(&place, directory.path(), &line);
    has_shares(&summary, &line);
    assert!(!notes(&summary)["validations"].to_string().contains("read back"), "{summary}");
    let _ = server.kill();
    let _ = server.wait();
}

fn refused_with(place: &Place, settings: &str) -> String {
    refused(place, &format!("netio --policy other --count 5 {settings}"))
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
        let said = refused_with(&place, &format!("-s transport={transport} -s port={port}"));
        assert!(
            said.contains("another program uses it") && said.contains(&port.to_string()),
            "{said}"
        );
    }
    let missing = refused_with(&place, "-s directory=/var/tmp/punctual-is-not-there");
    assert!(
        missing.contains("No such file") && missing.contains("/var/tmp/punctual-is-not-there"),
        "{missing}"
    );
    let file = refused_with(&place, "-s directory=experiment.toml");
    assert!(file.contains("Not a directory"), "{file}");
    let large = refused_with(&place, "-s writing=buffered -s message=16MiB -s batch=100");
    assert!(large.contains("a batch would be larger"), "{large}");
    let datagram = refused_with(&place, "-s transport=udp -s message=100KiB");
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
    let setting = format!("-s directory={}", at.path().display());
    let _ = std::fs::write(at.path().join("everything"), vec![1; 1 << 17]);
    let full = refused_with(&place, &format!("{setting} -s message=4KiB"));
    let remounted = Command::new("mount").args(["-o", "remount,ro"]).arg(at.path()).status();
    let read_only = refused_with(&place, &setting);
    let _ = Command::new("umount").arg(at.path()).status();
    assert!(remounted.is_ok_and(|status| status.success()), "remounting");
    assert!(full.contains("No space left"), "{full}");
    assert!(read_only.contains("Read-only"), "{read_only}");
}
