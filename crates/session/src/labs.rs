//! A lab being run: which runs there are ([`jobs`]), where they leave what they find
//! ([`directory`]), who may run beside whom ([`lane`]), running them ([`schedule`]), and what came
//! of it ([`collect`]). Each run is `punctual run` in a process of its own.

pub mod collect;
pub mod directory;
pub mod jobs;
pub mod lane;
mod progress;
pub mod request;
pub mod schedule;
