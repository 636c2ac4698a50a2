//! Each module is a separate suite.

mod ctf;
mod ctf_lttng;
mod dat;
mod missing;
mod perf;
mod perfetto;
mod text;
