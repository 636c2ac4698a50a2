//! `--metrics` read by the real Prometheus: through node_exporter's textfile collector, and
//! directly as OpenMetrics. Every query of the Grafana dashboard is tested.

use crate::common::{Place, eventually, has_program, is_root, text};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Longer than the time between two versions of the file: a rate needs both.
const EXPERIMENT: &str = "[experiment]\nname = \"board\"\n[[measure]]\nname = \"timer\"\nkind = \
                          \"timer\"\ncpus = \"0\"\nperiod = \"1ms\"\nduration = \"17s\"\n";

/// A daemon that ends with the test.
struct Daemon(Child);

impl Daemon {
    fn start(place: &Path, program: &str, words: &[String]) -> Daemon {
        let log = fs::File::create(place.join(format!("{program}.log"))).expect("a log");
        let mut command = Command::new(program);
        command.args(words).current_dir(place).stdin(Stdio::null()).stdout(Stdio::null());
        Daemon(command.stderr(log).spawn().expect("a daemon"))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port()
}

/// Serves the file as OpenMetrics, so that Prometheus reads it by the strict rules of that format.
fn serve(file: PathBuf) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let _ = stream.read(&mut [0; 4096]);
            let body = fs::read_to_string(&file).unwrap_or_else(|_| "# EOF\n".to_owned());
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0; \
                 charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    port
}

struct Monitoring {
    _node_exporter: Daemon,
    _prometheus: Daemon,
    url: String,
}

impl Monitoring {
    /// Reads `text/punctual.prom` every second, in both ways.
    fn start(place: &Place) -> Monitoring {
        let (node, server) = (free_port(), free_port());
        let direct = serve(place.path().join("text/punctual.prom"));
        let target = |job: &str, port: u16| {
            format!(
                "  - job_name: {job}\n    static_configs:\n      - targets: ['127.0.0.1:{port}']\n"
            )
        };
        let configuration = format!(
            "global:\n  scrape_interval: 1s\nscrape_configs:\n{}{}",
            target("node", node),
            target("direct", direct)
        );
        place.write("prometheus.yml", configuration.as_bytes());
        let word = |word: &str| word.to_owned();
        let node_exporter = Daemon::start(
            place.path(),
            "prometheus-node-exporter",
            &[
                word("--collector.disable-defaults"),
                word("--collector.textfile"),
                word("--collector.textfile.directory=text"),
                format!("--web.listen-address=127.0.0.1:{node}"),
            ],
        );
        let prometheus = Daemon::start(
            place.path(),
            "prometheus",
            &[
                word("--config.file=prometheus.yml"),
                word("--storage.tsdb.path=database"),
                format!("--web.listen-address=127.0.0.1:{server}"),
            ],
        );
        let url = format!("http://127.0.0.1:{server}");
        Monitoring { _node_exporter: node_exporter, _prometheus: prometheus, url }
    }

    fn query(&self, expression: &str) -> Output {
        let mut command = Command::new("promtool");
        command.args(["query", "instant", &self.url, expression]).output().expect("promtool")
    }

    /// The values of the answer, one for each series.
    fn values(&self, expression: &str) -> Vec<f64> {
        let answer = text(&self.query(expression));
        let value = |line: &str| line.rsplit_once("=> ")?.1.split(' ').next()?.parse().ok();
        answer.lines().filter_map(value).collect()
    }
}

/// The queries of all panels, and of the variables, as sent by Grafana for a minute's interval.
fn queries(dashboard: &serde_json::Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().expect("targets"));
    let expression = |target: &serde_json::Value| {
        let text = target["expr"].as_str().expect("an expression");
        let text = text.replace("$__rate_interval", "1m");
        text.replace("$experiment", ".*").replace("$instance", ".*")
    };
    targets.map(expression).collect()
}

#[test]
fn prometheus_reads_the_metrics_and_evaluates_the_dashboard() {
    let programs = [
        ("prometheus", "prometheus"),
        ("promtool", "prometheus"),
        ("prometheus-node-exporter", "prometheus-node-exporter"),
    ];
    if !is_root("the metrics of causes")
        || !programs.iter().all(|(program, package)| has_program(program, package))
    {
        return;
    }
    let place = Place::with(EXPERIMENT);
    fs::create_dir(place.path().join("text")).expect("a directory");
    let monitoring = Monitoring::start(&place);
    eventually("both targets are read", || monitoring.values("up") == [1.0, 1.0]);
    let ran = place
        .line("run experiment.toml --quiet --output bundle --explain --metrics text/punctual.prom");
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran));
    let series = &place.summary()["phases"][0]["series"][0];
    let count = series["count"].as_u64().expect("a count") as f64;
    eventually("both ways have the last figures", || {
        monitoring.values("punctual_samples_total") == [count, count]
    });
    // The strict parser accepts it, too: a target with invalid text is down.
    assert_eq!(monitoring.values("up"), [1.0, 1.0]);
    assert_eq!(monitoring.values("node_textfile_scrape_error"), [0.0]);
    let worst = series["max"].as_i64().expect("a maximum") as f64 / 1e9;
    assert_eq!(monitoring.values("punctual_latency_worst_seconds"), [worst, worst]);

    let dashboard =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/grafana-dashboard.json");
    let dashboard: serde_json::Value =
        serde_json::from_slice(&fs::read(dashboard).expect("the dashboard")).expect("JSON");
    let queries = queries(&dashboard);
    assert!(queries.len() >= 9, "{queries:?}");
    let causes = fs::read_to_string(place.path().join("text/punctual.prom"))
        .expect("the metrics")
        .contains("punctual_latency_cause_seconds_total");
    if !causes {
        println!("SKIPPED: the panel of causes lacks the account of latencies (BPF)");
    }
    for query in queries.iter().filter(|query| causes || !query.contains("_cause_")) {
        let values = monitoring.values(query);
        assert!(
            values.iter().any(|value| value.is_finite()),
            "{query}: {}",
            text(&monitoring.query(query))
        );
    }
    for variable in dashboard["templating"]["list"].as_array().expect("variables") {
        if let Some(asked) = variable["query"]["query"].as_str() {
            let inside = asked.trim_start_matches("label_values(").trim_end_matches(')');
            let (metric, label) = inside.split_once(", ").expect("a metric and a label");
            let answer = text(&monitoring.query(&format!("count by ({label}) ({metric})")));
            assert!(answer.contains(&format!("{label}=\"")), "{asked}: {answer}");
        }
    }
}
