//! Labs: the figures of a cell over its seeds, and the effect of each axis.

mod cell;
mod claim;
mod effect;
mod stored;
mod work;

pub use cell::{CellResults, SeedRuns, add_requirements, evaluate_cell, pool_samples};
pub use claim::{JudgedClaim, judge_claims};
pub use effect::{AxisEffect, Contrast, METRICS, axis_effects, figure_value};
pub use stored::{StoredCell, of_runs};
pub use work::{
    Price, Throughput, estimate_prices, find_knees, list_throughputs, numeric_values, of_cell,
    work_figures,
};
