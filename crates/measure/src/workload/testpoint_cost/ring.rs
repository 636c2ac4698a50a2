//! The ring of punctual's own test points: points passed in sequence, their timestamps read back
//! from the record.

use punctual_testpoint::layout::{
    CLOCK_MONOTONIC, COUNT_SHIFT, Control, RINGS_AT, RINGS_MAX, Ring, SLOTS_AT, SLOTS_MAX, Slot,
    ring_stride,
};
use punctual_testpoint::{Mode, Point};
use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;

/// Points between two readings of the record.
pub const BATCH: usize = 1_024;

static POINT: Point = Point::new("punctual.testpoint-cost");

/// This thread's ring in the file of the process.
pub struct OwnRing {
    file: File,
    at: u64,
    slots: u64,
    bytes: Vec<u8>,
    /// The stamps of the last batch, in order.
    pub stamps: Vec<u64>,
}

impl OwnRing {
    /// Starts points, passes the first one, and finds the ring that this thread has got for it.
    pub fn open() -> Result<OwnRing, String> {
        let path = punctual_testpoint::start().map_err(|why| why.to_string())?;
        punctual_testpoint::record(Mode::Flight);
        POINT.hit1(0);
        let file = File::open(&path).map_err(|why| format!("{}: {why}", path.display()))?;
        if read_word(&file, offset_of!(Control, clock) as u64)? == CLOCK_MONOTONIC {
            return Err("points are stamped with CLOCK_MONOTONIC here, which is measured as \
                        `clock`"
                .to_owned());
        }
        let slots = read_word(&file, offset_of!(Control, ring_slots) as u64)?;
        let used = read_word(&file, offset_of!(Control, rings_used) as u64)?.min(RINGS_MAX);
        let tid = punctual_sys::attributes::thread_id() as u32;
        for ring in 0..u64::from(used) {
            let at = RINGS_AT + ring * ring_stride(slots.min(SLOTS_MAX));
            if read_word(&file, at + offset_of!(Ring, tid) as u64)? == tid {
                let bytes = vec![0; (BATCH + 1) * size_of::<Slot>()];
                return Ok(OwnRing {
                    file,
                    at,
                    slots: slots.into(),
                    bytes,
                    stamps: Vec::with_capacity(BATCH + 1),
                });
            }
        }
        Err("this thread has no ring of points".to_owned())
    }

    /// Passes this many points in sequence.
    #[inline(never)]
    pub(crate) fn pass_points(&self, points: usize) {
        for value in 0..points {
            POINT.hit1(value as i64);
        }
    }

    /// Passes one point.
    #[inline(always)]
    pub(crate) fn hit_point(&self) {
        POINT.hit1(0);
    }

    /// Passes a batch and reads its timestamps back: one more than the batch, the point before it.
    /// Returns the number of new points in the record, which must equal the batch.
    pub(crate) fn run_batch(&mut self) -> Result<u64, String> {
        self.hit_point();
        let before = self.read_head()?;
        self.pass_points(BATCH);
        let head = self.read_head()?;
        self.stamps.clear();
        let size = size_of::<Slot>();
        // The ring wraps around: read in one or two pieces.
        let (first, count) = (before - 1, BATCH as u64 + 1);
        let (begin, length) = (first % self.slots, count.min(self.slots - first % self.slots));
        let (one, two) = self.bytes.split_at_mut(length as usize * size);
        let slots_at = self.at + SLOTS_AT;
        let read = self.file.read_exact_at(one, slots_at + begin * size as u64);
        read.and_then(|()| self.file.read_exact_at(two, slots_at))
            .map_err(|why| format!("the record of points: {why}"))?;
        for slot in self.bytes.chunks_exact(size) {
            let number = |at: usize| {
                slot.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_ne_bytes)
            };
            let stamp = number(offset_of!(Slot, at)).zip(number(offset_of!(Slot, word)));
            let (stamp, word) = stamp.ok_or("the record of points is too short")?;
            if word as u32 >> COUNT_SHIFT != 1 {
                return Err("the record holds other points than were passed".to_owned());
            }
            self.stamps.push(stamp);
        }
        Ok(head - before)
    }

    fn read_head(&self) -> Result<u64, String> {
        let mut bytes = [0; 8];
        let read = self.file.read_exact_at(&mut bytes, self.at + offset_of!(Ring, head) as u64);
        read.map_err(|why| format!("the record of points: {why}"))?;
        Ok(u64::from_ne_bytes(bytes))
    }
}

impl Drop for OwnRing {
    fn drop(&mut self) {
        punctual_testpoint::record(Mode::OnDemand);
    }
}

fn read_word(file: &File, at: u64) -> Result<u32, String> {
    let mut bytes = [0; 4];
    file.read_exact_at(&mut bytes, at).map_err(|why| format!("the record of points: {why}"))?;
    Ok(u32::from_ne_bytes(bytes))
}
