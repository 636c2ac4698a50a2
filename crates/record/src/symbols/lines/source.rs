//! Matches the user's name of a source file with that in the debug information.

/// Whether the user's name means this file: its path, or the end of it, by whole components. If the
/// debug information has only the end of a path, that must be the end of the user's path.
pub fn is_meant(asked: &str, noted: &str) -> bool {
    let (asked_parts, noted_parts) = (path_components(asked), path_components(noted));
    let is_end = |end: &[&str], of: &[&str]| !end.is_empty() && of.ends_with(end);
    match (asked.starts_with('/'), noted.starts_with('/')) {
        (true, true) => asked_parts == noted_parts,
        (true, false) => is_end(&noted_parts, &asked_parts),
        (false, _) => is_end(&asked_parts, &noted_parts),
    }
}

/// Joins the parts of a path, each of which may be absolute.
pub(crate) fn join_parts(parts: &[&str]) -> String {
    let mut path = String::new();
    for part in parts.iter().filter(|part| !part.is_empty()) {
        if part.starts_with('/') {
            path.clear();
        } else if !path.is_empty() && !path.ends_with('/') {
            path.push('/');
        }
        path.push_str(part);
    }
    path
}

pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The components, with `.` and `..` resolved as text.
fn path_components(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if path.starts_with('/') => {}
            part => parts.push(part),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_paths_are_matched_by_complete_components() {
        for (asked, noted, meant) in [
            ("loop.c", "/home/a/loop.c", true),
            ("./loop.c", "/home/a/loop.c", true),
            ("a/loop.c", "/home/a/./b/../loop.c", true),
            ("oop.c", "/home/a/loop.c", false),
            ("b/loop.c", "/home/a/loop.c", false),
            ("/home/a/loop.c", "/home/a/loop.c", true),
            ("/a/loop.c", "/home/a/loop.c", false),
            ("/home/a/loop.c", "a/loop.c", true),
            ("/home/a/loop.c", "b/loop.c", false),
            ("", "loop.c", false),
            ("/", "", false),
        ] {
            assert_eq!(is_meant(asked, noted), meant, "{asked} {noted}");
        }
        assert_eq!(join_parts(&["/build", "src", "a.c"]), "/build/src/a.c");
        assert_eq!(join_parts(&["/build", "/usr/include", "a.h"]), "/usr/include/a.h");
        assert_eq!(join_parts(&["", "", "a.h"]), "a.h");
    }
}
