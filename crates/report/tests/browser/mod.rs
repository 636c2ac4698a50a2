//! The browser for tests, and the result of a page in it.
#![allow(dead_code)]

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Chromium or Chrome; `None`, with a message, if there is none.
pub fn path() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let directories: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect())?;
    let found = names
        .iter()
        .flat_map(|name| directories.iter().map(move |dir| dir.join(name)))
        .find(|path| path.is_file());
    if found.is_none() {
        println!("SKIPPED: no chromium, chromium-browser or google-chrome in PATH");
    }
    found
}

/// The time limit of a browser for a page; it normally takes a second or two.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The result of a page in the browser: the document after its script ran, and the lines on its
/// console.
pub struct Seen {
    pub document: String,
    pub console: Vec<String>,
}

/// Opens a page; `None`, with a message, without a browser.
pub fn open(page: &str, directory: &Path) -> Option<Seen> {
    let browser = path()?;
    let file = directory.join("page.html");
    fs::write(&file, page).unwrap();
    let (out, err) = (directory.join("stdout"), directory.join("stderr"));
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
        ])
        .args([
            "--enable-logging=stderr",
            "--v=0",
            "--virtual-time-budget=5000",
            "--window-size=1280,2000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", directory.join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .stdin(Stdio::null())
        .stdout(File::create(&out).unwrap())
        .stderr(File::create(&err).unwrap())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > TIMEOUT {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!(
                "the browser took longer than {TIMEOUT:?}: {}",
                fs::read_to_string(&err).unwrap_or_default()
            );
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let console = String::from_utf8_lossy(&fs::read(&err).unwrap()).into_owned();
    let console =
        console.lines().filter(|line| line.contains(":CONSOLE")).map(str::to_owned).collect();
    Some(Seen { document: String::from_utf8_lossy(&fs::read(&out).unwrap()).into_owned(), console })
}

/// Every plot was drawn and nothing failed.
pub fn assert_drawn(seen: &Seen, plots: usize) {
    assert!(seen.console.is_empty(), "the console says: {:#?}", seen.console);
    let root = seen.document.split("<body").next().unwrap_or_default();
    let root = &root[..root.len().min(400)];
    assert!(
        seen.document.contains(&format!("data-ready=\"plots:{plots}\"")),
        "not all plots were drawn: {root}"
    );
    assert!(seen.document.contains("data-errors=\"0\""), "the script failed: {root}");
}

/// A server whose address is in hostile names, and that must receive no request.
pub struct Bait {
    server: TcpListener,
    pub url: String,
}

impl Bait {
    pub fn laid() -> Bait {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        server.set_nonblocking(true).unwrap();
        let url = format!("http://{}", server.local_addr().unwrap());
        Bait { server, url }
    }

    pub fn assert_in(&self, page: &str) {
        assert!(page.contains(self.url.trim_start_matches("http://")), "the bait is in the page");
    }

    /// No name ran as script, and no request came.
    pub fn assert_untouched(&self, seen: &Seen) {
        assert!(!seen.document.contains("data-harmed"), "a hostile name ran as script");
        let requested = self.server.accept();
        assert!(requested.is_err(), "somebody asked {} for something: {requested:?}", self.url);
    }
}

/// The page with a script of the test, which its policy would block: for mouse actions of a reader.
pub fn driven(page: &str, script: &str) -> String {
    let (before, policy) =
        page.split_once("<meta http-equiv=\"Content-Security-Policy\"").expect("a policy");
    let (_, after) = policy.split_once('>').unwrap();
    let (body, end) = after.rsplit_once("</body>").expect("an end");
    format!("{before}{body}<script>{script}</script></body>{end}")
}
