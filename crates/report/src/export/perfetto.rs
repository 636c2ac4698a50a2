//! A recording as a Perfetto trace, which ui.perfetto.dev and trace_processor open (`.pftrace`).
//!
//! Scheduling, interrupts, softirqs, idle states and frequencies are ftrace events, from which
//! Perfetto makes thread states and CPU tracks. All else is track events: spans, instants and
//! counters in the lanes of [`crate::marks`]. A trace is a sequence of packets
//! (protos/perfetto/trace/trace.proto); field numbers here are those of Perfetto's published schema
//! and never change. Memory does not grow with the number of events: it holds a bundle of each CPU,
//! the threads and the open spans.
//!
//! Timestamps are CLOCK_MONOTONIC. ftrace bundles have no field for the clock and are interpreted
//! as CLOCK_BOOTTIME; the clock snapshot equates both and makes CLOCK_MONOTONIC the trace's own.

pub mod exact;
mod ftrace;
mod packets;
mod slices;
mod tasks;
mod tracks;
mod wire;

use super::{Exporter, RecordingInput, Writer};
use crate::marks::{Mark, Marks};
use packets::PacketWriter;
use punctual_core::event::Recorded;
use punctual_core::{Event, MonotonicNs};
use std::io::{self, Write};

pub(super) const EXPORTER: Exporter = Exporter {
    is_binary: true,
    ..Exporter::new(
        "perfetto",
        "a recording for ui.perfetto.dev (.pftrace)",
        Writer::Recording(|input, events, out| write(input, events, out)),
    )
};

/// Perfetto's number for CLOCK_MONOTONIC (BuiltinClock).
const MONOTONIC: u64 = 3;
const BOOTTIME: u64 = 6;

/// States are written as in this version, whatever kernel was recorded.
const STATES_SINCE: &str = "4.14 (or later: the recording does not say)";

/// Writes the whole trace. Events come in time order.
pub fn write(
    input: RecordingInput<'_>,
    events: impl IntoIterator<Item = Event>,
    out: &mut dyn Write,
) -> io::Result<()> {
    write_with(input, events, &[], out)
}

/// Like [`write()`], with further marks in addition to those of the events.
pub(crate) fn write_with<'a>(
    RecordingInput { recorded, names, release, timebase }: RecordingInput<'a>,
    events: impl IntoIterator<Item = Event>,
    beside: &[Mark<'a>],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut packets = PacketWriter::new(out);
    write_clocks(&mut packets, recorded.began)?;
    write_system(&mut packets, release)?;
    tasks::write(&mut packets, names)?;
    write_losses(&mut packets, recorded, PacketPhase::Start)?;
    let mut kernel = ftrace::FtraceBundles::default();
    let mut slices = slices::Slices::new(names);
    slices.write_timebase(timebase, recorded, &mut packets)?;
    let mut marks = Marks::new(names);
    let mut drawn = Vec::new();
    for event in events {
        kernel.add(&event, names, &mut packets)?;
        marks.describe_event(&event, &mut drawn);
        for mark in drawn.drain(..) {
            slices.write(&mark, &mut packets)?;
        }
    }
    marks.finish(&mut drawn);
    for mark in drawn.iter().chain(beside) {
        slices.write(mark, &mut packets)?;
    }
    kernel.finish(&mut packets)?;
    slices.write_losses(recorded, &mut packets)?;
    write_losses(&mut packets, recorded, PacketPhase::End)
}

fn write_clocks(packets: &mut PacketWriter<'_>, began: MonotonicNs) -> io::Result<()> {
    packets.write_packet(|packet| {
        packet.write_message(6, |snapshot| {
            for clock in [MONOTONIC, BOOTTIME] {
                snapshot.write_message(1, |entry| {
                    entry.write_uint(1, clock).write_uint(2, to_timestamp(began));
                });
            }
            snapshot.write_uint(2, MONOTONIC);
        });
    })
}

/// The kernel's version, which defines the states of sched_switch: without it Perfetto assumes
/// those of Linux 4.4.
fn write_system(packets: &mut PacketWriter<'_>, release: Option<&str>) -> io::Result<()> {
    let numbered = release.filter(|release| release.starts_with(|c: char| c.is_ascii_digit()));
    packets.write_packet(|packet| {
        packet.write_message(45, |system| {
            system.write_message(1, |uname| {
                uname.write_text(1, "Linux").write_text(3, numbered.unwrap_or(STATES_SINCE));
            });
        });
    })
}

#[derive(Clone, Copy, PartialEq)]
enum PacketPhase {
    Start = 1,
    End = 2,
}

/// The losses of each CPU as ftrace's own statistics: Perfetto subtracts the values at the start
/// from those at the end, and warns.
fn write_losses(
    packets: &mut PacketWriter<'_>,
    recorded: &Recorded,
    phase: PacketPhase,
) -> io::Result<()> {
    packets.write_packet(|packet| {
        packet.write_message(34, |stats| {
            stats.write_uint(1, phase as u64);
            for source in &recorded.sources {
                let Some(cpu) = source.cpu else { continue };
                let at_end = |count: u64| if phase == PacketPhase::End { count } else { 0 };
                stats.write_message(2, |each| {
                    each.write_uint(1, cpu.into())
                        .write_uint(2, 0)
                        .write_uint(3, at_end(source.lost))
                        .write_uint(4, 0);
                    each.write_uint(8, 0).write_uint(9, at_end(source.recorded));
                });
            }
        });
    })
}

fn to_timestamp(at: MonotonicNs) -> u64 {
    u64::try_from(at.0).unwrap_or(0)
}
