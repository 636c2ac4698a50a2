//! Real programs with test points, and a collector that reads them.
//!
//! A program is this test binary again, or `roles.c` compiled; the environment selects its role.

mod counts;
mod killed;
mod lives;
mod roles;
mod support;
