//! Whether a service's sessions call pam_limits, which reads limits.conf (pam.d(5)).

use crate::files::Files;

const PLACES: [&str; 3] = ["/etc/pam.d", "/usr/lib/pam.d", "/usr/etc/pam.d"];
/// The maximum depth of files that include others.
const MAX_DEPTH: usize = 8;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum PamLimits {
    /// The file of the service.
    Called(String),
    NotCalled(String),
    /// The service has no file: it does not use PAM under this name.
    NoFile,
}

impl PamLimits {
    pub(super) fn from_service(files: &dyn Files, service: &str) -> PamLimits {
        // The name of a task may be any text.
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let path = if service.chars().all(is_name) { find_file(files, service) } else { None };
        match path {
            None => PamLimits::NoFile,
            Some(path) if calls_pam_limits(files, &path, MAX_DEPTH) => PamLimits::Called(path),
            Some(path) => PamLimits::NotCalled(path),
        }
    }
}

fn find_file(files: &dyn Files, service: &str) -> Option<String> {
    PLACES.iter().map(|place| format!("{place}/{service}")).find(|path| files.read(path).is_ok())
}

/// Whether a file, or one that it includes, has a line `session … pam_limits.so`.
fn calls_pam_limits(files: &dyn Files, path: &str, depth: usize) -> bool {
    let text = files.read(path).unwrap_or_default();
    let included = |name: &str| {
        let name = name.rsplit('/').next().unwrap_or(name);
        depth > 0
            && find_file(files, name).is_some_and(|path| calls_pam_limits(files, &path, depth - 1))
    };
    text.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["@include", name] => included(name),
            ["session" | "-session", "include" | "substack", name, ..] => included(name),
            ["session" | "-session", .., _] => {
                words.iter().any(|word| word.rsplit('/').next() == Some("pam_limits.so"))
            }
            _ => false,
        }
    })
}
