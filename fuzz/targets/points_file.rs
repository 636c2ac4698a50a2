//! Random bytes as the file of a process's test points, with a valid control page if the first byte
//! selects it. Any input is read to the end, gives only events that its counts include, and no
//! instant outside of the clock's range.
use punctual_core::EventKind;
use punctual_points::{ClockPairs, read_whole};
use punctual_testpoint::counter::Pair;
use punctual_testpoint::layout::{CLOCK_CNTVCT, CLOCK_TSC, MAGIC, RINGS_AT, VERSION};
use std::sync::OnceLock;

static CLOCK: OnceLock<ClockPairs> = OnceLock::new();

fn clock() -> &'static ClockPairs {
    CLOCK.get_or_init(|| {
        let mut clock =
            ClockPairs::from_pair(Pair { ticks: 1_000, monotonic: 1_000_000, error: 10 });
        for step in 1..8 {
            clock.add(Pair {
                ticks: 1_000 + step * 300_000_000,
                monotonic: 1_000_000 + step as i64 * 100_000_000,
                error: 10,
            });
        }
        clock
    })
}

pub fn fuzz(bytes: &[u8]) {
    let Some((&kind, bytes)) = bytes.split_first() else { return };
    let mut file = bytes.to_vec();
    if kind & 1 == 1 && bytes.len() >= 256 {
        // Rings at their place: the input after the control page is moved to their beginning, which
        // mutations would never reach.
        file = vec![0; RINGS_AT as usize + 65_536];
        let (control, rings) = bytes.split_at(256);
        file[..256].copy_from_slice(control);
        let length = rings.len().min(65_536);
        file[RINGS_AT as usize..][..length].copy_from_slice(&rings[..length]);
        let here = if cfg!(target_arch = "aarch64") { CLOCK_CNTVCT } else { CLOCK_TSC };
        file[..8].copy_from_slice(&MAGIC.to_ne_bytes());
        file[8..12].copy_from_slice(&VERSION.to_ne_bytes());
        file[28..32].copy_from_slice(&(if kind & 2 == 2 { here } else { 3 }).to_ne_bytes());
        file[72..76].copy_from_slice(&1_024_u32.to_ne_bytes());
        if kind & 4 == 4 {
            // Slots marked as complete.
            let first = RINGS_AT as usize + 4_096;
            for (position, slot) in file[first..].chunks_exact_mut(32).enumerate() {
                slot[12..16].copy_from_slice(&(position as u32 + 1).to_ne_bytes());
            }
        }
    }
    let mut events = 0_u64;
    let mut given = |_: usize, more: &[punctual_core::Event]| {
        events += more.len() as u64;
        for event in more {
            let EventKind::Point { count, .. } = event.what else {
                panic!("a file of points gives points")
            };
            assert!(count <= 2 && event.at.ns() >= 0);
        }
    };
    if let Ok(whole) = read_whole(&&file[..], clock(), &mut given) {
        assert_eq!(whole.sources.iter().map(|source| source.recorded).sum::<u64>(), events);
        whole.sources.iter().for_each(|source| drop(source.to_source()));
    }
}
