//! Each module is a suite of its own.

mod ctf;
mod ctf_lttng;
mod dat;
mod perf;
mod perfetto;
mod text;
