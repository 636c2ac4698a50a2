//! The parts of a sample's way, in words.

/// What a part is called (`kind` of [`punctual_bundle::exact::ExactPart`]).
pub fn title(kind: &str) -> &'static str {
    match kind {
        "timer" => "timer not expired",
        "irqs-disabled" => "interrupts disabled",
        "interrupt" => "interrupt handler",
        "not-preempted" => "not preempted",
        "schedule" => "scheduler",
        "return" => "return to user mode",
        _ => "other",
    }
}
