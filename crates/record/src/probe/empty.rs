//! Empty functions, each with another first instruction: the time of a probed one is the cost of
//! the probe.

use crate::symbols::Site;

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".pushsection .text.punctual_probed,\"ax\",@progbits",
    ".p2align 4",
    ".type punctual_probed_nop5,@function",
    "punctual_probed_nop5: .byte 0x0f,0x1f,0x44,0x00,0x00",
    "ret",
    ".size punctual_probed_nop5, .-punctual_probed_nop5",
    ".p2align 4",
    ".type punctual_probed_push,@function",
    "punctual_probed_push: push rbp",
    "pop rbp",
    "ret",
    ".size punctual_probed_push, .-punctual_probed_push",
    ".p2align 4",
    ".type punctual_probed_branch,@function",
    "punctual_probed_branch: .byte 0xeb,0x00",
    "ret",
    ".size punctual_probed_branch, .-punctual_probed_branch",
    ".p2align 4",
    ".type punctual_probed_step,@function",
    "punctual_probed_step: xor eax, eax",
    "ret",
    ".size punctual_probed_step, .-punctual_probed_step",
    ".popsection",
);

#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    ".pushsection .text.punctual_probed,\"ax\",@progbits",
    ".p2align 4",
    ".type punctual_probed_nop,@function",
    "punctual_probed_nop: mov x0, #0",
    "ret",
    ".size punctual_probed_nop, .-punctual_probed_nop",
    ".popsection",
);

#[derive(Clone, Copy)]
pub(super) struct Empty {
    pub(super) site: Site,
    pub(super) call: unsafe extern "C" fn(),
}

#[cfg(target_arch = "x86_64")]
pub(super) fn empty_functions() -> Vec<Empty> {
    unsafe extern "C" {
        fn punctual_probed_nop5();
        fn punctual_probed_push();
        fn punctual_probed_branch();
        fn punctual_probed_step();
    }
    vec![
        Empty { site: Site::Nop5, call: punctual_probed_nop5 },
        Empty { site: Site::Push, call: punctual_probed_push },
        Empty { site: Site::Branch, call: punctual_probed_branch },
        Empty { site: Site::SingleStep, call: punctual_probed_step },
    ]
}

#[cfg(target_arch = "aarch64")]
pub(super) fn empty_functions() -> Vec<Empty> {
    unsafe extern "C" {
        fn punctual_probed_nop();
    }
    vec![Empty { site: Site::Unknown, call: punctual_probed_nop }]
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn empty_functions() -> Vec<Empty> {
    Vec::new()
}
