//! `[explain]`.

use crate::form::{count_form, duration_form, flag_form, group_form, size_form};
use crate::limits::{
    DEFAULT_BUFFER, MAX_BEFORE, MAX_BUFFER, MAX_EXPLAINED, MAX_LATENCY, MIN_BUFFER,
};
use crate::section::section;
use crate::values;
use crate::words::ByteSize;
use punctual_core::Nanos;
use punctual_core::event::Group;

section! {
    /// The data kept to explain the worst samples.
    ExplainSpec {
        /// The number of samples of each series for which kernel events are kept. A worse sample
        /// replaces the best one kept. With 0 there is no flight recorder, and only `account`
        /// remains.
        key worst: u32, count_form(0, MAX_EXPLAINED.into()), [= 20] => plan;
        /// The latency from which on samples are kept.
        key above: Nanos,
            duration_form(Nanos(1), MAX_LATENCY),
            ["all are, so the worst are kept however good they are"] => plan;
        /// How long before the start of a sample events are kept with it.
        key before: Nanos, duration_form(Nanos::ZERO, MAX_BEFORE), [= Nanos::MILLI] => plan;
        /// Whether the kernel also attributes the time of every sample to causes.
        key account: bool, flag_form(), [= true] => plan;
        /// The size of the buffer of each CPU; a power of two is made of it. A sample that began
        /// before the oldest event in the buffer is explained in part.
        key buffer: ByteSize,
            size_form(MIN_BUFFER, MAX_BUFFER, values::buffer_size),
            [= ByteSize(DEFAULT_BUFFER)] => plan;
        /// The groups of kernel events to record; `punctual trace --events list` shows them.
        /// `sched` must be among them.
        list events: Group,
            group_form(),
            ["those that show who ran where, what interrupted it, and what the kinds of measure \
             can wait for; `punctual run --plan` shows them"];
        /// Whether the kernel stack is kept of tasks that an interrupt interrupts or that wait
        /// uninterruptibly. It shows where in the kernel a non-preemptible task was. Each stack
        /// takes some microseconds, by which latencies on a busy CPU get longer.
        key stacks: bool, flag_form(), [= false] => plan;
    }
    resolved {
        /// The data kept to explain the worst samples: kernel events overwrite one another until a
        /// sample is selected.
        ExplainPlan, ExplainResolved {
            /// Groups of kernel events.
            events: Vec<Group>;
            /// Whether only timers are measured, with the default events: then only events that
            /// show why an interrupt or a switch was delayed are kept.
            timers_only: bool;
        }
    }
}
