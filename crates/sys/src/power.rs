//! Keeps CPUs out of deep idle states for a while (Documentation/power/pm_qos_interface.rst).

use punctual_core::Nanos;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};

/// A request on /dev/cpu_dma_latency, in force while it lives: the kernel drops it when the file is
/// closed, also by kill -9.
#[derive(Debug)]
pub struct DmaLatencyRequest {
    _held: File,
}

impl DmaLatencyRequest {
    /// Requests that leaving an idle state takes at most this time, in whole µs; 0 leaves only
    /// polling and the shallowest state.
    pub fn hold_latency(latency: Nanos) -> io::Result<DmaLatencyRequest> {
        let mut file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency")?;
        let micros = i32::try_from(latency.ns().max(0) / 1_000).unwrap_or(i32::MAX);
        file.write_all(&micros.to_ne_bytes())?;
        Ok(DmaLatencyRequest { _held: file })
    }
}
