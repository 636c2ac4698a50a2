//! The goodness of a fit: Anderson and Darling's statistic, with its probability from drawing from
//! the fit and fitting again (parametric bootstrap: Stute, Manteiga, Quindimil, "Bootstrap based
//! goodness-of-fit-tests", Metrika 40, 1993).

use super::gev::Gev;
use super::gpd::Gpd;
use crate::Random;

/// The minimum probability of a good fit.
pub const GOOD: f64 = 0.1;
pub(crate) const DRAWS: usize = 199;

/// Anderson and Darling's A² of ascending values that should be uniform between 0 and 1. Infinite
/// if one is outside.
fn anderson_darling(uniform: &[f64]) -> f64 {
    let n = uniform.len();
    let term = |k: usize| {
        let (low, high) = (uniform[k], 1.0 - uniform[n - 1 - k]);
        (2 * k + 1) as f64 * (low.max(1e-300).ln() + high.max(1e-300).ln())
    };
    let inside = uniform.iter().all(|u| (0.0..=1.0).contains(u));
    if inside { -(n as f64) - (0..n).map(term).sum::<f64>() / n as f64 } else { f64::INFINITY }
}

fn statistic(data: &[f64], cdf: impl Fn(f64) -> f64) -> f64 {
    let mut uniform: Vec<f64> = data.iter().map(|value| cdf(*value)).collect();
    uniform.sort_by(f64::total_cmp);
    anderson_darling(&uniform)
}

/// The probability of a fit of maxima this bad if their distribution is the fitted one.
pub(crate) fn of_maxima(data: &[f64], fit: &Gev, random: &mut Random) -> f64 {
    let seen = statistic(data, |z| fit.cdf(z));
    bootstrap(seen, || {
        let drawn: Vec<f64> = data.iter().map(|_| fit.exceeded_with(random.unit())).collect();
        fit.improved(&drawn).map(|again| statistic(&drawn, |z| again.cdf(z)))
    })
}

pub(crate) fn of_excesses(data: &[f64], fit: &Gpd, random: &mut Random) -> f64 {
    let seen = statistic(data, |y| fit.cdf(y));
    bootstrap(seen, || {
        let drawn: Vec<f64> = data.iter().map(|_| fit.draw(random)).collect();
        Gpd::by_likelihood(&drawn).map(|again| statistic(&drawn, |y| again.cdf(y)))
    })
}

/// Ends early after many as bad as the observed one: the fit is then good enough.
fn bootstrap(seen: f64, mut draw: impl FnMut() -> Option<f64>) -> f64 {
    const ENOUGH: usize = 30;
    let mut worse = 0;
    for drawn in 1..=DRAWS {
        // A draw that cannot be fitted is ignored; it is rare.
        worse += usize::from(draw().is_some_and(|statistic| statistic >= seen));
        if worse == ENOUGH {
            return ENOUGH as f64 / drawn as f64;
        }
    }
    (worse + 1) as f64 / (DRAWS + 1) as f64
}

/// Finds a gap among excesses that is too wide for a fit to those below, so that values beyond it
/// are a separate mode. Returns the index of the gap in the ascending excesses and its probability.
///
/// The normalised spacings of exponential variables are independent exponential ones (Rényi, "On
/// the theory of order statistics", 1953). The fit treats the uppermost tenth only as longer than
/// its minimum: the searched values must not influence it. Its uncertainty is in the draws.
pub(crate) fn widest_gap(ascending: &[f64], random: &mut Random) -> Option<(usize, f64)> {
    let (fit, (place, seen)) = gap_beyond(ascending)?;
    let drawn = bootstrap(seen, || {
        let mut drawn: Vec<f64> = ascending.iter().map(|_| fit.draw(random)).collect();
        drawn.sort_by(f64::total_cmp);
        gap_beyond(&drawn).map(|(_, (_, widest))| widest)
    });
    Some((place, drawn))
}

/// The widest normalised spacing of the uppermost tenth, by a fit to the rest.
fn gap_beyond(ascending: &[f64]) -> Option<(Gpd, (usize, f64))> {
    let n = ascending.len();
    let kept = n - (n / 10).max(3).min(n);
    let censored = *ascending.get(kept)?;
    let fit = Gpd::by_censored_likelihood(&ascending[..kept], censored, n - kept)?;
    let spacing =
        |k: usize| (fit.reduced(ascending[k]) - fit.reduced(ascending[k - 1])) * (n - k) as f64;
    let spacings = (kept.max(1)..n).map(|k| (k, spacing(k))).filter(|(_, s)| !s.is_nan());
    Some((fit, spacings.max_by(|a, b| a.1.total_cmp(&b.1))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodness_of_fit_rejects_a_wrong_model_only() {
        let mut random = Random::seeded(51);
        let truth = Gpd { scale: 10.0, shape: 0.1 };
        let right: Vec<f64> = (0..150).map(|_| truth.draw(&mut random)).collect();
        let fit = Gpd::by_likelihood(&right).unwrap();
        assert!(of_excesses(&right, &fit, &mut random) > 0.05);
        // Two humps.
        let wrong: Vec<f64> = (0..150)
            .map(|k| if k % 2 == 0 { 1.0 + random.unit() } else { 30.0 + random.unit() })
            .collect();
        let fit = Gpd::by_likelihood(&wrong).unwrap();
        assert!(of_excesses(&wrong, &fit, &mut random) < 0.02);
    }

    #[test]
    fn a_mode_beyond_a_gap_is_found() {
        let mut random = Random::seeded(52);
        let mut excesses: Vec<f64> = (0..200).map(|_| -10.0 * random.unit().ln()).collect();
        excesses.sort_by(f64::total_cmp);
        assert!(widest_gap(&excesses, &mut random).unwrap().1 > 0.01);
        excesses.extend([400.0, 401.0, 403.0]);
        let (place, p) = widest_gap(&excesses, &mut random).unwrap();
        assert!(place == 200 && p <= 0.01, "{place} {p}");
        assert_eq!(widest_gap(&[], &mut random), None);
    }
}
