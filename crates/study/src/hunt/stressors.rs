//! The stressors of stress-ng, and their parameters that are known to matter.

use super::space::LoadChoice;
use punctual_session::exit::Failure;
use std::process::Command;

/// The classes of stressors to try first: those that keep the kernel busy with memory and tasks
/// showed most in surveys.
const FIRST: [&str; 6] = ["vm", "os", "memory", "filesystem", "scheduler", "interrupt"];

/// Additional words of a stressor's command (stress-ng(1)): sizes, methods and counts that lead the
/// kernel to other code paths.
const PARAMETERS: [(&str, &[&str]); 24] = [
    (
        "vm",
        &[
            "--vm-bytes 16m",
            "--vm-bytes 96m",
            "--vm-madvise hugepage",
            "--vm-keep",
            "--vm-populate",
        ],
    ),
    ("mremap", &["--mremap-bytes 4m", "--mremap-bytes 64m", "--mremap-lock"]),
    ("mmap", &["--mmap-bytes 4m", "--mmap-bytes 64m", "--mmap-file", "--mmap-mprotect"]),
    ("fork", &["--fork-max 16", "--fork-vm"]),
    ("vfork", &["--vfork-max 64"]),
    ("clone", &["--clone-max 64", "--clone-max 512"]),
    ("pthread", &["--pthread-max 16", "--pthread-max 256"]),
    ("pipe", &["--pipe-data-size 4096", "--pipe-size 1m"]),
    ("hdd", &["--hdd-bytes 16m", "--hdd-write-size 1m"]),
    ("malloc", &["--malloc-bytes 16m", "--malloc-touch", "--malloc-max 64"]),
    ("memfd", &["--memfd-bytes 16m", "--memfd-fds 8"]),
    ("shm", &["--shm-bytes 16m", "--shm-segs 64"]),
    ("shm-sysv", &["--shm-sysv-bytes 16m", "--shm-sysv-segs 32"]),
    ("fallocate", &["--fallocate-bytes 16m", "--fallocate-bytes 64m"]),
    ("sock", &["--sock-domain unix", "--sock-zerocopy"]),
    ("epoll", &["--epoll-sockets 64"]),
    ("timer", &["--timer-freq 1000", "--timer-freq 100000", "--timer-rand"]),
    ("timerfd", &["--timerfd-freq 100000", "--timerfd-fds 512"]),
    ("switch", &["--switch-method mq", "--switch-method sem-sysv"]),
    ("open", &["--open-fd", "--open-max 1024"]),
    ("zombie", &["--zombie-max 1000"]),
    ("stack", &["--stack-fill", "--stack-unmap"]),
    ("sendfile", &["--sendfile-size 1m"]),
    ("bigheap", &["--bigheap-growth 1m"]),
];

/// The stressors of this machine's stress-ng, promising classes first, and the number in the most
/// promising class.
///
/// # Errors
/// There is no stress-ng.
pub fn known() -> Result<(Vec<String>, usize), Failure> {
    let mut all: Vec<String> = Vec::new();
    let mut thorough = 0;
    for class in FIRST {
        let text = asked(&["--class", &format!("{class}?")])?;
        let names = text.split_once("stressors:").map_or("", |(_, names)| names);
        all.extend(names.split_whitespace().map(str::to_owned));
        if class == FIRST[0] {
            thorough = all.len();
        }
    }
    all.extend(asked(&["--stressors"])?.split_whitespace().map(str::to_owned));
    let is_name = |name: &String| {
        name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    let mut known = std::collections::HashSet::new();
    all.retain(|name| is_name(name) && known.insert(name.clone()));
    Ok((all, thorough))
}

/// A stressor as a load of the space.
pub fn choice(name: &str) -> LoadChoice {
    let known = PARAMETERS.iter().find(|(stressor, _)| *stressor == name);
    let words = known.map_or(&[][..], |(_, words)| words);
    let parameters = std::iter::once("").chain(words.iter().copied()).map(str::to_owned);
    LoadChoice { name: name.to_owned(), parameters: parameters.collect(), command: None }
}

fn asked(arguments: &[&str]) -> Result<String, Failure> {
    let missing = |why: &dyn std::fmt::Display| {
        Failure::refused(format!(
            "the search needs stress-ng on this machine ({why})\nhelp: apt-get install stress-ng"
        ))
    };
    let output = Command::new("stress-ng").args(arguments).output().map_err(|why| missing(&why))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text + &String::from_utf8_lossy(&output.stderr))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stressor_parameters_include_none_and_carry_its_prefix() {
        assert_eq!(choice("zero").parameters, [""]);
        for (name, _) in PARAMETERS {
            let choice = choice(name);
            assert_eq!(choice.parameters[0], "");
            let own = format!("--{name}-");
            assert!(choice.parameters[1..].iter().all(|words| words.starts_with(&own)), "{name}");
        }
    }
}
