//! The dump of QEMU's plugin (crates/lab/src/exact/plugin.c): little-endian words, in this order:
//! the header, all blocks, all tasks, the windows of samples, the sections with interrupts or
//! preemption disabled, the longest of these with the executed blocks.

/// A block of consecutively executed instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodeBlock {
    /// The address of its first instruction.
    pub pc: u64,
    /// Its length in bytes.
    pub bytes: u16,
    pub insns: u16,
    /// The number of instructions up to and including the last one that reads the processor's
    /// counter; 0: none.
    pub clock: u16,
    pub kind: BlockEnd,
    /// Whether an interrupt or an exception enters the kernel with it.
    pub entry: bool,
    /// Its first bytes for user code; 0 beyond its end and for kernel code.
    pub code: [u8; CODE],
}

/// The number of bytes kept of a block.
pub const CODE: usize = 16;

impl CodeBlock {
    /// Whether it is user code (the lower half of the addresses,
    /// Documentation/arch/x86/x86_64/mm.rst).
    pub(crate) fn is_user(&self) -> bool {
        self.pc >> 63 == 0
    }

    /// Its bytes, as far as they are kept.
    pub(crate) fn kept_code(&self) -> &[u8] {
        let kept_len = if self.is_user() { usize::from(self.bytes).min(CODE) } else { 0 };
        &self.code[..kept_len]
    }
}

/// The last instruction of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockEnd {
    Plain,
    /// `call`
    Call,
    /// `ret`
    Return,
    /// `syscall`
    Syscall,
    /// `sysret`
    Sysret,
    /// `iret`
    Iret,
}

/// A task, with its name at a switch to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DumpTask {
    pub tid: u32,
    pub comm: String,
}

/// The recorded events in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DumpEntry {
    /// A block was executed (its index).
    Block(usize),
    /// The kernel switches to a task (its index); `None` beyond the limit of tasks.
    Switch(Option<usize>),
    /// Interrupts are disabled from here on.
    IrqsOff,
    IrqsOn,
    /// The CPU waits for an interrupt.
    Idle,
}

/// The execution before a sample was taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DumpWindow {
    /// When the sample was due, in ns of its clock.
    pub due: i64,
    /// When the thread woke, in ns of its clock.
    pub woke: i64,
    /// Instructions of the whole run up to the sample.
    pub at: u64,
    /// The measuring task (its index); `None` without a recorded switch.
    pub task: Option<usize>,
    pub entries: Vec<DumpEntry>,
}

/// The property of a section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SectionKind {
    Irqs,
    /// Preemption: the CPU's `preempt_count` is above 0.
    Preemption,
    /// Nothing: from `need_resched` to the call of `__schedule`.
    Resched,
    /// The migration of a task (`migrate_disable`). Others may run.
    Migration,
    /// Nothing: a task waits for a lock. Others run.
    LockWait,
}

/// A place where sections of a kind begin, with their figures in the searched part of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodeSection {
    pub kind: SectionKind,
    /// The address of the instruction that begins them.
    pub pc: u64,
    /// The return address of the call that began them, in the innermost function that is not left
    /// within them; 0 if that function began them itself or its caller is unknown. For
    /// [`SectionKind::Resched`] that begin in an interrupt: the interrupted address, without the
    /// highest bit.
    pub caller: u64,
    /// The return address of this function; 0: unknown.
    pub outer: u64,
    /// As `caller`, in the function called to begin the section, if that calls another; else 0.
    pub callee: u64,
    pub count: u64,
    pub total: u64,
    pub longest: u64,
    /// The address of the instruction that ended the longest.
    pub end_pc: u64,
    /// The return addresses of the innermost calls around it, innermost first; 0: unknown.
    pub end_callers: [u64; 3],
    /// Instructions of the whole run before the longest.
    pub at: u64,
    /// The `preempt_count` at the start of the longest.
    pub preempt_count: u32,
}

/// One of the longest sections, with the execution before and within it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stretch {
    pub kind: SectionKind,
    /// As in [`CodeSection::pc`].
    pub pc: u64,
    /// As in [`CodeSection::caller`].
    pub caller: u64,
    /// Instructions of the whole run before it.
    pub begin: u64,
    /// Instructions of the whole run up to its end.
    pub end: u64,
    /// Instructions of the whole run after the last entry.
    pub at: u64,
    pub entries: Vec<DumpEntry>,
}

/// The whole dump.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Dump {
    /// Instructions of the whole run.
    pub insns: u64,
    pub samples: u64,
    /// Windows shorter than their latency, for lack of the plugin's memory.
    pub cut: u64,
    /// Blocks and places dropped for lack of space.
    pub lost: u64,
    /// The instructions searched for sections.
    pub kept: u64,
    pub blocks: Vec<CodeBlock>,
    pub tasks: Vec<DumpTask>,
    /// The windows of the worst samples, unordered.
    pub worst: Vec<DumpWindow>,
    pub ordinary: Vec<DumpWindow>,
    /// The sections of all kinds, unordered.
    pub sections: Vec<CodeSection>,
    /// The longest of them, unordered; one per place.
    pub longest: Vec<Stretch>,
}

/// The bytes are not a valid dump.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("what QEMU's plugin wrote cannot be read: {0}")]
pub struct MalformedDump(&'static str);

const MAGIC: &[u8; 8] = b"PEXACT4\0";

struct DumpReader<'a>(&'a [u8]);

impl<'a> DumpReader<'a> {
    fn take_bytes(&mut self, len: usize) -> Result<&'a [u8], MalformedDump> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(MalformedDump("it is cut off"))?;
        self.0 = rest;
        Ok(taken)
    }
    fn read_array<const N: usize>(&mut self) -> Result<[u8; N], MalformedDump> {
        self.take_bytes(N)?.try_into().map_err(|_| MalformedDump("it is cut off"))
    }
    fn read_u64(&mut self) -> Result<u64, MalformedDump> {
        Ok(u64::from_le_bytes(self.read_array()?))
    }
    fn read_u32(&mut self) -> Result<u32, MalformedDump> {
        Ok(u32::from_le_bytes(self.read_array()?))
    }
    fn read_u16(&mut self) -> Result<u16, MalformedDump> {
        Ok(u16::from_le_bytes(self.read_array()?))
    }
    /// Reads a list; the minimum size of an item limits the accepted count.
    fn read_list<T>(
        &mut self,
        count: u32,
        bytes: usize,
        one: impl Fn(&mut Self) -> Result<T, MalformedDump>,
    ) -> Result<Vec<T>, MalformedDump> {
        if self.0.len() / bytes < count as usize {
            return Err(MalformedDump("it is cut off"));
        }
        (0..count).map(|_| one(self)).collect()
    }
}

impl Dump {
    /// Reads the bytes.
    ///
    /// # Errors
    /// The bytes are truncated, or contain an invalid reference.
    pub fn parse(bytes: &[u8]) -> Result<Dump, MalformedDump> {
        let mut from = DumpReader(bytes);
        if from.take_bytes(MAGIC.len())? != MAGIC {
            return Err(MalformedDump("it begins otherwise"));
        }
        let [insns, samples, cut, blocks_lost, sections_lost, kept] = [
            from.read_u64()?,
            from.read_u64()?,
            from.read_u64()?,
            from.read_u64()?,
            from.read_u64()?,
            from.read_u64()?,
        ];
        let [blocks, tasks, worst, ordinary, sections, longest] = [
            from.read_u32()?,
            from.read_u32()?,
            from.read_u32()?,
            from.read_u32()?,
            from.read_u32()?,
            from.read_u32()?,
        ];
        let blocks = from.read_list(blocks, 16 + CODE, read_block)?;
        let tasks = from.read_list(tasks, 32, read_task)?;
        let window = |from: &mut DumpReader<'_>| read_window(from, blocks.len(), tasks.len());
        let worst = from.read_list(worst, 40, window)?;
        let ordinary = from.read_list(ordinary, 40, window)?;
        let sections = from.read_list(sections, 104, read_section)?;
        let stretch = |from: &mut DumpReader<'_>| read_stretch(from, blocks.len(), tasks.len());
        let longest = from.read_list(longest, 48, stretch)?;
        let lost = blocks_lost.saturating_add(sections_lost);
        Ok(Dump {
            insns,
            samples,
            cut,
            lost,
            kept,
            blocks,
            tasks,
            worst,
            ordinary,
            sections,
            longest,
        })
    }
}

fn read_block(from: &mut DumpReader<'_>) -> Result<CodeBlock, MalformedDump> {
    let block = CodeBlock {
        pc: from.read_u64()?,
        bytes: from.read_u16()?,
        insns: from.read_u16()?,
        clock: from.read_u16()?,
        kind: match from.read_array::<1>()?[0] {
            0 => BlockEnd::Plain,
            1 => BlockEnd::Call,
            2 => BlockEnd::Return,
            3 => BlockEnd::Syscall,
            4 => BlockEnd::Sysret,
            5 => BlockEnd::Iret,
            _ => return Err(MalformedDump("a block ends in no known way")),
        },
        entry: from.read_array::<1>()?[0] != 0,
        code: from.read_array()?,
    };
    match block.clock <= block.insns {
        true => Ok(block),
        false => Err(MalformedDump("a block reads the counter behind its end")),
    }
}

fn read_task(from: &mut DumpReader<'_>) -> Result<DumpTask, MalformedDump> {
    from.read_u64()?;
    let tid = from.read_u32()?;
    from.read_u32()?;
    let comm: [u8; 16] = from.read_array()?;
    let comm = comm.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(DumpTask { tid, comm: String::from_utf8_lossy(comm).into_owned() })
}

fn read_window(
    from: &mut DumpReader<'_>,
    blocks: usize,
    tasks: usize,
) -> Result<DumpWindow, MalformedDump> {
    let (due, woke) = (from.read_u64()? as i64, from.read_u64()? as i64);
    let (_series, at) = (from.read_u64()?, from.read_u64()?);
    let (task, entries) = (from.read_u32()? as usize, from.read_u32()?);
    let entries =
        from.read_list(entries, 4, |from| decode_entry(from.read_u32()?, blocks, tasks))?;
    Ok(DumpWindow { due, woke, at, task: (task < tasks).then_some(task), entries })
}

fn decode_entry(word: u32, blocks: usize, tasks: usize) -> Result<DumpEntry, MalformedDump> {
    let value = (word & 0x0fff_ffff) as usize;
    Ok(match word >> 28 {
        0..=7 if (word as usize) < blocks => DumpEntry::Block(word as usize),
        8 => DumpEntry::Switch((value < tasks).then_some(value)),
        9 => DumpEntry::IrqsOff,
        10 => DumpEntry::IrqsOn,
        11 => DumpEntry::Idle,
        _ => return Err(MalformedDump("a window refers to what is not there")),
    })
}

fn read_section(from: &mut DumpReader<'_>) -> Result<CodeSection, MalformedDump> {
    Ok(CodeSection {
        pc: from.read_u64()?,
        caller: from.read_u64()?,
        outer: from.read_u64()?,
        callee: from.read_u64()?,
        count: from.read_u64()?,
        total: from.read_u64()?,
        longest: from.read_u64()?,
        end_pc: from.read_u64()?,
        end_callers: [from.read_u64()?, from.read_u64()?, from.read_u64()?],
        at: from.read_u64()?,
        kind: section_kind(from.read_u32()?)?,
        preempt_count: from.read_u32()?,
    })
}

fn section_kind(word: u32) -> Result<SectionKind, MalformedDump> {
    match word {
        0 => Ok(SectionKind::Irqs),
        1 => Ok(SectionKind::Preemption),
        2 => Ok(SectionKind::Resched),
        3 => Ok(SectionKind::Migration),
        4 => Ok(SectionKind::LockWait),
        _ => Err(MalformedDump("a section is of no known kind")),
    }
}

fn read_stretch(
    from: &mut DumpReader<'_>,
    blocks: usize,
    tasks: usize,
) -> Result<Stretch, MalformedDump> {
    let (kind, entries) = (section_kind(from.read_u32()?)?, from.read_u32()?);
    let [pc, caller, begin, end, at] =
        [from.read_u64()?, from.read_u64()?, from.read_u64()?, from.read_u64()?, from.read_u64()?];
    let entries =
        from.read_list(entries, 4, |from| decode_entry(from.read_u32()?, blocks, tasks))?;
    match begin <= end && end <= at {
        true => Ok(Stretch { kind, pc, caller, begin, end, at, entries }),
        false => Err(MalformedDump("a section ends before its start")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(bytes: &mut Vec<u8>, words: &[u64]) {
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }

    /// Two blocks, a task, a window, and a section with its execution.
    fn dump() -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        words(&mut bytes, &[900, 3, 0, 1, 2, 700]);
        let counts = [2, 1, 1, 0, 1, 1_u32];
        bytes.extend(counts.iter().flat_map(|count| count.to_le_bytes()));
        for (pc, kind, entry) in [(0x1000_u64, 1_u8, 0_u8), (1 << 63, 5, 1)] {
            words(&mut bytes, &[pc]);
            bytes.extend([12, 0, 4, 0, 2, 0, kind, entry]);
            bytes.extend([7; CODE]);
        }
        words(&mut bytes, &[77, 42]);
        bytes.extend(b"stress-ng\0\0\0\0\0\0\0");
        words(&mut bytes, &[1000, 1800, 5, 800]);
        let window = [0, 4, 0, 0x8000_0000, 0x9000_0000, 1_u32];
        bytes.extend(window.iter().flat_map(|word| word.to_le_bytes()));
        words(&mut bytes, &[1, 2, 12, 9, 3, 4, 5, 6, 7, 10, 11, 8, 1 | 0x100 << 32]);
        words(&mut bytes, &[1 | 1 << 32, 1, 2, 8, 13, 14]);
        bytes.extend(1_u32.to_le_bytes());
        bytes
    }

    #[test]
    fn every_field_of_a_dump_is_read() {
        let read = Dump::parse(&dump()).unwrap();
        assert_eq!((read.insns, read.samples, read.lost), (900, 3, 3));
        assert_eq!(read.blocks[1].kind, BlockEnd::Iret);
        assert!(read.blocks[1].entry && !read.blocks[1].is_user() && read.blocks[0].is_user());
        assert_eq!(
            (read.blocks[0].kept_code(), read.blocks[1].kept_code()),
            (&[7; 12][..], &[][..])
        );
        assert_eq!(read.tasks, [DumpTask { tid: 42, comm: "stress-ng".into() }]);
        assert_eq!(
            read.worst[0].entries,
            [
                DumpEntry::Block(0),
                DumpEntry::Switch(Some(0)),
                DumpEntry::IrqsOff,
                DumpEntry::Block(1)
            ]
        );
        let section = read.sections[0];
        assert_eq!((section.count, section.longest, section.preempt_count), (3, 5, 0x100));
        assert_eq!(section.kind, SectionKind::Preemption);
        assert_eq!(
            (section.outer, section.callee, section.end_callers, section.at),
            (12, 9, [7, 10, 11], 8)
        );
        let longest = &read.longest[0];
        assert_eq!((longest.begin, longest.end, longest.at), (8, 13, 14));
        assert_eq!((read.kept, &longest.entries), (700, &vec![DumpEntry::Block(1)]));
    }

    proptest! {
        #[test]
        fn hostile_dumps_never_panic(
            len in 0..500_usize, place in 0..500_usize, byte in any::<u8>(),
        ) {
            let mut bytes = dump();
            let place = place % bytes.len();
            bytes[place] = byte;
            bytes.truncate(len.max(8));
            let _ = Dump::parse(&bytes);
        }
    }
}
