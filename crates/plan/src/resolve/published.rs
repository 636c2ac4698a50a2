//! Published results: every figure must refer to an existing measure.

use super::Resolver;
use crate::escape::clipped;
use crate::experiment::ResultSpec;
use crate::plan::PhasePlan;
use crate::problem::{Problem, ProblemKind};
use crate::text::Span;
use punctual_core::published::Right;
use punctual_core::words::nearest;
use punctual_core::{PublishedResult, PublishedResults, PublishedShape, Term};

impl Resolver<'_> {
    pub(super) fn published(&mut self, phases: &[PhasePlan]) -> Option<PublishedResults> {
        let spec = self.experiment.published.as_ref()?;
        let source = spec.source.as_ref().map_or(String::new(), |at| at.value.clone());
        let results = spec.result.iter().map(|result| self.result(result, phases)).collect();
        Some(PublishedResults { source, results })
    }

    fn result(&mut self, spec: &ResultSpec, phases: &[PhasePlan]) -> PublishedResult {
        if let Some(here) = &spec.here {
            self.known(&here.value, here.span, phases);
        }
        let written = spec.shape.as_ref();
        let shapes = written.map(|at| PublishedShape::chain(&at.value).map(|of| (at.span, of)));
        for (span, shape) in shapes
            .and_then(Result::ok)
            .iter()
            .flat_map(|(span, all)| all.iter().map(move |shape| (*span, shape)))
        {
            self.known(&shape.left, span, phases);
            if let Right::Times(_, term) = &shape.right {
                self.known(term, span, phases);
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
    fn known(&mut self, term: &Term, span: Span, phases: &[PhasePlan]) {
        let first = term.of.split('/').next().unwrap_or_default();
        let (name, phase) = match term.of.rsplit_once('@') {
            Some((series, phase)) => (series.split('/').next().unwrap_or_default(), Some(phase)),
            None => (first, None),
        };
        let here = phases.iter().filter(|known| phase.is_none_or(|phase| known.name == phase));
        let names: Vec<&str> =
            here.flat_map(|phase| &phase.measures).map(|measure| measure.name.as_str()).collect();
        if names.contains(&name) || names.contains(&first) {
            return;
        }
        let place =
            phase.map_or(String::new(), |phase| format!(" in a phase `{}`", clipped(phase)));
        let message = format!("there is no measure `{}`{place}", clipped(name));
        let problem = Problem::error(ProblemKind::Reference, Some(span), message);
        self.note(match nearest(name, names) {
            Some(near) => problem.help(format!("did you mean `{near}`?")),
            None => problem,
        });
    }
}
