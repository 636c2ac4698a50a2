//! An object file from clang, loaded into this kernel.

use super::sys::{self, MapShape, ProgramCode, ProgramShape};
use aya_obj::btf::{Btf, BtfFeatures, BtfKind};
use aya_obj::generated::bpf_insn;
use punctual_core::CpuSet;
use punctual_sys::mapping::Mapping;
use punctual_sys::memory::page_size;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::CString;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// The reason why a program does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// Built without these programs.
    #[error("this punctual was built without BPF programs: {}", why_not_built())]
    NotBuilt,
    /// The kernel does not describe its types.
    #[error("the kernel does not describe its types (/sys/kernel/btf/vmlinux: {0})")]
    NoBtf(String),
    /// The object cannot be adapted to this kernel.
    #[error("the BPF programs do not fit this kernel: {0}")]
    Unfit(String),
    /// A map was refused.
    #[error("the kernel refused a map of {bytes} bytes: {why}")]
    Map { bytes: u64, why: std::io::Error },
    /// The kernel has no such tracepoint.
    #[error("this kernel has no tracepoint {0}")]
    NoTracepoint(String),
    /// tracefs is unavailable.
    #[error("{0}")]
    NoTracefs(String),
    /// A function of the kernel cannot be probed.
    #[error("{0}")]
    NoKprobe(String),
    /// A program was refused.
    #[error("the kernel refused the program for {tracepoint}: {why}{}", last_line(log))]
    Refused { tracepoint: String, why: std::io::Error, log: String },
}

fn why_not_built() -> &'static str {
    match cfg!(feature = "bpf") {
        true => "there are none for this processor",
        false => "the feature `bpf` is disabled, as in `./x demo`; use `./x build`",
    }
}

/// The verifier's reason is in its last line before the statistics.
fn last_line(log: &str) -> String {
    let line = log.lines().rev().find(|line| !line.is_empty() && !line.starts_with("processed "));
    line.map_or_else(String::new, |line| format!(" ({line})"))
}

/// An object with loadable programs.
pub(crate) struct BpfObject {
    object: aya_obj::Object,
    maps: BTreeMap<String, OwnedFd>,
    /// Those of its functions, where the kernel takes them.
    types: Option<OwnedFd>,
    /// Programs that are loaded but not attached yet, each with its tracepoint.
    loaded_ahead: Mutex<Vec<((String, String), OwnedFd)>>,
}

/// A program that runs at a tracepoint until this and its clones are dropped.
#[derive(Clone, Debug)]
pub(crate) struct Attach {
    tracepoint: String,
    program: Arc<OwnedFd>,
    /// Empty while it is paused.
    links: Arc<Mutex<Vec<OwnedFd>>>,
    how: AttachMethod,
}

/// The way a program is attached.
#[derive(Clone, Debug)]
enum AttachMethod {
    Btf,
    Number(u16),
    Raw(CString),
    /// A software event of perf_event_open(2), on each of these CPUs.
    Software(u64, CpuSet),
}

impl AttachMethod {
    fn link_program(&self, program: &OwnedFd) -> std::io::Result<Vec<OwnedFd>> {
        let one = match self {
            AttachMethod::Btf => sys::attach_btf_tracepoint(program),
            AttachMethod::Number(id) => sys::attach_tracepoint(program, *id),
            AttachMethod::Raw(name) => sys::attach_raw_tracepoint(program, name),
            AttachMethod::Software(event, cpus) => {
                let attach = |cpu: usize| sys::attach_software_event(program, *event, cpu);
                return cpus.iter().map(attach).collect();
            }
        };
        one.map(|link| vec![link])
    }
}

impl Attach {
    pub(crate) fn tracepoint_name(&self) -> &str {
        &self.tracepoint
    }
    fn new(tracepoint: &str, program: OwnedFd, how: AttachMethod) -> std::io::Result<Attach> {
        let links = Arc::new(Mutex::new(how.link_program(&program)?));
        let (tracepoint, program) = (tracepoint.to_owned(), Arc::new(program));
        Ok(Attach { tracepoint, program, links, how })
    }
    /// Keeps it loaded, but not running until resumed.
    pub(crate) fn pause_program(&self) {
        drop(self.links.lock().map(|mut links| std::mem::take(&mut *links)));
    }
    pub(crate) fn resume_program(&self) -> std::io::Result<()> {
        if let Ok(mut links) = self.links.lock()
            && links.is_empty()
        {
            *links = self.how.link_program(&self.program)?;
        }
        Ok(())
    }
    /// See [`sys::recursion_misses`]; `None` where the kernel does not count them.
    pub(crate) fn recursion_misses(&self) -> Option<u64> {
        sys::recursion_misses(&self.program).ok()
    }
    /// See [`sys::run_time`]; `None` where the kernel does not count it.
    pub(crate) fn run_time(&self) -> Option<(u64, u64)> {
        sys::run_time(&self.program).ok()
    }
    /// The sum over these programs.
    pub(crate) fn run_time_of(all: &[Attach]) -> Option<(u64, u64)> {
        all.iter().map(Attach::run_time).try_fold((0, 0), |sum, one| {
            let (ns, runs) = one?;
            Some((sum.0 + ns, sum.1 + runs))
        })
    }
    /// The first of the alternatives in `programs`, separated by `|`, that this kernel accepts; the
    /// error is that of the last one.
    pub(crate) fn first_of(
        programs: &str,
        attach: impl Fn(&str) -> Result<Attach, LoadError>,
    ) -> Result<Attach, LoadError> {
        let (earlier, last) = programs.rsplit_once('|').unwrap_or(("", programs));
        let found = earlier.split_terminator('|').find_map(|program| attach(program).ok());
        found.map_or_else(|| attach(last), Ok)
    }
}

impl BpfObject {
    /// Decompresses the output of build.rs, and sets the constants of the programs: names with
    /// their bytes.
    pub(crate) fn open(packed: &[u8], constants: &[(&str, &[u8])]) -> Result<BpfObject, LoadError> {
        let mut bytes = Vec::new();
        let unfit = |why: &dyn std::fmt::Display| LoadError::Unfit(why.to_string());
        flate2::read::ZlibDecoder::new(packed)
            .read_to_end(&mut bytes)
            .map_err(|why| unfit(&why))?;
        if bytes.is_empty() {
            return Err(LoadError::NotBuilt);
        }
        let mut object = aya_obj::Object::parse(&bytes).map_err(|why| unfit(&why))?;
        let constants: HashMap<&str, (&[u8], bool)> =
            constants.iter().map(|(name, value)| (*name, (*value, true))).collect();
        object.patch_map_data(constants).map_err(|why| unfit(&why))?;
        let (maps, types) = (BTreeMap::new(), None);
        Ok(BpfObject { object, maps, types, loaded_ahead: Mutex::default() })
    }

    /// Changes the shape of a map from that of the source: bytes of a value, and entries.
    pub(crate) fn set_map_shape(&mut self, map: &str, value: u32, entries: u32) {
        if let Some(map) = self.object.maps.get_mut(map) {
            map.set_value_size(value);
            map.set_max_entries(entries);
        }
    }

    /// The same for the number of entries only.
    pub(crate) fn set_map_entries(&mut self, map: &str, entries: u32) {
        if let Some(map) = self.object.maps.get_mut(map) {
            map.set_max_entries(entries);
        }
    }

    /// Bytes of a map's values.
    pub(crate) fn value_size(&self, map: &str) -> usize {
        self.object.maps.get(map).map_or(0, |map| map.value_size() as usize)
    }

    /// A map's descriptor, once prepared.
    pub(crate) fn map_fd(&self, name: &str) -> Result<&OwnedFd, LoadError> {
        self.maps.get(name).ok_or_else(|| LoadError::Unfit(format!("there is no map {name}")))
    }

    /// The page that a map shares with this process (BPF_F_MMAPABLE).
    pub(crate) fn map_page(&self, name: &str, rights: libc::c_int) -> Result<Mapping, LoadError> {
        let bytes = page_size();
        Mapping::of_file(self.map_fd(name)?, 0, bytes, rights, libc::MAP_POPULATE)
            .map_err(|why| LoadError::Map { bytes: bytes as u64, why })
    }

    /// Uses this map for that name, instead of creating one.
    pub(crate) fn adopt_map(&mut self, name: &str, map: OwnedFd) {
        self.maps.insert(name.to_owned(), map);
    }

    /// Creates the missing maps, and adapts the programs to them and, if necessary, to the kernel's
    /// types.
    pub(crate) fn prepare_programs(&mut self, kernel: Option<&Btf>) -> Result<(), LoadError> {
        let unfit = |why: &dyn std::fmt::Display| LoadError::Unfit(why.to_string());
        for (name, map) in &self.object.maps {
            if !self.maps.contains_key(name) {
                self.maps.insert(name.clone(), create_map(name, map)?);
            }
        }
        let text: HashSet<usize> =
            self.object.functions.keys().map(|(section, _)| *section).collect();
        let source_maps = self.object.maps.clone();
        let fds = source_maps
            .iter()
            .filter_map(|(name, map)| Some((name.as_str(), self.maps.get(name)?.as_raw_fd(), map)));
        if let Some(kernel) = kernel {
            let types = self.object.fixup_and_sanitize_btf(&FEATURES).ok().flatten();
            self.types = types.and_then(|types| sys::load_types(&types.to_bytes()).ok());
            self.object.relocate_btf(kernel).map_err(|why| unfit(&WholeError(&why)))?;
        }
        self.object.relocate_maps(fds, &text).map_err(|why| unfit(&WholeError(&why)))?;
        self.object.relocate_calls(&text).map_err(|why| unfit(&WholeError(&why)))
    }

    /// Loads programs for tracepoints on all CPUs at once, longest verification first: the kernel
    /// follows each of their paths, which takes a second or more. A program refused here is refused
    /// again when it is attached.
    pub(crate) fn load_ahead(&self, kernel: &Btf, programs: &[(&str, String)]) {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some((program, tracepoint)) = programs.get(next.fetch_add(1, Relaxed)) {
                let loaded = self.load_btf_tracepoint(kernel, program, tracepoint).ok();
                if let (Some(loaded), Ok(mut ahead)) = (loaded, self.loaded_ahead.lock()) {
                    ahead.push((((*program).to_owned(), tracepoint.clone()), loaded));
                }
            }
        };
        // With a single CPU, they are loaded when they are attached.
        std::thread::scope(|scope| {
            (1..workers.min(programs.len())).for_each(|_| drop(scope.spawn(work)));
            if workers > 1 {
                work();
            }
        });
    }

    fn load_btf_tracepoint(
        &self,
        kernel: &Btf,
        program: &str,
        tracepoint: &str,
    ) -> Result<OwnedFd, LoadError> {
        let is = |((of, at), _): &((String, String), OwnedFd)| of == program && at == tracepoint;
        let mut loaded_programs = self.loaded_ahead.lock().ok();
        if let Some(ahead) = &mut loaded_programs
            && let Some(place) = ahead.iter().position(is)
        {
            return Ok(ahead.swap_remove(place).1);
        }
        drop(loaded_programs);
        let id = kernel.id_by_type_name_kind(&format!("btf_trace_{tracepoint}"), BtfKind::Typedef);
        let id = id.map_err(|_| LoadError::NoTracepoint(tracepoint.to_owned()))?;
        let instructions = self.program_code(program)?;
        sys::load_program(ProgramShape::btf_tracepoint(program, id), &instructions).map_err(
            |(why, log)| LoadError::Refused { tracepoint: tracepoint.to_owned(), why, log },
        )
    }

    /// Loads the program and attaches it to the kernel's tracepoint of that name.
    pub(crate) fn attach_btf_tracepoint(
        &self,
        kernel: &Btf,
        program: &str,
        tracepoint: &str,
    ) -> Result<Attach, LoadError> {
        let program = self.load_btf_tracepoint(kernel, program, tracepoint)?;
        Attach::new(tracepoint, program, AttachMethod::Btf).map_err(|why| LoadError::Refused {
            tracepoint: tracepoint.to_owned(),
            why,
            log: String::new(),
        })
    }

    /// The same for the return of a kernel function, if it can be traced (fexit).
    pub(crate) fn attach_function_exit(
        &self,
        kernel: &Btf,
        program: &str,
        function: &str,
    ) -> Result<Attach, LoadError> {
        let id = kernel.id_by_type_name_kind(function, BtfKind::Func);
        let id = id.map_err(|_| LoadError::NoTracepoint(function.to_owned()))?;
        let refused = |(why, log)| LoadError::Refused { tracepoint: function.to_owned(), why, log };
        let instructions = self.program_code(program)?;
        let program = sys::load_program(ProgramShape::function_exit(program, id), &instructions)
            .map_err(refused)?;
        Attach::new(function, program, AttachMethod::Btf)
            .map_err(|why| refused((why, String::new())))
    }

    /// The same for each count of a software event of perf_event_open(2) on these CPUs.
    pub(crate) fn attach_software_event(
        &self,
        program: &str,
        (name, event): (&str, u64),
        cpus: &CpuSet,
    ) -> Result<Attach, LoadError> {
        let refused = |(why, log)| LoadError::Refused { tracepoint: name.to_owned(), why, log };
        let instructions = self.program_code(program)?;
        let program =
            sys::load_program(ProgramShape::perf_event(program), &instructions).map_err(refused)?;
        let how = AttachMethod::Software(event, cpus.clone());
        Attach::new(name, program, how).map_err(|why| refused((why, String::new())))
    }

    /// The same for a program that reads the tracepoint's own record; `id` is the tracepoint's
    /// number in tracefs.
    pub(crate) fn attach_tracepoint(
        &self,
        program: &str,
        tracepoint: &str,
        id: u16,
    ) -> Result<Attach, LoadError> {
        let refused =
            |(why, log)| LoadError::Refused { tracepoint: tracepoint.to_owned(), why, log };
        let instructions = self.program_code(program)?;
        let program = sys::load_program(ProgramShape::for_tracepoint(program), &instructions)
            .map_err(refused)?;
        let how = AttachMethod::Number(id);
        Attach::new(tracepoint, program, how).map_err(|why| refused((why, String::new())))
    }

    /// The same for a program that takes the tracepoint's raw arguments.
    pub(crate) fn attach_raw_tracepoint(
        &self,
        program: &str,
        tracepoint: &str,
    ) -> Result<Attach, LoadError> {
        let refused =
            |(why, log)| LoadError::Refused { tracepoint: tracepoint.to_owned(), why, log };
        let instructions = self.program_code(program)?;
        let program = sys::load_program(ProgramShape::raw_tracepoint(program), &instructions)
            .map_err(refused)?;
        let name = CString::new(tracepoint).map_err(|why| LoadError::Unfit(why.to_string()))?;
        match Attach::new(tracepoint, program, AttachMethod::Raw(name)) {
            Ok(attach) => Ok(attach),
            Err(why) if why.raw_os_error() == Some(libc::ENOENT) => {
                Err(LoadError::NoTracepoint(tracepoint.to_owned()))
            }
            Err(why) => Err(refused((why, String::new()))),
        }
    }

    pub(crate) fn load_to_be_run(&self, program: &str) -> Result<OwnedFd, LoadError> {
        let refused =
            |(why, log)| LoadError::Refused { tracepoint: format!("`{program}`"), why, log };
        sys::load_program(ProgramShape::to_be_run(program), &self.program_code(program)?)
            .map_err(refused)
    }

    pub(super) fn program_code(&self, program: &str) -> Result<ProgramCode<'_>, LoadError> {
        let function = self
            .object
            .programs
            .get(program)
            .and_then(|program| self.object.functions.get(&program.function_key()));
        let function =
            function.ok_or_else(|| LoadError::Unfit(format!("there is no program {program}")))?;
        let mut instructions = function.instructions.clone();
        for (name, map) in self.object.maps.iter().filter(|(name, _)| name.starts_with(RODATA)) {
            inline_constants(&mut instructions, self.map_fd(name)?.as_raw_fd(), map.data());
        }
        let records = function.func_info.func_info.iter();
        let records = records.map(|record| [record.insn_off, record.type_id]).collect();
        let functions = self.types.as_ref().map(|types| (types, records));
        Ok(ProgramCode {
            instructions: instructions.iter().map(encode_instruction).collect(),
            functions,
        })
    }
}

/// Of kernels with BTF tracepoints (5.11) and later; no object has enumerations of 64 bits.
const FEATURES: BtfFeatures = BtfFeatures::new(true, true, true, true, true, false, false, false);

/// clang's section for constants.
const RODATA: &str = ".rodata";

/// Replaces loads of constants from the map with this descriptor by immediate numbers: a program
/// that runs once per wake-up finds neither their cache line nor the page's translation in a cache.
/// Must follow relocation.
fn inline_constants(instructions: &mut [bpf_insn], map: i32, data: &[u8]) {
    /// `dst = imm ll`, two instructions long.
    const LOAD_IMMEDIATE: u8 = 0x18;
    /// BPF_PSEUDO_MAP_VALUE: the second half is the offset.
    const MAP_VALUE: u8 = 2;
    let jumps: HashSet<usize> =
        instructions.iter().enumerate().filter_map(|(at, jump)| jump_target(at, jump)).collect();
    for at in 0..instructions.len().saturating_sub(3) {
        let (address, half, load, next) =
            (instructions[at], instructions[at + 1], instructions[at + 2], instructions[at + 3]);
        let bytes = match load.code {
            0x61 => 4, // BPF_LDX | BPF_MEM and the size
            0x69 => 2,
            0x71 => 1,
            0x79 => 8,
            _ => continue,
        };
        let is_address =
            address.code == LOAD_IMMEDIATE && address.src_reg() == MAP_VALUE && address.imm == map;
        let is_of_it = load.src_reg() == address.dst_reg() && !jumps.contains(&(at + 2));
        // Only if nothing else uses the address.
        let is_last_use = load.dst_reg() == address.dst_reg()
            || !jumps.contains(&(at + 3)) && overwrites_register(&next, address.dst_reg());
        if !is_address || !is_of_it || !is_last_use {
            continue;
        }
        let offset = i64::from(half.imm) + i64::from(load.off);
        let bytes =
            usize::try_from(offset).ok().and_then(|offset| data.get(offset..offset + bytes));
        let Some(bytes) = bytes else { continue };
        let value = bytes.iter().rev().fold(0, |value: u64, byte| value << 8 | u64::from(*byte));
        instructions[at].set_src_reg(0);
        instructions[at].set_dst_reg(load.dst_reg());
        instructions[at].imm = value as u32 as i32;
        instructions[at + 1].imm = (value >> 32) as u32 as i32;
        instructions[at + 2] = nop();
    }
}

/// `goto +0`, which the kernel removes.
fn nop() -> bpf_insn {
    bpf_insn {
        code: 0x05,
        _bitfield_align_1: [],
        _bitfield_1: bpf_insn::new_bitfield_1(0, 0),
        off: 0,
        imm: 0,
    }
}

/// Whether this sets the register without reading it.
fn overwrites_register(instruction: &bpf_insn, register: u8) -> bool {
    let is_load = instruction.code & 7 == 1; // BPF_LDX
    // BPF_MOV, 64 and 32 bits, of a number or a register.
    let is_move = matches!(instruction.code, 0xb7 | 0xb4 | 0xbf | 0xbc);
    let of_number = matches!(instruction.code, 0xb7 | 0xb4);
    (is_load || is_move)
        && instruction.dst_reg() == register
        && (of_number || instruction.src_reg() != register)
}

/// The target of a jump. Calls of functions are excluded, as they cannot begin in the middle of a
/// load.
fn jump_target(at: usize, instruction: &bpf_insn) -> Option<usize> {
    let class = instruction.code & 7;
    // Neither BPF_CALL nor BPF_EXIT.
    let is_jump = matches!(class, 5 | 6) && !matches!(instruction.code & 0xf0, 0x80 | 0x90);
    is_jump.then(|| (at as i64 + 1 + i64::from(instruction.off)) as usize)
}

/// The kernel's `struct bpf_insn` as 8 bytes.
fn encode_instruction(instruction: &bpf_insn) -> u64 {
    let registers = u64::from(instruction.dst_reg()) | u64::from(instruction.src_reg()) << 4;
    let offset = u64::from(instruction.off as u16);
    u64::from(instruction.code)
        | registers << 8
        | offset << 16
        | u64::from(instruction.imm as u32) << 32
}

fn create_map(name: &str, map: &aya_obj::Map) -> Result<OwnedFd, LoadError> {
    let shape = MapShape {
        kind: map.map_type(),
        key: map.key_size(),
        value: map.value_size(),
        entries: map.max_entries(),
        flags: map.map_flags(),
    };
    let refused =
        |why| LoadError::Map { bytes: u64::from(shape.value) * u64::from(shape.entries), why };
    let fd = sys::create_map(name, shape).map_err(refused)?;
    if !map.data().is_empty() {
        sys::update_map(&fd, &0u32.to_ne_bytes(), map.data()).map_err(refused)?;
        if name.starts_with(RODATA) {
            sys::freeze_map(&fd).map_err(refused)?;
        }
    }
    Ok(fd)
}

/// An error with its causes, which the loader's own messages omit.
struct WholeError<'a>(&'a dyn std::error::Error);

impl std::fmt::Display for WholeError<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(why) = cause {
            write!(f, ": {why}")?;
            cause = why.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: i32 = 7;
    const DATA: &[u8] = &[1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 3, 0, 0, 0];

    fn instruction(code: u8, to: u8, from: u8, off: i16, imm: i32) -> bpf_insn {
        bpf_insn { code, off, imm, _bitfield_1: bpf_insn::new_bitfield_1(to, from), ..nop() }
    }

    /// `to = &map[offset]`, as after relocation.
    fn address(to: u8, offset: i32) -> [bpf_insn; 2] {
        [instruction(0x18, to, 2, 0, MAP), instruction(0, 0, 0, 0, offset)]
    }

    /// The constant that replaced the load; `None` if it was kept.
    fn inlined(program: &[bpf_insn], map: i32) -> Option<(u8, u64)> {
        let mut program = program.to_vec();
        let before: Vec<u64> = program.iter().map(encode_instruction).collect();
        inline_constants(&mut program, map, DATA);
        let after: Vec<u64> = program.iter().map(encode_instruction).collect();
        if before == after {
            return None;
        }
        assert_eq!(
            (program[0].code, program[0].src_reg(), after[2]),
            (0x18, 0, encode_instruction(&nop()))
        );
        assert_eq!(before[3..], after[3..]);
        Some((
            program[0].dst_reg(),
            u64::from(program[0].imm as u32) | u64::from(program[1].imm as u32) << 32,
        ))
    }

    #[test]
    fn loads_of_constants_are_inlined() {
        let [first, second] = address(1, 0);
        let exit = instruction(0x95, 0, 0, 0, 0);
        let load = |code, off| [first, second, instruction(code, 1, 1, off, 0), exit];
        assert_eq!(inlined(&load(0x61, 0), MAP), Some((1, 1)));
        assert_eq!(inlined(&load(0x79, 8), MAP), Some((1, 0x3_0000_0002)));
        assert_eq!(inlined(&load(0x61, 4), MAP), Some((1, 0xffff_ffff)));
        assert_eq!(inlined(&load(0x71, 4), MAP), Some((1, 0xff)));
        assert_eq!(inlined(&load(0x69, 4), MAP), Some((1, 0xffff)));
        // Beyond its end, from another map, and not a load.
        assert_eq!(inlined(&load(0x79, 12), MAP), None);
        assert_eq!(inlined(&load(0x61, 0), MAP + 1), None);
        assert_eq!(inlined(&load(0x63, 0), MAP), None);
        let [first, second] = address(1, -4);
        assert_eq!(inlined(&[first, second, instruction(0x61, 1, 1, 0, 0), exit], MAP), None);
    }

    #[test]
    fn an_address_that_is_used_again_stays() {
        let [first, second] = address(1, 0);
        let load = instruction(0x61, 2, 1, 0, 0);
        let again =
            |next| inlined(&[first, second, load, next, instruction(0x95, 0, 0, 0, 0)], MAP);
        assert_eq!(again(instruction(0x61, 3, 1, 4, 0)), None);
        assert_eq!(again(instruction(0x61, 1, 1, 4, 0)), None);
        assert_eq!(again(instruction(0x07, 1, 0, 0, 4)), None);
        // Overwritten before any use.
        assert_eq!(again(instruction(0xb7, 1, 0, 0, 4)), Some((2, 1)));
        assert_eq!(again(instruction(0xbc, 1, 8, 0, 0)), Some((2, 1)));
    }

    #[test]
    fn a_load_that_is_jumped_to_stays() {
        let [first, second] = address(1, 0);
        let load = instruction(0x61, 1, 1, 0, 0);
        let jump = |off| {
            inlined(
                &[
                    first,
                    second,
                    load,
                    instruction(0x15, 3, 0, off, 0),
                    instruction(0x95, 0, 0, 0, 0),
                ],
                MAP,
            )
        };
        assert_eq!(jump(0), Some((1, 1)));
        assert_eq!(jump(-2), None);
    }
}
