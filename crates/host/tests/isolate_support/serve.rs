//! The scripted kernel as [`Files`].

use super::{Kernel, Kind, State};
use punctual_core::CpuSet;
use punctual_host::files::{FileError, Files};
use std::collections::BTreeSet;
use std::io;

fn failed(action: &'static str, path: &str, errno: i32) -> FileError {
    FileError { action, path: path.to_owned(), source: io::Error::from_raw_os_error(errno) }
}

impl State {
    fn read(&self, path: &str) -> Result<String, i32> {
        if let Some((directory, file)) = path.rsplit_once('/')
            && let Some(text) = self.show(directory, file)
        {
            return text.map(|text| text + "\n");
        }
        if let Some(text) = self.task_file(path) {
            return Ok(text);
        }
        let fixed = match path {
            "/proc/mounts" if !self.mounted => "tmpfs /run tmpfs rw 0 0".into(),
            "/proc/mounts" if self.v1 => {
                format!("cgroup {} cgroup rw,relatime,cpuset 0 0", self.mount)
            }
            "/proc/mounts" => format!("cgroup2 {} cgroup2 rw,nosuid 0 0", self.mount),
            "/sys/devices/system/cpu/online" => self.online.to_string(),
            "/sys/devices/system/cpu/possible" => self.possible.to_string(),
            _ => match self.settings.get(path).ok_or(libc::ENOENT)? {
                (Kind::Choice(words), chosen) => {
                    let word = |word: &&str| {
                        if word == chosen { format!("[{word}]") } else { (*word).to_owned() }
                    };
                    words.iter().map(word).collect::<Vec<_>>().join(" ")
                }
                (Kind::Online(cpu), _) => u8::from(self.online.contains(*cpu)).to_string(),
                (_, value) => value.clone(),
            },
        };
        Ok(fixed + "\n")
    }

    fn task_file(&self, path: &str) -> Option<String> {
        let rest = path.strip_prefix("/proc/")?;
        let (tid, file) = rest.split_once('/')?;
        let tid: i32 = if tid == "self" { self.own } else { tid.parse().ok()? };
        let task = self.tasks.get(&tid)?;
        match file {
            "stat" => {
                let fields = format!(
                    "{} 0 0 0 0 {} 0 0 0 0 0 0 0 0 20 0 1 0 {}",
                    task.parent, task.flags, task.start
                );
                Some(format!(
                    "{tid} ({}) S {fields} {} 0 {} 0 0\n",
                    task.name,
                    "0 ".repeat(15).trim(),
                    task.allowed.first_cpu()?
                ))
            }
            "status" => {
                let rights =
                    format!("Uid:\t{0}\t{0}\t{0}\t{0}\nCapEff:\t{1}", self.uid, self.rights);
                Some(format!(
                    "Name:\t{}\n{rights}\nCpus_allowed_list:\t{}\n",
                    task.name.replace('\n', "\\n"),
                    task.allowed
                ))
            }
            _ => None,
        }
    }

    fn names(&self, path: &str) -> Result<BTreeSet<String>, i32> {
        let mut names = BTreeSet::new();
        let under = |other: &str| {
            let rest = other.strip_prefix(path)?.strip_prefix('/')?;
            rest.split('/').next().map(str::to_owned)
        };
        let paths = self.settings.keys().chain(self.cgroups.keys()).chain(self.links.keys());
        names.extend(paths.filter_map(|other| under(other)));
        if path == "/proc" {
            names.extend(
                self.tasks
                    .iter()
                    .filter(|(tid, task)| **tid == task.tgid)
                    .map(|(tid, _)| tid.to_string()),
            );
        }
        if let Some(pid) = path.strip_prefix("/proc/").and_then(|rest| rest.strip_suffix("/task")) {
            let own = self.tasks.iter().filter(|(_, task)| task.tgid.to_string() == pid);
            names.extend(own.map(|(tid, _)| tid.to_string()));
        }
        let known = !names.is_empty() || self.cgroups.contains_key(path);
        if known { Ok(names) } else { Err(libc::ENOENT) }
    }

    fn write(&mut self, path: &str, text: &str) -> Result<(), i32> {
        if let Some((directory, file)) = path.rsplit_once('/')
            && let Some(answer) = self.store(directory, file, text)
        {
            return answer;
        }
        let kind = self.settings.get(path).ok_or(libc::ENOENT)?.0.clone();
        let value = match kind {
            Kind::Plain => text.to_owned(),
            Kind::Deaf => return Ok(()),
            Kind::Choice(words) => {
                words.into_iter().find(|word| *word == text).ok_or(libc::EINVAL)?.to_owned()
            }
            Kind::List => text.parse::<CpuSet>().map_err(|_| libc::EINVAL)?.to_string(),
            Kind::Mask => {
                let set = CpuSet::from_mask(text).map_err(|_| libc::EINVAL)?;
                format!("{:0>8}", set.to_mask())
            }
            Kind::Online(cpu) => {
                self.plug(cpu, text == "1");
                text.to_owned()
            }
        };
        self.settings.get_mut(path).expect("it was just read").1 = value;
        Ok(())
    }

    /// The scripted refusal for a path, if one is left, and whether the change is made anyway.
    fn refusal(&mut self, path: &str) -> Option<(i32, bool)> {
        let rule =
            self.refusals.iter_mut().find(|rule| path.ends_with(&rule.path) && rule.times > 0)?;
        rule.times -= 1;
        Some((rule.errno, rule.after_all))
    }

    fn unless_refused(
        &mut self,
        path: &str,
        make: impl FnOnce(&mut State) -> Result<(), i32>,
    ) -> Result<(), i32> {
        self.pass_time();
        match self.refusal(path) {
            Some((errno, false)) => Err(errno),
            Some((errno, true)) => make(self).and(Err(errno)),
            None => make(self),
        }
    }
}

impl Files for Kernel {
    fn read(&self, path: &str) -> Result<String, FileError> {
        self.state.borrow().read(path).map_err(|errno| failed("read", path, errno))
    }
    fn write(&self, path: &str, text: &str) -> Result<(), FileError> {
        let answer = self.with(|state| state.unless_refused(path, |state| state.write(path, text)));
        answer.map_err(|errno| failed("write", path, errno))
    }
    fn list(&self, path: &str) -> Result<Vec<String>, FileError> {
        let names = self.state.borrow().names(path).map_err(|errno| failed("list", path, errno))?;
        Ok(names.into_iter().collect())
    }
    fn exists(&self, path: &str) -> bool {
        let state = self.state.borrow();
        // An unreadable file exists nevertheless.
        state.read(path).err() != Some(libc::ENOENT)
            || state.names(path).is_ok()
            || state.links.contains_key(path)
    }
    fn read_link(&self, path: &str) -> Result<String, FileError> {
        self.state
            .borrow()
            .links
            .get(path)
            .cloned()
            .ok_or_else(|| failed("read the link", path, libc::EINVAL))
    }
    fn create_dir(&self, path: &str) -> Result<(), FileError> {
        let answer = self.with(|state| state.unless_refused(path, |state| state.make(path)));
        answer.map_err(|errno| failed("create the directory", path, errno))
    }
    fn remove_dir(&self, path: &str) -> Result<(), FileError> {
        let answer = self.with(|state| state.unless_refused(path, |state| state.remove(path)));
        answer.map_err(|errno| failed("remove the directory", path, errno))
    }
    fn set_affinity(&self, tid: i32, cpus: &CpuSet) -> Result<(), FileError> {
        let answer = self.with(|state| {
            state.pass_time();
            state.ask(tid, cpus)
        });
        answer.map_err(|errno| failed("set the affinity of", &format!("task {tid}"), errno))
    }
}
