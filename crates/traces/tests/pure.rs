//! Each module is a suite of its own.

mod dat;
mod text;
