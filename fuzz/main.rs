//! All fuzz targets as one program: `$FUZZ_TARGET` selects one. See `fuzz/run`.
#![no_main]

use std::sync::LazyLock;

#[path = "src/experiment.rs"]
mod experiment;
mod fuzz_targets {
    pub mod bundle;
    pub mod bundle_log;
    pub mod exact;
    pub mod experiment_systress;
    pub mod experiment_toml;
    pub mod explain;
    pub mod import_json;
    pub mod import_text;
    pub mod pairs;
    pub mod points_file;
    pub mod recording;
    pub mod trace_ctf;
    pub mod trace_dat;
    pub mod trace_perf;
    pub mod trace_perfetto;
    pub mod trace_text;
    pub mod window;
    pub mod wire;

    /// Reads a trace to its end.
    fn read_trace(mut trace: punctual_traces::Trace) {
        let mut last = i64::MIN;
        for event in trace.by_ref().map_while(Result::ok) {
            assert!(event.at.0 >= last, "an event is older than the one before it");
            last = event.at.0;
        }
        let _ = trace.facts();
    }
}
use fuzz_targets::*;

static TARGET: LazyLock<fn(&[u8])> =
    LazyLock::new(|| match std::env::var("FUZZ_TARGET").as_deref() {
        Ok("bundle") => bundle::fuzz,
        Ok("bundle_log") => bundle_log::fuzz,
        Ok("exact") => exact::fuzz,
        Ok("experiment_systress") => experiment_systress::fuzz,
        Ok("experiment_toml") => experiment_toml::fuzz,
        Ok("explain") => explain::fuzz,
        Ok("import_json") => import_json::fuzz,
        Ok("import_text") => import_text::fuzz,
        Ok("pairs") => pairs::fuzz,
        Ok("points_file") => points_file::fuzz,
        Ok("recording") => recording::fuzz,
        Ok("trace_ctf") => trace_ctf::fuzz,
        Ok("trace_dat") => trace_dat::fuzz,
        Ok("trace_perf") => trace_perf::fuzz,
        Ok("trace_perfetto") => trace_perfetto::fuzz,
        Ok("trace_text") => trace_text::fuzz,
        Ok("window") => window::fuzz,
        Ok("wire") => wire::fuzz,
        name => panic!("$FUZZ_TARGET is {name:?}, which is no target"),
    });

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| TARGET(bytes));
