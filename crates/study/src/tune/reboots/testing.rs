//! A machine that boots in memory: the figures of its blocks follow from its command line.

use super::Reboots;
use crate::tune::blocks::{BlockMeasurement, BlockRunner};
use crate::tune::cost::Throughput;
use crate::tune::testing::Fate;
use punctual_core::Nanos;
use punctual_session::exit::Failure;
use std::cell::{Cell, RefCell};

pub(crate) const BASE: &str = "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro";

#[derive(Default)]
pub struct World {
    pub cmdline: RefCell<String>,
    pub boots: Cell<u64>,
    /// The additional words of the next boot.
    pub next: RefCell<Option<String>>,
    pub has_service: Cell<bool>,
    /// A boot with all words of one of these falls back to the usual entry.
    pub refuses: Vec<&'static str>,
    /// With all words of one of these it panics during a block.
    pub panics: Vec<&'static str>,
    /// The number of a boot lost by a power cut.
    pub power_cut: Option<u64>,
    /// Whether the boot loader cannot clear its one-shot entry.
    pub cannot_clear: bool,
    /// Whether the boot loader makes an entry that came up the usual one.
    pub blesses: bool,
    pub blessed: RefCell<Option<String>>,
    /// The number of next boots that cannot be requested.
    pub cannot_arm: Cell<u32>,
    /// The words of each boot.
    pub seen: RefCell<Vec<String>>,
    pub fate: Fate,
}

impl World {
    pub fn new() -> World {
        World { cmdline: RefCell::new(BASE.to_owned()), ..World::default() }
    }

    pub fn boot(&self) {
        self.boots.set(self.boots.get() + 1);
        let next = if self.cannot_clear { self.next.borrow().clone() } else { self.next.take() };
        let words = next.or_else(|| self.blessed.borrow().clone()).unwrap_or_default();
        let has = |all: &str| all.split(' ').all(|word| words.split(' ').any(|of| of == word));
        let falls = self.refuses.iter().any(|all| has(all));
        let is_cut = self.power_cut == Some(self.boots.get());
        let line = if falls || is_cut { BASE.to_owned() } else { format!("{BASE} {words}") };
        if self.blesses && !falls {
            self.blessed.replace(Some(words.clone()));
        }
        self.cmdline.replace(line.trim().to_owned());
        self.seen.borrow_mut().push(words);
    }
}

impl Reboots for &World {
    fn arm(&mut self, words: &str) -> Result<(), Failure> {
        self.fate.meet();
        if let Some(left) = self.cannot_arm.get().checked_sub(1) {
            self.cannot_arm.set(left);
            return Err(Failure::failed("no space is left"));
        }
        self.next.replace(Some(words.to_owned()));
        self.fate.meet();
        Ok(())
    }
    fn cmdline(&self) -> Result<String, Failure> {
        Ok(self.cmdline.borrow().clone())
    }
    fn booted(&mut self) -> Result<(), Failure> {
        self.fate.meet();
        match *self.next.borrow() {
            Some(_) => Err(Failure::failed("one-time boots are impossible here")),
            None => Ok(()),
        }
    }
    fn boot_id(&self) -> Result<String, Failure> {
        Ok(self.boots.get().to_string())
    }
    fn install(&mut self) -> Result<(), Failure> {
        self.has_service.set(true);
        Ok(())
    }
    fn disarm(&mut self) -> Result<Vec<String>, Failure> {
        self.fate.meet();
        self.next.replace(None);
        self.blessed.replace(None);
        self.has_service.set(false);
        Ok(Vec::new())
    }
    fn reboot(&mut self) -> Result<(), Failure> {
        self.fate.meet();
        Ok(())
    }
}

/// The panic payload of a kernel that panics.
pub struct Panicked;

/// Blocks of 10 s whose figure depends on the command line and the block's number.
pub(crate) struct BootBlocks<'a> {
    pub world: &'a World,
    /// Words, and the factor of each.
    pub effects: &'a [(&'static str, f64)],
    pub elapsed: Nanos,
    pub inner: u64,
}

impl BlockRunner for BootBlocks<'_> {
    fn measure(&mut self, number: u64, _: &[bool]) -> Result<BlockMeasurement, Failure> {
        self.world.fate.meet();
        let line = self.world.cmdline.borrow();
        let has = |all: &str| all.split(' ').all(|word| line.split(' ').any(|there| there == word));
        if self.world.panics.iter().any(|all| has(all)) {
            std::panic::resume_unwind(Box::new(Panicked));
        }
        let mut figure = 100_000.0;
        for (words, effect) in self.effects {
            if has(words) {
                figure *= effect;
            }
        }
        self.inner += 1;
        // Within 4 % from boot to boot, within 1 % in one.
        let noise = |of: u64| {
            (of.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / f64::from(1 << 24) - 0.5
        };
        figure *= 1.0 + 0.04 * noise(number) + 0.01 * noise(number * 8 + self.inner);
        self.elapsed += Nanos::from_secs(10);
        self.world.fate.meet();
        Ok(BlockMeasurement { figure: Some(figure), why: None })
    }
    fn throughput(&mut self, _: &[String], time: Nanos) -> Result<Throughput, Failure> {
        self.elapsed += time;
        Ok(Throughput::default())
    }
    fn wait(&mut self, time: Nanos) -> Result<(), Failure> {
        self.elapsed += time;
        Ok(())
    }
    fn elapsed(&self) -> Nanos {
        self.elapsed
    }
}
