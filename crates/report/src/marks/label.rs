//! Labels of things in marks: borrowed from the recording's names if known, else numbers.

use punctual_core::Names;
use punctual_core::event::{FunctionId, PointId};
use std::borrow::Cow;

/// The test point's name, else `point 3`.
pub(crate) fn point_name(names: &Names, point: PointId) -> Cow<'_, str> {
    name_or_number(names.points.get(point.0 as usize), || format!("point {}", point.0))
}

/// The function's name, else `function 3`.
pub fn function_name(names: &Names, function: FunctionId) -> Cow<'_, str> {
    let name = names.functions.get(function.0 as usize).map(|function| &function.name);
    name_or_number(name, || format!("function {}", function.0))
}

/// The block device: `vda`, else its numbers `254:0` (the kernel's dev_t: 12 bits major, 20 bits
/// minor).
pub fn device_name(names: &Names, device: u32) -> Cow<'_, str> {
    name_or_number(names.devices.get(&device), || format!("{}:{}", device >> 20, device & 0xf_ffff))
}

/// The softirq's name, else `softirq 9`.
pub fn softirq_name(names: &Names, vector: u8) -> Cow<'_, str> {
    name_or_number(names.softirqs.get(&vector), || format!("softirq {vector}"))
}

/// The interrupt vector's name, else `vector 0xec`.
pub fn vector_name(names: &Names, vector: u8) -> Cow<'_, str> {
    name_or_number(names.vectors.get(&vector), || format!("vector {vector:#x}"))
}

/// The system call's name, else `system call 999`.
pub fn syscall_name(names: &Names, number: u32) -> Cow<'_, str> {
    name_or_number(names.syscalls.get(&number), || format!("system call {number}"))
}

/// The kernel function at an address, else the address.
pub(crate) fn symbol_name(names: &Names, address: u64) -> Cow<'_, str> {
    name_or_number(names.symbols.get(&address), || format!("{address:#x}"))
}

/// The idle state's name, else `state 2`.
pub fn idle_state(names: &Names, state: u32) -> Cow<'_, str> {
    name_or_number(names.idle_states.get(&state), || format!("state {state}"))
}

fn name_or_number<'a>(name: Option<&'a String>, number: impl FnOnce() -> String) -> Cow<'a, str> {
    name.map_or_else(|| Cow::Owned(number()), |name| Cow::Borrowed(name.as_str()))
}
