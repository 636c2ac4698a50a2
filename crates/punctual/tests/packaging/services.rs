//! The services' own schemas accept the files for them, if a validator is installed.

use crate::packaged::{lacks, python_with, repository, run};
use std::path::Path;
use std::process::Command;

fn check(test: &str, program: &str, arguments: &[&str], file: &Path) {
    if !lacks(test, &[program]) {
        run(Command::new(program).args(arguments).arg(file));
    }
}

#[test]
fn ci_configurations_are_accepted_by_their_validators() {
    let file = |name: &str| repository().join("packaging").join(name);
    let action = ["--builtin-schema", "vendor.github-actions"];
    check("the action's check", "check-jsonschema", &action, &file("github/action.yml"));
    let gitlab = ["--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci"];
    check("the template's check", "check-jsonschema", &gitlab, &file("gitlab.yml"));
    let job = file("kubernetes-job.yaml");
    check("the Job's check", "kubernetes-validate", &["--strict"], &job);
    let job = file("kubernetes-lab.yaml");
    check("the indexed Job's check", "kubernetes-validate", &["--strict"], &job);
    let modules = ["yaml", "lava_common"];
    if let Some(python) = python_with("the check of the LAVA definition", &modules) {
        let script = "
import sys, yaml
from lava_common.schemas.test import testdef
testdef.validate(yaml.safe_load(open(sys.argv[1])))
";
        run(Command::new(python).args(["-c", script]).arg(file("lava.yaml")));
    }
}
