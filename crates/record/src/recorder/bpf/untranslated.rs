//! Translates records of tracepoints without BTF between buffer and wire.

use crate::bpf::Buffers;
use crate::translate::{RawRecord, Translator};
use crate::wire::layout::{self as wire, Header, Raw};
use punctual_core::MonotonicNs;
use punctual_core::event::TracepointFormat;

pub(super) struct Untranslated {
    translator: Translator,
    bytes: Vec<u8>,
    names: Vec<u8>,
}

impl Untranslated {
    pub(super) fn new(translator: Translator) -> Untranslated {
        Untranslated { translator, bytes: Vec::new(), names: Vec::new() }
    }

    pub(super) fn formats(&self) -> &[TracepointFormat] {
        self.translator.formats()
    }

    pub(super) fn take_records(&mut self, buffers: &Buffers, slot: u32, to: &mut Vec<u8>) -> bool {
        self.bytes.clear();
        let whole = buffers.take_records(slot, &mut self.bytes);
        self.translate_records(to);
        whole
    }

    pub(super) fn copy_newest(
        &mut self,
        buffers: &Buffers,
        slot: u32,
        from: MonotonicNs,
        to: &mut Vec<u8>,
    ) -> Option<()> {
        self.bytes.clear();
        buffers.copy_newest(slot, from, &mut self.bytes)?;
        self.translate_records(to);
        Some(())
    }

    fn translate_records(&mut self, to: &mut Vec<u8>) {
        let mut rest = self.bytes.as_slice();
        while let Some((header, payload)) = rest.split_first_chunk() {
            let head = Header::read(header);
            let Some((payload, after)) = payload.split_at_checked(usize::from(head.words) * 8)
            else {
                return;
            };
            let record = payload
                .try_into()
                .ok()
                .filter(|_| u64::from(head.kind) == wire::RAW)
                .map(Raw::read);
            match record {
                // The payload's first 8 bytes replace the record's common fields, so that offsets
                // agree.
                Some(raw) => {
                    let record = &payload[..payload.len().min(8 + raw.bytes as usize)];
                    let at = MonotonicNs(head.ns as i64);
                    let recorded = RawRecord { at, cpu: head.cpu, tid: head.tid, record };
                    self.translator.translate_record(
                        raw.tracepoint as usize,
                        recorded,
                        to,
                        &mut self.names,
                    );
                }
                None => {
                    to.extend_from_slice(header);
                    to.extend_from_slice(payload);
                }
            }
            rest = after;
        }
    }

    /// Translates names, which come untranslated too.
    pub(super) fn take_names(&mut self, buffers: &Buffers, slot: u32, to: &mut Vec<u8>) -> bool {
        let whole = self.take_records(buffers, slot, to);
        to.append(&mut self.names);
        whole
    }
}
