//! `[published]` and its `[[published.result]]`.

use crate::form::text;
use crate::section::section;
use crate::values;
use punctual_core::Term;

section! {
    /// Published results of this experiment.
    PublishedSpec {
        /// Who published it, and for which system.
        key source: String,
            text("TEXT", values::remark),
            [needed "the source of this result is missing", "write `source = \"who, which \
             system\"`"];
        /// Each published result.
        sections result: ResultSpec, "`[[published.result]]`", [];
    }
}

section! {
    /// One published result.
    ResultSpec {
        /// A description of the value.
        key what: String,
            text("TEXT", values::remark),
            [needed "this result does not name what it is of", "write `what = \"…\"`"];
        /// As it was published, with its unit.
        key value: String,
            text("TEXT", values::remark),
            [needed "the published value is missing", "write `value = \"1,000 to 3,000 µs\"`"];
        /// Where the same figure is found in this run, as `"writes/open: p99"`: a measure or a
        /// series, a colon, and a figure of a series (as in `require`) or one that the measure
        /// states, like `futex-calls-round`. A `*` stands for any part of a series' name;
        /// `@`*PHASE* after it names the phase if it was measured in several. For several series:
        /// the smallest minimum, the largest maximum, the mean of all samples, the sum of counts,
        /// the median of other figures.
        key here: Term, text("FIGURE", values::term), ["none"];
        /// The trend that must be reproduced on any machine: two figures, or a figure and a number,
        /// with `<`, `<=`, `>`, `>=` or `~` (within a tenth of) between them, as `"forces/whole:
        /// p50 > 2 * writes/whole: p50"`.
        key shape: String, text("TEXT", values::shape), ["none"];
    }
}
