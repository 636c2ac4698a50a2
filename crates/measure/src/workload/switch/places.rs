//! The CPUs of a ring's tasks, by the required distance of neighbours.

use punctual_core::CpuSet;
use punctual_host::environment::Topology;
use punctual_plan::kinds::Distance;

/// The CPU of each task. Neighbours, including the last and the first, are at this distance. The
/// error names what is missing.
pub(crate) fn choose_cpus(
    topology: &Topology,
    cpus: &CpuSet,
    distance: Distance,
    tasks: usize,
) -> Result<Vec<usize>, String> {
    if distance == Distance::SameCpu {
        let last_cpu = cpus.iter().last().ok_or("there is no CPU to measure on")?;
        return Ok(vec![last_cpu; tasks]);
    }
    let related =
        |a: usize| cpus.iter().filter(move |b| *b != a && is_at(topology, distance, a, *b));
    let mut pairs = cpus.iter().flat_map(|a| related(a).map(move |b| (a, b))).collect::<Vec<_>>();
    // The last ones first: the first CPU has most of the housekeeping.
    pairs.reverse();
    if tasks.is_multiple_of(2) {
        let (a, b) = pairs.first().ok_or_else(|| describe_missing(distance, cpus, "two"))?;
        return Ok((0..tasks).map(|task| if task % 2 == 0 { *a } else { *b }).collect());
    }
    // In an odd ring the last task is a neighbour of one on either CPU.
    let third =
        |(a, b): &(usize, usize)| related(*a).find(|c| c != b && is_at(topology, distance, *b, *c));
    let found = pairs.iter().find_map(|pair| third(pair).map(|c| (*pair, c)));
    let ((a, b), c) =
        found.ok_or_else(|| describe_missing(distance, cpus, "three (the ring is odd)"))?;
    Ok((0..tasks).map(|task| if task + 1 == tasks { c } else { [a, b][task % 2] }).collect())
}

fn is_at(topology: &Topology, distance: Distance, a: usize, b: usize) -> bool {
    let siblings = topology.siblings_of(a).is_some_and(|siblings| siblings.contains(b));
    match distance {
        Distance::SameCpu => a == b,
        Distance::OtherCpu => a != b,
        Distance::Smt => siblings,
        Distance::SameCache => {
            last_cache(topology, a).is_some_and(|shared| shared.contains(b)) && !siblings
        }
        Distance::OtherCache => last_cache(topology, a).is_some_and(|shared| !shared.contains(b)),
    }
}

/// The CPUs that share a CPU's last-level cache.
fn last_cache(topology: &Topology, cpu: usize) -> Option<&CpuSet> {
    let caches = topology.caches.known_value()?.iter().filter(|cache| cache.shared.contains(cpu));
    caches.max_by_key(|cache| cache.level).map(|cache| &cache.shared)
}

fn describe_missing(distance: Distance, cpus: &CpuSet, how_many: &str) -> String {
    let what = match distance {
        Distance::SameCpu | Distance::OtherCpu => format!("{cpus} has fewer than {how_many} CPUs"),
        Distance::Smt => {
            format!(
                "CPUs {cpus} have fewer than {how_many} hardware threads of one core \
                 (topology/thread_siblings_list)"
            )
        }
        Distance::SameCache => {
            format!(
                "CPUs {cpus} have fewer than {how_many} cores below one last-level cache \
                 (cache/index*/shared_cpu_list)"
            )
        }
        Distance::OtherCache => {
            format!(
                "CPUs {cpus} have fewer than {how_many} below different last-level caches \
                 (cache/index*/shared_cpu_list)"
            )
        }
    };
    format!("{what}: choose another `distance`, `ring` or `cpus`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::Fact;
    use punctual_host::environment::{Cache, CpuPlace};

    /// Two packages of two cores with two threads each; one last-level cache per package.
    fn topology() -> Topology {
        let set = |cpus: &[usize]| cpus.iter().copied().collect::<CpuSet>();
        let place = |cpu: usize| CpuPlace {
            cpu,
            core: Fact::Known((cpu % 4) as u32),
            package: Fact::Known((cpu % 4 / 2) as i32),
            siblings: Fact::Known(set(&[cpu % 4, cpu % 4 + 4])),
        };
        let cache = |level, cpus: &[usize]| Cache {
            level,
            kind: "Unified".to_owned(),
            size: Fact::Known("1024K".to_owned()),
            shared: set(cpus),
        };
        let caches = vec![cache(2, &[0, 4]), cache(3, &[0, 1, 4, 5]), cache(3, &[2, 3, 6, 7])];
        Topology {
            cpus: Fact::Known((0..8).map(place).collect()),
            caches: Fact::Known(caches),
            ..Topology::default()
        }
    }

    fn all() -> CpuSet {
        (0..8).collect()
    }

    #[test]
    fn neighbours_are_at_the_requested_distance() {
        let of = |distance, ring| choose_cpus(&topology(), &all(), distance, ring).unwrap();
        assert_eq!(of(Distance::SameCpu, 3), [7, 7, 7]);
        assert_eq!(of(Distance::OtherCpu, 4), [7, 6, 7, 6]);
        assert_eq!(of(Distance::Smt, 2), [7, 3]);
        assert_eq!(of(Distance::SameCache, 2), [7, 6]);
        assert_eq!(of(Distance::OtherCache, 2), [7, 5]);
        for distance in [Distance::OtherCpu, Distance::SameCache] {
            for ring in 2..8 {
                let Ok(places) = choose_cpus(&topology(), &all(), distance, ring) else { continue };
                for (task, cpu) in places.iter().enumerate() {
                    assert!(
                        is_at(&topology(), distance, *cpu, places[(task + 1) % ring]),
                        "{distance:?} {places:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let why =
            choose_cpus(&topology(), &[0, 1].into_iter().collect(), Distance::Smt, 2).unwrap_err();
        assert!(why.contains("thread_siblings_list"), "{why}");
        let why = choose_cpus(&Topology::default(), &all(), Distance::SameCache, 2).unwrap_err();
        assert!(why.contains("last-level"), "{why}");
        let why = choose_cpus(&topology(), &[0, 1].into_iter().collect(), Distance::OtherCpu, 3)
            .unwrap_err();
        assert!(why.contains("odd"), "{why}");
    }
}
