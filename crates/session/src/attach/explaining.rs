//! What keeps the events around the worst response times: the flight recorder, or where it cannot
//! be had, a recording of everything.

use crate::cycles::Cycles;
use crate::exit::Failure;
use crate::flight::{self, Flight};
use crate::recording::{Recording, Wanted};
use crate::request;
use crate::run;
use punctual_core::{CpuSet, Finding};
use punctual_plan::ExplainPlan;
use punctual_record::Backend;
use std::path::Path;

/// One of the two, or none where nothing is to be explained.
#[derive(Default)]
pub struct Explaining {
    pub flight: Option<Flight>,
    pub recording: Option<Recording>,
    /// That it is the recording, and why.
    pub finding: Option<Finding>,
}

impl Explaining {
    /// In force when this returns.
    pub fn start(
        directory: &Path,
        plan: &ExplainPlan,
        cycles: &Cycles,
    ) -> Result<Explaining, Failure> {
        let (online, anywhere) = (request::online_cpus()?, CpuSet::new());
        let backend = cycles.options().backend;
        let flight = match backend {
            Backend::Tracefs => Err(Failure::refused("tracefs was requested")),
            _ => Flight::start(directory, plan, online.clone(), &anywhere),
        };
        let why = match flight {
            Ok(flight) => return Ok(Explaining { flight: Some(flight), ..Explaining::default() }),
            Err(why) if !cycles.attacher().is_traced() => return Err(why),
            Err(why) => why,
        };
        let wanted = Wanted {
            backend,
            ..Wanted::instead_of_flight(plan, online, &anywhere, flight::ROOM.0)
        };
        let Ok(recording) = Recording::start(directory, wanted) else { return Err(why) };
        let finding = Some(run::recorded_instead(&why));
        Ok(Explaining { flight: None, recording: Some(recording), finding })
    }
}
