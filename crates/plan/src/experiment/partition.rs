//! `[partition]`.

use crate::form::{flag_form, text_form};
use crate::section::section;
use crate::values;
use punctual_core::CpuSet;

section! {
    /// CPUs to isolate while the experiment runs.
    PartitionSpec {
        /// The CPUs. At least one online CPU must be left for everything else.
        key cpus: CpuSet,
            text_form("CPUS", values::parse_cpus),
            [needed "`[partition]` needs the CPUs to set apart", "write `cpus = \"3\"`"];
        /// The partition's name.
        key name: String, text_form("NAME", values::check_name), [= "rt".to_owned()] => plan;
        /// The name of the cgroup of everything else.
        key housekeeping: String,
            text_form("NAME", values::check_name),
            ["*NAME*`-housekeeping`"] => plan;
        /// Whether a partition of this name that stands already (`punctual isolate create`, partrt)
        /// is entered, and left as it is; it must have these CPUs.
        key found: bool, flag_form(), [= false] => plan;
        /// Tweaks to leave out; their names are those of the `--no-`*NAME* options of `punctual
        /// isolate create`.
        list disable: String, text_form("NAME", values::check_name), ["none"] => plan;
    }
    resolved {
        /// CPUs to isolate.
        PartitionPlan, PartitionResolved {
            /// Its CPUs: online, and not all of them.
            cpus: CpuSet;
        }
    }
}
