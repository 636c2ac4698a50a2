//! Each module is its own suite.

mod support;

mod bad_toml;
mod examples;
mod files;
mod kinds;
mod lab;
mod manual;
mod plans;
mod round_trip;
mod schema;
mod systress;
mod targets;
