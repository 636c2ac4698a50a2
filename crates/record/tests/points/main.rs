//! Real programs with test points, and a collector that reads them.
//!
//! A program is this test binary again, told by the environment which part to play.

mod counts;
mod killed;
mod lives;
mod roles;
mod support;
