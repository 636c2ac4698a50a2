//! A periodic task with test points, and a worker that takes what it makes: collect it with
//!
//!     punctual trace --output pipeline -- target/release/testpoint-example
//!
//! `cargo build --no-default-features` compiles it without points.

use punctual_testpoint::{Point, begin, end, point, scope};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A point that several places pass is a static.
static QUEUED: Point = Point::new("pipeline.queued");

fn work(data: &mut [u8]) -> u64 {
    let _scope = scope!("pipeline.work");
    data.iter_mut().enumerate().fold(0, |sum, (place, byte)| {
        *byte = byte.wrapping_add(place as u8);
        sum + u64::from(*byte)
    })
}

fn main() {
    let rounds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100);
    if let Err(why) = punctual_testpoint::status() {
        eprintln!("no test points: {why}");
    }
    let (sender, receiver) = mpsc::channel::<(u64, Vec<u8>)>();
    let worker = std::thread::spawn(move || {
        for (round, mut data) in receiver {
            point!("pipeline.taken", round);
            let sum = work(&mut data);
            point!("pipeline.done", round, sum);
        }
    });
    let mut due = Instant::now();
    for round in 0..rounds {
        begin!("pipeline.make", round);
        let data = vec![round as u8; 4_096];
        end!("pipeline.make");
        QUEUED.hit1(round as i64);
        if sender.send((round, data)).is_err() {
            break;
        }
        due += Duration::from_millis(10);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    drop(sender);
    if worker.join().is_err() {
        eprintln!("the worker panicked");
    }
}
