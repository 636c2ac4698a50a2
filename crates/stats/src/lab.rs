//! Labs: the figures of a cell over its seeds, and the effect of each axis.

mod cell;
mod claim;
mod effect;
mod stored;
mod work;

pub use cell::{CellResults, SeedRuns, cell, figures, pool, requiring};
pub use claim::{JudgedClaim, claims};
pub use effect::{AxisEffect, Contrast, METRICS, effects, value};
pub use stored::{StoredCell, of_runs};
pub use work::{Price, Throughput, knees, numbers, of_cell, prices, throughputs, work};
