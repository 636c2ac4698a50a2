#![forbid(unsafe_code)]
//! The machine: everything that punctual reads from and changes on a Linux system.
//!
//! Every path under /proc, /sys, /dev and the cgroup mounts is reached through [`files::Files`], so
//! that the logic above it runs as well on a captured tree or on a scripted one that refuses as a
//! kernel would.

pub mod check;
pub mod cpu_time;
pub mod environment;
pub mod files;
pub mod isolate;
pub mod journal;
pub mod progress;
