//! A window of time as a picture: the tasks and interrupts of each CPU, the states of each thread,
//! its test points, functions and values, and the interval in focus: a sample, a long call.
//!
//! A picture is a list of lanes with items, without knowledge of their meaning; `assets/picture.js`
//! draws and zooms it and shows details under the pointer. Explanations of the subject are a
//! further lane above the others.

mod cpus;
mod items;
mod lane;
mod threads;

pub use items::{ItemStyle, LaneItem};
pub use lane::{LaneKind, PictureLane};

use super::text::format_name;
use crate::format::{count_text, span_text};
use crate::marks::Mark;
use punctual_core::{MonotonicNs, Names, Nanos, Tid};
use punctual_explain::threads::WindowLanes;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// The subject of a picture.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Focus {
    /// `latency 812 µs: timer/cpu3`.
    pub title: String,
    /// Its thread, which is drawn first.
    pub tid: Option<Tid>,
    /// Its beginning, with its label: `due`.
    pub from: (MonotonicNs, &'static str),
    /// Its end, with its label: `woke`.
    pub to: (MonotonicNs, &'static str),
}

/// The margin around the subject is as long as the subject, within these bounds.
const MARGIN: (Nanos, Nanos) = (Nanos(50_000), Nanos(5_000_000));

impl Focus {
    /// The time window of its picture, if there is room for all of it.
    pub fn window(&self) -> (MonotonicNs, MonotonicNs) {
        let margin = (self.to.0 - self.from.0).clamp(MARGIN.0, MARGIN.1);
        (self.from.0 + -margin, self.to.0 + margin)
    }
}

/// A picture as the script draws it. All times are nanoseconds since its zero, the beginning of the
/// focus.
#[derive(Clone, Debug, Serialize)]
pub struct Picture {
    title: String,
    /// The zero on CLOCK_MONOTONIC, as text: it exceeds the precision of JavaScript numbers.
    zero: String,
    from: i64,
    to: i64,
    /// The end of the subject.
    end: i64,
    labels: [&'static str; 2],
    lanes: Vec<PictureLane>,
    arrows: Vec<Arrow>,
    /// The index of the focused thread's lane.
    own: Option<usize>,
    /// Names that items refer to by number.
    words: Vec<String>,
    /// Sentences about omitted content.
    notes: Vec<String>,
}

/// A wake-up: from the waker's lane to the lane of the woken thread.
#[derive(Clone, Debug, Serialize)]
struct Arrow {
    at: i64,
    from: usize,
    to: usize,
    label_text: String,
}

/// The input of pictures.
pub(crate) struct Material<'a> {
    /// Spans of CPUs and threads in the window.
    pub lanes: &'a WindowLanes,
    /// Everything else in the window.
    pub marks: &'a [Mark<'a>],
    pub names: &'a Names,
    /// The names of the series of its samples, by number.
    pub series: &'a [String],
    /// Marks that were dropped for lack of space.
    pub left_out: u64,
}

impl Picture {
    /// The picture of an interval with at most `limit` items: the shortest are dropped.
    pub(crate) fn from_material(focus: &Focus, material: &Material<'_>, limit: usize) -> Picture {
        let mut build = Build::new(focus, material);
        cpus::add(&mut build);
        threads::add(&mut build);
        build.finish(limit)
    }

    /// The number of a constant word, for items that are added to the picture.
    pub(crate) fn intern_word(&mut self, text: &str) -> usize {
        let known_word = self.words.iter().position(|word| word == text);
        known_word.unwrap_or_else(|| {
            self.words.push(text.to_owned());
            self.words.len() - 1
        })
    }

    /// Inserts a lane above the others.
    pub(crate) fn put_first(&mut self, lane: PictureLane, limit: usize) {
        self.lanes.insert(0, lane);
        self.arrows
            .iter_mut()
            .for_each(|arrow| (arrow.from, arrow.to) = (arrow.from + 1, arrow.to + 1));
        self.own = self.own.map(|own| own + 1);
        *self = self.to_thinned(limit);
    }

    /// Prefixes the title with the bundle's label, if there is one.
    pub(crate) fn with_label(mut self, label: &str) -> Picture {
        if !label.is_empty() {
            self.title = format!("{label} · {}", self.title);
        }
        self
    }

    fn item_count(&self) -> usize {
        self.lanes.iter().map(PictureLane::len).sum()
    }

    /// The same picture with at most `limit` items: the shortest are dropped, which a note reports.
    pub(crate) fn to_thinned(&self, limit: usize) -> Picture {
        let mut picture = self.clone();
        if picture.item_count() <= limit {
            return picture;
        }
        let mixed = picture.words.len();
        picture.words.push("several, too short to be shown one by one".to_owned());
        let left_out = lane::thin_lanes(&mut picture.lanes, limit, mixed);
        if left_out > 0 {
            picture.notes.push(format!(
                "{} of the shortest items are not shown.",
                count_text(left_out as u64)
            ));
        }
        picture
    }
}

/// A picture under construction.
struct Build<'a> {
    focus: &'a Focus,
    material: &'a Material<'a>,
    words: items::Words,
    lanes: Vec<PictureLane>,
    /// The lane of each CPU with its running threads, and the lane of each thread with its states.
    cpu_lanes: BTreeMap<u16, usize>,
    hues: HashMap<Tid, u8>,
    thread_lanes: BTreeMap<Tid, usize>,
    notes: Vec<String>,
}

impl<'a> Build<'a> {
    fn new(focus: &'a Focus, material: &'a Material<'a>) -> Build<'a> {
        Build {
            focus,
            material,
            words: items::Words::default(),
            lanes: Vec::new(),
            cpu_lanes: BTreeMap::new(),
            hues: assign_hues(focus, material.lanes),
            thread_lanes: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    /// Nanoseconds since the picture's zero.
    fn time_since_zero(&self, at: MonotonicNs) -> i64 {
        (at - self.focus.from.0).ns()
    }

    /// The thread's colour; grey for those with the shortest running time.
    fn hue_of_thread(&self, tid: Tid) -> u8 {
        self.hues.get(&tid).copied().unwrap_or(7)
    }

    fn task_label(&self, tid: Tid) -> String {
        let task = format_name(&self.material.names.task_name(tid));
        if tid == Tid::IDLE || !self.material.names.tasks.contains_key(&tid) {
            task
        } else {
            format!("{task} ({})", tid.0)
        }
    }

    fn finish(mut self, limit: usize) -> Picture {
        let arrows = self.wakeup_arrows();
        let unfit = self.material.lanes.left_out.saturating_add(self.material.left_out);
        if unfit > 0 {
            self.notes.push(format!(
                "{} more spans and events did not fit into this picture.",
                count_text(unfit)
            ));
        }
        let (from, to) = (self.material.lanes.from, self.material.lanes.to);
        if from > self.focus.from.0 {
            let shown_time = span_text(self.focus.to.0 - from);
            self.notes
                .push(format!("Only the last {shown_time} are shown: there are too many events."));
        }
        let picture = Picture {
            title: self.focus.title.clone(),
            zero: self.focus.from.0.ns().to_string(),
            from: self.time_since_zero(from),
            to: self.time_since_zero(to),
            end: self.time_since_zero(self.focus.to.0),
            labels: [self.focus.from.1, self.focus.to.1],
            lanes: self.lanes,
            arrows,
            own: self.focus.tid.and_then(|tid| self.thread_lanes.get(&tid).copied()),
            words: self.words.into_list(),
            notes: self.notes,
        };
        picture.to_thinned(limit)
    }

    fn wakeup_arrows(&self) -> Vec<Arrow> {
        let arrow = |wake: &punctual_explain::threads::WakeMark| {
            let from = self.cpu_lanes.get(&wake.cpu)?;
            let to = self.thread_lanes.get(&wake.task)?;
            let waker = match wake.interrupt {
                Some(_) => format!(
                    "an interrupt on CPU {}, where {} ran,",
                    wake.cpu,
                    self.task_label(wake.waker)
                ),
                None => format!("{} on CPU {}", self.task_label(wake.waker), wake.cpu),
            };
            let when = span_text(wake.at - self.focus.from.0);
            Some(Arrow {
                at: self.time_since_zero(wake.at),
                from: *from,
                to: *to,
                label_text: format!("{when}: {waker} wakes {}", self.task_label(wake.task)),
            })
        };
        self.material.lanes.wakes.iter().filter_map(arrow).take(MAX_ARROWS).collect()
    }
}

/// The subject's thread has the second hue, the threads with the longest running time have the
/// others.
fn assign_hues(focus: &Focus, lanes: &WindowLanes) -> HashMap<Tid, u8> {
    let mut ran: HashMap<Tid, Nanos> = HashMap::new();
    for run in lanes.cpus.values().flat_map(|lane| &lane.ran) {
        if let Some(tid) = run.tid.filter(|tid| *tid != Tid::IDLE && focus.tid != Some(*tid)) {
            *ran.entry(tid).or_default() += run.to - run.from;
        }
    }
    let mut longest: Vec<(Tid, Nanos)> = ran.into_iter().collect();
    longest.sort_by_key(|(tid, time)| (std::cmp::Reverse(*time), *tid));
    let hues_of_others = longest.into_iter().map(|(tid, _)| tid).zip([0, 2, 3, 4, 5, 6]);
    focus.tid.map(|tid| (tid, 1)).into_iter().chain(hues_of_others).collect()
}

/// Wake-up arrows drawn; the lanes show all wake-ups as events.
const MAX_ARROWS: usize = 400;
