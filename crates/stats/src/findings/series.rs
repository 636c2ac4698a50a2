//! Findings about one series.

use crate::{Distribution, percentiles};
use punctual_bundle::SeriesMeta;
use punctual_bundle::meta::{
    ATTACHED_WORKLOAD, DETAIL_KEPT, ENTRIES_WORKLOAD, NEWEST, SOURCE_RESOLUTION, TIMER_WORKLOAD,
};
use punctual_bundle::state::SeriesState;
use punctual_bundle::summary::SeriesSummary;
use punctual_core::series::HDR_MAX;
use punctual_core::{Clock, Fact, Finding, Metric, Nanos, Requirement, Severity};

/// The number of page faults that code alone may cause: a loop takes some functions, and a fault
/// also maps the pages around it.
const CODE: u64 = 4;
/// The resolution from which steps of the clock show in figures in µs.
const COARSE: Nanos = Nanos(100);
/// The share of lost samples from which figures are unusable.
const TOO_MUCH_LOST: f64 = 0.01;

/// All findings about the figures of a series.
pub fn of_series(
    phase: &str,
    meta: &SeriesMeta,
    state: &SeriesState,
    summary: &SeriesSummary,
) -> Vec<Finding> {
    let about = SeriesContext { subject: format!("{phase}/{}", meta.name), meta, state, summary };
    let scheduling = about.check_scheduling();
    // No interruption of the CPU.
    if summary.count == 0 && meta.workload == ENTRIES_WORKLOAD {
        return Vec::new();
    }
    if summary.count == 0 {
        let empty_finding = about.not_ended().unwrap_or_else(|| about.no_samples());
        return scheduling.into_iter().chain([empty_finding]).collect();
    }
    let series_findings = [
        scheduling,
        about.not_ended(),
        about.check_losses(),
        about.releases_not_known(),
        about.check_overruns(),
        about.check_negative(),
        about.check_clock_step(),
        about.check_overflow(),
        about.too_few(),
        about.no_distribution(),
        about.check_page_faults(),
        about.check_preemption(),
        about.check_resolution(),
        about.not_kept(),
    ];
    series_findings.into_iter().flatten().collect()
}

/// Whether a finding is about a thread's counters, which all its series share.
pub fn is_of_thread(finding: &Finding) -> bool {
    ["page-faults", "involuntary-switches"].iter().any(|id| finding.id == *id)
}

struct SeriesContext<'a> {
    subject: String,
    meta: &'a SeriesMeta,
    state: &'a SeriesState,
    summary: &'a SeriesSummary,
}

impl SeriesContext<'_> {
    fn new_finding(&self, id: &str, severity: Severity, message: impl Into<String>) -> Finding {
        Finding::new(id, severity, &self.subject, message)
    }

    /// Whether it is a series of an attached program, which advice on an experiment file does not
    /// fit.
    fn is_attached(&self) -> bool {
        self.meta.workload == ATTACHED_WORKLOAD
    }

    fn no_samples(&self) -> Finding {
        let count = |n: Option<u64>| n.map_or("unknown".to_owned(), |n| n.to_string());
        let (lost, overruns) = (count(self.summary.lost), count(self.summary.overruns));
        self.new_finding("no-samples", Severity::Bad, "nothing was measured")
            .with_evidence(format!("0 samples recorded, {lost} lost, {overruns} overruns"))
            .with_remedy(
                "measure for longer than the first period and offset; see the other findings",
            )
    }

    fn not_ended(&self) -> Option<Finding> {
        let one = self.summary.unfinished.filter(|one| !one.ended)?;
        let passed_releases = match one.passed {
            0 => String::new(),
            passed => format!("; {passed} releases passed meanwhile"),
        };
        let max = self.state.data.max;
        let longest = max
            .map_or("none has".to_owned(), |max| format!("the longest has {}", max.to_readable()));
        let message = "the last sample had not ended when the measurement did: only a lower bound \
                       of it is known";
        let finding = self.new_finding("not-ended", Severity::Warning, message);
        Some(
            finding
                .with_evidence(format!(
                    "at least {} of {}{passed_releases}; of those that ended {longest}",
                    one.at_least.to_readable(),
                    one.lasted.to_readable()
                ))
                .with_remedy("look at what its thread waited for or did then; measure for longer"),
        )
    }

    fn check_scheduling(&self) -> Option<Finding> {
        let in_force = format!("scheduling in force: {}", self.meta.scheduling);
        // For an attached program, its lint judges whether it should be a real-time one.
        if self.meta.real_time || (self.is_attached() && self.meta.has_requested_scheduling()) {
            return None;
        }
        Some(if self.meta.is_scheduling_unknown() {
            self.new_finding(
                "scheduling-unknown",
                Severity::Note,
                "the source does not report the scheduling of the measuring thread",
            )
            .with_remedy("compare it only with measurements under the same scheduling")
        } else if self.meta.has_requested_scheduling() {
            self.new_finding(
                "time-sharing",
                Severity::Note,
                "the measuring thread ran without real-time scheduling, as requested",
            )
            .with_evidence(in_force)
            .with_remedy("set policy = \"fifo\" and a priority to measure a real-time thread")
        } else {
            self.new_finding(
                "not-real-time",
                Severity::Bad,
                "the measuring thread did not get the requested real-time scheduling",
            )
            .with_evidence(in_force)
            .with_remedy(
                "run as root, or with CAP_SYS_NICE or an RLIMIT_RTPRIO high enough \
                 (limits.conf(5))",
            )
        })
    }

    fn check_losses(&self) -> Option<Finding> {
        let losses = &self.state.data.losses;
        let lost = if self.is_attached() { losses.lost_records } else { losses.dropped };
        let remedy = match self.is_attached() {
            true => {
                "name the kind of cycle (--cycle) or the thread (--thread), so that less is \
                 recorded, or leave a CPU to punctual"
            }
            false => "give the controller thread a CPU of its own, or measure with a longer period",
        };
        let message = "samples were lost after the measurement; no figure includes them";
        let (share, evidence) = self.share_of_expected(lost)?;
        let severity = if share >= TOO_MUCH_LOST { Severity::Bad } else { Severity::Warning };
        Some(
            self.new_finding("samples-lost", severity, message)
                .with_evidence(evidence)
                .with_remedy(remedy),
        )
    }

    fn releases_not_known(&self) -> Option<Finding> {
        let losses = &self.state.data.losses;
        let message = "no event shows when these cycles were released: their samples are not \
                       known, and no figure includes them";
        let (_, evidence) =
            self.share_of_expected(losses.dropped.saturating_sub(losses.lost_records))?;
        let finding = self.new_finding("releases-not-known", Severity::Warning, message);
        self.is_attached().then(|| finding.with_evidence(evidence))
    }

    /// The share of these samples in those expected, and that in words; `None` if there are none.
    fn share_of_expected(&self, samples: u64) -> Option<(f64, String)> {
        let expected = self.summary.expected?;
        let share = samples as f64 / expected.max(1) as f64;
        (samples > 0).then(|| (share, format!("{samples} of {expected} ({:.3} %)", share * 100.0)))
    }

    fn check_overruns(&self) -> Option<Finding> {
        let (skipped, expected) = (self.summary.skipped?, self.summary.expected?);
        (skipped > 0).then(|| {
            let message = "missed periods (coordinated omission): plain figures count each such \
                           wait once, corrected figures every missed period";
            let high_percentile = |percentiles: &std::collections::BTreeMap<String, i64>| {
                percentiles.get("99.9").copied()
            };
            let plain = high_percentile(&self.summary.percentiles);
            let corrected =
                self.summary.corrected.as_ref().and_then(|c| high_percentile(&c.percentiles));
            let figures = match (plain, corrected) {
                (Some(plain), Some(corrected)) if corrected > plain => {
                    format!(
                        "; p99.9 is {} plain and {} corrected",
                        Nanos(plain).to_readable(),
                        Nanos(corrected).to_readable()
                    )
                }
                _ => String::new(),
            };
            let finding = match self.is_attached() {
                true => self.new_finding("skipped-releases", Severity::Warning, message),
                false => self.new_finding("overruns", Severity::Warning, message),
            };
            finding.with_evidence(format!("{skipped} of {expected} periods{figures}")).with_remedy(
                "use the corrected figures for a periodic task; find what occupied the CPU \
                     for that long",
            )
        })
    }

    fn check_negative(&self) -> Option<Finding> {
        let negative = self.summary.negative;
        if self.is_attached() {
            let message = "releases went back: the program asked for a time before the last one";
            let evidence = format!("{negative} of {} periods", self.summary.count);
            let finding = self.new_finding("release-went-back", Severity::Note, message);
            return (negative > 0).then(|| finding.with_evidence(evidence));
        }
        (negative > 0).then(|| {
            let remedy = match self.meta.clock {
                Clock::Monotonic => "look for a failing clocksource in the kernel log (dmesg)",
                _ => {
                    "measure on CLOCK_MONOTONIC, which is never stepped, or stop the program that \
                     sets the clock"
                }
            };
            let min = self.summary.min.map_or("?".into(), |min| Nanos(min).to_readable());
            self.new_finding(
                "negative-latency",
                Severity::Warning,
                "events came before they were due: the clock was stepped or is not reliable",
            )
            .with_evidence(format!(
                "{negative} negative latencies on {}, the smallest {min}",
                self.meta.clock
            ))
            .with_remedy(remedy)
        })
    }

    fn check_clock_step(&self) -> Option<Finding> {
        let max = self.summary.max.filter(|max| *max as i128 > i128::from(HDR_MAX))?;
        let message =
            "latencies are implausibly long: the clock was stepped, or the bundle was altered";
        let found = self.new_finding("clock-stepped", Severity::Bad, message);
        let limit = Nanos(HDR_MAX as i64).to_readable();
        Some(
            found
                .with_evidence(format!(
                    "max {}; percentiles beyond {limit} are left out",
                    Nanos(max).to_readable()
                ))
                .with_remedy("measure again on CLOCK_MONOTONIC"),
        )
    }

    fn check_overflow(&self) -> Option<Finding> {
        let (above, count) = (self.summary.above_range, self.summary.count);
        // For an attached program the range is inferred, for a CPU it is fixed: it cannot be set.
        let is_entries = self.meta.workload == ENTRIES_WORKLOAD;
        (above > 0 && !self.is_attached() && !is_entries).then(|| {
            let end = self.state.data.exact.upper_end();
            let max = self.summary.max.unwrap_or_default();
            // Rounded up to whole µs, for use in a file.
            let required = Nanos(max.saturating_add(999) / 1_000 * 1_000);
            self.new_finding(
                "bins-overflowed",
                Severity::Advice,
                "latencies are beyond the range of the exact histogram; every other figure \
                 includes them",
            )
            .with_evidence(format!(
                "{above} of {count} samples from {} on, the largest {}",
                end.to_readable(),
                Nanos(max).to_readable()
            ))
            .with_remedy(format!(
                "set histogram.range (cyclictest: -h) to at least {required} to see them in it"
            ))
        })
    }

    /// Requirements on percentiles that the count does not support.
    fn too_few(&self) -> Option<Finding> {
        let count = self.summary.count;
        let required = |text: &String| match text.parse::<Requirement>().ok()?.metric {
            Metric::Percentile(p) | Metric::CorrectedPercentile(p) => {
                Some((p, percentiles::samples_needed(p)))
            }
            _ => None,
        };
        let required: Vec<(f64, u64)> = self
            .meta
            .requirements
            .iter()
            .filter_map(required)
            .filter(|(_, n)| *n > count)
            .collect();
        let (percentile, needed) = required.into_iter().max_by_key(|(_, needed)| *needed)?;
        let message = "too few samples for the percentile of a requirement";
        let found = self.new_finding("too-few-samples", Severity::Warning, message);
        let length =
            self.meta.period.map(|p| i128::from(p.ns()) * i128::from(needed) / 1_000_000_000 + 1);
        let length = length.map_or(String::new(), |s| format!(" (about {s} s at this period)"));
        Some(
            found
                .with_evidence(format!(
                    "p{percentile} needs {needed} samples, {} of them beyond it; there are {count}",
                    percentiles::BEYOND
                ))
                .with_remedy(format!("measure until there are {needed} samples{length}")),
        )
    }

    fn no_distribution(&self) -> Option<Finding> {
        self.state.data.whole.is_empty().then(|| {
            self.new_finding(
                "no-distribution",
                Severity::Warning,
                "the source has only minimum, mean and maximum: there are no percentiles and no \
                 histogram",
            )
            .with_remedy(
                "run the tool with its histogram switched on, where it has one (cyclictest: -h)",
            )
        })
    }

    fn check_page_faults(&self) -> Option<Finding> {
        let Fact::Known(usage) = &self.state.usage else { return None };
        // The loop of a timer runs completely before it is counted; in others a part may run for
        // the first time.
        let is_code = usage.major_faults == 0
            && usage.minor_faults <= CODE
            && self.meta.workload != TIMER_WORKLOAD;
        (usage.minor_faults > 0 || usage.major_faults > 0).then(|| {
            let message = match is_code {
                true => {
                    "the measuring thread had a few page faults: no more than the first execution \
                     of its code can cause"
                }
                false => {
                    "the measuring thread had page faults, which should not happen with its memory \
                     locked"
                }
            };
            let remedy = match is_code {
                true => {
                    "each delayed at most one sample by some microseconds; measure longer: if \
                     their number grows, lock the memory"
                }
                false => {
                    "allow it to lock its memory (CAP_IPC_LOCK or RLIMIT_MEMLOCK), and keep memory \
                     locking enabled"
                }
            };
            let severity = if is_code { Severity::Note } else { Severity::Warning };
            self.new_finding("page-faults", severity, message)
                .with_evidence(format!(
                    "{} minor, {} major (getrusage(2))",
                    usage.minor_faults, usage.major_faults
                ))
                .with_remedy(remedy)
        })
    }

    fn check_preemption(&self) -> Option<Finding> {
        let Fact::Known(usage) = &self.state.usage else { return None };
        (usage.involuntary_switches > 0).then(|| {
            let message =
                "the measuring thread was preempted: a task of the same or a higher priority ran";
            let switches = if usage.involuntary_switches == 1 { "switch" } else { "switches" };
            self.new_finding("involuntary-switches", Severity::Warning, message)
                .with_evidence(format!(
                    "{} involuntary context {switches} (getrusage(2))",
                    usage.involuntary_switches
                ))
                .with_remedy(
                    "raise its priority, or move the other real-time threads of this CPU away (ps \
                     -eLo cls,rtprio,psr,comm)",
                )
        })
    }

    /// The resolution of an import is that of its tool; otherwise it follows from the samples'
    /// distances.
    fn check_resolution(&self) -> Option<Finding> {
        if let Some(step) = self.meta.details.get(SOURCE_RESOLUTION) {
            let step = step
                .parse()
                .ok()
                .filter(|step: &Nanos| *step >= COARSE && self.summary.count > 0)?;
            let message = "the tool that wrote the figures has this resolution";
            let found = self.new_finding("coarse-resolution", Severity::Advice, message);
            let remedy = "no figure is more exact than one such step";
            return Some(
                found
                    .with_evidence(format!(
                        "its latencies are whole multiples of {}",
                        step.to_readable()
                    ))
                    .with_remedy(remedy),
            );
        }
        let step = Distribution::from_series(&self.state.data)
            .clock_step()
            .filter(|step| *step >= COARSE)?;
        let message = "latencies come in coarse steps: this is the resolution of the clock, or of \
                       the tool that wrote the figures";
        let found = self.new_finding("coarse-resolution", Severity::Advice, message);
        Some(
            found
                .with_evidence(format!(
                    "no two different latencies are closer than {}",
                    step.to_readable()
                ))
                .with_remedy(
                    "no figure is more exact than one such step; see clock_getres(2) and the \
                     current_clocksource",
                ),
        )
    }

    fn not_kept(&self) -> Option<Finding> {
        let (kept, count) = (self.state.samples_kept, self.summary.count);
        // Fast loops only count; for a timer without kept samples the user has requested none, and
        // an import has none.
        let counted =
            kept == 0 && !self.meta.measure.is_empty() && self.meta.workload != TIMER_WORKLOAD;
        let rotated = self.meta.details.get(DETAIL_KEPT).is_some_and(|kept| kept == NEWEST);
        ((kept > 0 || counted) && kept < count).then(|| {
            let evidence = match counted {
                true => "the log has none: samples at this rate are counted in the measuring \
                         thread"
                    .to_owned(),
                false if rotated => format!("the newest {kept} of {count} are in the log"),
                false => format!("the first {kept} of {count} are in the log"),
            };
            self.new_finding(
                "samples-not-kept",
                Severity::Note,
                "not every sample is in the log; all figures and histograms include every sample",
            )
            .with_evidence(evidence)
            .with_remedy(if counted || rotated || self.is_attached() {
                "the worst samples are kept anyway"
            } else {
                "raise keep_samples if exports need all of them"
            })
        })
    }
}
