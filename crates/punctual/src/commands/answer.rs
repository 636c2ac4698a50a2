//! The answer of a bundle, with the explanation of its late samples, if any events were kept.

use punctual_bundle::Bundle;
use punctual_bundle::summary::Summary;
use punctual_report::answer::{self, AnswerEvidence};
use punctual_report::remedies::Rules;
use punctual_session::explanation;
use punctual_study::replay;

/// The summary of a bundle, with its answer.
pub fn summarize_with_answer(bundle: &Bundle) -> Summary {
    let mut summary = punctual_stats::summarize_bundle(bundle);
    add(bundle, &mut summary);
    summary
}

/// Adds the answer to a summary.
pub fn add(bundle: &Bundle, summary: &mut Summary) {
    let evidence = AnswerEvidence {
        explained: explanation::of_answer(bundle, summary),
        replayed: replay::of_answer(bundle, summary),
    };
    let check: Option<serde_json::Value> = bundle.read_document("check").unwrap_or_default();
    let rules = Rules::from_document(check.as_ref());
    summary.answer = Some(answer::build_answer(summary, &evidence, &rules));
}
