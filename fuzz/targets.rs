//! All fuzz targets, for the fuzzer and for the replay of its inputs.

#[path = "experiment.rs"]
mod experiment;

mod bundle;
mod bundle_log;
mod exact;
mod experiment_systress;
mod experiment_toml;
mod explain;
mod import_json;
mod import_text;
mod pairs;
mod points_file;
mod recording;
mod trace_ctf;
mod trace_dat;
mod trace_perf;
mod trace_perfetto;
mod trace_text;
mod window;
mod wire;

type FuzzTarget = (&'static str, fn(&[u8]));

/// Each target by the name of its file, and of its directories of seeds and crashers.
pub const TARGETS: &[FuzzTarget] = &[
    ("bundle", bundle::fuzz),
    ("bundle_log", bundle_log::fuzz),
    ("exact", exact::fuzz),
    ("experiment_systress", experiment_systress::fuzz),
    ("experiment_toml", experiment_toml::fuzz),
    ("explain", explain::fuzz),
    ("import_json", import_json::fuzz),
    ("import_text", import_text::fuzz),
    ("pairs", pairs::fuzz),
    ("points_file", points_file::fuzz),
    ("recording", recording::fuzz),
    ("trace_ctf", trace_ctf::fuzz),
    ("trace_dat", trace_dat::fuzz),
    ("trace_perf", trace_perf::fuzz),
    ("trace_perfetto", trace_perfetto::fuzz),
    ("trace_text", trace_text::fuzz),
    ("window", window::fuzz),
    ("wire", wire::fuzz),
];

/// Reads a trace to its end.
fn read_trace(mut trace: punctual_traces::Trace) {
    let mut last = i64::MIN;
    for event in trace.by_ref().map_while(Result::ok) {
        assert!(event.at.0 >= last, "an event is older than the one before it");
        last = event.at.0;
    }
    let _ = trace.facts();
}
