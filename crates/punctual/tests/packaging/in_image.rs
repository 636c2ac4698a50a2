//! A run in the container image, with the documented capabilities.

use crate::layout::{self, TOOLS};
use crate::packaged::{lacks, repository, run};
use std::fs;
use std::process::Command;

/// Starts a command like a container's first process: another root directory, user 0, and only
/// these capabilities in its bounding set.
const START: &str = r#"
import ctypes, os, sys
root, keep, command = sys.argv[1], [int(number) for number in sys.argv[2].split(",")], sys.argv[3:]
libc = ctypes.CDLL(None)
os.chroot(root)
os.chdir("/results")
PR_CAPBSET_DROP = 24
for capability in range(64):
    if capability not in keep:
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
os.execv(command[0], command)
"#;

/// CAP_IPC_LOCK, CAP_SYS_NICE, CAP_PERFMON, CAP_BPF: as in docs/packages.md, and in the Job.
const CAPABILITIES: &str = "14,23,38,39";

#[test]
fn a_run_in_the_image_has_what_it_needs_with_the_documented_capabilities() {
    let test = "a_run_in_the_image_has_what_it_needs_with_the_documented_capabilities";
    if lacks(test, &TOOLS) || lacks(test, &["unshare", "mount"]) {
        return;
    }
    let may_mount = Command::new("unshare").args(["--mount", "true"]).output();
    if !may_mount.is_ok_and(|output| output.status.success()) {
        return println!("SKIPPED: {test} lacks the right to make a mount namespace");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let image = directory.path().join("image");
    layout::make(&image);
    let index = layout::read(&image.join("index.json"));
    let manifest = layout::read(&layout::blob(&image, &index["manifests"][0]));
    let root = directory.path().join("root");
    fs::create_dir(&root).expect("created");
    run(Command::new("tar")
        .arg("-xzf")
        .arg(layout::blob(&image, &manifest["layers"][0]))
        .arg("-C")
        .arg(&root));
    let experiment = "[experiment]\nname = \"image\"\nrequire_real_time = true\n[[measure]]\n\
                      kind = \"timer\"\ncpus = \"0\"\nperiod = \"10ms\"\n\
                      require = [\"min < 100s\"]\n\
                      [[phase]]\nname = \"short\"\nduration = \"500ms\"\n";
    fs::write(root.join("results/latency.toml"), experiment).expect("written");
    fs::write(root.join("results/start.py"), START).expect("written");
    let script = "set -e; mount --rbind /proc \"$1/proc\"; mount --rbind /sys \"$1/sys\"; \
                  exec python3 \"$1/results/start.py\" \"$1\" \"$2\" /usr/bin/punctual run \
                  latency.toml --quiet --output result";
    run(Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"])
        .arg(&root)
        .arg(CAPABILITIES));
    let summary = layout::read(&root.join("results/result/summary.json"));
    assert_eq!(summary["verdict"], "met");
    let series = &summary["phases"][0]["series"][0];
    assert_eq!(series["real_time"], true);
    let job = fs::read_to_string(repository().join("packaging/kubernetes-job.yaml")).expect("read");
    assert!(job.contains(r#"add: ["SYS_NICE", "IPC_LOCK", "BPF", "PERFMON"]"#));
}
