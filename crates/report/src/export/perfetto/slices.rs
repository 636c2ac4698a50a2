//! Marks as track events (protos/perfetto/trace/track_event/track_event.proto).

use super::packets::{NameField, PacketWriter};
use super::to_timestamp;
use super::tracks::{Tracks, Uuid};
use super::wire::MessageWriter;
use crate::marks::{Detail, Details, Extent, Lane, Mark, Wake};
use punctual_bundle::Timebase;
use punctual_core::event::Recorded;
use punctual_core::{MonotonicNs, Names};
use std::io;

/// TrackEvent.Type.
#[derive(Clone, Copy)]
pub(crate) enum SliceKind {
    Begin = 1,
    End = 2,
    Instant = 3,
    Counter = 4,
}

/// The track events of a trace.
pub struct Slices<'a> {
    names: &'a Names,
    tracks: Tracks<'a>,
    flows: u64,
}

impl<'a> Slices<'a> {
    /// None yet.
    pub fn new(names: &'a Names) -> Slices<'a> {
        Slices { names, tracks: Tracks::new(names), flows: 0 }
    }

    /// Writes a mark, unless it is drawn from ftrace events already.
    pub fn write(&mut self, mark: &Mark<'a>, packets: &mut PacketWriter<'_>) -> io::Result<()> {
        if matches!(
            mark.lane,
            Lane::Interrupts(_) | Lane::Softirqs(_) | Lane::Idle(_) | Lane::Frequency(_)
        ) {
            return Ok(());
        }
        let track = self.tracks.track_of_lane(mark.lane, packets)?;
        match mark.shape {
            Extent::Span(from, to) => {
                write_event(
                    packets,
                    SliceKind::Begin,
                    track,
                    from,
                    &mark.name,
                    &mark.details,
                    None,
                )?;
                self.write_wakeup(mark, track, packets)?;
                end_slice(packets, track, to)
            }
            Extent::Begun(at) => {
                write_event(packets, SliceKind::Begin, track, at, &mark.name, &mark.details, None)
            }
            Extent::Instant(at) => {
                write_event(packets, SliceKind::Instant, track, at, &mark.name, &mark.details, None)
            }
            Extent::Value(at, value) => packets.track_packet(|packet| {
                packet.write_uint(8, to_timestamp(at)).write_message(11, |own| {
                    own.write_uint(9, SliceKind::Counter as u64)
                        .write_uint(11, track.0)
                        .write_int(30, value);
                });
            }),
        }
    }

    /// The steps of a wake-up as instants that arrows connect: the timer's expiry, the waking, the
    /// first run.
    fn write_wakeup(
        &mut self,
        mark: &Mark<'a>,
        track: Uuid,
        packets: &mut PacketWriter<'_>,
    ) -> io::Result<()> {
        let Some(Wake { expired, woken, ran }) = mark.wake else { return Ok(()) };
        let whom = mark.lane.thread().map(|tid| self.names.task_name(tid)).unwrap_or_default();
        self.flows += 1;
        let flow = Some(self.flows);
        if let Some((at, cpu)) = expired {
            let track = self.tracks.track_of_lane(Lane::Timers(cpu), packets)?;
            write_event(
                packets,
                SliceKind::Instant,
                track,
                at,
                &format!("expires for {whom}"),
                &Vec::new(),
                flow,
            )?;
        }
        if let Some((at, cpu, by)) = woken {
            let track = self.tracks.track_of_lane(Lane::OnCpu(cpu), packets)?;
            let running = vec![("while there ran", Detail::Text(self.names.task_name(by).into()))];
            write_event(
                packets,
                SliceKind::Instant,
                track,
                at,
                &format!("wakes {whom}"),
                &running,
                flow,
            )?;
        }
        match ran {
            Some((at, cpu)) => {
                let on = vec![("CPU", Detail::Number(cpu.into()))];
                write_event(packets, SliceKind::Instant, track, at, "runs", &on, flow)
            }
            None => Ok(()),
        }
    }

    /// A track over the whole recording with the timebase, unless it is the system's own.
    pub(crate) fn write_timebase(
        &mut self,
        timebase: Timebase,
        recorded: &Recorded,
        packets: &mut PacketWriter<'_>,
    ) -> io::Result<()> {
        let Some(mark) = timebase.short_meaning() else { return Ok(()) };
        let track = self.tracks.group_track("Whose time this is", packets)?;
        write_event(packets, SliceKind::Begin, track, recorded.began, mark, &Vec::new(), None)?;
        end_slice(packets, track, recorded.ended)
    }

    /// The losses of each source, also those at an unknown place.
    pub(crate) fn write_losses(
        &mut self,
        recorded: &Recorded,
        packets: &mut PacketWriter<'_>,
    ) -> io::Result<()> {
        for source in recorded.sources.iter().filter(|source| source.lost > 0 || source.torn > 0) {
            let track = self.tracks.group_track("Lost events", packets)?;
            let number = |n: u64| Detail::Number(i64::try_from(n).unwrap_or(i64::MAX));
            let details = vec![
                ("lost", number(source.lost)),
                ("torn", number(source.torn)),
                ("recorded", number(source.recorded)),
            ];
            write_event(
                packets,
                SliceKind::Instant,
                track,
                recorded.ended,
                &source.name,
                &details,
                None,
            )?;
        }
        Ok(())
    }
}

/// Ends the slice that began last on a track.
pub(crate) fn end_slice(
    packets: &mut PacketWriter<'_>,
    track: Uuid,
    at: MonotonicNs,
) -> io::Result<()> {
    packets.track_packet(|packet| {
        packet.write_uint(8, to_timestamp(at)).write_message(11, |own| {
            own.write_uint(9, SliceKind::End as u64).write_uint(11, track.0);
        });
    })
}

/// A track event with its details.
pub(crate) fn write_event(
    packets: &mut PacketWriter<'_>,
    kind: SliceKind,
    track: Uuid,
    at: MonotonicNs,
    name: &str,
    details: &Details<'_>,
    flow: Option<u64>,
) -> io::Result<()> {
    let how = packets.intern_name(name);
    let numbers: Vec<(u64, bool)> =
        details.iter().map(|(name, _)| packets.intern_detail(name)).collect();
    packets.track_packet(|packet| {
        packet.write_uint(8, to_timestamp(at));
        write_new_names(packet, &how, name, details, &numbers);
        packet.write_message(11, |own| {
            own.write_uint(9, kind as u64).write_uint(11, track.0);
            match how {
                NameField::Number(number, _) => own.write_uint(10, number),
                NameField::Text(text) => own.write_text(23, text),
            };
            for ((_, detail), (number, _)) in details.iter().zip(&numbers) {
                own.write_message(4, |annotation| {
                    write_value(annotation.write_uint(1, *number), detail)
                });
            }
            if let Some(flow) = flow {
                own.write_fixed(47, flow);
            }
        });
    })
}

/// Names that this packet is the first to use.
fn write_new_names(
    packet: &mut MessageWriter,
    name: &NameField<'_>,
    text: &str,
    details: &Details<'_>,
    numbers: &[(u64, bool)],
) {
    let new_name = match name {
        NameField::Number(number, true) => Some(*number),
        _ => None,
    };
    if new_name.is_none() && numbers.iter().all(|(_, new)| !new) {
        return;
    }
    packet.write_message(12, |data| {
        if let Some(number) = new_name {
            data.write_message(2, |entry| {
                entry.write_uint(1, number).write_text(2, text);
            });
        }
        for ((name, detail), (number, _)) in
            details.iter().zip(numbers).filter(|(_, (_, new))| *new)
        {
            let unit = if matches!(detail, Detail::Span(_)) { " (ns)" } else { "" };
            data.write_message(3, |entry| {
                entry.write_uint(1, *number).write_text(2, &format!("{name}{unit}"));
            });
        }
    });
}

fn write_value(annotation: &mut MessageWriter, detail: &Detail<'_>) {
    match detail {
        Detail::Number(n) => annotation.write_int(4, *n),
        Detail::Address(at) => annotation.write_uint(7, *at),
        Detail::Span(span) => annotation.write_int(4, span.ns()),
        Detail::Text(text) => annotation.write_text(6, text),
    };
}
