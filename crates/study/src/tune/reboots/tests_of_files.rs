//! The files of boot loaders and of systemd, on trees: writes, refusals, and that everything is
//! restored, wherever the process is killed.

use super::Reboots;
use super::system::{RootedSystem, RunCommand, files_of, going_on, is_possible, plan};
use super::unit;
use crate::tune::reboot_plan::RebootPlan;
use crate::tune::testing::{Fate, Killed};
use punctual_core::Nanos;
use punctual_host::boot::Loader;
use punctual_host::boot::kept::KeptFiles;
use punctual_host::files::Root;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;

const CMDLINE: &str = "BOOT_IMAGE=/boot/vmlinuz-6.1.0-56-amd64 root=UUID=11-22 ro quiet";

/// As grub-mkconfig of Debian 12 writes it, shortened.
const GRUB_CFG: &str = r#"if [ -s $prefix/grubenv ]; then
  set have_grubenv=true
  load_env
fi
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="0"
fi
menuentry 'Debian GNU/Linux' --class debian $menuentry_id_option 'gnulinux-simple-11-22' {
	load_video
	if [ x$grub_platform = xxen ]; then insmod xzio; fi
	search --no-floppy --fs-uuid --set=root 11-22
	linux	/boot/vmlinuz-6.1.0-60-amd64 root=UUID=11-22 ro quiet
	initrd	/boot/initrd.img-6.1.0-60-amd64
}
submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'advanced' {
	menuentry 'Debian, with Linux 6.1.0-56-amd64' --class debian $menuentry_id_option 'six' {
		search --no-floppy --fs-uuid --set=root 11-22
		linux	/boot/vmlinuz-6.1.0-56-amd64 root=UUID=11-22 ro quiet $vt_handoff
		initrd	/boot/initrd.img-6.1.0-56-amd64
	}
	menuentry 'Debian, with Linux 6.1.0-56-amd64 (recovery mode)' 'recovery' {
		linux	/boot/vmlinuz-6.1.0-56-amd64 root=UUID=11-22 ro single
		initrd	/boot/initrd.img-6.1.0-56-amd64
	}
}
if [ -f  ${config_directory}/custom.cfg ]; then
  source ${config_directory}/custom.cfg
fi
"#;

const MOUNTS: &str = "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n";

fn environment(lines: &str) -> String {
    let text = format!("# GRUB Environment Block\n{lines}");
    format!("{text}{}", "#".repeat(1024 - text.len()))
}

struct Tree(tempfile::TempDir);

impl Tree {
    fn with(files: &[(&str, &str)]) -> Tree {
        let tree = Tree(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap());
        for (path, text) in files {
            tree.put(path, text);
        }
        fs::create_dir_all(tree.0.path().join("root/etc/systemd/system")).unwrap();
        fs::create_dir_all(tree.0.path().join("root/run/systemd/system")).unwrap();
        fs::create_dir_all(tree.0.path().join("t")).unwrap();
        tree
    }
    fn put(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fn root(&self) -> PathBuf {
        self.0.path().join("root")
    }
    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap()
    }
    /// The system with or without the simulated fate of the process.
    fn system(&self, fate: Option<Rc<Fate>>) -> RootedSystem {
        self.system_running(fate, Box::new(|_| Ok(())))
    }
    fn system_running(&self, fate: Option<Rc<Fate>>, run: RunCommand) -> RootedSystem {
        let place = self.0.path().join("t");
        let plan = plan(&Root::at(self.root()), 3, Nanos::from_secs(60))
            .unwrap_or_else(|why| panic!("{}", why.render(false)));
        let kept = KeptFiles::new(&self.root(), &place);
        let kept = match fate {
            Some(fate) => kept.with_step(Box::new(move || fate.meet())),
            None => kept,
        };
        let program = PathBuf::from("/usr/bin/punctual");
        RootedSystem::new(&self.root(), kept, plan, program, place, run)
    }
    fn all(&self) -> BTreeMap<PathBuf, Option<String>> {
        let mut all = BTreeMap::new();
        walk(&self.root(), &mut all);
        all
    }
}

fn walk(path: &Path, all: &mut BTreeMap<PathBuf, Option<String>>) {
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        let kind = path.symlink_metadata().unwrap();
        let content = match fs::read_link(&path) {
            Ok(to) => Some(to.display().to_string()),
            Err(_) if kind.is_dir() => None,
            Err(_) => Some(String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()),
        };
        all.insert(path.clone(), content);
        if kind.is_dir() {
            walk(&path, all);
        }
    }
}

fn with_grub(more: &[(&str, &str)]) -> Tree {
    let tree = Tree::with(&[
        ("proc/cmdline", CMDLINE),
        ("proc/self/mountinfo", MOUNTS),
        ("boot/grub/grub.cfg", GRUB_CFG),
        ("boot/grub/grubenv", &environment("saved_entry=0\n")),
    ]);
    more.iter().for_each(|(path, text)| tree.put(path, text));
    tree
}

fn with_systemd_boot() -> Tree {
    let info = "sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
    let loader: String = "systemd-boot 252".chars().flat_map(|c| [c, '\0']).collect();
    let entry = "title Debian\nversion 6.1.0-56-amd64\nsort-key debian\noptions root=UUID=11-22 \
                 ro quiet\nlinux /debian/6.1.0-56-amd64/linux\ninitrd /debian/initrd\n";
    Tree::with(&[
        ("proc/cmdline", "initrd=\\debian\\initrd root=UUID=11-22 ro quiet"),
        ("proc/sys/kernel/osrelease", "6.1.0-56-amd64"),
        (info, &loader),
        ("boot/efi/loader/entries/debian.conf", entry),
        ("boot/efi/loader/entries/old.conf", &entry.replace("6.1.0-56", "5.10.0-1")),
    ])
}

const ENTRY: &str = "punctual-once";

/// The entry of the next boot.
fn next_entry(environment: &str) -> Option<&str> {
    environment.lines().find_map(|line| line.strip_prefix("next_entry="))
}

/// GRUB's change of the environment block before it boots the entry.
fn boots_once(tree: &Tree) {
    let path = "boot/grub/grubenv";
    if tree.root().join(path).exists() {
        let now = tree.read(path).replace(&format!("next_entry={ENTRY}\n"), "next_entry=\n");
        tree.put(path, &format!("{now}{}", "#".repeat(1024 - now.len())));
    }
    // systemd-boot's count, in the name of its entry.
    let entry = tree.root().join("boot/efi/loader/entries/punctual-once+1.conf");
    if entry.exists() {
        fs::rename(&entry, entry.with_file_name("punctual-once+0-1.conf")).unwrap();
    }
}

/// All writes of a tuning, with a boot in between.
fn tuning(tree: &Tree, fate: &Rc<Fate>) {
    let mut system = tree.system(Some(Rc::clone(fate)));
    let fine = |result: Result<(), punctual_session::exit::Failure>| {
        result.unwrap_or_else(|why| panic!("{}", why.render(false)));
    };
    fine(system.install());
    fine(system.arm("panic=10 punctual.tune=1"));
    boots_once(tree);
    fine(system.booted());
    fine(system.install());
    fine(system.arm("panic=10 punctual.tune=2 threadirqs"));
    assert!(system.disarm().is_ok_and(|not_done| not_done.is_empty()));
}

#[test]
fn disarm_restores_all_files_after_a_kill_at_any_write() {
    let trees: [&dyn Fn() -> Tree; 4] = [
        &|| with_grub(&[]),
        // A file without a newline at its end; the entry of an earlier boot.
        &|| with_grub(&[("boot/grub/custom.cfg", "set timeout=3")]),
        &|| with_grub(&[("boot/grub/grubenv", &environment("next_entry=\nsaved_entry=0\n"))]),
        &with_systemd_boot,
    ];
    for (which, tree) in trees.iter().enumerate() {
        let (whole, count) = (tree(), Rc::new(Fate::default()));
        let before = whole.all();
        tuning(&whole, &count);
        let is_same = |tree: &Tree, what: &str| {
            let now = tree.all();
            let of = |all: &BTreeMap<PathBuf, Option<String>>, root: &Path| {
                let inside = all.iter().map(|(path, content)| {
                    (path.strip_prefix(root).unwrap().to_owned(), content.clone())
                });
                inside.collect::<BTreeMap<_, _>>()
            };
            assert_eq!(of(&now, &tree.root()), of(&before, &whole.root()), "{which}: {what}");
        };
        is_same(&whole, "undisturbed");
        let steps = count.count.get();
        assert!(steps > 20, "{steps}");
        for step in 0..steps {
            let (tree, fate) = (tree(), Rc::new(Fate::default()));
            fate.left.set(Some(step));
            let killed = catch_unwind(AssertUnwindSafe(|| tuning(&tree, &fate)));
            assert!(killed.is_err_and(|why| why.is::<Killed>()), "{which}: step {step}");
            // The same holds if reverting is killed.
            let again = Rc::new(Fate::default());
            again.left.set(Some(step % 3));
            let _ = catch_unwind(AssertUnwindSafe(|| tree.system(Some(again)).disarm().is_ok()));
            let not_done = tree.system(None).disarm();
            assert!(not_done.is_ok_and(|all| all.is_empty()), "{which}: step {step}");
            is_same(&tree, &format!("step {step}"));
        }
    }
}

#[test]
fn grub_boots_a_copy_of_the_entry_that_was_booted() {
    let tree = with_grub(&[("boot/grub/custom.cfg", "set timeout=3\n")]);
    let mut system = tree.system(None);
    system.arm("panic=10 punctual.tune=1 threadirqs").unwrap();
    let custom = tree.read("boot/grub/custom.cfg");
    assert!(custom.starts_with("set timeout=3\n"), "{custom}");
    let linux = "\t\tlinux\t/boot/vmlinuz-6.1.0-56-amd64 root=UUID=11-22 ro quiet $vt_handoff \
                 panic=10 punctual.tune=1 threadirqs\n";
    assert!(custom.contains(linux), "{custom}");
    assert!(custom.contains("\t\tinitrd\t/boot/initrd.img-6.1.0-56-amd64\n}\n"), "{custom}");
    let now = tree.read("boot/grub/grubenv");
    assert_eq!((now.len(), next_entry(&now)), (1024, Some(ENTRY)));
    assert!(now.contains("\nsaved_entry=0\n"));
    // Later changes of others stay.
    tree.put("boot/grub/grubenv", &now.replace("saved_entry=0", "saved_entry=2"));
    tree.put("boot/grub/custom.cfg", &format!("{custom}set gfxmode=auto\n"));
    assert_eq!(system.disarm().unwrap(), Vec::<String>::new());
    assert_eq!(tree.read("boot/grub/grubenv"), environment("saved_entry=2\n"));
    assert_eq!(tree.read("boot/grub/custom.cfg"), "set timeout=3\nset gfxmode=auto\n");
    assert!(system.arm("init=/bin/sh;reboot").is_err(), "a word of a script");
}

#[test]
fn the_systemd_boot_entry_has_a_boot_count_of_one() {
    let tree = with_systemd_boot();
    let mut system = tree.system(None);
    system.arm("panic=10 punctual.tune=1 threadirqs").unwrap();
    assert_eq!(
        tree.read("boot/efi/loader/entries/punctual-once+1.conf"),
        "# Written by punctual for one boot, which removes it.\ntitle punctual: one boot\noptions \
         root=UUID=11-22 ro quiet\nlinux /debian/6.1.0-56-amd64/linux\ninitrd \
         /debian/initrd\noptions panic=10 punctual.tune=1 threadirqs\n"
    );
    boots_once(&tree);
    let entries = tree.root().join("boot/efi/loader/entries");
    // systemd-bless-boot.service has marked it good: it no longer counts.
    fs::rename(entries.join("punctual-once+0-1.conf"), entries.join("punctual-once.conf")).unwrap();
    system.booted().unwrap();
    let mut left: Vec<_> =
        fs::read_dir(entries).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["debian.conf", "old.conf"]);
}

/// Some versions include the count in the id of an entry, others do not.
#[test]
fn only_a_one_shot_set_by_punctual_is_cleared() {
    let tree = with_systemd_boot();
    let commands: Rc<RefCell<Vec<String>>> = Rc::default();
    let recorded = Rc::clone(&commands);
    let record = move |words: &[&str]| {
        recorded.borrow_mut().push(words.join(" "));
        Ok(())
    };
    let mut system = tree.system_running(None, Box::new(record));
    assert_eq!(system.disarm().unwrap(), Vec::<String>::new());
    assert!(commands.borrow().is_empty(), "{commands:?}");
    system.arm("panic=10 punctual.tune=1").unwrap();
    assert_eq!(system.disarm().unwrap(), Vec::<String>::new());
    let commands = commands.take();
    let [asked, cleared] = commands.as_slice() else { panic!("{commands:?}") };
    let pattern = asked.strip_prefix("bootctl set-oneshot ").unwrap();
    let (before, after) = pattern.split_once('*').unwrap();
    for id in ["punctual-once+1.conf", "punctual-once.conf"] {
        assert!(id.strip_prefix(before).is_some_and(|rest| rest.ends_with(after)), "{id}");
    }
    assert_eq!(cleared, "bootctl set-oneshot ");
}

#[test]
fn a_grub_that_does_not_clear_next_entry_is_detected() {
    let tree = with_grub(&[]);
    let mut system = tree.system(None);
    system.arm("panic=10 punctual.tune=1").unwrap();
    let why = system.booted().expect_err("it is there").render(false);
    assert!(why.contains("next_entry"), "{why}");
    boots_once(&tree);
    system.booted().unwrap();
}

#[test]
fn a_forged_tuning_directory_changes_no_other_file() {
    let tree = with_grub(&[("etc/shadow", "secret"), ("boot/grub/custom.cfg", "secret")]);
    let victim = tree.0.path().join("victim");
    fs::write(&victim, "secret").unwrap();
    fs::create_dir(tree.0.path().join("empty")).unwrap();
    let digest = punctual_core::hex(&<sha2::Sha256 as sha2::Digest>::digest("secret"));
    fs::create_dir(tree.root().join("home")).unwrap();
    let before = tree.all();
    let absolute = victim.display().to_string();
    let file = |path: &str| {
        format!(
            r#"{{"directories":[],"files":[{{"path":"{path}","how":"own","before":null,
            "wrote":["{digest}"]}}]}}"#
        )
    };
    let directory = r#"{"directories":["../empty"],"files":[]}"#.to_owned();
    let other = r#"{"directories":["home"],"files":[]}"#.to_owned();
    let notes = [
        file("etc/shadow"),
        file(&absolute),
        file("../victim"),
        // Files of GRUB never belong to us alone.
        file("boot/grub/custom.cfg"),
        directory,
        other,
    ];
    for note in notes {
        fs::write(tree.0.path().join("t/reboots-files.json"), &note).unwrap();
        let why = tree.system(None).disarm().expect_err("it is refused").render(false);
        assert!(why.contains("which punctual does not write"), "{note}: {why}");
        assert_eq!(tree.all(), before, "{note}");
        assert!(victim.exists() && tree.0.path().join("empty").exists(), "{note}");
    }
    // The loader must be a known one, too.
    let line = Tree::with(&[("proc/cmdline", "ro punctual.reboots=/shared/next")]);
    let is_possible = |loader: Loader| is_possible(&Root::at(line.root()), &loader);
    let body = String::new();
    let harness = |file: &str| is_possible(Loader::Harness { file: file.to_owned() });
    assert!(harness("/shared/next") && !harness("/etc/shadow"));
    for (directory, is) in [("boot/grub", true), ("boot/grub2", true), ("home/me", false)] {
        let (directory, body) = (directory.to_owned(), body.clone());
        let loader = Loader::Grub { directory: directory.clone(), body, repeats: false };
        assert_eq!(is_possible(loader), is, "{directory}");
    }
    for (directory, is) in [("boot/efi", true), ("../boot/efi", false), ("/boot", false)] {
        let loader = Loader::SystemdBoot { directory: directory.to_owned(), body: body.clone() };
        assert_eq!(is_possible(loader), is, "{directory}");
    }
}

#[test]
fn tuning_is_refused_if_a_needed_file_does_not_survive_a_reboot() {
    let tree = with_grub(&[("proc/self/mounts", "/dev/sda1 / ext4 rw 0 0\n")]);
    let is_fine = |place: &str, program: &str, cwd: &str, loader: Option<Loader>| {
        let plan = plan(&Root::at(tree.root()), 3, Nanos::ZERO).unwrap();
        let loader = loader.unwrap_or(plan.loader);
        let plan = RebootPlan { cwd: Some(cwd.into()), loader, ..plan };
        let (root, place) = (tree.root(), Path::new(place));
        let kept = KeptFiles::new(&root, place);
        let run = Box::new(|_: &[&str]| Ok(()));
        let system = RootedSystem::new(&root, kept, plan, program.into(), place.into(), run);
        system.outlives_boots().is_ok()
    };
    assert!(is_fine("/none/t", "/none/punctual", "/none", None));
    assert!(!is_fine("/tmp/none/t", "/none/punctual", "/none", None));
    assert!(!is_fine("/none/t", "/tmp/none/punctual", "/none", None));
    assert!(!is_fine("/none/t", "/none/punctual", "/tmp", None));
    // A guest of a harness has only memory, and the harness restores it itself.
    let harness = Loader::Harness { file: String::new() };
    assert!(is_fine("/tmp/none/t", "/none/punctual", "/none", Some(harness)));
}

#[test]
fn systems_without_one_time_boot_are_refused_with_the_reason() {
    let why = |tree: &Tree| {
        let plan = plan(&Root::at(tree.root()), 3, Nanos::ZERO);
        plan.err().map_or_else(String::new, |why| why.render(false))
    };
    let mounted = |line: &str| format!("{MOUNTS}23 22 8:2 / /boot rw shared:1 - {line}\n");
    let raid = mounted("ext4 /dev/md0 rw");
    let cow = mounted("btrfs /dev/sda2 rw");
    let old = GRUB_CFG.replace("next_entry", "other");
    let unit = format!("{CMDLINE} -- single");
    let cases: [(&str, &str, &str); 8] = [
        ("proc/self/mountinfo", &raid, "/boot/grub is on /dev/md0, which is not a plain disk"),
        ("proc/self/mountinfo", &cow, "/boot/grub is on btrfs"),
        ("proc/self/mountinfo", "\u{0}hostile - \n", "is not known"),
        ("boot/grub/grub.cfg", &old, "does not look at next_entry"),
        ("boot/grub/grubenv", "", "not an environment block"),
        ("proc/cmdline", "root=/dev/sda1 ro", "BOOT_IMAGE="),
        ("proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz-6.1.0-56-amd64 root=other", "no entry of"),
        ("proc/cmdline", &unit, "has a `--`"),
    ];
    for (path, text, reason) in cases {
        let found = why(&with_grub(&[(path, text)]));
        assert!(found.contains(reason), "{path}: {found}");
    }
    let nothing = Tree::with(&[("proc/cmdline", "root=/dev/sda1")]);
    let found = why(&nothing);
    assert!(found.contains("systemd-boot") && found.contains("GRUB"), "{found}");
    fs::remove_dir_all(nothing.root().join("run")).unwrap();
    assert!(why(&nothing).contains("no systemd"));
}

#[test]
fn a_second_tuning_is_refused_and_a_modified_unit_kept() {
    let tree = with_grub(&[(unit::UNIT, "[Unit]\n")]);
    let why = tree.system(None).install().expect_err("it is there").render(false);
    assert!(why.contains("punctual tune undo"), "{why}");
    fs::remove_file(tree.root().join(unit::UNIT)).unwrap();
    tree.system(None).install().unwrap();
    tree.put(unit::UNIT, "[Unit]\nDescription=mine\n");
    let not_done = tree.system(None).disarm().unwrap();
    assert!(not_done[0].ends_with("it was changed since: it stays"), "{not_done:?}");
}

#[test]
fn the_tuning_service_resumes_in_its_working_directory() {
    let place = Path::new("/root/my $5 %n \"t\"");
    let text = unit::text(Path::new("/usr/bin/punctual"), place, Some(Path::new("/root/5 %n")));
    assert!(text.contains("\nWorkingDirectory=/root/5 %%n\nExecStart="), "{text}");
    let mounts = r#"RequiresMountsFor="/root/my $5 %%n \"t\"" "/usr/bin/punctual""#;
    assert!(text.contains(mounts), "{text}");
    assert!(
        text.contains(
            r#"ExecStart="/usr/bin/punctual" tune --quiet --resume "/root/my $$5 %%n \"t\"""#
        ),
        "{text}"
    );
    assert_eq!(unit::place(&text).as_deref(), Some("/root/my $5 %n \"t\""));
}

#[test]
fn the_reboot_plan_names_each_file_and_sets_the_watchdog() {
    let tree = with_grub(&[("dev/watchdog", "")]);
    let with = plan(&Root::at(tree.root()), 2, Nanos::from_secs(30)).unwrap();
    assert_eq!(
        with.words(7, "threadirqs"),
        "panic=10 systemd.watchdog_sec=60 punctual.tune=7 threadirqs"
    );
    assert_eq!(with.observation(Nanos::from_secs(10)), Nanos::from_secs(60 + 30 + 20));
    assert!(matches!(with.loader, Loader::Grub { .. }));
    let files: Vec<String> = files_of(&with).into_iter().map(|(path, _)| path).collect();
    let mut system = tree.system(None);
    let before = tree.all();
    assert_eq!(going_on(&Root::at(tree.root())), None);
    system.install().unwrap();
    let place = tree.0.path().join("t").display().to_string();
    assert_eq!(going_on(&Root::at(tree.root())), Some(place));
    system.arm("threadirqs").unwrap();
    let now = tree.all();
    for (path, content) in &now {
        let inside = format!("/{}", path.strip_prefix(tree.root()).unwrap().display());
        let is_changed = content.is_some() && before.get(path) != Some(content);
        assert_eq!(files.contains(&inside), is_changed, "{inside}");
    }
    let harness = Tree::with(&[("proc/cmdline", "ro punctual.reboots=/shared/next")]);
    let plan = plan(&Root::at(harness.root()), 1, Nanos::ZERO).unwrap();
    assert_eq!(plan.loader, Loader::Harness { file: "/shared/next".to_owned() });
}
