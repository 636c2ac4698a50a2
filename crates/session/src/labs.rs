//! A lab being run: which runs there are ([`jobs`]), where they leave what they find
//! ([`directory`]), who may run beside whom ([`lane`]), one of them ([`attempt`]), running all here
//! or on hosts ([`schedule`]) or by Slurm ([`slurm`]), what came of it ([`collect`]), and what
//! delayed the worst sample of each cell ([`worst`], [`exactly`]). Estimates are from [`times`].
//! Each run is `punctual run` in a process of its own.

pub mod attempt;
pub mod collect;
pub mod directory;
pub mod engine;
pub mod exactly;
mod hosts;
pub mod jobs;
pub mod lane;
pub mod learned;
pub(crate) mod progress;
pub mod request;
pub mod run_name;
pub mod schedule;
pub mod slurm;
pub mod times;
pub mod worst;
