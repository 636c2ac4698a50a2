//! The roles of programs.

use punctual_testpoint::{Mode, Point, begin, counter, end, point, scope};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

#[test]
#[ignore = "a part of another test"]
fn play() {
    match std::env::var("POINTS_ROLE").unwrap_or_default().as_str() {
        "threads" => threads(setting("THREADS"), setting("POINTS")),
        "count forever" => count_forever(),
        "signals" => signals(setting("POINTS")),
        "fork" => fork(setting("POINTS")),
        "short threads" => short_threads(setting("THREADS"), setting("POINTS")),
        "kinds" => kinds(),
        "exec" => exec(),
        "clock" => clock(setting("POINTS")),
        other => panic!("no part {other:?}"),
    }
}

fn setting(name: &str) -> u64 {
    std::env::var(name).expect("a setting").parse().expect("a number")
}

/// The second value of a point whose first is `n`: detects a point mixed from two.
pub fn witness(n: i64) -> i64 {
    n.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x55
}

/// Each thread passes as many points as it can.
fn threads(threads: u64, points: u64) {
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(move || (0..points as i64).for_each(|n| point!("counted", n, witness(n))));
        }
    });
}

/// Counts until it is killed, and stores the count in a file that survives.
fn count_forever() {
    use std::os::fd::AsRawFd;
    let report = std::fs::File::options()
        .read(true)
        .write(true)
        .open(std::env::var("COUNTED").expect("a file"))
        .expect("a file");
    // SAFETY: a shared mapping of a file of one page that is never shortened.
    let report = unsafe {
        let flags = libc::PROT_READ | libc::PROT_WRITE;
        &*libc::mmap(std::ptr::null_mut(), 4_096, flags, libc::MAP_SHARED, report.as_raw_fd(), 0)
            .cast::<AtomicU64>()
    };
    for n in 0.. {
        point!("counted", n, witness(n));
        report.store(n as u64 + 1, Ordering::Release);
    }
}

static IN_HANDLER: Point = Point::new("in the handler");
static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn handler(_: libc::c_int) {
    let n = HANDLED.fetch_add(1, Ordering::Relaxed) as i64;
    IN_HANDLER.hit2(n, witness(n));
}

/// Passes points while a signal handler that passes points interrupts it, the handler itself and
/// the creation of its ring.
fn signals(points: u64) {
    // SAFETY: a handler that is safe in a signal handler; the structures are valid.
    unsafe {
        for signal in [libc::SIGUSR1, libc::SIGUSR2, libc::SIGHUP] {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
    let done = AtomicBool::new(false);
    // SAFETY: no arguments.
    let writer = unsafe { libc::pthread_self() };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // On a busy machine it may send only a few.
            for signal in
                [libc::SIGUSR1, libc::SIGUSR2, libc::SIGHUP].into_iter().cycle().take(30_000)
            {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                // SAFETY: the thread waits for this one before it ends.
                unsafe { libc::pthread_kill(writer, signal) };
            }
        });
        let mut n = 0;
        while n < points as i64 && HANDLED.load(Ordering::Relaxed) < 10_000 {
            point!("counted", n, witness(n));
            n += 1;
        }
        done.store(true, Ordering::Relaxed);
        point!("written", n);
    });
    point!("handled", HANDLED.load(Ordering::Relaxed));
}

/// Parent and child both pass points.
fn fork(points: u64) {
    point!("before the fork");
    // SAFETY: the child continues only in this thread, and ends by _exit.
    match unsafe { libc::fork() } {
        -1 => panic!("fork"),
        0 => {
            (0..points as i64).for_each(|n| point!("in both", n, witness(n)));
            point!("in the child");
            // SAFETY: no arguments.
            unsafe { libc::_exit(0) };
        }
        child => {
            (0..points as i64).for_each(|n| point!("in both", n, witness(n)));
            let mut status = -1;
            // SAFETY: a valid place for the status.
            unsafe { libc::waitpid(child, &mut status, 0) };
            assert_eq!(status, 0);
        }
    }
}

/// One thread after the other.
fn short_threads(threads: u64, points: u64) {
    for _ in 0..threads {
        std::thread::spawn(move || {
            (0..points as i64).for_each(|n| point!("counted", n, witness(n)))
        })
        .join()
        .expect("a thread");
        if setting("PAUSE_US") > 0 {
            std::thread::sleep(Duration::from_micros(setting("PAUSE_US")));
        }
    }
}

/// Every kind of point.
fn kinds() {
    static POINT: Point = Point::new("odd \u{1b}[31m name");
    punctual_testpoint::record(Mode::Stream);
    POINT.hit();
    POINT.hit1(-1);
    POINT.hit2(i64::MIN, i64::MAX);
    begin!("work", 1_u8);
    end!("work", 2_usize, 3_i16);
    {
        let _scope = scope!("scope");
        POINT.begin1(5);
    }
    POINT.end2(6, 7);
    point!("");
    point!(
        "a name that is longer than the one hundred and twenty bytes that the table of names \
         keeps of it, and so it ends before this: it is cut off"
    );
}

/// Passes a point and executes this program again, and then another one.
fn exec() {
    use std::os::unix::process::CommandExt;
    punctual_testpoint::record(Mode::Stream);
    point!("before exec");
    if setting("AGAIN") > 0 {
        let this = std::env::current_exe().expect("this program");
        let mut again = std::process::Command::new(this);
        panic!("{}", again.args(std::env::args().skip(1)).env("AGAIN", "0").exec());
    }
    panic!("{}", std::process::Command::new("sleep").arg("30").exec());
}

/// Points between two readings of CLOCK_MONOTONIC: the one before and, in the next point, the one
/// after.
fn clock(points: u64) {
    let began = Instant::now();
    let mut before = counter::monotonic();
    for _ in 0..points {
        point!("between", before);
        before = counter::monotonic();
        if began.elapsed() < Duration::from_millis(300) {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}
