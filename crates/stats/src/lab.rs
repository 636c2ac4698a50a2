//! Labs: the figures of a cell over its seeds, and the effect of each axis.

mod cell;
mod claim;
mod effect;
mod stored;

pub use cell::{Measured, SeedRuns, cell, figures, pool, requiring};
pub use claim::{Judged, claims};
pub use effect::{CONFIDENCE, Contrast, Effect, METRICS, effects, value};
pub use stored::{StoredCell, of_runs};
