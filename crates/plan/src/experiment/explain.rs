//! `[explain]`.

use crate::form::{count, flag, group, size, span};
use crate::limits::{
    DEFAULT_BUFFER, MAX_BEFORE, MAX_BUFFER, MAX_EXPLAINED, MAX_LATENCY, MIN_BUFFER,
};
use crate::section::section;
use crate::values;
use crate::words::ByteSize;
use punctual_core::Nanos;
use punctual_core::event::Group;

section! {
    /// What is kept to explain the worst samples.
    ExplainSpec {
        /// Of how many samples of each series; with 0 there is no flight recorder, and `account`
        /// alone remains. A worse one takes the place of the least bad one.
        key worst: u32, count(0, MAX_EXPLAINED.into()), [= 20];
        /// The latency from which on samples are kept.
        key above: Nanos,
            span(Nanos(1), MAX_LATENCY),
            ["all are, so the worst are kept however good they are"];
        /// How much before the begin of a sample is kept with it.
        key before: Nanos, span(Nanos::ZERO, MAX_BEFORE), [= Nanos::MILLI];
        /// Whether the kernel also attributes the time of every sample to causes.
        key account: bool, flag(), [= true];
        /// The buffer of each CPU; a power of two is made of it. A sample that took longer than the
        /// buffer reaches back is explained in part.
        key buffer: ByteSize,
            size(MIN_BUFFER, MAX_BUFFER, values::buffer_size),
            [= ByteSize(DEFAULT_BUFFER)];
        /// Groups of kernel events; `punctual trace --events list` shows them. `sched` must be
        /// among them.
        list events: Group,
            group(),
            ["those that show who ran where, what interrupted it, and what the kinds of measure \
             can wait for; `punctual run --plan` shows them"];
        /// Whether the kernel's stack is kept of tasks that an interrupt interrupts or that wait
        /// uninterruptibly: where in the kernel a task was that could not be preempted. Each takes
        /// some microseconds where it happens, so that latencies on a busy CPU get longer by that.
        key stacks: bool, flag(), [= false];
    }
}
