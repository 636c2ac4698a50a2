//! Tests that run programs with test points and kill them.

mod points;
