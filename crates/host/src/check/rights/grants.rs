//! The lines of limits.conf(5) that grant a limit, and the users whom they name.

use crate::files::Files;

const DROP_INS: &str = "/etc/security/limits.d";
const MAIN: &str = "/etc/security/limits.conf";

/// A line, and its file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::check) struct Grant {
    pub path: String,
    pub line: String,
    domain: String,
}

/// The lines that grant this value of an item or more to some user, as pam_limits(8) reads them.
pub(in crate::check) fn find_grants(files: &dyn Files, item: &str, value: &str) -> Vec<Grant> {
    let drop_ins = files.list(DROP_INS).unwrap_or_default();
    let drop_ins = drop_ins.into_iter().filter(|name| name.ends_with(".conf"));
    let paths = drop_ins.map(|name| format!("{DROP_INS}/{name}")).chain([MAIN.to_owned()]);
    let number = |text: &str| match text {
        "unlimited" | "infinity" | "-1" => Some(u64::MAX),
        text => text.parse().ok(),
    };
    let of_line = |path: &str, line: &str| {
        let words: Vec<&str> = line.split('#').next()?.split_whitespace().collect();
        let [domain, "-" | "soft", of, given] = words[..] else { return None };
        let enough = of == item && number(given) >= number(value);
        let (path, line) = (path.to_owned(), words.join(" "));
        enough.then(|| Grant { path, line, domain: domain.to_owned() })
    };
    let of_path = |path: String| {
        let text = files.read(&path).unwrap_or_default();
        text.lines().filter_map(|line| of_line(&path, line)).collect::<Vec<_>>()
    };
    paths.flat_map(of_path).collect()
}

/// A user of /etc/passwd and /etc/group; a user of another database has no name here.
pub(super) struct Account {
    uid: u32,
    pub name: Option<String>,
    /// Names and numbers of its groups.
    groups: Vec<(String, u32)>,
}

impl Account {
    pub(super) fn read(files: &dyn Files, uid: u32) -> Account {
        let lines = |path: &str| {
            let text = files.read(path).unwrap_or_default();
            let fields = text.lines().map(|line| line.split(':').map(str::to_owned).collect());
            fields.collect::<Vec<Vec<String>>>()
        };
        let number = |text: &String| text.parse::<u32>().ok();
        let users = lines("/etc/passwd");
        let own_line = users.iter().find(|user| user.get(2).and_then(number) == Some(uid));
        let name = own_line.and_then(|user| user.first().cloned());
        let first = own_line.and_then(|user| user.get(3)).and_then(number);
        let group = |fields: Vec<String>| {
            let [group, _, gid, members] = &fields[..] else { return None };
            let gid = number(gid)?;
            let is_member = name.as_ref().is_some_and(|name| members.split(',').any(|m| m == name));
            (is_member || first == Some(gid)).then(|| (group.clone(), gid))
        };
        let groups = lines("/etc/group").into_iter().filter_map(group).collect();
        Account { uid, name, groups }
    }

    /// The group by which a line names this user: `Some(None)` if it names the user itself.
    pub(super) fn named_by(&self, grant: &Grant) -> Option<Option<u32>> {
        let is_in_range = |range: &str, id: u32| {
            let (low, high) = range.split_once(':')?;
            let bound =
                |text: &str, none: u32| if text.is_empty() { Ok(none) } else { text.parse() };
            Some((bound(low, 0).ok()?..=bound(high, u32::MAX).ok()?).contains(&id))
        };
        if let Some(group) = grant.domain.strip_prefix('@') {
            let is = |(name, gid): &&(String, u32)| {
                is_in_range(group, *gid).unwrap_or_else(|| name == group)
            };
            return self.groups.iter().find(is).map(|(_, gid)| Some(*gid));
        }
        let named = match grant.domain.as_str() {
            "*" => self.uid != 0,
            domain => is_in_range(domain, self.uid)
                .unwrap_or_else(|| self.name.as_deref() == Some(domain)),
        };
        named.then_some(None)
    }

    /// Name or number.
    pub(super) fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("user {}", self.uid))
    }
}
