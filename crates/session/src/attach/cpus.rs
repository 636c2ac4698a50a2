//! Who disturbs CPUs: from attaching to them to a bundle.

mod advice;
mod checked;
mod cpu;
mod measurement;
mod offline;
mod recorder;
mod requirement;

pub use measurement::{CpuAttachment, CpuOptions, MeasuredCpus};
pub use requirement::EntryRequirement;
