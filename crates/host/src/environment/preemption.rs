//! The preemption model in force, which may differ from the configured or requested one.

use super::read::read_text;
use super::{KernelCommandLine, KernelConfig};
use crate::files::Files;
use punctual_core::Fact;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How readily the kernel yields the CPU (kernel/Kconfig.preempt), from the least to the most.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PreemptionModel {
    /// Only on return to user space.
    None,
    Voluntary,
    /// Anywhere for real-time tasks, at the tick for others (since Linux 6.13).
    Lazy,
    Full,
    /// Nearly anywhere: interrupts are threads and spinlocks sleep (PREEMPT_RT).
    RealTime,
}

impl fmt::Display for PreemptionModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            PreemptionModel::None => "none",
            PreemptionModel::Voluntary => "voluntary",
            PreemptionModel::Lazy => "lazy",
            PreemptionModel::Full => "full",
            PreemptionModel::RealTime => "real-time",
        })
    }
}

impl PreemptionModel {
    fn from_word(word: &str) -> Option<PreemptionModel> {
        match word {
            "none" => Some(PreemptionModel::None),
            "voluntary" => Some(PreemptionModel::Voluntary),
            "lazy" => Some(PreemptionModel::Lazy),
            "full" => Some(PreemptionModel::Full),
            _ => None,
        }
    }
}

/// The model, and its source.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Preemption {
    pub model: PreemptionModel,
    /// Whether the kernel can switch between the models at boot and at run time
    /// (CONFIG_PREEMPT_DYNAMIC).
    pub dynamic: bool,
    /// The file and the words that show it.
    pub evidence: String,
    /// Whether the kernel itself states the model. Without debugfs a dynamic one is inferred from
    /// the boot parameter, and a kernel silently ignores a model that it does not have.
    pub stated: bool,
}

impl Preemption {
    pub(super) fn read(
        files: &dyn Files,
        version: &Fact<String>,
        command_line: &Fact<KernelCommandLine>,
        config: &Fact<KernelConfig>,
    ) -> Fact<Preemption> {
        let built = version.known_value().map(String::as_str).and_then(built_as);
        let config = config.known_value();
        let dynamic = built == Some(Built::Dynamic)
            || config.is_some_and(|c| c.has_option("PREEMPT_DYNAMIC"));
        let stated = |model, evidence: String| {
            Fact::Known(Preemption { model, dynamic, evidence, stated: true })
        };

        let switch = read_text(files, "/sys/kernel/debug/sched/preempt");
        if read_text(files, "/sys/kernel/realtime").known_value().is_some_and(|v| v == "1") {
            return stated(PreemptionModel::RealTime, "/sys/kernel/realtime is 1".into());
        }
        if built == Some(Built::RealTime) {
            return stated(
                PreemptionModel::RealTime,
                "/proc/sys/kernel/version says PREEMPT_RT".into(),
            );
        }
        if let Some(model) = switch
            .known_value()
            .and_then(|text| in_parentheses(text))
            .and_then(PreemptionModel::from_word)
        {
            return stated(model, format!("/sys/kernel/debug/sched/preempt is {model}"));
        }
        if !dynamic && let Some((model, evidence)) = fixed_model(built, config) {
            return stated(model, evidence);
        }
        let requested_model =
            command_line.known_value().and_then(|line| line.last_value("preempt"));
        if let Some(model) =
            requested_model.as_deref().and_then(PreemptionModel::from_word).filter(|_| dynamic)
        {
            let evidence = format!("/proc/cmdline asks for preempt={model}");
            return Fact::Known(Preemption { model, dynamic, evidence, stated: false });
        }
        match config.and_then(configured_model) {
            Some((model, evidence)) if dynamic => {
                let evidence = format!("{evidence}, and /proc/cmdline does not ask for another");
                Fact::Known(Preemption { model, dynamic, evidence, stated: false })
            }
            _ => Fact::Unavailable(match switch {
                Fact::Unavailable(why) => {
                    format!(
                        "{why}; neither the kernel's version nor a configuration shows the model"
                    )
                }
                _ => {
                    "/sys/kernel/debug/sched/preempt does not show a known preemption model".into()
                }
            }),
        }
    }
}

/// The build type of the kernel, from its version (init/Makefile, UTS_VERSION).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Built {
    RealTime,
    Dynamic,
    Full,
    Lazy,
}

fn built_as(version: &str) -> Option<Built> {
    // Before Linux 5.3 the real-time patch wrote `PREEMPT RT`.
    if version.contains("PREEMPT RT") {
        return Some(Built::RealTime);
    }
    version.split_whitespace().find_map(|word| match word {
        "PREEMPT_RT" => Some(Built::RealTime),
        "PREEMPT_DYNAMIC" => Some(Built::Dynamic),
        "PREEMPT_LAZY" => Some(Built::Lazy),
        "PREEMPT" => Some(Built::Full),
        _ => None,
    })
}

/// The model of a kernel that cannot switch.
fn fixed_model(
    built: Option<Built>,
    config: Option<&KernelConfig>,
) -> Option<(PreemptionModel, String)> {
    match built {
        Some(Built::Full) => {
            Some((PreemptionModel::Full, "/proc/sys/kernel/version has PREEMPT".into()))
        }
        Some(Built::Lazy) => {
            Some((PreemptionModel::Lazy, "/proc/sys/kernel/version has PREEMPT_LAZY".into()))
        }
        _ => config.and_then(configured_model),
    }
}

/// The configured model, with which a dynamic kernel starts.
fn configured_model(config: &KernelConfig) -> Option<(PreemptionModel, String)> {
    [
        ("PREEMPT_RT", PreemptionModel::RealTime),
        ("PREEMPT_NONE", PreemptionModel::None),
        ("PREEMPT_VOLUNTARY", PreemptionModel::Voluntary),
        ("PREEMPT_LAZY", PreemptionModel::Lazy),
        ("PREEMPT", PreemptionModel::Full),
    ]
    .into_iter()
    .find(|(option, _)| config.has_option(option))
    .map(|(option, model)| (model, format!("{} has CONFIG_{option}=y", config.source.0)))
}

/// `none voluntary (full)` (kernel/sched/debug.c, sched_dynamic_show).
fn in_parentheses(text: &str) -> Option<&str> {
    text.split_once('(')?.1.split_once(')').map(|(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::FakeFiles;
    use crate::environment::capture_environment;

    /// The model, whether the kernel states it, and whether it can switch.
    fn model(files: FakeFiles) -> Option<(PreemptionModel, bool, bool)> {
        let base = FakeFiles::new()
            .with_file("/proc/sys/kernel/osrelease", "6.1")
            .with_file("/proc/cmdline", "quiet");
        let environment = capture_environment(&base.overlay_with(files));
        environment.kernel.preemption.known_value().map(|p| (p.model, p.stated, p.dynamic))
    }
    const VERSION: &str = "/proc/sys/kernel/version";
    const CONFIG: &str = "/boot/config-6.1";
    const SWITCH: &str = "/sys/kernel/debug/sched/preempt";

    #[test]
    fn the_preemption_model_in_force_overrides_the_requested_one() {
        use PreemptionModel::*;
        let files = FakeFiles::new;
        assert_eq!(
            model(files().with_file(VERSION, "#1 SMP PREEMPT_RT Debian")),
            Some((RealTime, true, false))
        );
        assert_eq!(
            model(files().with_file(VERSION, "#1 SMP PREEMPT RT")),
            Some((RealTime, true, false))
        );
        assert_eq!(
            model(files().with_file("/sys/kernel/realtime", "1")),
            Some((RealTime, true, false))
        );
        let dynamic = || {
            files()
                .with_file(VERSION, "#1 SMP PREEMPT_DYNAMIC")
                .with_file(CONFIG, "CONFIG_PREEMPT_VOLUNTARY=y")
        };
        assert_eq!(
            model(dynamic().with_file(SWITCH, "none voluntary (full)")),
            Some((Full, true, true))
        );
        assert_eq!(model(dynamic()), Some((Voluntary, false, true)));
        assert_eq!(
            model(dynamic().with_file("/proc/cmdline", "preempt=full")),
            Some((Full, false, true))
        );
        assert_eq!(
            model(dynamic().with_file("/proc/cmdline", "preempt=odd")),
            Some((Voluntary, false, true))
        );
    }

    #[test]
    fn a_kernel_that_cannot_switch_ignores_the_command_line() {
        use PreemptionModel::*;
        let fixed = FakeFiles::new()
            .with_file(VERSION, "#1 SMP Debian")
            .with_file(CONFIG, "CONFIG_PREEMPT_VOLUNTARY=y");
        assert_eq!(
            model(fixed.with_file("/proc/cmdline", "preempt=full")),
            Some((Voluntary, true, false))
        );
        assert_eq!(
            model(FakeFiles::new().with_file(VERSION, "#1 SMP PREEMPT")),
            Some((Full, true, false))
        );
    }

    #[test]
    fn without_evidence_the_preemption_model_is_unknown() {
        assert_eq!(model(FakeFiles::new()), None);
        assert_eq!(model(FakeFiles::new().with_file(VERSION, "#1 SMP PREEMPT_DYNAMIC")), None);
    }
}
