//! Unwinds by the tables of the mapped files.

use super::{StackCopy, UserStack};
use crate::symbols::{FileIdentity, Mappings, ProcessMapping, Tables};
use framehop::{
    CacheNative, ExplicitModuleSectionInfo, MayAllocateDuringUnwind, Module, UnwindRegsNative,
    Unwinder as _, UnwinderNative,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The maximum number of frames of a stack, and of processes whose mappings are kept.
const FRAMES: usize = 64;
const PROCESSES: usize = 64;

/// Unwinds stacks of processes that exist.
#[derive(Default)]
pub(crate) struct Unwinder {
    processes: BTreeMap<u32, Process>,
    files: BTreeMap<(Arc<Path>, FileIdentity), Option<Tables>>,
}

struct Process {
    mappings: Mappings,
    unwinder: UnwinderNative<Bytes, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
}

type Bytes = Arc<[u8]>;

impl Unwinder {
    pub(crate) const IS_AVAILABLE: bool = true;

    /// The functions of a copied stack. Read while the process exists.
    pub(crate) fn unwind_stack(&mut self, copy: &StackCopy) -> UserStack {
        self.unwind_callers(copy).0
    }

    /// The same, with where its return addresses are, in words from the stack pointer.
    pub(crate) fn unwind_callers(&mut self, copy: &StackCopy) -> (UserStack, Vec<(usize, u64)>) {
        let knows = |process: &Process| process.mappings.place_of(copy.ip).is_some();
        if !self.processes.get(&copy.process).is_some_and(knows) {
            self.read(copy.process);
        }
        let Some(process) = self.processes.get_mut(&copy.process) else {
            return (UserStack { addresses: vec![copy.ip], is_cut: true }, Vec::new());
        };
        let words_read = RefCell::new(Vec::new());
        let mut read = |address: u64| {
            let offset = address.checked_sub(copy.sp).filter(|offset| offset % 8 == 0).ok_or(())?;
            let at = usize::try_from(offset / 8).map_err(drop)?;
            let word = *copy.stack.get(at).ok_or(())?;
            words_read.borrow_mut().push((at, word));
            Ok(word)
        };
        let mut frames = process.unwinder.iter_frames(
            copy.ip,
            copy_registers(copy),
            &mut process.cache,
            &mut read,
        );
        let (mut of_it, mut callers) = (UserStack::default(), Vec::new());
        loop {
            match frames.next() {
                Ok(Some(frame)) if of_it.addresses.len() < FRAMES => {
                    let address = frame.address();
                    of_it.addresses.push(address);
                    // A frame pointer may have been read after it.
                    let read = words_read.take();
                    callers.extend(read.into_iter().rfind(|(_, word)| *word == address));
                }
                Ok(None) => break,
                Ok(Some(_)) | Err(_) => {
                    of_it.is_cut = true;
                    break;
                }
            }
        }
        (of_it, callers)
    }

    /// Whether the code before a return address is the program's own, not a library's.
    pub(crate) fn is_in_program(&self, process: u32, address: u64) -> bool {
        let process = self.processes.get(&process);
        let place = process.and_then(|process| process.mappings.place_of(address.wrapping_sub(1)));
        place.is_some_and(|place| !place.is_in_library())
    }

    /// Forgets a process that has ended or runs another program.
    pub(crate) fn forget_process(&mut self, process: u32) {
        self.processes.remove(&process);
    }

    fn read(&mut self, pid: u32) {
        if self.processes.len() >= PROCESSES {
            self.processes.clear();
            self.files.clear();
        }
        let Some(mappings) = Mappings::read(pid) else { return };
        let mut unwinder = UnwinderNative::new();
        for mapping in mappings.all_mappings() {
            let read = || Tables::from_elf(&mapping.read(pid)?);
            let tables = self.files.entry(mapping.file_key()).or_insert_with(read);
            let module = tables.as_ref().and_then(|tables| build_module(mapping, tables));
            if let Some(module) = module {
                unwinder.add_module(module);
            }
        }
        self.processes.insert(pid, Process { mappings, unwinder, cache: CacheNative::new() });
    }
}

#[cfg(target_arch = "x86_64")]
fn copy_registers(copy: &StackCopy) -> UnwindRegsNative {
    UnwindRegsNative::new(copy.ip, copy.sp, copy.bp)
}

#[cfg(target_arch = "aarch64")]
fn copy_registers(copy: &StackCopy) -> UnwindRegsNative {
    UnwindRegsNative::new(copy.lr, copy.sp, copy.bp)
}

/// The mapped code, with its tables at the addresses at which the process has them.
fn build_module(mapping: &ProcessMapping, tables: &Tables) -> Option<Module<Bytes>> {
    // Where the file's address 0 is; of a program that cannot be moved, 0.
    let base = mapping.begin.wrapping_sub(tables.address_at(mapping.offset)?);
    let range = |(from, bytes): &(u64, Bytes)| *from..from.saturating_add(bytes.len() as u64);
    let bytes = |section: &Option<(u64, Bytes)>| section.as_ref().map(|(_, bytes)| bytes.clone());
    let sections = ExplicitModuleSectionInfo {
        text_svma: tables.text.clone(),
        got_svma: tables.got.clone(),
        eh_frame_svma: tables.eh_frame.as_ref().map(range),
        eh_frame: bytes(&tables.eh_frame),
        eh_frame_hdr_svma: tables.eh_frame_hdr.as_ref().map(range),
        eh_frame_hdr: bytes(&tables.eh_frame_hdr),
        debug_frame: bytes(&tables.debug_frame),
        ..Default::default()
    };
    Some(Module::new(String::new(), mapping.begin..mapping.end, base, sections))
}
