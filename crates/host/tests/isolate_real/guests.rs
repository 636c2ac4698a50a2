//! The same in guests, killed at every step.

use super::IN_GUEST;
use std::time::Duration;

/// Runs them in a guest, after a command that prepares it.
fn in_a_guest(kernel: &str, prepare: &str) {
    let Some(mut guest) = punctual_testing::guest(kernel) else { return };
    let own = punctual_testing::stripped(&std::env::current_exe().unwrap());
    let every = std::env::var("PUNCTUAL_TEST_EVERY_STEP").unwrap_or_default();
    guest.job = punctual_lab::Job::Script(format!(
        "{prepare}
         export {IN_GUEST}=1 PUNCTUAL_TEST_EVERY_STEP='{every}'
         /usr/bin/isolate-test --include-ignored --test-threads 1 --nocapture --skip guests::"
    ));
    // At its own path, because the build may be under /tmp, which is another one in the guest; and
    // for its libraries.
    guest.files =
        vec![punctual_lab::GuestFile::from_host_file(&own, "/usr/bin/isolate-test").unwrap()];
    guest.programs = vec![own, "/bin/sleep".into()];
    guest.cpus = 3;
    if every == "1" {
        guest.timeout = Duration::from_secs(3600);
    }
    let Some(result) = punctual_testing::run(&guest) else { return };
    let output = String::from_utf8_lossy(&result.stdout);
    let story = punctual_testing::story(&result);
    assert!(result.exit_status == Some(0) && !output.contains("SKIPPED"), "{story}");
    assert!(
        ["create", "replug", "undo"].iter().all(|what| output.contains(&format!("{what}: killed"))),
        "{story}"
    );
}

#[test]
fn with_6_12_and_version_2() {
    in_a_guest("debian:6.12", "");
}

/// A kernel that loses affinities (before 6.2), and file names without their prefix.
#[test]
fn with_6_1_and_version_1() {
    in_a_guest(
        "debian:6.1",
        "mkdir /mnt && mount -t cgroup -o cpuset,noprefix cpuset /mnt || exit 9; ls /mnt/cpus || \
         exit 8",
    );
}
