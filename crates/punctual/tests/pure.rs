//! Tests that run beside others: recorded, scripted, or in guests. Each module is a separate suite.

mod common;
mod irq;
#[path = "packaging/layout.rs"]
mod layout;
#[path = "../../report/tests/openmetrics/check.rs"]
mod openmetrics;
#[path = "packaging/common.rs"]
mod packaged;

mod answers;
mod attach_causes;
mod boards;
mod cli;
mod compare;
mod documents;
mod explain_causes;
mod explain_exact;
mod fleet;
mod guard;
mod guest_deadline;
mod guest_irq;
mod guest_late_loop;
mod guest_module;
mod guest_rtla;
mod guest_tour;
mod guest_tune;
mod guests;
mod kept_lab;
mod lab_vm;
mod links;
mod occupancy;
mod options;
mod packaging;
mod prometheus;
mod refusals;
mod slurm;
mod steps;
mod structure;
mod target_vm;
mod terminal;
mod trend;
mod tune;
