//! The worst samples in virtual time, exactly: a group of tracks for each, with its parts and every
//! call as slices, by the task, interrupt or softirq for which it ran.

use super::packets::PacketWriter;
use super::slices::{SliceKind, end_slice, write_event};
use super::tracks::Uuid;
use super::{write_clocks, write_system};
use crate::marks::Detail;
use crate::sentence::exact::part_title;
use punctual_bundle::exact::{ExactCall, ExactDocument, ExplainedExactSample};
use punctual_core::MonotonicNs;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The functions that run softirqs (kernel/softirq.c; the first until 6.9).
const SOFTIRQ: [&str; 2] = ["__do_softirq", "handle_softirqs"];

/// Writes them. Time is the guest's CLOCK_MONOTONIC: its instructions, at their virtual time.
pub fn write(document: &ExactDocument, out: &mut dyn Write) -> io::Result<()> {
    let mut trace = ExactTrace { packets: PacketWriter::new(out), tracks: 0 };
    let began = document.worst.iter().map(|sample| sample.due).min().unwrap_or(0);
    write_clocks(&mut trace.packets, MonotonicNs(began))?;
    write_system(&mut trace.packets, Some(&document.kernel))?;
    for (place, sample) in document.worst.iter().enumerate() {
        trace.write_sample(sample, place + 1, i64::from(document.ns_per_instruction))?;
    }
    Ok(())
}

struct ExactTrace<'w> {
    packets: PacketWriter<'w>,
    tracks: u64,
}

impl ExactTrace<'_> {
    fn add_track(&mut self, name: &str, parent: Option<Uuid>) -> io::Result<Uuid> {
        self.tracks += 1;
        let uuid = Uuid(self.tracks);
        self.packets.track_packet(|packet| {
            packet.write_message(60, |track| {
                track.write_uint(1, uuid.0).write_text(2, name);
                if let Some(parent) = parent {
                    track.write_uint(5, parent.0);
                }
            });
        })?;
        Ok(uuid)
    }

    fn write_sample(
        &mut self,
        sample: &ExplainedExactSample,
        place: usize,
        insn_ns: i64,
    ) -> io::Result<()> {
        let series = match sample.series.is_empty() {
            true => String::new(),
            false => format!(" {}/{}", sample.phase, sample.series),
        };
        let micros = sample.latency_ns as f64 / 1e3;
        let group = self.add_track(&format!("{place}.{series}: {micros} virtual \u{b5}s"), None)?;
        // Nothing was executed while the CPU waited: the path ends at the arrival.
        let insns = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let arrival = sample.due.saturating_add(sample.latency_ns);
        let begin = arrival.saturating_sub(insns(sample.instructions).saturating_mul(insn_ns));
        let at =
            |count: u64| MonotonicNs(begin.saturating_add(insns(count).saturating_mul(insn_ns)));
        let parts = self.add_track("parts", Some(group))?;
        for part in &sample.parts {
            let to = part.begin.saturating_add(part.instructions);
            self.begin_slice(parts, part_title(&part.kind), at(part.begin), part.instructions)?;
            end_slice(&mut self.packets, parts, at(to))?;
        }
        for (lane, calls) in group_calls(&sample.calls) {
            let track = self.add_track(&lane, Some(group))?;
            let mut open: Vec<u64> = Vec::new();
            for call in calls {
                while open.last().is_some_and(|until| *until <= call.begin) {
                    let until = open.pop().unwrap_or_default();
                    end_slice(&mut self.packets, track, at(until))?;
                }
                // Slices of a track must nest.
                let until = open.last().map_or(call.end, |outer| call.end.min(*outer));
                if until <= call.begin {
                    continue;
                }
                self.begin_slice(track, &call.function, at(call.begin), until - call.begin)?;
                open.push(until);
            }
            while let Some(until) = open.pop() {
                end_slice(&mut self.packets, track, at(until))?;
            }
        }
        Ok(())
    }

    fn begin_slice(
        &mut self,
        track: Uuid,
        name: &str,
        at: MonotonicNs,
        insns: u64,
    ) -> io::Result<()> {
        let insns = Detail::Number(i64::try_from(insns).unwrap_or(i64::MAX));
        write_event(
            &mut self.packets,
            SliceKind::Begin,
            track,
            at,
            name,
            &vec![("instructions", insns)],
            None,
        )
    }
}

/// The calls by the task or interrupt for which they ran, each in the order of their beginnings.
fn group_calls(calls: &[ExactCall]) -> BTreeMap<String, Vec<&ExactCall>> {
    let mut lanes: BTreeMap<String, Vec<&ExactCall>> = BTreeMap::new();
    let mut ordered: Vec<&ExactCall> = calls.iter().collect();
    ordered.sort_by_key(|call| (call.begin, call.depth));
    let mut softirq: Option<&ExactCall> = None;
    for call in ordered {
        softirq = softirq.filter(|outer| outer.end > call.begin && outer.depth < call.depth);
        let in_interrupt = call.context == "interrupt";
        if softirq.is_none() && in_interrupt && SOFTIRQ.contains(&call.function.as_str()) {
            softirq = Some(call);
        }
        let lane = match (in_interrupt, softirq) {
            (true, Some(_)) => "softirq".to_owned(),
            (true, None) => "interrupt".to_owned(),
            (false, _) => format!("task {}", call.context),
        };
        lanes.entry(lane).or_default().push(call);
    }
    lanes
}
