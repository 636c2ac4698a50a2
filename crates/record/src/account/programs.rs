//! The programs of the accounting: with BTF, and for kernels without it.

use crate::bpf::{Attach, BpfObject, BufferSizes, LoadError, sys};
use crate::tracefs::Tracefs;
use crate::wire::layout::{self as wire, AccountClocks};
use aya_obj::btf::Btf;
use punctual_sys::clock;
use punctual_traces::format::RecordFormat;

static TYPED_OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/account.bpf.o.z"));
static UNTYPED_OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/account_untyped.bpf.o.z"));

pub(super) const TYPED: &str = "BPF (BTF tracepoints)";
pub(super) const UNTYPED: &str = "BPF (raw tracepoints)";

/// The way programs find the data they read.
pub(super) enum AccountPrograms {
    Typed(Btf),
    /// In the records of two tracepoints, given by their numbers in tracefs; all other tracepoints
    /// only show that they occurred, and for which address.
    Untyped {
        armed: u16,
        switched: u16,
    },
}

/// Only used by the programs without BTF.
const ARMED: (&str, &str) = ("hrtimer_start", "account_armed");
const SWITCHED: &str = "account_switched";

impl AccountPrograms {
    pub(super) fn load_typed(
        constants: &[(&str, &[u8])],
        cpus: u32,
        shape: BufferSizes,
    ) -> Result<(BpfObject, AccountPrograms), LoadError> {
        let kernel = Btf::from_sys_fs().map_err(|why| LoadError::NoBtf(why.to_string()))?;
        let object = prepare_object(TYPED_OBJECT, constants, cpus, shape, Some(&kernel))?;
        Ok((object, AccountPrograms::Typed(kernel)))
    }

    pub(super) fn load_untyped(
        constants: &[(&str, &[u8])],
        cpus: u32,
        shape: BufferSizes,
    ) -> Result<(BpfObject, AccountPrograms), LoadError> {
        let tracefs = Tracefs::open().map_err(LoadError::NoTracefs)?;
        let armed =
            tracefs.tracepoint_format("timer", "hrtimer_start").map_err(LoadError::NoTracefs)?;
        let switched =
            tracefs.tracepoint_format("sched", "sched_switch").map_err(LoadError::NoTracefs)?;
        let offsets = [
            ("timer_offset", field_offset(&armed, "hrtimer", 8)?),
            ("expires_offset", field_offset(&armed, "softexpires", 8)?),
            ("prev_offset", field_offset(&switched, "prev_pid", 4)?),
            ("prev_prio_offset", field_offset(&switched, "prev_prio", 4)?),
            ("state_offset", field_offset(&switched, "prev_state", 8)?),
            ("next_offset", field_offset(&switched, "next_pid", 4)?),
            ("next_prio_offset", field_offset(&switched, "next_prio", 4)?),
        ];
        let offsets = offsets.map(|(name, offset)| (name, offset.to_ne_bytes()));
        let all_constants: Vec<(&str, &[u8])> = constants
            .iter()
            .copied()
            .chain(offsets.iter().map(|(name, bytes)| (*name, &bytes[..])))
            .collect();
        let object = prepare_object(UNTYPED_OBJECT, &all_constants, cpus, shape, None)?;
        Ok((object, AccountPrograms::Untyped { armed: armed.id, switched: switched.id }))
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            AccountPrograms::Typed(_) => TYPED,
            AccountPrograms::Untyped { .. } => UNTYPED,
        }
    }

    /// Additional tracepoints that these programs need, with their programs.
    pub(super) fn extra_tracepoints(&self) -> &'static [(&'static str, &'static str)] {
        match self {
            AccountPrograms::Typed(_) => &[],
            AccountPrograms::Untyped { .. } => &[ARMED],
        }
    }

    pub(super) fn attach_program(
        &self,
        object: &BpfObject,
        program: &str,
        tracepoint: &str,
    ) -> Result<Attach, LoadError> {
        match self {
            AccountPrograms::Typed(kernel) => {
                object.attach_btf_tracepoint(kernel, program, tracepoint)
            }
            AccountPrograms::Untyped { armed, .. } if program == ARMED.1 => {
                object.attach_tracepoint(program, tracepoint, *armed)
            }
            AccountPrograms::Untyped { switched, .. } if program == SWITCHED => {
                object.attach_tracepoint(program, tracepoint, *switched)
            }
            AccountPrograms::Untyped { .. } => object.attach_raw_tracepoint(program, tracepoint),
        }
    }

    /// Passes the offsets of other clocks from CLOCK_MONOTONIC to the programs, if they cannot read
    /// them.
    pub(super) fn set_clocks(&self, object: &BpfObject) -> Result<(), LoadError> {
        let AccountPrograms::Untyped { .. } = self else { return Ok(()) };
        let clock_offsets = CLOCKS.map(|clock| clock_offset(clock) as u64);
        let mut bytes = [0; AccountClocks::SIZE];
        AccountClocks { ahead: clock_offsets }.write(&mut bytes);
        let refused = |why| LoadError::Map { bytes: AccountClocks::SIZE as u64, why };
        sys::update_map(object.map_fd("clocks")?, &0u32.to_ne_bytes(), &bytes).map_err(refused)
    }
}

fn prepare_object(
    packed: &[u8],
    constants: &[(&str, &[u8])],
    cpus: u32,
    shape: BufferSizes,
    kernel: Option<&Btf>,
) -> Result<BpfObject, LoadError> {
    let mut object = BpfObject::open(packed, constants)?;
    object.set_map_shape("buffers", shape.value_size(), cpus);
    object.set_map_entries("cpus", cpus);
    object.prepare_programs(kernel)?;
    Ok(object)
}

/// The offset of a field of this size in a tracepoint's record.
fn field_offset(format: &RecordFormat, name: &str, size: usize) -> Result<u32, LoadError> {
    let field = format.find_field(name).filter(|field| field.size == size);
    let missing = || {
        LoadError::Unfit(format!(
            "the records of this kernel's tracepoints have no {name} of {size} bytes"
        ))
    };
    field.map(|field| field.offset as u32).ok_or_else(missing)
}

const CLOCKS: [libc::clockid_t; wire::ACCOUNT_CLOCKS as usize] =
    [libc::CLOCK_MONOTONIC, libc::CLOCK_REALTIME, libc::CLOCK_TAI, libc::CLOCK_BOOTTIME];

/// The maximum offset from CLOCK_MONOTONIC of an equal clock: CLOCK_BOOTTIME before the first
/// suspend of the machine.
const SAME: i64 = 10_000;

/// The offset in ns of a clock from CLOCK_MONOTONIC: the closest of several readings, so that
/// preemption in between does not count.
fn clock_offset(clock: libc::clockid_t) -> i64 {
    if clock == libc::CLOCK_MONOTONIC {
        return 0;
    }
    let readings = (0..5).map(|_| {
        let before = clock::read(libc::CLOCK_MONOTONIC);
        let clock_reading = clock::read(clock);
        let after = clock::read(libc::CLOCK_MONOTONIC);
        (after - before, clock_reading - (before + (after - before) / 2))
    });
    readings.min().map(|(_, ahead)| ahead).filter(|ahead| ahead.abs() > SAME).unwrap_or(0)
}
