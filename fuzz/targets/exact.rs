//! Arbitrary output of QEMU's plugin: own instructions add up and parts have no gap.
use punctual_core::Nanos;
use punctual_exact::Exact;
use punctual_exact::dump::Dump;
use punctual_exact::programs::{ExecutableBytes, Program};
use punctual_exact::symbols::{FunctionTable, KernelSymbols};

const KALLSYMS: &str = "ffffffff81000000 T asm_exc_page_fault\nffffffff81000100 T resched_curr\n\
    ffffffff81000200 T __schedule\nffffffff81000300 T __switch_to_asm\n\
    ffffffff81000400 T __x86_indirect_thunk_rax\nffffffff81000500 T clear_page\n";

pub fn fuzz(bytes: &[u8]) {
    let Ok(dump) = Dump::parse(bytes) else { return };
    let code = vec![ExecutableBytes { offset: 0, bytes: vec![0; 4096] }];
    let functions = vec![(0, 64, "main".to_owned()), (64, 0, "loop".to_owned())];
    let programs = [Program { name: "load".to_owned(), code, functions }];
    let exact = Exact::from_dump(
        &dump,
        &FunctionTable::from_dump(&dump, KernelSymbols::parse(KALLSYMS), &programs),
        Nanos(8),
    );
    for sample in exact.worst.iter().chain(&exact.ordinary) {
        let own: u64 = sample.functions.iter().map(|function| function.own).sum();
        assert_eq!(own, sample.path.insns);
        let end = sample.parts.iter().fold(0, |end, part| {
            assert_eq!(part.begin, end);
            part.end
        });
        assert_eq!(end, sample.path.insns);
    }
}
