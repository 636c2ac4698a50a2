//! The disturbance of timer latency in a guest with a real-time kernel, where `rtla timerlat`
//! works: punctual's flight recorder and its accounting beside rtla and `cyclictest --breaktrace`.
//! The guest's time is counted in its instructions, on one CPU: the difference in executed
//! instructions is visible to 8 ns, without noise of this machine. Effects of caches are invisible.
//!
//! Two views. *Own*: the figures of each instrument about its own samples, on against off. That is
//! complete for punctual and cyclictest; rtla's tracer measures inside of its own cost, and its
//! hooks are active even if nothing is kept. *Beside*: therefore an independent thread, the same
//! for all, with a higher priority and its own period, while the tool works on the same CPU.

mod read;

use crate::Args;
use crate::figures::median;
use punctual_lab::{Accel, BootKernel, Guest, GuestFile, GuestOutcome, GuestResult, Job};
use punctual_testing as testing;
use read::Figures;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The functions of the script in the guest.
const JOB: &str = include_str!("disturbance_rt/job.sh");
const KERNEL: &str = "debian:6.12-rt";
/// Not a multiple of the tick or of the tools' period, so that samples meet both in every phase.
const PERIOD_US: u64 = 1_037;
/// Tasks for one CPU that fork, pass messages, wait for timers, and compute.
const LOAD: &str = "--cpu 1 --fork 1 --pipe 1 --timer 1";
const LOADS: [&str; 2] = ["idle", "loaded"];
/// For a whole guest, by this machine's clock: a busy machine takes long.
const GUEST_TIMEOUT: Duration = Duration::from_secs(7200);

/// A way to measure: its name in the script, its description, and the way that it is compared with.
struct Way {
    key: &'static str,
    title: &'static str,
    off: &'static str,
}

const fn way(key: &'static str, title: &'static str, off: &'static str) -> Way {
    Way { key, title, off }
}

const WAYS: [Way; 9] = [
    way("punctual", "punctual, nothing kept", "punctual"),
    way("flight", "punctual, flight recorder", "punctual"),
    way("account", "punctual, accounting", "punctual"),
    way("both", "punctual, flight recorder and accounting", "punctual"),
    way("cyclictest", "cyclictest", "cyclictest"),
    way("breaktrace", "cyclictest --breaktrace, with the same events", "cyclictest"),
    way("rtla", "rtla timerlat --no-aa", "rtla"),
    way("rtla_analysis", "rtla timerlat -T (analysis)", "rtla"),
    way("rtla_auto", "rtla timerlat -a (analysis, stacks and trace)", "rtla"),
];
/// No tool at work: the baseline of the independent thread.
const NOBODY: Way = way("nobody", "nobody", "nobody");

/// For each load and view, the ways with the figures of every seed.
pub fn measure(args: &Args) -> Result<Value, String> {
    let (seeds, seconds) = if args.quick { (1, 3) } else { (2, 11) };
    let Some(guest) = guest(args, seconds)? else { return Ok(Value::Null) };
    let stress = guest.programs.iter().any(|program| program.ends_with("stress-ng"));
    let loads = &LOADS[..if stress { 2 } else { 1 }];
    println!(
        "timer latency in a guest with {KERNEL}, virtual time (1 instruction = 8 ns, 1 CPU), \
         {seeds} seeds of {seconds} s each way:"
    );
    // As many guests at a time as there are CPUs: virtual time makes this invisible to them.
    let at_a_time = std::thread::available_parallelism().map_or(1, usize::from);
    let mut results = Vec::new();
    let all_seeds: Vec<usize> = (0..seeds).collect();
    for some in all_seeds.chunks(at_a_time) {
        results.extend(std::thread::scope(|scope| {
            let started: Vec<_> =
                some.iter().map(|seed| scope.spawn(|| run(&guest, loads, *seed))).collect();
            started
                .into_iter()
                .map(|guest| guest.join().map_err(|_| "the thread of a guest died")?)
                .collect::<Vec<_>>()
        }));
        eprint!(".");
    }
    eprintln!();
    let results = results.into_iter().collect::<Result<Vec<GuestResult>, String>>()?;
    let mut all = BTreeMap::<String, Vec<Option<Figures>>>::new();
    for name in names(loads) {
        all.insert(name.clone(), results.iter().map(|result| figures(result, &name)).collect());
    }
    let release = results.first().and_then(|result| result.release.clone());
    let tables: Vec<Value> = loads
        .iter()
        .flat_map(|load| ["own", "beside"].map(|view| table(load, view, &all)))
        .collect();
    Ok(json!({
        "kernel": release, "seeds": seeds, "seconds": seconds, "period_us": PERIOD_US,
        "load": LOAD, "tables": tables,
    }))
}

/// One guest; its seed is a word on its command line, which changes its whole history, and the
/// order of the ways.
fn run(guest: &Guest, loads: &[&str], seed: usize) -> Result<GuestResult, String> {
    let mut guest = guest.clone();
    guest.cmdline_extra = format!("bench.seed={seed}");
    guest.job = Job::Script(script(loads, seed));
    let result = guest.run().map_err(|why| why.to_string())?;
    keep(&result, seed);
    if result.outcome != GuestOutcome::Finished {
        return Err(testing::story(&result));
    }
    match result.results.get("load-died") {
        Some(described) => Err(format!("the load died: {}", String::from_utf8_lossy(described))),
        None => Ok(result),
    }
}

/// Keeps the files of a guest for inspection, in `PUNCTUAL_BENCH_KEEP`.
fn keep(result: &GuestResult, seed: usize) {
    let Some(place) = std::env::var_os("PUNCTUAL_BENCH_KEEP") else { return };
    let place = std::path::PathBuf::from(place).join(seed.to_string());
    for (name, bytes) in &result.results {
        let path = place.join(name);
        let _ = path.parent().map(std::fs::create_dir_all);
        let _ = std::fs::write(path, bytes);
    }
    let _ = std::fs::write(place.join("stderr"), &result.stderr);
}

/// The guest with all tools in it; `None` after reporting what is missing.
fn guest(args: &Args, seconds: u64) -> Result<Option<Guest>, String> {
    let Some(kernel) = testing::or_skip(BootKernel::by_name(KERNEL, punctual_lab::Arch::Amd64))
    else {
        return Ok(None);
    };
    let mut guest = Guest::new(kernel, Job::Script(String::new()));
    let punctual = std::path::absolute(&args.punctual).map_err(|e| e.to_string())?;
    let mut words = format!(
        "seconds={seconds} period={PERIOD_US} punctual='{}' stress=''\n",
        punctual.display()
    );
    guest.programs.push(punctual);
    for (package, program, variable) in
        [("rtla", "usr/bin/rtla", "rtla"), ("rt-tests", "usr/bin/cyclictest", "cyclictest")]
    {
        let Some((files, start)) = testing::debian_program(package, program) else {
            return Ok(None);
        };
        guest.files.extend(files);
        words += &format!("{variable}='{start}'\n");
    }
    match std::path::Path::new("/usr/bin/stress-ng") {
        stress if stress.exists() => {
            guest.programs.extend([stress.to_owned(), "/usr/bin/nice".into()]);
            words += &format!("stress='{} {LOAD}'\n", stress.display());
        }
        _ => println!(
            "SKIPPED: the loaded half lacks the program stress-ng (Debian package stress-ng)"
        ),
    }
    guest.files.push(GuestFile::text("/bench.sh", words + JOB));
    (guest.cpus, guest.memory_mb, guest.accel, guest.timeout) =
        (1, 1536, Accel::VirtualTime, GUEST_TIMEOUT);
    Ok(Some(guest))
}

/// Ways of both views, with the names of their results in the guest.
fn names(loads: &[&str]) -> Vec<String> {
    let of = |load: &str| {
        let own = WAYS.iter().map(move |way| format!("{load}/own/{}", way.key));
        let beside =
            [&NOBODY].into_iter().chain(&WAYS).map(move |way| format!("{load}/beside/{}", way.key));
        own.chain(beside.collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    loads.iter().flat_map(|load| of(load)).collect()
}

/// All ways in one boot; each seed begins with another way.
fn script(loads: &[&str], seed: usize) -> String {
    let mut text = ". /bench.sh\n".to_owned();
    for load in loads {
        if *load == "loaded" {
            // Nice, as otherwise the set-up of tools would take minutes; measured tools have higher
            // priority than both.
            text += "/usr/bin/nice -n 19 $stress --timeout 0 >/run/load 2>&1 & load=$!\nsleep 1\n";
        }
        let mut lines: Vec<String> = names(&[load])
            .iter()
            .map(|name| {
                let words: Vec<&str> = name.split('/').collect();
                format!("{} {} {}\n", words[1], words[0], words[2])
            })
            .collect();
        let turn = seed * 5 % lines.len();
        lines.rotate_left(turn);
        text.extend(lines);
        if *load == "loaded" {
            text += "kill -0 $load || cat /run/load >/results/load-died\nkill $load; wait $load\n";
        }
    }
    text
}

/// The figures of a way in one guest; `None` if it was not measured, which is reported.
fn figures(result: &GuestResult, name: &str) -> Option<Figures> {
    let file = |ending: &str| result.results.get(&format!("{name}.{ending}")).map(Vec::as_slice);
    let own = name.contains("/own/");
    let figures = match (file("json"), file("rtla")) {
        (Some(json), _)
            if own && !["cyclictest", "breaktrace"].iter().any(|way| name.ends_with(way)) =>
        {
            read::punctual(json)
        }
        (Some(json), _) => read::cyclictest(json),
        (_, Some(text)) => read::rtla(&String::from_utf8_lossy(text)),
        _ => Err("no figures".to_owned()),
    };
    let report_failure = |why: &String| {
        let described = file("said").map(String::from_utf8_lossy).unwrap_or_default();
        println!(
            "SKIPPED: {name}: {why}: {}{}",
            described.trim(),
            String::from_utf8_lossy(&result.stderr).trim()
        );
    };
    figures.inspect_err(report_failure).ok()
}

/// One view under one load.
fn table(load: &str, view: &str, all: &BTreeMap<String, Vec<Option<Figures>>>) -> Value {
    let ways: Vec<&Way> = if view == "own" {
        WAYS.iter().collect()
    } else {
        [&NOBODY].into_iter().chain(&WAYS).collect()
    };
    println!(
        "{load}, {}:",
        if view == "own" {
            "each instrument's own samples"
        } else {
            "an independent thread beside"
        }
    );
    let of = |key: &str| &all[&format!("{load}/{view}/{key}")];
    let rows: Vec<Value> = ways
        .iter()
        .map(|way| row(way, of(way.key), of(if view == "own" { way.off } else { "nobody" })))
        .collect();
    json!({"load": load, "view": view, "rows": rows})
}

/// Differences are computed within the same seed.
fn row(way: &Way, seeds: &[Option<Figures>], off: &[Option<Figures>]) -> Value {
    let pairs: Vec<(&Figures, &Figures)> =
        seeds.iter().zip(off).filter_map(|(on, off)| on.as_ref().zip(off.as_ref())).collect();
    let column = |of: fn(&Figures) -> u64| {
        let values: Vec<f64> = pairs.iter().map(|(on, _)| of(on) as f64 / 1e3).collect();
        let added: Vec<f64> =
            pairs.iter().map(|(on, off)| (of(on) as f64 - of(off) as f64) / 1e3).collect();
        (values, added)
    };
    let ((p50s, added50s), (p999s, added999s)) =
        (column(|figures| figures.p50), column(|figures| figures.p99_9));
    let [p50, added50, p999, added999] =
        [&p50s, &added50s, &p999s, &added999s].map(|values| median(values));
    let [samples, missed]: [u64; 2] = [|f: &Figures| f.samples, |f: &Figures| f.missed]
        .map(|of| pairs.iter().map(|(on, _)| of(on)).sum());
    println!(
        "  {:<48} p50 {p50:>7.2} µs ({added50:>+6.2})   p99.9 {p999:>8.2} µs ({added999:>+7.2})   \
         {samples} samples, {missed} missed",
        way.title
    );
    json!({
        "name": way.title, "p50_us": p50s, "added_p50_us": added50s, "p99_9_us": p999s,
        "added_p99_9_us": added999s, "median_p50_us": p50, "median_added_p50_us": added50,
        "median_p99_9_us": p999, "median_added_p99_9_us": added999, "samples": samples,
        "missed": missed,
    })
}
