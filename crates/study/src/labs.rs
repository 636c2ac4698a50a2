//! Running a lab: its runs ([`jobs`]), the directory of their results ([`directory`]), the runs
//! that can be concurrent ([`lane`]), one run ([`attempt`]), all runs here or on hosts
//! ([`schedule`]) or by Slurm ([`slurm`]), the results ([`collect`]), and the delay of each cell's
//! worst sample ([`worst`], [`exactly`]). Estimates are from [`times`]. Each run is `punctual run`
//! in its own process.

pub mod attempt;
pub mod boards;
pub mod collect;
pub mod directory;
pub mod engine;
pub mod estimates;
pub mod exactly;
mod hosts;
pub mod jobs;
pub mod lane;
pub(crate) mod progress;
pub mod request;
pub mod run_name;
pub mod schedule;
pub mod slurm;
pub mod times;
pub mod worst;
