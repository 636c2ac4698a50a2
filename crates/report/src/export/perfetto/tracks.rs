//! A track for each lane, under the CPU group, the thread or the device that it belongs to.
//! Perfetto merges tracks with one name under one parent: lanes that exist only because spans
//! overlap become one track with several rows.

use super::packets::PacketWriter;
use crate::marks::Lane;
use punctual_core::{Names, Tid};
use std::collections::HashMap;
use std::io;

/// A track's number. Perfetto only requires that they differ.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Uuid(pub u64);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum TrackKey {
    Group(&'static str),
    Thread(Tid),
    Lane(Lane),
}

/// The tracks described so far.
pub struct Tracks<'a> {
    names: &'a Names,
    known: HashMap<TrackKey, Uuid>,
}

impl<'a> Tracks<'a> {
    /// None yet.
    pub fn new(names: &'a Names) -> Tracks<'a> {
        Tracks { names, known: HashMap::new() }
    }

    /// The track of a lane; the first call describes it.
    pub(crate) fn track_of_lane(
        &mut self,
        lane: Lane,
        packets: &mut PacketWriter<'_>,
    ) -> io::Result<Uuid> {
        if let Some(uuid) = self.known.get(&TrackKey::Lane(lane)) {
            return Ok(*uuid);
        }
        let parent = match (lane.thread(), lane.cpu()) {
            (Some(tid), _) => self.thread_track(tid, packets)?,
            (None, Some(_)) => self.group_track("Interrupts and timers", packets)?,
            (None, None) => self.group_track("Storage", packets)?,
        };
        let uuid = self.new_uuid(TrackKey::Lane(lane));
        let name = lane.title(self.names);
        packets.track_packet(|packet| {
            packet.write_message(60, |track| {
                track.write_uint(1, uuid.0).write_uint(5, parent.0).write_text(2, &name);
                if matches!(lane, Lane::Values(..) | Lane::Frequency(_)) {
                    track.write_message(8, |_| ());
                }
            });
        })?;
        Ok(uuid)
    }

    /// A track that only groups others.
    pub(crate) fn group_track(
        &mut self,
        name: &'static str,
        packets: &mut PacketWriter<'_>,
    ) -> io::Result<Uuid> {
        if let Some(uuid) = self.known.get(&TrackKey::Group(name)) {
            return Ok(*uuid);
        }
        let uuid = self.new_uuid(TrackKey::Group(name));
        packets.track_packet(|packet| {
            packet.write_message(60, |track| {
                track.write_uint(1, uuid.0).write_text(2, name);
            });
        })?;
        Ok(uuid)
    }

    fn thread_track(&mut self, tid: Tid, packets: &mut PacketWriter<'_>) -> io::Result<Uuid> {
        if let Some(uuid) = self.known.get(&TrackKey::Thread(tid)) {
            return Ok(*uuid);
        }
        let uuid = self.new_uuid(TrackKey::Thread(tid));
        let task = self.names.tasks.get(&tid);
        packets.track_packet(|packet| {
            packet.write_message(60, |track| {
                track.write_uint(1, uuid.0).write_message(4, |thread| {
                    // A thread must have a process: if unknown, the thread is its own process.
                    thread
                        .write_uint(1, task.map_or(tid.0, |task| task.process).into())
                        .write_uint(2, tid.0.into());
                    thread.write_text(5, &self.names.task_name(tid));
                });
            });
        })?;
        Ok(uuid)
    }

    fn new_uuid(&mut self, key: TrackKey) -> Uuid {
        let uuid = Uuid(self.known.len() as u64 + 1);
        self.known.insert(key, uuid);
        uuid
    }
}
