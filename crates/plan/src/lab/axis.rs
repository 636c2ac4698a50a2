//! Axes, their values, and choices among them.

use super::change::Step;

/// What is varied.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// Its name: `kernel`, `load`, a key's path, or any word.
    pub name: String,
    /// Its values in the order of the file; at least one.
    pub values: Vec<AxisValue>,
}

/// A value of an axis.
#[derive(Clone, PartialEq, Debug)]
pub struct AxisValue {
    /// What it is called.
    pub label: String,
    /// What it does to the experiment.
    pub(super) steps: Vec<Step>,
}

impl Axis {
    /// The labels of the values, in their order.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|value| value.label.as_str())
    }
}

/// Values of some axes: a cell is chosen when, for every axis named, its value is among those
/// listed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Selection(pub Vec<(String, Vec<String>)>);

impl Selection {
    /// Whether a cell with these values (by axis) is chosen.
    pub fn chooses(&self, axes: &[(String, String)]) -> bool {
        self.0.iter().all(|(axis, labels)| {
            axes.iter().any(|(name, label)| name == axis && labels.contains(label))
        })
    }
}
