//! `[target]`: its plan, its errors, and its short form on the command line.

use crate::support::{plan, problems};
use punctual_plan::{LoadOptions, TargetPlan, read_target};
use std::path::Path;

const TIMER: &str = "[[measure]]\nkind = 'timer'\nduration = '1s'\n";

fn wrong(section: &str) -> String {
    problems(&format!("[target]\n{}\n{TIMER}", section.replace("; ", "\n")))
}

fn short(word: &str, section: &str) -> Result<TargetPlan, String> {
    let file = format!("{section}{TIMER}");
    let target =
        read_target(Path::new("test.toml"), file.as_bytes(), &LoadOptions::default(), Some(word));
    target.map_err(|problems| problems.format_lines())
}

#[test]
fn a_virtual_machine_with_only_a_kernel_gets_defaults() {
    let plan = plan(&format!("[target]\nkind = 'vm'\nkernel = '6.1-rt'\n{TIMER}"));
    let toml = plan.to_toml();
    let section = &toml[toml.find("[target]").unwrap()..toml.find("[[measure]]").unwrap()];
    insta::assert_snapshot!(section, @r#"
    [target]
    kind = "vm"
    kernel = "6.1-rt"
    cmdline = ""
    cpus = 1
    memory = "1GiB"
    accel = "virtual-time"
    arch = "x86_64"
    machine = "pc"
    "#);
    let described = plan.describe();
    let of_it = &described[described.find("  target").unwrap()..described.find("\nphase").unwrap()];
    insta::assert_snapshot!(of_it, @r"
    target
      kind               vm
      kernel             6.1-rt
      cmdline
      cpus               1
      memory             1GiB
      accel              virtual-time
      arch               x86_64
      machine            pc
    ");
}

#[test]
fn what_cannot_be_is_refused() {
    insta::assert_snapshot!(wrong("kernel = '6.1'"), @r#"1:1: error: this target has no kind; write `kind = "vm"`, `"ssh"` or `"host"`"#);
    insta::assert_snapshot!(wrong("kind = 'vm'"), @r#"1:1: error: a virtual machine needs a kernel; write `kernel = "6.1-rt"`, or the path of an image"#);
    insta::assert_snapshot!(wrong("kind = 'vm'; kernel = '6.1'; cpus = 0; memory = '1MiB'; accel = 'fast'; devices = ['usb']"), @r"
    4:8: error: `cpus`: 0 is out of bounds: 1 to 64
    5:10: error: `memory`: `1MiB` is out of bounds: 256MiB to 1024GiB
    6:9: error: `accel`: `fast` is not an acceleration; one of `virtual-time`, `tcg`, `kvm`
    7:12: error: `devices`: `usb` is not a device; one of `storage`, `edu`, `parport`
    ");
    insta::assert_snapshot!(wrong("kind = 'vm'; kernel = '6.1'; cpus = 2; accel = 'virtual-time'"), @r#"4:8: error: virtual time needs 1 CPU: several take turns in one thread of QEMU, and under load their latencies are the length of those turns, not the kernel's; write `cpus = 1`, or `accel = "tcg"`, whose latencies are the host's noise"#);
    insta::assert_snapshot!(wrong("kind = 'vm'; kernel = '6.1'; host = 'board'; modules = '/lib/modules'"), @r"
    4:8: error: `host` does not apply to a target of the kind `vm`; leave it out; it belongs to the kind `ssh`
    5:11: error: a kernel by name brings its own modules; leave `modules` out, or name the kernel by the path of its image
    ");
    insta::assert_snapshot!(wrong("kind = 'ssh'; kernel = '6.1'; cpus = 2"), @r#"
    1:1: error: a target reached by ssh needs a host; write `host = "board.local"`, or several boards as `hosts = ["a", "b"]`
    4:8: error: `cpus` does not apply to a target of the kind `ssh`; leave it out; it belongs to the kind `vm`
    "#);
    insta::assert_snapshot!(wrong("kind = 'ssh'; host = '-oProxyCommand=x'; user = 'a b'; port = 70000"), @r"
    3:8: error: `host`: `-oProxyCommand=x` cannot be a host or a user: it begins with `-`, which ssh would take for an option
    4:8: error: `user`: `a b` cannot be a host or a user: it contains a blank, a quote, `@`, `/` or a character that is not printable
    5:8: error: `port`: 70000 is out of bounds: 1 to 65535
    ");
    insta::assert_snapshot!(wrong("kind = 'vm'; kernel = '6.1'; arch = 'x86_64'; machine = 'virt'"), @"5:11: error: a machine `virt` is not of the architecture x86_64; x86_64 has `pc`; aarch64 has `virt` and `raspi3b`");
    insta::assert_snapshot!(wrong("kind = 'vm'; kernel = '6.1'; machine = 'raspi3b'; devices = ['edu']; memory = '2GiB'"), @r#"
    5:11: error: a Raspberry Pi 3 has no PCI bus for devices; leave `devices` out, or choose `machine = "virt"`
    6:10: error: a Raspberry Pi 3 has 1 GiB of memory; leave `memory` out
    "#);
    insta::assert_snapshot!(wrong("kind = 'host'; port = 22"), @"3:8: error: `port` does not apply to a target of the kind `host`; leave it out; it belongs to the kind `ssh`");
    insta::assert_snapshot!(wrong("kind = 'vm'; kernel = '6.1'; cmdline = \"a\\nb\""), @"4:11: error: `cmdline`: a kernel's command line is one line of printable ASCII");
}

#[test]
fn the_short_form_of_a_target_equals_its_section() {
    let vm = |word: &str, section: &str| match short(word, section) {
        Ok(TargetPlan::Vm(vm)) => vm,
        other => panic!("{word}: {other:?}"),
    };
    let isolated =
        vm("vm:6.12,cpus=4,cmdline=isolcpus=1,3 nohz_full=1,3,accel=tcg,devices=edu+storage", "");
    assert_eq!((isolated.cpus, isolated.cmdline.as_str()), (4, "isolcpus=1,3 nohz_full=1,3"));
    assert_eq!(isolated.devices.len(), 2);
    let other = vm("vm:6.1", "[target]\nkind = 'vm'\nkernel = '6.12'\nmemory = '512MiB'\n");
    assert_eq!(
        (other.kernel, other.memory.0),
        (punctual_plan::KernelChoice::Named("6.1".into()), 512 << 20)
    );
    assert_eq!(
        vm("vm:memory=512MiB", "[target]\nkind = 'vm'\nkernel = '6.12'\n").memory.0,
        512 << 20
    );
    let Ok(TargetPlan::Ssh(ssh)) = short("ssh:root@[fe80::1]:2222,identity=key", "") else {
        panic!()
    };
    assert_eq!(
        (ssh.host.as_str(), ssh.user.as_deref(), ssh.port),
        ("fe80::1", Some("root"), Some(2222))
    );
    let Ok(TargetPlan::Ssh(ssh)) = short("ssh:board:22", "") else { panic!() };
    assert_eq!((ssh.host.as_str(), ssh.user, ssh.port), ("board", None, Some(22)));
    let pool = "[target]\nkind = 'ssh'\nhosts = ['a:2222', 'me@b']\nuser = 'root'\ncmdline = 'x'\n";
    let Ok(TargetPlan::Ssh(ssh)) = short("ssh:b", pool) else { panic!() };
    let one = (ssh.ssh_address().to_string(), ssh.pool.len(), ssh.boot.map(|boot| boot.cmdline));
    assert_eq!(one, ("root@b".to_owned(), 0, Some("x".to_owned())), "one of the pool is chosen");
    assert_eq!(short("host", "[target]\nkind = 'vm'\nkernel = '6.12'\n"), Ok(TargetPlan::Host));
}

#[test]
fn a_contradictory_short_form_of_a_target_is_refused() {
    insta::assert_snapshot!(short("vn:6.1", "").unwrap_err(), @"--target:2:8: error: `kind`: `vn` is not a kind of target; did you mean `vm`?");
    insta::assert_snapshot!(short("vm", "").unwrap_err(), @r#"--target: error: a virtual machine needs a kernel; write `kernel = "6.1-rt"`, or the path of an image"#);
    insta::assert_snapshot!(short("vm:6.1,cpus=two", "").unwrap_err(), @"--target:4:8: error: `cpus`: expected an integer, found a string");
    insta::assert_snapshot!(short("vm:6.1,cpus=2,accel=virtual-time", "").unwrap_err(), @r#"--target: error: virtual time needs 1 CPU: several take turns in one thread of QEMU, and under load their latencies are the length of those turns, not the kernel's; write `cpus = 1`, or `accel = "tcg"`, whose latencies are the host's noise"#);
    insta::assert_snapshot!(short("ssh:a:b", "").unwrap_err(), @"--target:4:8: error: `port`: expected an integer, found a string");
    insta::assert_snapshot!(short("ssh:hosts=a+a", "").unwrap_err(), @"--target: error: the host a is named twice; leave one of them out");
    insta::assert_snapshot!(short("ssh:hosts=a:0", "").unwrap_err(), @"--target:3:10: error: `hosts`: `0` is not a port");
    insta::assert_snapshot!(short("ssh:hosts=u@-x", "").unwrap_err(), @"--target:3:10: error: `hosts`: `-x` cannot be a host or a user: it begins with `-`, which ssh would take for an option");
    insta::assert_snapshot!(short("ssh:a,power_off=x", "").unwrap_err(), @r#"--target: error: a board would stay without power; write the command that gives power again: `power_on = "…"`"#);
    insta::assert_snapshot!(short("ssh:", "").unwrap_err(), @r#"--target: error: a target reached by ssh needs a host; write `host = "board.local"`, or several boards as `hosts = ["a", "b"]`"#);
}
