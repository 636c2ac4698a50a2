//! The breakdown of every timer sample into main parts: matches the kernel's records to samples.
//!
//! None of this happens in a measuring thread. The kernel emits the record of a sample when the
//! next one begins, so a sample is settled one round of draining later.

use super::companion::Companion;
use super::joining::{Joining, Overdue};
use super::measure::MeasureRun;
use super::phase_run::PhaseRun;
use super::series::SeriesRun;
use punctual_core::{AccountCost, CpuSet, Fact, Finding, MonotonicNs, Nanos, Severity};
use punctual_plan::{MeasurePlan, PhasePlan, Plan, TimerMethod, Workload};
use punctual_record::Backend;
use punctual_record::account::Accountant;
use punctual_sys::clock;

/// The age at which a sample is settled: by then the records of other CPUs are in, which show
/// whether all CPUs were stopped.
const SETTLED: Nanos = Nanos::from_millis(150);
/// The maximum number of overdue timers to remember: samples may be settled late if the controller
/// thread was delayed.
const REMEMBERED: usize = 1_024;

/// The accounting of a run.
pub struct Accounting {
    accountant: Accountant,
    cost: Fact<AccountCost>,
    /// The long overdue timers of late, on any CPU.
    overdue: Vec<Overdue>,
}

pub struct Accounted {
    /// All CPUs of the timers.
    pub cpus: CpuSet,
    /// Whether a thread may run on several of these CPUs.
    pub several_cpus: bool,
    /// The samples per second of the busiest CPU.
    pub rate: u64,
}

/// The request of a plan; `None` if it has no timer, or does not ask.
pub(crate) fn accounting_request(plan: &Plan) -> Option<Accounted> {
    if !plan.explain.as_ref().is_some_and(|explain| explain.account) {
        return None;
    }
    let measures =
        || plan.phases.iter().flat_map(|phase| &phase.measures).filter(|m| has_timer(&m.workload));
    let threads = || measures().flat_map(|measure| &measure.threads);
    let cpus = threads().fold(CpuSet::new(), |all, thread| all.union(&thread.cpus));
    let rate =
        cpus.iter().flat_map(|cpu| plan.phases.iter().map(move |phase| rate_on(cpu, phase))).max();
    let several_cpus = threads().any(|thread| thread.cpus.len() > 1);
    (!cpus.is_empty()).then_some(Accounted { cpus, several_cpus, rate: rate.unwrap_or(0) })
}

/// The state of a requested accounting.
pub enum AccountingState {
    /// Unavailable on this system, for this reason.
    Unavailable(String),
    On(Box<Accounting>),
}

impl AccountingState {
    /// Loads the BPF programs if the plan asks for it and has a timer. If this system cannot,
    /// measuring continues without.
    pub fn start(plan: &Plan, findings: &mut Vec<Finding>) -> Option<AccountingState> {
        let Accounted { cpus, several_cpus, rate } = accounting_request(plan)?;
        let backend = Backend::Auto;
        Some(match Accountant::start(&cpus, several_cpus, rate, backend) {
            Ok(mut accountant) => {
                findings.extend(accountant.findings.iter().cloned());
                let cost = accountant.measure_cost();
                AccountingState::On(Box::new(Accounting { accountant, cost, overdue: Vec::new() }))
            }
            Err(why) => {
                let message = "the latency of all samples cannot be accounted by cause on this \
                               system";
                let finding =
                    Finding::new("account-unavailable", Severity::Warning, "account", message);
                let off = "`account = false` in [explain] disables it";
                let remedy =
                    why.joined_remedy().map_or(off.to_owned(), |first| format!("{first}; {off}"));
                findings.push(finding.with_evidence(why.to_string()).with_remedy(remedy));
                AccountingState::Unavailable(why.to_string())
            }
        })
    }

    /// Takes the kernel's records and settles the samples that are old enough: all of them once the
    /// threads have ended.
    fn settle_samples(&mut self, series: &mut [SeriesRun], ended: bool) {
        let AccountingState::On(accounting) = self else { return };
        accounting.take_records(series, ended);
        let now = clock::monotonic_now();
        let forgotten = accounting.overdue.len().saturating_sub(REMEMBERED);
        accounting.overdue.drain(..forgotten);
        let lost = accounting.accountant.lost_records();
        let until = (!ended).then(|| MonotonicNs(now.0 - SETTLED.ns()));
        for joining in series.iter_mut().filter_map(SeriesRun::joining_mut) {
            joining.settle_samples(until, &accounting.overdue);
            joining.account.lost = lost;
            joining.account.complete = ended;
        }
    }
}

impl Companion for AccountingState {
    /// Breaks down the samples of a series from now on, if its thread sleeps on a kernel timer.
    fn prepare_series(
        &mut self,
        workload: &Workload,
        series: &mut SeriesRun,
    ) -> Result<(), String> {
        let (Workload::Timer(timer), Some(tid)) = (workload, series.kept.meta.tid) else {
            return Ok(());
        };
        series.account = match self {
            AccountingState::Unavailable(why) => Fact::Unavailable(why.clone()),
            AccountingState::On(_) if timer.method == TimerMethod::Deadline => Fact::Unavailable(
                "SCHED_DEADLINE wakes its threads without a timer that expires when the sample is \
                 due"
                .to_owned(),
            ),
            AccountingState::On(accounting) => {
                accounting.accountant.watch_thread(tid as u32).map_err(|why| why.to_string())?;
                Fact::Known(Joining::new(
                    tid as u32,
                    series.kept.meta.clock,
                    timer,
                    accounting.cost.clone(),
                ))
            }
        };
        Ok(())
    }

    fn on_tick(&mut self, phase: &mut PhaseRun) {
        self.settle_samples(&mut phase.series, false);
    }

    fn on_save(&mut self, phase: &mut PhaseRun) {
        phase.series.iter_mut().for_each(SeriesRun::save_account);
    }

    fn end_phase(&mut self, phase: &mut PhaseRun) {
        let ended = phase.measures.iter().all(MeasureRun::is_finished);
        self.settle_samples(&mut phase.series, ended);
        phase.series.iter_mut().for_each(SeriesRun::save_account);
    }
}

impl Accounting {
    fn take_records(&mut self, series: &mut [SeriesRun], ended: bool) {
        let mut joinings: Vec<&mut Joining> =
            series.iter_mut().filter_map(SeriesRun::joining_mut).collect();
        let overdue = &mut self.overdue;
        let mut give = |record: punctual_record::account::AccountRecord| {
            if let Some(joining) = joinings.iter_mut().find(|joining| joining.tid == record.tid) {
                overdue.extend(Overdue::from_record(&record));
                joining.add_record(record);
            }
        };
        self.accountant.drain_records(&mut give);
        if ended {
            let tids: Vec<u32> = joinings.iter().map(|joining| joining.tid).collect();
            let last: Vec<_> =
                tids.into_iter().filter_map(|tid| self.accountant.last_record(tid)).collect();
            let mut joinings = joinings;
            for record in last {
                if let Some(joining) = joinings.iter_mut().find(|joining| joining.tid == record.tid)
                {
                    self.overdue.extend(Overdue::from_record(&record));
                    joining.add_record(record);
                }
            }
        }
    }
}

/// The maximum number of timer samples per second on this CPU in the phase: a thread that may run
/// there counts in full.
fn rate_on(cpu: usize, phase: &PhasePlan) -> u64 {
    let sample_rate = |measure: &MeasurePlan| match &measure.workload {
        Workload::Timer(timer) => {
            let threads =
                measure.threads.iter().filter(|thread| thread.cpus.contains(cpu)).count() as u64;
            threads * (Nanos::SECOND.ns() / timer.period.ns().max(1)).max(1) as u64
        }
        _ => 0,
    };
    phase.measures.iter().map(sample_rate).sum()
}

fn has_timer(workload: &Workload) -> bool {
    matches!(workload, Workload::Timer(_))
}
