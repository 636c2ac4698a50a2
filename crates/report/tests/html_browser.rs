//! The report in a real browser without head: plots are drawn, nothing fails, nothing hostile runs, nothing is asked for.

#[path = "browser/mod.rs"]
mod browser;
#[path = "html/mod.rs"]
mod support;

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::synthetic::{Load, Recipe, write};
use support::{fixtures, hostile_bundle, page_of};

/// How long a browser may take for a page; it takes a second or two.
const PATIENCE: Duration = Duration::from_secs(90);

/// What the browser made of a page: the document after its script ran, and the lines on its console.
struct Seen {
    document: String,
    console: Vec<String>,
}

/// `None`, and said why, where there is no browser.
fn open(page: &str, directory: &Path) -> Option<Seen> {
    let browser = browser::path()?;
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
        if begun.elapsed() > PATIENCE {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the browser took longer than {PATIENCE:?}: {}", fs::read_to_string(&err).unwrap_or_default());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let console = String::from_utf8_lossy(&fs::read(&err).unwrap()).into_owned();
    let console = console.lines().filter(|line| line.contains(":CONSOLE")).map(str::to_owned).collect();
    Some(Seen { document: String::from_utf8_lossy(&fs::read(&out).unwrap()).into_owned(), console })
}

fn assert_drawn(seen: &Seen, plots: usize) {
    assert!(seen.console.is_empty(), "the console says: {:#?}", seen.console);
    let root = seen.document.split("<body").next().unwrap_or_default();
    let root = &root[..root.len().min(400)];
    assert!(seen.document.contains(&format!("data-ready=\"plots:{plots}\"")), "not all plots were drawn: {root}");
    assert!(seen.document.contains("data-errors=\"0\""), "the script failed: {root}");
}

#[test]
fn plots_are_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let bundle = write(&directory.path().join("b"), &Recipe::default());
    let Some(seen) = open(&page_of(&[&bundle]), directory.path()) else { return };
    assert_drawn(&seen, 3);
    let chips = seen.document.matches("aria-pressed=\"true\"").count();
    assert_eq!(chips, 16, "two legends of eight series");
    assert!(seen.document.contains("aria-sort=\"none\""), "tables can be sorted");
}

#[test]
fn sixty_four_cpus_become_one_curve_a_phase() {
    let directory = tempfile::tempdir().unwrap();
    let phases = vec![("idle".into(), Load::Idle), ("loaded".into(), Load::Overloaded)];
    let recipe = Recipe { cpus: 64, samples: 500, phases, ..Recipe::default() };
    let bundle = write(&directory.path().join("b"), &recipe);
    let Some(seen) = open(&page_of(&[&bundle]), directory.path()) else { return };
    assert_drawn(&seen, 3);
    assert_eq!(seen.document.matches("aria-pressed=\"true\"").count(), 4);
}

#[test]
fn every_fixture_opens() {
    for (name, bundle) in fixtures() {
        println!("{name}");
        let directory = tempfile::tempdir().unwrap();
        let Some(seen) = open(&page_of(&[&bundle]), directory.path()) else { return };
        let timed = bundle.series().any(|(_, series)| {
            !series.state.data.worst.is_empty()
                || series.log().is_ok_and(|log| !(log.samples.is_empty() && log.windows.is_empty()))
        });
        assert_drawn(&seen, if timed { 3 } else { 2 });
    }
}

#[test]
fn nothing_hostile_runs_and_nothing_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let url = format!("http://{}", server.local_addr().unwrap());
    let bundle = hostile_bundle(&directory.path().join("b"), &url);
    let page = page_of(&[&bundle]);
    assert!(page.contains(&server.local_addr().unwrap().to_string()), "the bait is in the page");
    let Some(seen) = open(&page, directory.path()) else { return };
    assert_drawn(&seen, 3);
    assert!(!seen.document.contains("data-harmed"), "a hostile name ran as script");
    let asked = server.accept();
    assert!(asked.is_err(), "somebody asked {url} for something: {asked:?}");
}
