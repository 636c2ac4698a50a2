//! Each module is a separate suite.

mod ctf;
mod ctf2;
mod ctf_lttng;
mod dat;
mod missing;
mod perf;
mod perfetto;
mod text;
