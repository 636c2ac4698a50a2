//! Labels of things in marks: borrowed from the recording's names if known, else numbers.

use punctual_core::Names;
use punctual_core::event::{FunctionId, PointId};
use std::borrow::Cow;

/// The test point's name, else `point 3`.
pub fn point(names: &Names, point: PointId) -> Cow<'_, str> {
    known(names.points.get(point.0 as usize), || format!("point {}", point.0))
}

/// The function's name, else `function 3`.
pub fn function(names: &Names, function: FunctionId) -> Cow<'_, str> {
    let name = names.functions.get(function.0 as usize).map(|function| &function.name);
    known(name, || format!("function {}", function.0))
}

/// The block device: `vda`, else its numbers `254:0` (the kernel's dev_t: 12 bits major, 20 bits
/// minor).
pub fn device(names: &Names, device: u32) -> Cow<'_, str> {
    known(names.devices.get(&device), || format!("{}:{}", device >> 20, device & 0xf_ffff))
}

/// The softirq's name, else `softirq 9`.
pub fn softirq(names: &Names, vector: u8) -> Cow<'_, str> {
    known(names.softirqs.get(&vector), || format!("softirq {vector}"))
}

/// The interrupt vector's name, else `vector 0xec`.
pub fn vector(names: &Names, vector: u8) -> Cow<'_, str> {
    known(names.vectors.get(&vector), || format!("vector {vector:#x}"))
}

/// The system call's name, else `system call 999`.
pub fn syscall(names: &Names, number: u32) -> Cow<'_, str> {
    known(names.syscalls.get(&number), || format!("system call {number}"))
}

/// The kernel function at an address, else the address.
pub fn symbol(names: &Names, address: u64) -> Cow<'_, str> {
    known(names.symbols.get(&address), || format!("{address:#x}"))
}

/// The idle state's name, else `state 2`.
pub fn idle_state(names: &Names, state: u32) -> Cow<'_, str> {
    known(names.idle_states.get(&state), || format!("state {state}"))
}

fn known<'a>(name: Option<&'a String>, number: impl FnOnce() -> String) -> Cow<'a, str> {
    name.map_or_else(|| Cow::Owned(number()), |name| Cow::Borrowed(name.as_str()))
}
