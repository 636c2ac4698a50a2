//! Boots a guest and runs a command in it: `cargo run -p punctual-lab --example guest -- --kernel
//! debian:6.1 -- uname -a`.
//!
//! Exits with the command's status, or with 1 when the guest did not finish.

use clap::Parser;
use punctual_lab::{
    Accel, Arch, BootKernel, Guest, GuestBoard, GuestControl, GuestFile, GuestOutcome, GuestPhase,
    GuestProgress, GuestResult, Job, LabError,
};
use punctual_testing as testing;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Boots a guest in QEMU and runs a command in it.
#[derive(Parser)]
struct Options {
    /// A kernel's name (debian:6.1, debian:6.1-rt, …) or the path of its image.
    #[arg(long, default_value = "debian:6.1")]
    kernel: String,
    /// The modules of a kernel given by path (…/lib/modules/RELEASE).
    #[arg(long)]
    kernel_modules: Option<PathBuf>,
    /// Boot an arm64 guest.
    #[arg(long)]
    arm64: bool,
    /// Boot a Raspberry Pi 3 (arm64, 1024 MiB).
    #[arg(long)]
    raspi3b: bool,
    /// Wish that the job ends, this many seconds after it began (as by Ctrl-C).
    #[arg(long, value_name = "SECONDS")]
    end_after: Option<u64>,
    /// More words for the kernel's command line.
    #[arg(long, default_value = "")]
    cmdline: String,
    #[arg(long, default_value_t = 2)]
    cpus: u32,
    /// Memory in MiB.
    #[arg(long, default_value_t = 1024)]
    memory: u32,
    /// Count time in instructions, on one CPU.
    #[arg(long)]
    virtual_time: bool,
    /// Run with this machine's whole file system (read-only).
    #[arg(long)]
    share_host: bool,
    /// A file to put into the guest, as HOST or HOST=GUEST. Can be repeated.
    #[arg(long = "file", value_name = "HOST[=GUEST]")]
    files: Vec<String>,
    /// A program to put into the guest with its libraries. Can be repeated.
    #[arg(long = "program", value_name = "PATH")]
    programs: Vec<PathBuf>,
    /// A kernel module to load first. Can be repeated.
    #[arg(long = "module", value_name = "NAME")]
    modules: Vec<String>,
    /// Seconds that it may take.
    #[arg(long, default_value_t = 120)]
    timeout: u64,
    /// Where to put the files that the command leaves in /results.
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Print the console's log too.
    #[arg(long)]
    console: bool,
    /// The command. A program given by its path on this machine is put into the guest with its
    /// libraries.
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

fn build_guest(options: &Options) -> Result<Guest, LabError> {
    let arch = if options.arm64 || options.raspi3b { Arch::Arm64 } else { Arch::Amd64 };
    let kernel = match options.kernel.contains('/') {
        true => BootKernel::from_image(&options.kernel, options.kernel_modules.clone(), arch),
        false => BootKernel::by_name(&options.kernel, arch)?,
    };
    let mut command = options.command.clone();
    let mut programs = options.programs.clone();
    let program_path = Path::new(&command[0]);
    if command[0].contains('/') && program_path.is_file() && !options.share_host {
        let absolute_path =
            std::path::absolute(program_path).unwrap_or_else(|_| program_path.to_owned());
        command[0] = absolute_path.to_string_lossy().into_owned();
        programs.push(absolute_path);
    }
    let files = options.files.iter().map(|file| {
        let (host, path) = file.split_once('=').unwrap_or((file, file));
        GuestFile::from_host_file(host, path)
    });
    Ok(Guest {
        board: if options.raspi3b { GuestBoard::Raspi3b } else { GuestBoard::Usual },
        cmdline_extra: options.cmdline.clone(),
        cpus: if options.virtual_time { 1 } else { options.cpus },
        memory_mb: options.memory,
        accel: if options.virtual_time { Accel::VirtualTime } else { Accel::Tcg },
        files: files.collect::<Result<_, _>>()?,
        programs,
        modules: options.modules.clone(),
        share_host: options.share_host,
        timeout: Duration::from_secs(options.timeout),
        ..Guest::new(kernel, Job::Command(command))
    })
}

fn run_guest(options: &Options) -> Result<GuestResult, LabError> {
    let mut began = None;
    build_guest(options)?.run_watched(&mut |seen: GuestProgress| {
        if seen.phase == GuestPhase::Job && began.is_none() {
            began = Some(seen.elapsed);
        }
        match (began, options.end_after) {
            (Some(began), Some(after)) if seen.elapsed >= began + Duration::from_secs(after) => {
                GuestControl::End
            }
            _ => GuestControl::GoOn,
        }
    })
}

fn main() -> ExitCode {
    let options = Options::parse();
    let result = match run_guest(&options) {
        Ok(result) => result,
        Err(error) => {
            eprintln!("guest: {error}");
            return ExitCode::FAILURE;
        }
    };
    if options.console {
        eprintln!("{}", result.console_log);
    }
    if result.outcome != GuestOutcome::Finished {
        eprintln!("guest: {}", testing::story(&result));
        return ExitCode::FAILURE;
    }
    let written = std::io::stdout()
        .write_all(&result.stdout)
        .and(std::io::stderr().write_all(&result.stderr));
    let saved = options.results.iter().try_for_each(|dir| {
        result.results.iter().try_for_each(|(name, data)| {
            let path = dir.join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(dir))?;
            std::fs::write(path, data)
        })
    });
    if let Err(error) = written.and(saved) {
        eprintln!("guest: cannot write what came back: {error}");
        return ExitCode::FAILURE;
    }
    result.problems.iter().for_each(|problem| eprintln!("guest: {problem}"));
    let release = result.release.unwrap_or_default();
    eprintln!(
        "guest: {release}, {:.1} s, {} result file(s)",
        result.elapsed.as_secs_f64(),
        result.results.len()
    );
    ExitCode::from(result.exit_status.and_then(|status| u8::try_from(status).ok()).unwrap_or(1))
}
