//! Cpusets as in the kernel (kernel/cgroup/cpuset.c and cpuset-v1.c), as far as isolation sees
//! them.

use super::machine::PF_NO_SETAFFINITY;
use super::{Cgroup, State};
use punctual_core::CpuSet;

pub type Answer<T> = Result<T, i32>;

impl Cgroup {
    pub fn new() -> Cgroup {
        Cgroup { balance: true, partition: "member".into(), ..Cgroup::default() }
    }
}

fn flag(value: bool) -> String {
    u8::from(value).to_string()
}

impl State {
    fn parent(&self, path: &str) -> String {
        path.rsplit_once('/').map(|(parent, _)| parent.to_owned()).unwrap_or_default()
    }
    fn siblings(&self, path: &str) -> Vec<(String, Cgroup)> {
        let parent = self.parent(path);
        let beside = |other: &&String| *other != path && self.parent(other) == parent;
        self.cgroups
            .keys()
            .filter(beside)
            .map(|other| (other.clone(), self.cgroups[other].clone()))
            .collect()
    }
    /// The cgroup that lists the processes of a cgroup: its parent if it is threaded.
    fn domain(&self, path: &str) -> String {
        if self.cgroups[path].threaded { self.parent(path) } else { path.to_owned() }
    }
    fn has_controller(&self, path: &str) -> bool {
        self.v1
            || path != self.mount
                && self.cgroups.get(&self.parent(path)).is_some_and(|parent| parent.passes_on)
    }

    /// The CPUs that tasks of a cgroup may use.
    pub fn effective(&self, path: &str) -> CpuSet {
        let own = &self.cgroups[path];
        if self.v1 {
            return if path == self.mount {
                self.possible.clone()
            } else {
                own.cpus.intersection(&self.online)
            };
        }
        if self.is_partition(path) {
            return own.cpus.intersection(&self.online);
        }
        let taken = self.cgroups.keys().filter(|other| self.is_partition(other));
        let dying = self.dying.as_ref().map(|(cpus, _)| cpus.clone()).unwrap_or_default();
        let taken = taken.fold(dying, |all, other| all.union(&self.cgroups[other].cpus));
        let base = if path == self.mount {
            self.possible.clone()
        } else {
            self.effective(&self.parent(path))
        };
        let base = base.difference(&taken);
        let narrowed = own.cpus.intersection(&base);
        if narrowed.is_empty() || path == self.mount { base } else { narrowed }
    }

    /// Version 2: why a cgroup that requests a partition is invalid.
    fn invalid(&self, path: &str) -> Option<&'static str> {
        let own = &self.cgroups[path];
        let claimed = |other: &Cgroup| {
            other.partition != "member" && !other.cpus.intersection(&own.cpus).is_empty()
        };
        if own.cpus.intersection(&self.online).is_empty() {
            Some("no cpu available")
        } else if self.siblings(path).iter().any(|(_, other)| claimed(other)) {
            Some("Cpu list in cpuset.cpus not exclusive")
        } else {
            None
        }
    }
    fn is_partition(&self, path: &str) -> bool {
        self.cgroups[path].partition != "member" && self.invalid(path).is_none()
    }

    /// The content of a file of a cgroup; `None` if there is no such file.
    pub fn show(&self, cgroup: &str, file: &str) -> Option<Answer<String>> {
        let own = self.cgroups.get(cgroup)?;
        let members = |process: bool| {
            // The domain lists the processes of threaded cgroups.
            let here = |of: &str| of == cgroup || process && self.domain(of) == cgroup;
            let inside = self
                .tasks
                .iter()
                .filter(|(tid, task)| here(&task.cgroup) && (!process || task.tgid == **tid));
            inside.map(|(tid, _)| format!("{tid}\n")).collect::<String>()
        };
        match file {
            "cgroup.procs" if own.threaded => return Some(Err(libc::EOPNOTSUPP)),
            "cgroup.procs" => return Some(Ok(members(true))),
            "cgroup.threads" if !self.v1 => return Some(Ok(members(false))),
            "cgroup.type" if !self.v1 && cgroup != self.mount => {
                return Some(Ok(if own.threaded { "threaded" } else { "domain" }.into()));
            }
            "tasks" if self.v1 => return Some(Ok(members(false))),
            "cgroup.controllers" if !self.v1 => {
                let has = cgroup == self.mount || self.has_controller(cgroup);
                return Some(Ok(if has {
                    "cpuset cpu memory".into()
                } else {
                    "cpu memory".into()
                }));
            }
            "cgroup.subtree_control" if !self.v1 => {
                return Some(Ok(if own.passes_on {
                    "cpuset cpu memory".into()
                } else {
                    "cpu memory".into()
                }));
            }
            _ => {}
        }
        let file = file.strip_prefix(self.prefix).filter(|_| self.has_controller(cgroup))?;
        Some(Ok(match (file, self.v1) {
            ("cpus", _) => own.cpus.to_string(),
            ("mems", _) => own.mems.clone(),
            ("cpu_exclusive", true) => flag(own.exclusive),
            ("sched_load_balance", true) => flag(own.balance),
            ("cpus.effective", false) => self.effective(cgroup).to_string(),
            ("cpus.partition", false) => {
                match self.invalid(cgroup).filter(|_| own.partition != "member") {
                    Some(why) => format!("{} invalid ({why})", own.partition),
                    None => own.partition.clone(),
                }
            }
            _ => return None,
        }))
    }

    /// A write to a file of a cgroup; `None` if there is no such file.
    pub fn store(&mut self, cgroup: &str, file: &str, text: &str) -> Option<Answer<()>> {
        let _ = self.show(cgroup, file)?;
        let text = text.trim();
        match file {
            "cgroup.type" => {
                return Some(self.change(cgroup, |own| own.threaded = text == "threaded"));
            }
            "cgroup.procs" | "cgroup.threads" | "tasks" => {
                let whole = file == "cgroup.procs";
                return Some(
                    text.parse()
                        .map_err(|_| libc::EINVAL)
                        .and_then(|tid| self.attach(cgroup, tid, whole)),
                );
            }
            "cgroup.subtree_control" => return Some(self.pass_on(cgroup, text)),
            _ => {}
        }
        let name = file.strip_prefix(self.prefix)?;
        Some(match name {
            "cpus" => {
                text.parse().map_err(|_| libc::EINVAL).and_then(|cpus| self.give_cpus(cgroup, cpus))
            }
            "mems" => self.change(cgroup, |own| own.mems = text.to_owned()),
            "cpu_exclusive" => self.make_exclusive(cgroup, text == "1"),
            "sched_load_balance" => self.change(cgroup, |own| own.balance = text == "1"),
            "cpus.partition" if ["member", "root", "isolated"].contains(&text) => {
                let changed = self.change(cgroup, |own| own.partition = text.to_owned());
                self.spread();
                changed
            }
            _ => Err(libc::EINVAL),
        })
    }

    fn own(&mut self, cgroup: &str) -> &mut Cgroup {
        self.cgroups.get_mut(cgroup).expect("the cgroup was read before")
    }

    fn change(&mut self, cgroup: &str, change: impl FnOnce(&mut Cgroup)) -> Answer<()> {
        change(self.own(cgroup));
        Ok(())
    }

    fn give_cpus(&mut self, cgroup: &str, cpus: CpuSet) -> Answer<()> {
        let overlapping =
            |other: &Cgroup| other.exclusive && !other.cpus.intersection(&cpus).is_empty();
        if !cpus.is_subset(&self.online)
            || self.v1 && self.siblings(cgroup).iter().any(|(_, other)| overlapping(other))
        {
            return Err(libc::EINVAL);
        }
        self.own(cgroup).cpus = cpus;
        Ok(())
    }

    fn make_exclusive(&mut self, cgroup: &str, exclusive: bool) -> Answer<()> {
        let cpus = self.cgroups[cgroup].cpus.clone();
        let shared = self
            .siblings(cgroup)
            .iter()
            .any(|(_, other)| !other.cpus.intersection(&cpus).is_empty());
        if exclusive && shared {
            return Err(libc::EINVAL);
        }
        self.own(cgroup).exclusive = exclusive;
        Ok(())
    }

    fn pass_on(&mut self, cgroup: &str, text: &str) -> Answer<()> {
        let below = |path: &String| self.parent(path) == cgroup;
        match text {
            "+cpuset" => self.own(cgroup).passes_on = true,
            "-cpuset"
                if self.cgroups.iter().any(|(path, child)| below(path) && child.passes_on) =>
            {
                return Err(libc::EBUSY);
            }
            "-cpuset" => self.own(cgroup).passes_on = false,
            _ => return Err(libc::EINVAL),
        }
        self.spread();
        Ok(())
    }

    fn attach(&mut self, cgroup: &str, tid: i32, whole: bool) -> Answer<()> {
        let tgid = self.tasks.get(&tid).ok_or(libc::ESRCH)?.tgid;
        if self.tasks[&tid].flags & PF_NO_SETAFFINITY != 0 || tid == 2 {
            return Err(libc::EINVAL);
        }
        if !self.v1 && !whole && self.domain(cgroup) != self.domain(&self.tasks[&tid].cgroup) {
            return Err(libc::EOPNOTSUPP);
        }
        if self.v1 && (self.cgroups[cgroup].cpus.is_empty() || self.cgroups[cgroup].mems.is_empty())
        {
            return Err(libc::ENOSPC);
        }
        let moving: Vec<i32> = self
            .tasks
            .iter()
            .filter(|(t, task)| **t == tid || whole && task.tgid == tgid)
            .map(|(t, _)| *t)
            .collect();
        for tid in moving {
            self.tasks.get_mut(&tid).expect("it was listed").cgroup = cgroup.to_owned();
            self.confine(tid);
        }
        if self.forks > 0 && (tid == 100 || self.tasks[&tid].name == "forked") {
            self.forks -= 1;
            self.fork(tid);
        }
        Ok(())
    }

    /// A child of a task appears in the root: its parent had begun to fork before it was moved.
    fn fork(&mut self, parent: i32) {
        let tid = self.tasks.keys().last().expect("there are tasks") + 1;
        let (start, name, cgroup) = (5000 + tid as u64, "forked".to_owned(), self.mount.clone());
        let child =
            super::Task { tgid: tid, parent, start, name, cgroup, ..self.tasks[&parent].clone() };
        self.tasks.insert(tid, child);
        self.confine(tid);
    }

    /// Gives a task the CPUs that its cgroup allows, and as much as possible of what it requested.
    fn confine(&mut self, tid: i32) {
        let allowed = self.effective(&self.tasks[&tid].cgroup.clone());
        let remembers = self.remembers;
        let task = self.tasks.get_mut(&tid).expect("it is there");
        let asked =
            task.asked.as_ref().filter(|_| remembers).map(|asked| asked.intersection(&allowed));
        task.allowed = asked.filter(|cpus| !cpus.is_empty()).unwrap_or(allowed);
    }

    /// Version 2: after a change of partitions every unbound task is confined anew.
    fn spread(&mut self) {
        let changed: Vec<i32> = self
            .tasks
            .iter()
            .filter(|(_, task)| task.flags & PF_NO_SETAFFINITY == 0)
            .filter(|(_, task)| {
                !task.allowed.is_subset(&self.effective(&task.cgroup)) || self.grew(task)
            })
            .map(|(tid, _)| *tid)
            .collect();
        changed.into_iter().for_each(|tid| self.confine(tid));
    }

    /// Whether a task could regain CPUs that it had lost.
    fn grew(&self, task: &super::Task) -> bool {
        let effective = self.effective(&task.cgroup);
        task.allowed != effective
            && task
                .asked
                .as_ref()
                .is_none_or(|asked| asked.intersection(&effective) != task.allowed)
    }

    pub fn make(&mut self, path: &str) -> Answer<()> {
        if self.cgroups.contains_key(path) {
            return Err(libc::EEXIST);
        }
        if !self.cgroups.contains_key(&self.parent(path)) {
            return Err(libc::ENOENT);
        }
        self.cgroups.insert(path.to_owned(), Cgroup::new());
        Ok(())
    }

    pub fn remove(&mut self, path: &str) -> Answer<()> {
        if !self.cgroups.contains_key(path) {
            return Err(libc::ENOENT);
        }
        let children = self.cgroups.keys().any(|other| self.parent(other) == path);
        if children || self.tasks.values().any(|task| task.cgroup == path) {
            return Err(libc::EBUSY);
        }
        if !self.v1 && self.is_partition(path) {
            self.dying = Some((self.cgroups[path].cpus.clone(), self.late));
        }
        self.cgroups.remove(path);
        self.spread();
        Ok(())
    }

    /// Advances time by one change: a workqueue may process a removed cgroup.
    pub fn pass_time(&mut self) {
        match &mut self.dying {
            Some((_, 0)) => {
                self.dying = None;
                self.spread();
            }
            Some((_, left)) => *left -= 1,
            None => {}
        }
    }

    /// A task requests CPUs (kernel/sched/core.c, sched_setaffinity): it gets those that its cgroup
    /// has.
    pub fn ask(&mut self, tid: i32, cpus: &CpuSet) -> Answer<()> {
        let task = self.tasks.get(&tid).ok_or(libc::ESRCH)?;
        // kernel/sched/syscalls.c, sched_setaffinity.
        if task.flags & PF_NO_SETAFFINITY != 0 {
            return Err(libc::EINVAL);
        }
        let cgroup = task.cgroup.clone();
        let granted = cpus.intersection(&self.effective(&cgroup));
        if granted.is_empty() {
            return Err(libc::EINVAL);
        }
        let task = self.tasks.get_mut(&tid).expect("it is there");
        (task.allowed, task.asked) = (granted, Some(cpus.clone()));
        Ok(())
    }

    /// Takes a CPU offline or online.
    pub fn plug(&mut self, cpu: usize, online: bool) {
        if online {
            self.online.insert(cpu);
            self.spread();
            return;
        }
        self.online = self.online.difference(&CpuSet::from_cpu(cpu));
        let (mount, online) = (self.mount.clone(), self.online.clone());
        if self.v1 {
            let others = self.cgroups.iter_mut().filter(|(path, _)| **path != mount);
            others.for_each(|(_, cgroup)| cgroup.cpus = cgroup.cpus.intersection(&online));
        }
        for task in self.tasks.values_mut().filter(|task| task.flags & PF_NO_SETAFFINITY == 0) {
            if task.allowed.intersection(&online).is_empty() {
                (task.allowed, task.asked) = (self.possible.clone(), None);
            }
        }
        let interrupts =
            self.settings.iter_mut().filter(|(path, _)| path.ends_with("smp_affinity_list"));
        for (_, (_, list)) in interrupts {
            if list.parse::<CpuSet>().is_ok_and(|cpus| cpus.intersection(&online).is_empty()) {
                *list = online.to_string();
            }
        }
        self.spread();
    }
}
