//! Minima and zeros of functions that are cheap to compute: without derivatives, with bounded work.

/// The minimum of a function with one minimum between two places (golden section).
pub(crate) fn golden(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    let ratio = (5f64.sqrt() - 1.0) / 2.0;
    let (mut a, mut b) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut at_a, mut at_b) = (f(a), f(b));
    for _ in 0..80 {
        if high - low <= 1e-9 * (low.abs() + high.abs()) {
            break;
        }
        if at_a < at_b {
            (high, b, at_b) = (b, a, at_a);
            a = high - ratio * (high - low);
            at_a = f(a);
        } else {
            (low, a, at_a) = (a, b, at_b);
            b = low + ratio * (high - low);
            at_b = f(b);
        }
    }
    0.5 * (low + high)
}

/// The border of a condition that holds at `inside` and not at `outside`.
pub(crate) fn border(mut inside: f64, mut outside: f64, holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..60 {
        let middle = 0.5 * (inside + outside);
        if holds(middle) { inside = middle } else { outside = middle }
    }
    0.5 * (inside + outside)
}

/// The minimum by the simplex of Nelder and Mead (Computer Journal 7, 1965). Infinite values mean
/// outside of the domain. `None` if the start is outside.
pub(crate) fn simplex<const N: usize>(
    start: [f64; N],
    steps: [f64; N],
    f: impl Fn([f64; N]) -> f64,
) -> Option<([f64; N], f64)> {
    if !f(start).is_finite() {
        return None;
    }
    Some(descend(start, steps, &f))
}

fn descend<const N: usize>(
    start: [f64; N],
    steps: [f64; N],
    f: &impl Fn([f64; N]) -> f64,
) -> ([f64; N], f64) {
    let at = |point: [f64; N]| {
        let value = f(point);
        (point, if value.is_nan() { f64::INFINITY } else { value })
    };
    let mut corners = vec![at(start)];
    for k in 0..N {
        let mut point = start;
        point[k] += steps[k];
        corners.push(at(point));
    }
    for _ in 0..400 {
        corners.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (best, worst) = (corners[0], corners[N]);
        if (worst.1 - best.1).abs() <= 1e-9 * (1.0 + best.1.abs()) {
            break;
        }
        let mut centre = [0.0; N];
        corners[..N]
            .iter()
            .for_each(|corner| (0..N).for_each(|k| centre[k] += corner.0[k] / N as f64));
        let along = |by: f64| {
            let mut point = centre;
            (0..N).for_each(|k| point[k] += by * (worst.0[k] - centre[k]));
            at(point)
        };
        let mirrored = along(-1.0);
        let next = if mirrored.1 < best.1 {
            let further = along(-2.0);
            if further.1 < mirrored.1 { further } else { mirrored }
        } else if mirrored.1 < corners[N - 1].1 {
            mirrored
        } else {
            let nearer = if mirrored.1 < worst.1 { along(-0.5) } else { along(0.5) };
            if nearer.1 < worst.1.min(mirrored.1) {
                nearer
            } else {
                shrink(&mut corners, best.0, &at)
            }
        };
        corners[N] = next;
    }
    corners.sort_by(|a, b| a.1.total_cmp(&b.1));
    corners[0]
}

/// Moves all corners half way to the best; returns the last of them.
fn shrink<const N: usize>(
    corners: &mut [([f64; N], f64)],
    best: [f64; N],
    at: &impl Fn([f64; N]) -> ([f64; N], f64),
) -> ([f64; N], f64) {
    for corner in corners.iter_mut().skip(1) {
        let mut point = corner.0;
        (0..N).for_each(|k| point[k] = best[k] + 0.5 * (point[k] - best[k]));
        *corner = at(point);
    }
    corners[N]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optimizers_find_known_minima() {
        assert!((golden(-3.0, 9.0, |x| (x - 2.0).powi(2)) - 2.0).abs() < 1e-6);
        assert!((border(0.0, 10.0, |x| x * x < 2.0) - 2f64.sqrt()).abs() < 1e-9);
        // Rosenbrock's valley (Computer Journal 3, 1960).
        let valley = |[x, y]: [f64; 2]| 100.0 * (y - x * x).powi(2) + (1.0 - x).powi(2);
        let (at, value) = simplex([-1.2, 1.0], [0.5, 0.5], valley).unwrap();
        assert!(value < 1e-6 && (at[0] - 1.0).abs() < 1e-2, "{at:?} {value}");
        assert!(simplex([0.0], [1.0], |_| f64::INFINITY).is_none());
    }
}
