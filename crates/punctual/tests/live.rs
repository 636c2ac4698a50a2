//! Tests that measure or change this machine, and run alone. Each module is a separate suite.

mod common;
#[path = "attach/cyclictest.rs"]
mod cyclictest;
mod irq;
#[path = "packaging/layout.rs"]
mod layout;
#[path = "../../report/tests/openmetrics/check.rs"]
mod openmetrics;
#[path = "packaging/common.rs"]
mod packaged;
mod ssh_support;
mod system;

mod account;
mod attach;
mod attach_cpus;
mod check;
mod count;
mod explain;
mod forever;
mod guest_stopped;
mod isolate;
mod lab;
mod names;
mod packaging_measures;
mod probe;
mod program;
mod run;
mod ssh;
mod trace;
mod trace_points;
mod tune_live;
mod tutorials;
mod validity;
mod violation;
mod workload_heap;
mod workload_irq;
mod workload_mutex;
mod workload_netio;
mod workload_spin;
mod workload_storage;
mod workload_switch;
mod workload_syscall;
