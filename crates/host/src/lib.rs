#![forbid(unsafe_code)]
//! The machine: everything that punctual reads from and changes on a Linux system.
//!
//! All paths under /proc, /sys, /dev and the cgroup mounts are accessed through [`files::Files`],
//! so that the logic also runs on a captured tree, or on a scripted one that refuses like a kernel.

pub mod boot;
pub mod check;
pub mod cpu_time;
pub mod environment;
pub mod files;
pub mod fixed;
pub mod heat;
pub mod isolate;
pub mod journal;
pub mod progress;
pub mod service_program;
