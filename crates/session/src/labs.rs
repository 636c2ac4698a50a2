//! A lab being run: which runs there are ([`jobs`]), where they leave what they find
//! ([`directory`]), who may run beside whom ([`lane`]), one of them ([`attempt`]), running all here
//! or on hosts ([`schedule`]) or by Slurm ([`slurm`]), and what came of it ([`collect`]). Each run
//! is `punctual run` in a process of its own.

pub mod attempt;
pub mod collect;
pub mod directory;
pub mod engine;
mod hosts;
pub mod jobs;
pub mod lane;
pub(crate) mod progress;
pub mod request;
pub mod run_name;
pub mod schedule;
pub mod slurm;
