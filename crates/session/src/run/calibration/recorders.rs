//! The recorders that are switched on and off, as a run, a trace or an attached program uses them.

use super::super::accounting::{self, Accounted};
use super::stand_in::StandIn;
use crate::exit::Failure;
use crate::flight::Flight;
use crate::recording::{Recording, RecordingWanted};
use crate::request;
use crate::saver::Saver;
use punctual_core::CpuSet;
use punctual_plan::{ExplainPlan, Plan};
use punctual_record::account::Accountant;
use punctual_record::attach::Attacher;
use punctual_record::{AttachedPrograms, Backend};
use std::path::Path;
use std::{fs, io};

/// The recorders, switched off at first.
#[derive(Default)]
pub struct Recorders {
    explain: Option<ExplainPlan>,
    account: Option<Accounted>,
    record: Option<RecordingWanted>,
    cycles: bool,
    /// The CPUs of the threads that read them.
    thread_cpus: CpuSet,
    on: On,
}

/// The recorders in force.
#[derive(Default)]
struct On {
    flight: Option<Flight>,
    accountant: Option<Accountant>,
    recording: Option<Recording>,
    attacher: Option<Attacher>,
    programs: AttachedPrograms,
    streams_by_programs: bool,
    is_paused: bool,
}

impl Recorders {
    /// The recorders of a plan; `None` if it has none.
    pub fn of_plan(plan: &Plan) -> Option<Recorders> {
        let thread_cpus = plan.controller_cpus.clone();
        let record =
            plan.record.as_ref().map(|record| RecordingWanted::from_plan(record, &thread_cpus));
        let all_recorders = Recorders {
            explain: plan.explain.clone().filter(|explain| explain.worst > 0),
            account: accounting::accounting_request(plan),
            record: record.and_then(without_points),
            cycles: plan.measures_program(),
            thread_cpus,
            ..Recorders::default()
        };
        all_recorders.report_names().next().is_some().then_some(all_recorders)
    }

    /// The recorder of a recording; `None` if it has only test points.
    pub fn of_recording(wanted: &RecordingWanted) -> Option<Recorders> {
        let record = Some(without_points(wanted.clone())?);
        Some(Recorders { record, ..Recorders::default() })
    }

    /// The names in reports.
    pub(crate) fn report_names(&self) -> impl Iterator<Item = &'static str> + use<> {
        let all_names = [
            (self.explain.is_some(), punctual_record::FLIGHT),
            (self.account.is_some(), punctual_record::account::NAME),
            (self.record.is_some(), punctual_record::STREAM),
            (self.cycles, punctual_record::attach::NAME),
        ];
        all_names.into_iter().filter(|(is, _)| *is).map(|(_, name)| name)
    }

    /// Puts all of them in force, for the samples of this thread. `place` is a directory for them,
    /// used the first time.
    pub fn switch_on(&mut self, place: &Path, thread: &StandIn) -> Result<(), String> {
        if !self.on.is_paused {
            let created = fs::create_dir(place);
            created.map_err(|why| format!("{}: {why}", place.display()))?;
            return self.start_recorders(place, thread).map_err(|why| why.render(false));
        }
        self.on.is_paused = false;
        self.on.flight.iter().for_each(|flight| flight.watch_series(vec![thread.watched_series()]));
        self.on
            .programs
            .resume_programs()
            .map_err(|why| format!("a BPF program was not attached: {why}"))
    }

    fn start_recorders(&mut self, place: &Path, thread: &StandIn) -> Result<(), Failure> {
        let on = &mut self.on;
        if let Some(explain) = &self.explain {
            let (cpus, saver) = (request::online_cpus()?, Saver::on_caller());
            let (flight, programs) =
                Flight::start_attached(place, explain, cpus, &self.thread_cpus, &saver)?;
            flight.watch_series(vec![thread.watched_series()]);
            on.programs.extend(programs);
            on.flight = Some(flight);
        }
        if let Some(account) = &self.account {
            let Accounted { cpus, several_cpus, rate } = account;
            let accountant = Accountant::start(cpus, *several_cpus, *rate, Backend::Auto);
            let mut accountant = accountant.map_err(Failure::failed)?;
            accountant.watch_thread(thread.tid).map_err(Failure::failed)?;
            on.programs.extend(accountant.attached_programs());
            on.accountant = Some(accountant);
        }
        if let Some(wanted) = &self.record {
            let (recording, programs) = Recording::start_attached(place, wanted.clone())?;
            on.streams_by_programs = !programs.is_empty();
            on.programs.extend(programs);
            on.recording = Some(recording);
        }
        if self.cycles {
            let cpus = request::online_cpus()?;
            let attacher = Attacher::start(&cpus, true, true).map_err(Failure::failed)?;
            attacher.watch_thread(thread.tid).map_err(Failure::failed)?;
            on.programs.extend(attacher.attached_programs());
            on.attacher = Some(attacher);
        }
        Ok(())
    }

    /// Reads the recorders, as the controller thread does.
    pub fn poll(&mut self) {
        self.on.flight.iter_mut().for_each(Flight::poll);
        self.on.accountant.iter_mut().for_each(|accountant| accountant.drain_records(&mut |_| ()));
        self.on.attacher.iter_mut().for_each(|attacher| attacher.drain_cycles(&mut |_| ()));
    }

    pub fn attached_programs(&self) -> &AttachedPrograms {
        &self.on.programs
    }

    /// Disables the recorders: BPF programs stay loaded, as loading takes far longer than
    /// attaching, and the reading threads sleep. Other recorders are removed.
    pub fn switch_off(&mut self, place: &Path) -> Result<(), String> {
        let by_programs = self.record.is_none() || self.on.streams_by_programs;
        if !by_programs {
            return self.remove(place);
        }
        self.on.programs.pause_programs();
        self.on.flight.iter().for_each(Flight::settle);
        self.on.is_paused = true;
        Ok(())
    }

    /// Removes the recorders. Those of the run repeat their findings.
    pub fn remove(&mut self, place: &Path) -> Result<(), String> {
        let On { flight, recording, programs, accountant, attacher, .. } =
            std::mem::take(&mut self.on);
        // First, so that recorders end as usual.
        drop(programs);
        flight.map(Flight::stop);
        recording.map(Recording::stop);
        drop((accountant, attacher));
        match fs::remove_dir_all(place) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => {
                Err(format!("{}: {why}", place.display()))
            }
            _ => Ok(()),
        }
    }
}

/// Kernel events alone: only one reader at a time can use the rings of applications.
fn without_points(wanted: RecordingWanted) -> Option<RecordingWanted> {
    let events = !wanted.events.is_empty();
    events.then_some(RecordingWanted { points: false, probes: None, ..wanted })
}
