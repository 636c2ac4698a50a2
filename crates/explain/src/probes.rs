//! The cost of probes, and whether it is too high for the measured functions.

use crate::functions::FunctionFigures;
use punctual_core::event::{CallCounts, FunctionId, ProbeCost};
use punctual_core::{Finding, Names, Nanos, Severity};
use std::collections::BTreeMap;

/// An interval shorter than this many times an empty function is dominated by the probe overhead.
const SEVERAL: i64 = 5;

/// Findings about the figures of probed functions.
pub(crate) fn probe_findings(
    names: &Names,
    figures: &BTreeMap<FunctionId, FunctionFigures>,
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for cost in &names.probe_costs {
        if names.functions.iter().any(|function| function.site == cost.site) {
            findings.push(cost_finding(cost));
        }
    }
    let mut sites: Vec<&String> = names.lines.iter().flat_map(|line| &line.sites).collect();
    sites.sort_unstable();
    sites.dedup();
    let of_lines = names.probe_costs.iter().filter(|cost| sites.contains(&&cost.site));
    findings.extend(of_lines.max_by_key(|cost| cost.added).map(price_of_lines));
    for (place, function) in names.functions.iter().enumerate() {
        let figures = figures.get(&FunctionId(place as u32));
        let cost = names.probe_costs.iter().find(|cost| cost.site == function.site);
        let median = figures.filter(|figures| figures.calls.data.sample_count() > 0);
        let median =
            median.map(|figures| Nanos(figures.calls.data.whole.value_at_quantile(0.5) as i64));
        if let (Some(cost), Some(median)) = (cost, median)
            && median.ns() < SEVERAL * cost.measured_median.ns()
        {
            findings.push(dominance_finding(&function.name, median, cost));
        }
        if let Some(calls) = names.calls.get(place) {
            findings.extend(uncounted_finding(&function.name, calls));
        }
    }
    findings
}

fn cost_finding(cost: &ProbeCost) -> Finding {
    let site = match cost.site.as_str() {
        "" => "functions".to_owned(),
        "single-stepped" => "functions whose first instruction the kernel single-steps".to_owned(),
        site => format!("functions that begin with a {site}"),
    };
    let message = format!(
        "probes on {site}: an empty one is measured as {} (nothing is subtracted), and every call \
         takes {} longer",
        cost.measured_median.to_readable(),
        cost.added.to_readable()
    );
    let evidence = format!(
        "median of {} calls of an empty function on this machine; min {}, p99 {}",
        cost.calls,
        cost.measured_min.to_readable(),
        cost.measured_p99.to_readable()
    );
    Finding::new("probe-cost", Severity::Note, "probes", message).with_evidence(evidence)
}

/// A call has two probes, a passage of a line one: the overhead of a call is an upper bound.
fn price_of_lines(cost: &ProbeCost) -> Finding {
    let added = cost.added.to_readable();
    let message = format!(
        "probes on source lines: each passage takes up to {added} longer, and an interval from \
         line to line contains up to that of the probes at its ends (nothing is subtracted)"
    );
    let site = if cost.site.is_empty() {
        "of an empty function".to_owned()
    } else {
        format!("of an empty function ({})", cost.site)
    };
    let evidence =
        format!("what entry and return of {} calls {site} take longer on this machine", cost.calls);
    Finding::new("probe-cost-lines", Severity::Note, "probes", message).with_evidence(evidence)
}

fn dominance_finding(name: &str, median: Nanos, cost: &ProbeCost) -> Finding {
    let message = format!(
        "probe overhead dominates: half of its calls are shorter than {SEVERAL} times the cost of \
         the probe"
    );
    let evidence = format!(
        "median {}; an empty function {}",
        median.to_readable(),
        cost.measured_median.to_readable()
    );
    let remedy = "probe its caller, or add test points (docs/testpoints.md)";
    Finding::new("probe-dominates", Severity::Warning, name, message)
        .with_evidence(evidence)
        .with_remedy(remedy)
}

/// Calls in no figure.
fn uncounted_finding(name: &str, calls: &CallCounts) -> Option<Finding> {
    let accounted = calls.returned + calls.left + calls.too_deep + calls.no_room;
    let parts = [
        (calls.left, "left by longjmp, an exception or the exit of the thread"),
        (calls.unpaired, "returned but entered before the probes were attached"),
        (calls.too_deep, "nested too deep"),
        (calls.no_room, "beyond the limit of threads"),
        (calls.entered.saturating_sub(accounted), "still running when the probes were detached"),
    ];
    let parts =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    let parts = parts.collect::<Vec<_>>().join(", ");
    let found = match (calls.entered + calls.unpaired, parts.is_empty()) {
        (0, _) => Finding::new("function-not-called", Severity::Note, name, "it was not called"),
        (_, true) => return None,
        (_, false) => {
            let message = "some of its calls are not in the figures";
            Finding::new("calls-not-timed", Severity::Note, name, message)
                .with_evidence(format!("of {} calls: {parts}", calls.entered))
        }
    };
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::event::FunctionName;
    use punctual_testing::events;

    fn cost() -> ProbeCost {
        let (measured_min, measured_median, measured_p99) = (Nanos(400), Nanos(500), Nanos(600));
        ProbeCost {
            site: "push".into(),
            calls: 2000,
            measured_min,
            measured_median,
            measured_p99,
            added: Nanos(1200),
        }
    }

    fn messages(spans: &[i64], calls: CallCounts) -> Vec<String> {
        let function =
            FunctionName { name: "f".into(), object: "/p".into(), offset: 0, site: "push".into() };
        let names = Names {
            functions: vec![function],
            calls: vec![calls],
            probe_costs: vec![cost()],
            ..Names::default()
        };
        let mut functions = crate::functions::Functions::new([]);
        let gaps = crate::gaps::Gaps::default();
        for (index, span) in spans.iter().enumerate() {
            let began = index as i64 * 1_000_000;
            functions.push(&events!("{} cpu0 7 call 0 began={began}", began + span)[0], &gaps);
        }
        let (figures, _) = functions.finish();
        probe_findings(&names, &figures)
            .iter()
            .map(|finding| format!("{}: {}", finding.id, finding.message))
            .collect()
    }

    #[test]
    fn the_probe_cost_is_reported_and_warns_if_it_dominates() {
        let returned = |n| CallCounts { entered: n, returned: n, ..CallCounts::default() };
        let all = messages(&[2_000, 2_400, 9_000], returned(3));
        assert_eq!(all.len(), 2, "{all:?}");
        let price = "probe-cost: probes on functions that begin with a push: an empty one is \
                     measured as 500 ns (nothing is subtracted), and every call takes 1.2 us \
                     longer";
        assert_eq!(all[0], price);
        assert!(all[1].starts_with(
            "probe-dominates: probe overhead dominates: half of its calls are shorter than 5 times"
        ));
        assert_eq!(messages(&[3_000, 4_000, 9_000], returned(3)).len(), 1);
        let more = CallCounts { left: 2, entered: 6, ..returned(3) };
        assert!(messages(&[3_000, 4_000, 9_000], more)[1].starts_with("calls-not-timed"));
        assert!(messages(&[], returned(0))[1].starts_with("function-not-called"));
    }
}
