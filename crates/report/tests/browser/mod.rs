//! The browser that tests use.

use std::path::PathBuf;

/// Chromium or Chrome; `None`, and said so, where there is none.
pub fn path() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let directories: Vec<PathBuf> = std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect())?;
    let found =
        names.iter().flat_map(|name| directories.iter().map(move |dir| dir.join(name))).find(|path| path.is_file());
    if found.is_none() {
        println!("SKIPPED: no chromium, chromium-browser or google-chrome in PATH");
    }
    found
}
