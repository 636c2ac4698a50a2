//! Whether a system is ready for real time: rules, each with its evidence, its reason and its remedy.

#[cfg(test)]
pub mod testing;
