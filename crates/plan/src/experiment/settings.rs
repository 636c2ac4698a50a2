//! `[experiment]`.

use super::explain::ExplainPlan;
use super::load::PhasePlan;
use super::partition::PartitionPlan;
use super::record::RecordPlan;
use crate::form::{count_form, duration_form, flag_form, path_text, text_form, text_or};
use crate::limits::{MAX_COOLING, MAX_KEPT_SAMPLES, MAX_REFRESH, MIN_REFRESH};
use crate::section::section;
use crate::target::TargetPlan;
use crate::values;
use crate::words::{CpuChoice, DmaLatency, Frequency, Temperature};
use punctual_core::{CpuSet, Nanos, PublishedResults};
use std::path::PathBuf;

section! {
    /// The settings of the whole experiment.
    Settings {
        /// The experiment's name; it is part of the default `output`.
        key name: String, text_form("NAME", values::check_name),
            ["the file's name without its extension"];
        /// Where the controller thread runs: it reads what the measuring threads record, and shows
        /// it.
        key cpus: CpuChoice,
            text_or("CPUS", "all", values::cpu_choice),
            ["all online CPUs on which nothing is measured; where there is none, all online CPUs; \
             those of the `[partition]` are left out"];
        /// The distance between two refreshes of the live view.
        key refresh: Nanos, duration_form(MIN_REFRESH, MAX_REFRESH), [= Nanos::from_millis(500)]
            => plan;
        /// Whether all memory of punctual is locked with mlockall(2).
        key memory_lock: bool, flag_form(), [= true] => plan;
        /// The value that is requested in */dev/cpu_dma_latency* during the run, in whole
        /// microseconds up to 2147483647us; `"0us"` keeps CPUs out of every idle state that takes
        /// time to leave. An application that does not do the same will have longer latencies.
        /// `"leave"` makes no request.
        key dma_latency: DmaLatency,
            text_or("DURATION", "leave", values::dma_latency),
            [= DmaLatency(Some(Nanos::ZERO))] => plan;
        /// The seed of everything random. With one, each load starts up to 20ms later and the
        /// timers up to a period (at most 20ms), by amounts that follow from it; `{seed}` in a
        /// load's arguments and `PUNCTUAL_SEED` in its environment are the seed, and stress-ng(1)
        /// is given it as its own `--seed`.
        key seed: u64,
            count_form(0, i64::MAX as u64),
            ["none; loads and timers start as written, and workloads make their random choices \
             from 1"] => plan;
        /// The directory that the results are written to; it must not exist yet.
        key output: String, path_text(), ["`punctual-`*NAME*`-`*TIME* in the current directory"];
        /// The temperature below which the hottest thermal zone at the CPUs must be before each
        /// phase begins, as `"60C"`. Where none can be read, and where it stays hotter for
        /// `cool_wait`, the phase begins with a warning.
        key cool_below: Temperature,
            text_form("TEMPERATURE", values::parse_temperature),
            ["phases follow at once"] => plan;
        /// How long a phase waits for that at most.
        key cool_wait: Nanos,
            duration_form(Nanos::SECOND, MAX_COOLING),
            [= Nanos::from_secs(600)] => plan;
        /// The frequency governor of every CPU during the run, as `"performance"`. The run is
        /// refused where a CPU has no such governor, and invalid if another one was in force at the
        /// begin or the end of a phase; the former ones are restored.
        key governor: String, text_form("NAME", values::check_name), ["as it is"] => plan;
        /// The frequency of every CPU during the run, as `"1.5GHz"`: the least and the most that
        /// the governor may choose. Checked and restored like `governor`.
        key frequency: Frequency, text_form("FREQUENCY", values::parse_frequency), ["as it is"]
            => plan;
        /// Whether cores run several threads (SMT) during the run; `false` takes all but the first
        /// one of each core offline, and the experiment runs on those that are left. Checked and
        /// restored like `governor`.
        key smt: bool, flag_form(), ["as it is"] => plan;
        /// Whether the load of each CPU is shown and recorded.
        key cpu_load: bool, flag_form(), [= true] => plan;
        /// How many raw samples of each series are kept. Statistics and histograms always include
        /// all samples.
        key keep_samples: u64, count_form(0, MAX_KEPT_SAMPLES), [= 1_000_000] => plan;
        /// Whether the run is invalid unless every requested policy is in force. If one is not,
        /// it is still measured, and the exit status is 4.
        key require_real_time: bool, flag_form(), [= false] => plan;
        /// Whether requests that could make the system unusable are carried out, as with `--force`.
        key force: bool, flag_form(), [= false] => plan;
        /// A command that sh(1) runs, once per run, when a requirement (`require`, `stop_above`) is
        /// violated while the run goes on, or at its end; it does not end the run. The bundle can
        /// be opened at that time and contains the worst sample. The command has these environment
        /// variables: `PUNCTUAL_BUNDLE`, the bundle's absolute path; `PUNCTUAL_SERIES`, the series
        /// that violates it, as PHASE/SERIES; `PUNCTUAL_REQUIREMENT`, the requirement as text;
        /// `PUNCTUAL_VALUE` and `PUNCTUAL_LIMIT`, figure and bound, in ns for times, else counts.
        /// It runs on the CPUs of the controller thread. What it prints goes to *on-violation.log*
        /// in the bundle; its exit status is in the findings.
        key on_violation: String, text_form("COMMAND", values::shell_command), ["none"] => plan;
        /// Whether the run goes on until it is interrupted, even for weeks, with bounded memory and
        /// disk use, whatever `duration` and `samples` say; the experiment has one phase. What
        /// falls into each five minutes is kept for good; of samples and one-second windows the
        /// newest are kept, 128 MiB of all series together.
        key forever: bool, flag_form(), [= false];
        /// Whether what recording costs (`[explain]`, `[record]`) is measured before the run, in
        /// about 7 s: the latency of a timer thread with and without it. In virtual time it never
        /// is.
        key calibrate: bool,
            flag_form(),
            ["true for runs of 10s or longer that record something"] => plan;
    }
    resolved {
        /// The plan of a run, from [`crate::resolve()`].
        Plan, SettingsResolved {
            /// The experiment's name: at most 64 characters, fit for a file name.
            name: String;
            /// The CPUs of the controller thread.
            controller_cpus: CpuSet;
            /// The bundle's directory.
            output: PathBuf;
            /// Whether it runs until it is interrupted, with limited memory and disk. It then has a
            /// single phase.
            forever: bool;
            /// The target.
            target: TargetPlan;
            /// CPUs to isolate while it runs.
            partition: Option<PartitionPlan>;
            /// Kernel events and test points to record while it runs.
            record: Option<RecordPlan>;
            /// The data kept to explain the worst samples.
            explain: Option<ExplainPlan>;
            /// Published results of this experiment.
            published: Option<PublishedResults>;
            /// At least one, run in sequence.
            phases: Vec<PhasePlan>;
        }
    }
}
