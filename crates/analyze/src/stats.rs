//! Statistics that comparison and extreme values share: probabilities, seeded random numbers,
//! dependence, clusters.

pub mod cluster;
pub mod dispersion;
pub mod optimize;
pub mod probability;
pub mod random;

pub use random::Random;
