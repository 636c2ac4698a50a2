//! Least squares with a level for each group of rows, by the sweep operator (Goodnight, "A Tutorial
//! on the SWEEP Operator", The American Statistician 33, 1979).

use std::collections::BTreeMap;

/// A column determined by the previous ones except for this share of its squares has no estimate of
/// its own.
const ALIASED: f64 = 1e-3;

/// The estimate of each column.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Fit {
    /// For each column the coefficient and the diagonal of (X'X)⁻¹; `None` if the rows do not
    /// determine it.
    pub columns: Vec<Option<(f64, f64)>>,
    /// The residual sum of squares.
    pub squares: f64,
    pub freedom: f64,
}

/// Fits `y` by the columns of `x`, with a separate level for the rows of each group.
pub(super) fn fit(groups: &[usize], x: &[Vec<f64>], y: &[f64]) -> Fit {
    let width = x.first().map_or(0, Vec::len);
    let mut rows: Vec<Vec<f64>> =
        x.iter().zip(y).map(|(x, y)| x.iter().copied().chain([*y]).collect()).collect();
    let levels = centre(groups, &mut rows);
    let mut a = vec![vec![0.0; width + 1]; width + 1];
    for row in &rows {
        for j in 0..=width {
            (j..=width).for_each(|k| a[j][k] += row[j] * row[k]);
        }
    }
    (0..=width).for_each(|j| (0..j).for_each(|k| a[j][k] = a[k][j]));
    let whole: Vec<f64> = (0..=width).map(|k| a[k][k]).collect();
    let mut swept = Vec::new();
    for k in 0..width {
        if whole[k] > 0.0 && a[k][k] > ALIASED * whole[k] {
            sweep(&mut a, k);
            swept.push(k);
        }
    }
    let freedom = x.len() as f64 - levels as f64 - swept.len() as f64;
    let known = |k: usize| swept.contains(&k).then(|| (a[k][width], a[k][k]));
    let columns = (0..width).map(known).collect();
    Fit { columns, squares: a[width][width].max(0.0), freedom }
}

/// Subtracts the mean of each group from its rows; returns the number of groups.
fn centre(groups: &[usize], rows: &mut [Vec<f64>]) -> usize {
    let mut means: BTreeMap<usize, (f64, Vec<f64>)> = BTreeMap::new();
    for (group, row) in groups.iter().zip(rows.iter()) {
        let (count, sums) = means.entry(*group).or_insert_with(|| (0.0, vec![0.0; row.len()]));
        *count += 1.0;
        sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    for (group, row) in groups.iter().zip(rows) {
        if let Some((count, sums)) = means.get(group) {
            row.iter_mut().zip(sums).for_each(|(value, sum)| *value -= sum / count);
        }
    }
    means.len()
}

fn sweep(a: &mut [Vec<f64>], k: usize) {
    let pivot = a[k][k];
    let row: Vec<f64> = a[k].iter().map(|value| value / pivot).collect();
    for j in (0..a.len()).filter(|j| *j != k) {
        let by = a[j][k];
        (0..row.len()).for_each(|i| a[j][i] -= by * row[i]);
        a[j][k] = -by / pivot;
    }
    a[k] = row;
    a[k][k] = 1.0 / pivot;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coefficients_without_residuals_are_exact() {
        let x: Vec<Vec<f64>> = [[0, 0], [1, 0], [0, 1], [1, 1], [0, 0], [1, 1]]
            .map(|r| r.map(f64::from).to_vec())
            .into();
        let groups = [0, 0, 0, 0, 1, 1];
        let level = [5.0, -3.0];
        let y: Vec<f64> =
            x.iter().zip(groups).map(|(x, group)| level[group] + 2.0 * x[0] - 0.5 * x[1]).collect();
        let fit = fit(&groups, &x, &y);
        let [one, two] = [fit.columns[0].unwrap(), fit.columns[1].unwrap()];
        assert!((one.0 - 2.0).abs() < 1e-12 && (two.0 + 0.5).abs() < 1e-12, "{fit:?}");
        assert!(fit.squares < 1e-12 && fit.freedom == 2.0, "{fit:?}");
        // Centred: X'X = [[1.5, 0.5], [0.5, 1.5]], so its inverse has 0.75 on the diagonal.
        assert!((one.1 - 0.75).abs() < 1e-12 && (two.1 - 0.75).abs() < 1e-12, "{fit:?}");
    }

    #[test]
    fn collinear_columns_have_no_estimate() {
        let x = vec![vec![0.0, 0.0, 1.0], vec![1.0, 1.0, 1.0], vec![1.0, 1.0, 1.0]];
        let fit = fit(&[0, 0, 0], &x, &[1.0, 3.0, 3.0]);
        assert!(fit.columns[0].is_some() && fit.columns[1].is_none() && fit.columns[2].is_none());
    }
}
