//! Statistics shared by comparison and extreme values: probabilities, seeded random numbers,
//! dependence, clusters.

pub mod cluster;
pub mod dispersion;
pub mod optimize;
pub mod probability;
pub mod random;

pub use random::Random;

/// The middle of values in ascending order, or the mean of the two that are; `None` without any.
pub fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    Some(f64::midpoint(sorted[last / 2], sorted[sorted.len() / 2]))
}
