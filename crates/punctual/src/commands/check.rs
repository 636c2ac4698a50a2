//! `punctual check`: checks whether this system is ready for real time.

mod rights;

use super::bundle::show_options;
use crate::exit::{self, Ending, Exit, Failure};
use crate::output;
use punctual_core::CpuSet;
use punctual_core::format::escape_unsafe;
use punctual_core::words::{format_suggestion, nearest_word};
use punctual_host::check::{self, Context, RuleResult, RuleVerdict};
use punctual_host::files::{Files, Root};
use punctual_host::isolate::{check_rights, parse_cpus_on};
use punctual_host::journal::{ChangeResult, Journal, JournalDirectory, RequestedWrite, StepResult};
use punctual_report::terminal::{self, CheckRule};
use rights::RightsAsked;

/// Check whether this system is configured for real time, rule by rule
///
/// Each rule shows its evidence (file and value), why it matters, and how to fix it. --fix applies
/// the fixes that are possible at run time and records them in a journal; `punctual isolate undo
/// --fixes` reverts them.
///
/// With --pid, --comm or a command it answers why threads are not real-time here: what refuses the
/// policy, where the right was granted, lost, or should have been granted, and one change for that.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  punctual check\n  punctual check --cpus 2-3 --json | jq \
                        '.rules[] | select(.verdict == \"bad\")'\n  punctual check --fix \
                        --dry-run\n  punctual check --explain rt-throttling\n  punctual check \
                        --fail-on bad\n  punctual check --pid 4711\n  punctual check -- \
                        ./control-loop\n\nExit codes of --pid, --comm and a command: 0 a thread \
                        is real-time, or nothing refuses it; 3 it is refused; 4 that is not \
                        known.")]
pub struct CheckArgs {
    /// The real-time CPUs: a list, in which `N` is the last CPU, or a mask starting with `0x`
    /// [default: isolated CPUs; if there are none, all]
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// Apply the fixes that are possible at run time
    #[arg(long)]
    fix: bool,
    /// With --fix: print the writes without applying them
    #[arg(long, requires = "fix")]
    dry_run: bool,
    /// Print {"rules": [{"id", "verdict", "evidence", "why", "fix", …}]}, or {"processes": […]}
    /// (docs/reference/json.md)
    #[arg(long, conflicts_with = "fix")]
    json: bool,
    /// Explain one rule: what it requires, why, and its source
    #[arg(long, value_name = "RULE", exclusive = true)]
    explain: Option<String>,
    /// Exit with code 3 if a rule has this verdict or a worse one
    #[arg(long, value_name = "VERDICT", value_parser = ["advice", "warning", "bad"])]
    fail_on: Option<String>,
    /// Why the threads of this process are not real-time
    #[arg(long, value_name = "PID", conflicts_with_all = ["comm", "command", "cpus", "fix",
          "fail_on"])]
    pid: Option<u32>,
    /// The same for all processes of this name
    #[arg(long, value_name = "NAME", conflicts_with_all = ["command", "cpus", "fix", "fail_on"])]
    comm: Option<String>,
    /// The same for this command: it is started, watched for up to 2 s, and ended; its output goes
    /// to standard error
    #[arg(last = true, value_name = "CMD", conflicts_with_all = ["cpus", "fix", "fail_on"])]
    command: Vec<String>,
}

/// Runs the rules, then applies fixes or prints the results.
pub fn run(args: CheckArgs) -> Ending {
    if let Some(rule) = &args.explain {
        return explain_rule(rule);
    }
    let rights_request = RightsAsked { pid: args.pid, comm: args.comm, command: args.command };
    if rights_request.is_any() {
        return rights::report_rights(&rights_request, args.json);
    }
    let files = Root::from_system();
    let context = Context::new(&files, parse_present_cpus(&files, args.cpus.as_deref())?);
    let results = check::evaluate_all(&context);
    if args.fix {
        return apply_fixes(&files, &results, args.dry_run);
    }
    let document = serde_json::json!({ "rules": results });
    let printed = if args.json {
        output::print_json(&document)
    } else {
        let rules = CheckRule::read(&document).unwrap_or_default();
        output::print_stdout(&terminal::show_checks(&rules, &show_options()))
    };
    let fails = exceeds_limit(&results, args.fail_on.as_deref());
    exit::ending_of_output(printed, if fails { Exit::NotMet } else { Exit::Done })
}

fn explain_rule(rule: &str) -> Ending {
    let text = check::explain_rule(rule).ok_or_else(|| {
        let near = format_suggestion(nearest_word(rule, check::all_rules().map(|rule| rule.id)));
        Failure::refused(format!("there is no rule `{}`{near}", escape_unsafe(rule)))
    })?;
    output::print_stdout(&text)?;
    Ok(Exit::Done)
}

/// The requested CPUs. A rule handles an offline one; a missing one is an error.
fn parse_present_cpus(files: &Root, text: Option<&str>) -> Result<Option<CpuSet>, Failure> {
    let Some(text) = text else { return Ok(None) };
    let cpus = parse_cpus_on(files, text).map_err(Failure::refused)?;
    if cpus.is_empty() {
        return Err(Failure::refused("--cpus is empty"));
    }
    let present = files
        .read_trimmed("/sys/devices/system/cpu/present")
        .ok()
        .and_then(|text| text.parse::<CpuSet>().ok());
    match present {
        Some(present) if !cpus.difference(&present).is_empty() => Err(Failure::refused(format!(
            "this machine has no CPU {}; its CPUs are {present}",
            cpus.difference(&present)
        ))),
        _ => Ok(Some(cpus)),
    }
}

fn exceeds_limit(results: &[RuleResult], limit: Option<&str>) -> bool {
    let worst_allowed = match limit {
        Some("advice") => RuleVerdict::Advice,
        Some("warning") => RuleVerdict::Warning,
        Some(_) => RuleVerdict::Bad,
        None => return false,
    };
    let badness = |verdict| match verdict {
        RuleVerdict::Ok | RuleVerdict::Unknown => 0,
        RuleVerdict::Advice => 1,
        RuleVerdict::Warning => 2,
        RuleVerdict::Bad => 3,
    };
    results.iter().any(|result| badness(result.verdict) >= badness(worst_allowed))
}

/// Applies the writes of every rule that is not satisfied.
fn apply_fixes(files: &Root, results: &[RuleResult], dry_run: bool) -> Ending {
    let unsatisfied = results
        .iter()
        .filter(|result| !matches!(result.verdict, RuleVerdict::Ok | RuleVerdict::Unknown));
    let requested: Vec<RequestedWrite> = unsatisfied
        .flat_map(|result| result.writes.iter().map(|write| (result.id.clone(), write)))
        .map(|(step, write)| RequestedWrite {
            step,
            path: write.path.clone(),
            value: write.value.clone(),
        })
        .collect();
    if requested.is_empty() {
        output::print_stdout(
            "nothing to fix at run time; `punctual check` shows what needs a reboot or other \
             hardware\n",
        )?;
        return Ok(Exit::Done);
    }
    if dry_run {
        let lines = requested.iter().map(|one| {
            format!(
                "{:<28} write `{}` to {}\n",
                one.step,
                escape_unsafe(&one.value),
                escape_unsafe(&one.path)
            )
        });
        output::print_stdout(&lines.collect::<String>())?;
        return Ok(Exit::Done);
    }
    check_rights(files).map_err(Failure::refused)?;
    let applied = Journal::apply_writes(&JournalDirectory::from_system(), files, &requested)
        .map_err(Failure::failed)?;
    output::print_stdout(&format_applied(&applied))?;
    let all_applied = applied.iter().all(|one| one.effect.has_requested_value());
    Ok(if all_applied { Exit::Done } else { Exit::Failed })
}

fn format_applied(applied: &[StepResult]) -> String {
    let line = |one: &StepResult| {
        let what = match &one.effect {
            ChangeResult::Changed { old, now } => {
                format!("`{}` → `{}`", escape_unsafe(old), escape_unsafe(now))
            }
            ChangeResult::Already => "already set".to_owned(),
            ChangeResult::Ignored { value } => {
                format!("the kernel kept `{}`", escape_unsafe(value))
            }
            ChangeResult::Refused { why, .. } | ChangeResult::HalfMade { why } => {
                format!("refused: {}", escape_unsafe(why))
            }
        };
        format!("{:<28} {}: {what}\n", one.step, escape_unsafe(&one.path))
    };
    let changed =
        applied.iter().filter(|one| matches!(one.effect, ChangeResult::Changed { .. })).count();
    let end = match changed {
        0 => "nothing was changed\n".to_owned(),
        n => format!("{n} settings changed; to revert them: punctual isolate undo --fixes\n"),
    };
    applied.iter().map(line).collect::<String>() + &end
}
