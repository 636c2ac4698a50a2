//! trace.dat of trace-cmd, versions 6 and 7.

mod head;
mod lane;

use crate::bytes::ByteOrder;
use crate::decoder::{Decoder, Head};
use crate::input::Input;
use crate::reader::{FileStatements, Format, FormatReader};
use crate::symbols::Symbols;
use crate::{ReadAt, TraceError, TraceFormat};
pub(crate) use head::MAGIC;
use head::{DatHead, HeadPart};
use lane::DatLane;
use punctual_core::event::{Event, Tid};
use punctual_core::{Finding, Severity};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Whether a file has the first bytes of this format.
pub(crate) const FORMAT: Format = Format {
    word: "trace.dat",
    recognizes: |head| head.starts_with(MAGIC),
    open: |input| match input {
        Input::File(file) => Ok(Box::new(DatReader::open(file)?)),
        Input::Pipe(_) => Err(TraceError::NotStreamable(TraceFormat::TraceDat)),
    },
};

pub(crate) struct DatReader {
    file: Box<dyn ReadAt>,
    head: DatHead,
    lanes: Vec<DatLane>,
    /// The lanes by the time of their next records.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    decoder: Decoder,
    findings: Vec<Finding>,
    has_symbols: bool,
    ended: bool,
}

/// The number of records between two checks of the output.
const RECORDS_PER_CHECK: usize = 1024;

impl DatReader {
    pub(crate) fn open(file: Box<dyn ReadAt>) -> Result<DatReader, TraceError> {
        let head = DatHead::read(&*file)?;
        let mut decoder = Decoder::default();
        if let Some(cpu) = u16::try_from(head.cpus).ok().and_then(|cpus| cpus.checked_sub(1)) {
            decoder.add_cpu(cpu);
        }
        if let Some(machine) = head.uname.as_deref().and_then(machine_of_uname) {
            decoder.calls.set_machine(machine);
        }
        for (tid, name) in lines_of_tasks(&head.comms) {
            decoder.set_comm(tid, name);
        }
        for (tid, process) in lines_of_tasks(&head.processes) {
            if let Ok(process) = String::from_utf8_lossy(process).trim().parse() {
                decoder.set_process(tid, process);
            }
        }
        let ticks = head.clock.as_deref().is_some_and(|clock| {
            matches!(clock, "x86-tsc" | "counter" | "uptime" | "ppc-tb") || clock.contains("tsc")
        });
        if let (true, None, Some(clock)) = (ticks, head.ticks, &head.clock) {
            return Err(TraceError::Unsupported(format!(
                "this trace.dat has the clock `{}`, and does not say how long its ticks are: \
                 record with `-C mono`",
                clock.escape_debug()
            )));
        }
        let size = file.size()?;
        let lanes: Vec<DatLane> =
            head.data.iter().map(|data| DatLane::new(*data, head.order, size)).collect();
        let mut reader = DatReader {
            file,
            findings: list_findings(&head),
            head,
            lanes,
            next: BinaryHeap::new(),
            decoder,
            has_symbols: false,
            ended: false,
        };
        for lane in 0..reader.lanes.len() {
            reader.advance_lane(lane)?;
        }
        Ok(reader)
    }

    fn advance_lane(&mut self, lane: usize) -> Result<(), TraceError> {
        if self.lanes[lane].advance_record(&*self.file, self.head.formats.shape)? {
            self.next.push(Reverse((self.lanes[lane].at, lane)));
        }
        Ok(())
    }

    fn to_nanoseconds(&self, ticks: u64) -> i64 {
        let nanoseconds = match self.head.ticks {
            Some((by, shift)) => ((u128::from(ticks) * u128::from(by)) >> shift) as u64,
            None => ticks,
        };
        (nanoseconds as i64).saturating_add(self.head.offset)
    }

    fn decode_next(&mut self, number: usize, out: &mut VecDeque<Event>) -> Result<(), TraceError> {
        let lane = &mut self.lanes[number];
        let (at, cpu, lost) = (lane.at, lane.cpu(), lane.lost.take());
        let at = self.to_nanoseconds(at);
        let lane = &self.lanes[number];
        if let Some(count) = lost {
            self.decoder.on_loss(cpu, at, count, out);
        }
        let (record, order) = (lane.current_record(), self.head.order);
        let head = Head { at, cpu, ..Head::default() };
        let id = order.unsigned_at(record, 0, 2).map(|id| id as u16);
        match id.and_then(|id| self.head.formats.layouts.get_mut(&id)) {
            Some(layout) => {
                if layout.names_functions() && !self.has_symbols {
                    self.has_symbols = true;
                    self.decoder.kernel = read_symbols(self.head.kallsyms.as_ref(), &*self.file)?;
                }
                layout.decode_record(record, order, head, &mut self.decoder, out);
            }
            None => self.decoder.unreadable += 1,
        }
        Ok(())
    }

    fn report_losses(&mut self) -> Result<(), TraceError> {
        for lane in &mut self.lanes {
            self.decoder.unreadable += std::mem::take(&mut lane.damaged);
            if lane.cut_off {
                let reason = format!("the file ends within the events of CPU {}", lane.cpu());
                self.decoder.cut_off(reason);
            }
            if let Some(count) = lane.lost.take() {
                self.decoder.lost_outside(lane.cpu(), count);
            }
        }
        for (cpu, lost) in self.head.statistics.iter().filter_map(|text| parse_statistics(text)) {
            self.decoder.lost_at_least(cpu, lost);
        }
        if !self.has_symbols && self.decoder.has_addresses() {
            self.decoder.kernel = read_symbols(self.head.kallsyms.as_ref(), &*self.file)?;
        }
        self.decoder.finish();
        Ok(())
    }
}

impl FormatReader for DatReader {
    fn fill_events(&mut self, out: &mut VecDeque<Event>) -> Result<bool, TraceError> {
        for _ in 0..RECORDS_PER_CHECK {
            let Some(Reverse((_, lane))) = self.next.pop() else {
                if !std::mem::replace(&mut self.ended, true) {
                    self.report_losses()?;
                }
                return Ok(false);
            };
            self.decode_next(lane, out)?;
            self.advance_lane(lane)?;
        }
        Ok(true)
    }

    fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    fn decoder_mut(&mut self) -> &mut Decoder {
        &mut self.decoder
    }

    fn file_statements(&self) -> FileStatements {
        let uname = self.head.uname.as_deref();
        let version = self.head.version;
        let writer = self.head.writer.as_deref().map_or("trace-cmd".to_owned(), |writer| {
            format!("trace-cmd {}", writer.trim_start_matches("trace-cmd").trim())
        });
        FileStatements {
            producer: Some(format!("{writer} (trace.dat {version})")),
            // `Linux host 6.12.0-rt #1 SMP … x86_64`
            kernel: uname.and_then(|uname| uname.split(' ').nth(2)).map(str::to_owned),
            machine: uname.and_then(machine_of_uname).map(str::to_owned),
            clock: self.head.clock.clone(),
            resolution: None,
            states_enabled: false,
            findings: self.findings.clone(),
        }
    }

    fn clock_distance(&self) -> Option<i64> {
        (self.head.clock.as_deref() == Some("mono")).then_some(self.head.offset)
    }
}

fn read_symbols(kallsyms: Option<&HeadPart>, file: &dyn ReadAt) -> Result<Symbols, TraceError> {
    let text = kallsyms.map(|part| part.read(file)).transpose()?;
    Ok(Symbols::read(&text.unwrap_or_default()))
}

fn machine_of_uname(uname: &str) -> Option<&str> {
    uname.rsplit(' ').find(|word| !word.is_empty() && *word != "GNU/Linux")
}

/// `1234 name` of saved_cmdlines, and `1234 1230` of saved_tgids.
pub(crate) fn lines_of_tasks(text: &[u8]) -> impl Iterator<Item = (Tid, &[u8])> {
    text.split(|byte| *byte == b'\n').filter_map(|line| {
        let space = line.iter().position(|byte| *byte == b' ')?;
        let tid = std::str::from_utf8(&line[..space]).ok()?.parse().ok()?;
        Some((Tid(tid), &line[space + 1..]))
    })
}

/// `CPU: 0`, `overrun: 5` and `dropped events: 0` of per_cpu/cpu0/stats.
fn parse_statistics(text: &str) -> Option<(u16, u64)> {
    let number = |key: &str| -> Option<u64> {
        text.lines().find_map(|line| line.trim().strip_prefix(key)?.trim().parse().ok())
    };
    let cpu = u16::try_from(number("CPU:")?).ok()?;
    let lost =
        number("overrun:").unwrap_or(0).saturating_add(number("dropped events:").unwrap_or(0));
    Some((cpu, lost))
}

fn list_findings(head: &DatHead) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !head.instances.is_empty() {
        let message = format!(
            "The trace has {} buffers besides the first; their events are read as those of one.",
            head.instances.len()
        );
        findings.push(Finding::new("trace-buffers", Severity::Note, "trace", message));
    }
    if head.of_guest {
        let message = "The trace is of a guest and holds corrections to the host's clock; its \
                       events keep the guest's own.";
        findings.push(Finding::new("trace-guest", Severity::Note, "trace", message));
    }
    if head.order == ByteOrder::Big {
        let message = "The trace is of a big-endian machine.";
        findings.push(Finding::new("trace-byte-order", Severity::Note, "trace", message));
    }
    findings
}
