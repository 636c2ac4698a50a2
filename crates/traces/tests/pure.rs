//! Each module is a suite of its own.

mod ctf;
mod ctf_lttng;
mod dat;
mod missing;
mod perf;
mod perfetto;
mod text;
