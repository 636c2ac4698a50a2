//! Random test points matched by every rule, compared with a model that searches all of them for
//! each match.
use punctual_core::{MonotonicNs, Tid};
use punctual_explain::pairs::{IntervalEnd, MatchRule, Matcher, PairKey};

pub fn fuzz(bytes: &[u8]) {
    let Some((how, rest)) = bytes.split_first() else { return };
    let (_, by) = PairKey::ALL[usize::from(how % 4)];
    let (_, rule) = MatchRule::ALL[usize::from(how / 4 % 3)];
    // The model takes quadratic time.
    let points: Vec<(bool, IntervalEnd)> =
        rest.chunks_exact(2).take(500).enumerate().map(point).collect();
    let mut matcher = Matcher::new(by, rule);
    let mut found = Vec::new();
    for (is_to, seen) in &points {
        if !*is_to {
            matcher.from(*seen);
        } else if let Some(from) = matcher.match_end(*seen) {
            found.push((from.at.ns(), seen.at.ns()));
        }
    }
    matcher.finish();
    let expected = model(&points, by, rule);
    let count = |wanted| points.iter().filter(|(is_to, _)| *is_to == wanted).count() as u64;
    assert_eq!(found, expected);
    assert_eq!(matcher.unmatched_from + found.len() as u64, count(false));
    assert_eq!(matcher.unmatched_to + found.len() as u64, count(true));
}

/// Two bytes are a point: the end, the thread, CPU and value.
fn point((place, bytes): (usize, &[u8])) -> (bool, IntervalEnd) {
    let (what, value) = (bytes[0], bytes[1]);
    let value = (value & 1 == 0).then_some(i64::from(value >> 4));
    let cpu = if what & 2 == 0 { u16::MAX } else { u16::from(what >> 6) };
    (
        what & 1 == 1,
        IntervalEnd { at: MonotonicNs(place as i64), tid: Tid((what >> 2 & 3).into()), cpu, value },
    )
}

fn model(points: &[(bool, IntervalEnd)], by: PairKey, rule: MatchRule) -> Vec<(i64, i64)> {
    let key = |seen: &IntervalEnd| match by {
        PairKey::Thread => Some(i64::from(seen.tid.0)),
        PairKey::Value => seen.value,
        PairKey::Cpu => (seen.cpu != u16::MAX).then_some(seen.cpu.into()),
        PairKey::Global => Some(0),
    };
    let (mut taken, mut found) = (vec![false; points.len()], Vec::new());
    for (place, (_, to)) in points.iter().enumerate().filter(|(_, (is_to, _))| *is_to) {
        let Some(wanted) = key(to) else { continue };
        let open = |k: &usize| !points[*k].0 && key(&points[*k].1) == Some(wanted);
        let mut before: Vec<usize> = (0..place).filter(open).collect();
        if rule == MatchRule::Next {
            before = before.split_off(before.len().saturating_sub(1));
        }
        before.retain(|k| !taken[*k]);
        if let Some(from) = if rule == MatchRule::Async { before.first() } else { before.last() } {
            taken[*from] = true;
            found.push((points[*from].1.at.ns(), to.at.ns()));
        }
    }
    found
}
