//! Published results: every figure must refer to an existing measure.

use super::Resolver;
use crate::escape::clip_text;
use crate::experiment::ResultSpec;
use crate::plan::PhasePlan;
use crate::problem::{Problem, ProblemKind};
use crate::text::Span;
use punctual_core::published::Right;
use punctual_core::words::nearest_word;
use punctual_core::{PublishedResult, PublishedResults, PublishedShape, Term};

impl Resolver<'_> {
    pub(super) fn resolve_published(&mut self, phases: &[PhasePlan]) -> Option<PublishedResults> {
        let spec = self.experiment.published.as_ref()?;
        let source = spec.source.as_ref().map_or(String::new(), |at| at.value.clone());
        let results =
            spec.result.iter().map(|result| self.resolve_result(result, phases)).collect();
        Some(PublishedResults { source, results })
    }

    fn resolve_result(&mut self, spec: &ResultSpec, phases: &[PhasePlan]) -> PublishedResult {
        if let Some(here) = &spec.here {
            self.check_term(&here.value, here.span, phases);
        }
        let written = spec.shape.as_ref();
        let shapes =
            written.map(|at| PublishedShape::parse_chain(&at.value).map(|of| (at.span, of)));
        for (span, shape) in shapes
            .and_then(Result::ok)
            .iter()
            .flat_map(|(span, all)| all.iter().map(move |shape| (*span, shape)))
        {
            self.check_term(&shape.left, span, phases);
            if let Right::Times(_, term) = &shape.right {
                self.check_term(term, span, phases);
            }
        }
        let words =
            |setting: &crate::text::Setting<String>| setting.as_ref().map(|at| at.value.clone());
        PublishedResult {
            what: words(&spec.what).unwrap_or_default(),
            value: words(&spec.value).unwrap_or_default(),
            here: spec.here.as_ref().map(|at| at.value.to_string()),
            shape: words(&spec.shape),
        }
    }

    /// Checks that a measure of that name runs, in the given phase if there is one.
    fn check_term(&mut self, term: &Term, span: Span, phases: &[PhasePlan]) {
        let first = term.of.split('/').next().unwrap_or_default();
        let (name, phase) = match term.of.rsplit_once('@') {
            Some((series, phase)) => (series.split('/').next().unwrap_or_default(), Some(phase)),
            None => (first, None),
        };
        let matching_phases =
            phases.iter().filter(|known| phase.is_none_or(|phase| known.name == phase));
        let names: Vec<&str> = matching_phases
            .flat_map(|phase| &phase.measures)
            .map(|measure| measure.name.as_str())
            .collect();
        if names.contains(&name) || names.contains(&first) {
            return;
        }
        let place =
            phase.map_or(String::new(), |phase| format!(" in a phase `{}`", clip_text(phase)));
        let message = format!("there is no measure `{}`{place}", clip_text(name));
        let problem = Problem::error(ProblemKind::Reference, Some(span), message);
        self.note_problem(match nearest_word(name, names) {
            Some(near) => problem.with_help(format!("did you mean `{near}`?")),
            None => problem,
        });
    }
}
