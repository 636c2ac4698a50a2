//! Two runs in virtual time, function by function: the differences in each part of the path from
//! release to arrival. Counts are exact and need no statistics.

use super::phases::PartKind;
use punctual_bundle::exact::{
    ExactDifference, ExactDocument, ExactPair, ExactPart, ExplainedExactSample, FunctionDifference,
    PartDifference,
};
use punctual_core::{Finding, Severity};
use std::collections::BTreeMap;

/// The parts in the order of the path.
const PARTS: [PartKind; 6] = [
    PartKind::Timer,
    PartKind::IrqsDisabled,
    PartKind::Interrupt,
    PartKind::NotPreempted,
    PartKind::Schedule,
    PartKind::Return,
];
/// The name for the rest of a part beyond its named functions.
const OTHERS: &str = "other functions";

/// The difference between this run and another one, named `against`.
pub fn compare_documents(
    here: &ExactDocument,
    there: &ExactDocument,
    against: &str,
) -> ExactDifference {
    let shared_count = here.worst.len().min(there.worst.len());
    let pair = |of, here: &[ExplainedExactSample], there: &[ExplainedExactSample]| {
        (!here.is_empty() && !there.is_empty()).then(|| pair_samples(of, here, there))
    };
    let (ordinary, other) = (here.ordinary.as_slice(), there.ordinary.as_slice());
    let (worst, others) = (&here.worst[..shared_count], &there.worst[..shared_count]);
    let one = shared_count.min(1);
    let pairs = [
        pair("ordinary", ordinary, other),
        pair("worst", &worst[..one], &others[..one]),
        pair("all-worst", worst, others).filter(|_| shared_count > 1),
    ];
    ExactDifference {
        against: against.to_owned(),
        kernel: there.kernel.clone(),
        digest: there.digest.clone(),
        pairs: pairs.into_iter().flatten().collect(),
    }
}

fn pair_samples(
    of: &str,
    here: &[ExplainedExactSample],
    there: &[ExplainedExactSample],
) -> ExactPair {
    let mut parts: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    let mut functions: BTreeMap<(&str, &str), [u64; 2]> = BTreeMap::new();
    for (side, samples) in [here, there].into_iter().enumerate() {
        for part in samples.iter().flat_map(|sample| &sample.parts) {
            add(&mut parts.entry(&part.kind).or_default()[side], part.instructions);
            for (function, own) in &part.functions {
                add(&mut functions.entry((&part.kind, function)).or_default()[side], *own);
            }
            let unnamed_insns = unnamed_instructions(part);
            if unnamed_insns > 0 {
                add(&mut functions.entry((&part.kind, OTHERS)).or_default()[side], unnamed_insns);
            }
        }
    }
    let order = |kind: &str| PARTS.iter().position(|part| part.as_str() == kind);
    let mut parts: Vec<PartDifference> = parts
        .into_iter()
        .map(|(kind, [here, there])| PartDifference { kind: kind.to_owned(), here, there })
        .collect();
    parts.sort_by_key(|part| order(&part.kind));
    let function_count = functions.len();
    let mut functions: Vec<FunctionDifference> = functions
        .into_iter()
        .filter(|(_, [here, there])| here != there)
        .map(|((kind, function), [here, there])| FunctionDifference {
            kind: kind.to_owned(),
            function: function.to_owned(),
            here,
            there,
        })
        .collect();
    functions.sort_by_key(|one| std::cmp::Reverse(one.here.abs_diff(one.there)));
    let sum =
        |samples: &[ExplainedExactSample]| samples.iter().map(|sample| sample.instructions).sum();
    ExactPair {
        of: of.to_owned(),
        samples: here.len() as u64,
        here: sum(here),
        there: sum(there),
        same: (function_count - functions.len()) as u64,
        parts,
        functions,
    }
}

fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// The instructions of a part in none of its named functions.
fn unnamed_instructions(part: &ExactPart) -> u64 {
    let named = part.functions.iter().fold(0_u64, |sum, (_, own)| sum.saturating_add(*own));
    part.instructions.saturating_sub(named)
}

/// Whether the parts of all samples name all of their functions, unlike in older versions.
pub fn is_complete(document: &ExactDocument) -> bool {
    let mut parts = document.worst.iter().chain(&document.ordinary).flat_map(|one| &one.parts);
    parts.all(|part| unnamed_instructions(part) == 0)
}

/// Warnings about the difference.
pub fn difference_findings(here: &ExactDocument, there: &ExactDocument) -> Vec<Finding> {
    let finding = |id: &str, severity, message: &str| Finding::new(id, severity, "system", message);
    let same = (here.digest == there.digest).then(|| {
        finding("exact-same-run", Severity::Note, "both runs took the same samples")
            .with_evidence(format!("digest {}", here.digest))
            .with_remedy("name another bundle or kernel")
    });
    let incomplete = [here, there].into_iter().find(|document| !is_complete(document)).map(|of| {
        let message = "of some parts only the functions with most instructions are known";
        finding("exact-functions", Severity::Warning, message)
            .with_evidence(format!("kernel {}, digest {}", of.kernel, of.digest))
            .with_remedy(
                "explain that run again with --exact: an earlier version kept five of each",
            )
    });
    same.into_iter().chain(incomplete).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn document(digest: &str, worst: Value, ordinary: Value) -> ExactDocument {
        let document = json!({
            "schema": "punctual-exact/1", "kernel": "6.1", "ns_per_instruction": 8,
            "digest": digest, "instructions": 9, "cut": 0, "worst": worst,
            "ordinary": ordinary, "irqs_disabled": [], "findings": [],
        });
        serde_json::from_value(document).unwrap()
    }

    fn sample(parts: &[(&str, &[(&str, u64)])]) -> Value {
        let sum = |functions: &[(&str, u64)]| functions.iter().map(|(_, own)| own).sum::<u64>();
        let all: u64 = parts.iter().map(|(_, functions)| sum(functions)).sum();
        let parts: Vec<Value> = parts
            .iter()
            .map(|(kind, functions)| {
                json!({"kind": kind, "begin": 0, "instructions": sum(functions),
                    "functions": functions, "stack": []})
            })
            .collect();
        json!({
            "phase": "main", "series": "t", "sample": 1, "due": 0, "latency_ns": 0,
            "thread": "t", "instructions": all, "without": 0, "parts": parts,
            "functions": [], "more": [],
        })
    }

    #[test]
    fn each_function_of_a_part_is_new_more_fewer_gone_or_the_same() {
        let ordinary = sample(&[("return", &[("a", 10), ("b", 7)])]);
        let worst = [
            sample(&[("interrupt", &[("a", 90), ("new", 5)]), ("return", &[("a", 10)])]),
            sample(&[("return", &[("a", 10)])]),
        ];
        let here = document("1", json!(worst), ordinary);
        let ordinary = sample(&[("return", &[("a", 10), ("b", 9), ("gone", 3)])]);
        let there = document(
            "2",
            json!([sample(&[("timer", &[("gone", 40)]), ("return", &[("a", 9)])])]),
            ordinary,
        );
        let difference = compare_documents(&here, &there, "other");
        let shown: Vec<String> = difference
            .pairs
            .iter()
            .map(|pair| {
                let parts = pair.parts.iter();
                let parts = parts.map(|part| format!("{} {}/{}", part.kind, part.here, part.there));
                let functions = pair.functions.iter();
                let functions = functions
                    .map(|one| format!("{}:{} {}/{}", one.kind, one.function, one.here, one.there));
                let parts = parts.collect::<Vec<_>>().join(", ");
                let functions = functions.collect::<Vec<_>>().join(", ");
                format!(
                    "{} of {}: {}/{} [{parts}] [{functions}] {} the same",
                    pair.of, pair.samples, pair.here, pair.there, pair.same
                )
            })
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @"
        ordinary of 1: 17/22 [return 17/22] [return:gone 0/3, return:b 7/9] 1 the same
        worst of 1: 105/49 [timer 0/40, interrupt 95/0, return 10/9] [interrupt:a 90/0, timer:gone 0/40, interrupt:new 5/0, return:a 10/9] 0 the same
        ");
        // Two lists of one sample each: the worst have nothing more to sum.
        assert_eq!(difference.pairs.len(), 2);
        for pair in &difference.pairs {
            let sum = |side: fn(&FunctionDifference) -> u64| {
                pair.functions.iter().map(side).sum::<u64>() as i64
            };
            let by_functions = sum(|one| one.here) - sum(|one| one.there);
            assert_eq!(by_functions, pair.here as i64 - pair.there as i64, "{pair:?}");
        }
        assert!(difference_findings(&here, &there).is_empty());
    }

    #[test]
    fn instructions_without_a_named_function_are_compared_as_others() {
        let cut = |instructions: u64| {
            let mut cut = sample(&[("return", &[("a", 10)])]);
            cut["parts"][0]["instructions"] = json!(instructions);
            cut["instructions"] = json!(instructions);
            document("1", json!([cut]), Value::Null)
        };
        let difference = compare_documents(&cut(30), &cut(17), "other");
        assert_eq!(difference.pairs[0].functions[0].function, OTHERS);
        assert_eq!(difference.pairs[0].functions[0].here, 20);
        let ids: Vec<String> = difference_findings(&cut(30), &cut(17))
            .into_iter()
            .map(|finding| finding.id.to_string())
            .collect();
        assert_eq!(ids, ["exact-same-run", "exact-functions"]);
        assert!(is_complete(&cut(10)));
    }
}
