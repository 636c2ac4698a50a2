//! Boot loaders as trees: what a trial writes, refusals, and that everything is restored byte for
//! byte, wherever the process is killed.

use super::once::{BootMachine, TrialProgress};
use super::{Loader, Trial, find_loader};
use crate::files::Root;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

thread_local! {
    /// Changes of the disk to survive, and those counted.
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

/// The panic payload of a killed process.
struct Killed;

fn step() -> Box<dyn Fn()> {
    Box::new(|| {
        COUNT.set(COUNT.get() + 1);
        match LEFT.get() {
            Some(0) => std::panic::resume_unwind(Box::new(Killed)),
            left => LEFT.set(left.map(|n| n - 1)),
        }
    })
}

struct Tree(tempfile::TempDir);

/// Files of every machine.
const COMMON: [(&str, &str); 2] = [
    ("proc/sys/kernel/osrelease", "6.1.0-56"),
    ("proc/sys/kernel/random/boot_id", "aaaa0000-1111"),
];
const GRUB_CFG: &str = r#"if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   save_env next_entry
fi
menuentry 'Debian GNU/Linux' --class debian {
	linux	/boot/vmlinuz-6.1.0-56 root=UUID=11-22 ro quiet
	initrd	/boot/initrd.img-6.1.0-56
}
submenu 'Advanced options' {
	menuentry 'Debian, 6.1.0-56-rt (recovery mode)' {
		linux	/boot/vmlinuz-6.1.0-56-rt root=UUID=11-22 ro quiet single
		initrd	/boot/initrd.img-6.1.0-56-rt
	}
	menuentry 'Debian, 6.1.0-56-rt' {
		linux	/boot/vmlinuz-6.1.0-56-rt root=UUID=11-22 ro quiet
		initrd	/boot/initrd.img-6.1.0-56-rt
	}
}
if [ -f  ${config_directory}/custom.cfg ]; then
  source ${config_directory}/custom.cfg
fi
"#;
const ON_DISK: &str = "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n";

impl Tree {
    fn of(files: &[(&str, &str)]) -> Tree {
        let tree = Tree(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap());
        COMMON.iter().chain(files).for_each(|(path, text)| tree.put(path, text));
        tree
    }
    fn put(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fn root(&self) -> &Path {
        self.0.path()
    }
    fn read(&self, path: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.root().join(path)).unwrap()).into_owned()
    }
    fn machine(&self) -> BootMachine {
        let run = |words: &[&str]| match words[0] {
            "fw_printenv" => Err(r#"## Error: "punctual_once" not defined"#.to_owned()),
            _ => Ok(()),
        };
        BootMachine::from_tree(self.root(), run, step)
    }
    fn found(&self) -> Result<Loader, String> {
        find_loader(&Root::from_base(self.root()), false).map_err(|why| why.join("; "))
    }
    /// All files but those of /proc, with their modes.
    fn all(&self) -> BTreeMap<PathBuf, (u32, Option<Vec<u8>>)> {
        let mut all = BTreeMap::new();
        walk(self.root(), self.root(), &mut all);
        all.retain(|path, _| !path.starts_with("proc"));
        all
    }
    /// The loader boots what is requested, and forgets that first.
    fn boots(&self, loader: &Loader, cmdline: &str, boot: u32) {
        self.put("proc/cmdline", cmdline);
        self.put("proc/sys/kernel/random/boot_id", &format!("bbbb{boot:04}-1111"));
        match loader {
            Loader::Grub { directory, .. } => {
                let path = format!("{directory}/grubenv");
                let now = self.read(&path).replace("next_entry=punctual-once\n", "next_entry=\n");
                self.put(&path, &format!("{now}{}", "#".repeat(1024 - now.len())));
            }
            Loader::UBoot { directory, environment: false, .. } => {
                fs::remove_file(self.root().join(directory).join("punctual/once")).unwrap();
            }
            Loader::RaspberryPi { .. } => {
                self.put("proc/device-tree/chosen/bootloader/tryboot", "\0\0\0\u{1}");
            }
            _ => {}
        }
    }
}

fn walk(root: &Path, path: &Path, all: &mut BTreeMap<PathBuf, (u32, Option<Vec<u8>>)>) {
    use std::os::unix::fs::MetadataExt;
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        let meta = path.symlink_metadata().unwrap();
        let content = meta.is_file().then(|| fs::read(&path).unwrap());
        let inside = path.strip_prefix(root).unwrap().to_owned();
        all.insert(inside, (meta.mode(), content));
        if meta.is_dir() {
            walk(root, &path, all);
        }
    }
}

fn environment(lines: &str) -> String {
    let text = format!("# GRUB Environment Block\n{lines}");
    format!("{text}{}", "#".repeat(1024 - text.len()))
}

fn with_grub() -> Tree {
    Tree::of(&[
        ("proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz-6.1.0-56 root=UUID=11-22 ro quiet"),
        ("proc/self/mountinfo", ON_DISK),
        ("boot/grub/grub.cfg", GRUB_CFG),
        ("boot/grub/grubenv", &environment("saved_entry=0\n")),
    ])
}

fn with_specified_entries() -> Tree {
    let entry = |release: &str, options: &str| {
        format!(
            "title Fedora {release}\nversion {release}\nlinux /vmlinuz-{release}\ninitrd \
             /initramfs-{release}.img $tuned_initrd\noptions {options}\ngrub_users $grub_users\n"
        )
    };
    let tree = Tree::of(&[
        ("proc/cmdline", "BOOT_IMAGE=(hd0,gpt2)/vmlinuz-6.1.0-56 root=UUID=33-44 ro rhgb"),
        ("proc/self/mountinfo", &format!("{ON_DISK}23 22 8:2 / /boot rw - xfs /dev/vda2 rw\n")),
        ("boot/grub2/grub.cfg", &GRUB_CFG.replace("submenu", "insmod blscfg\nblscfg\nsubmenu")),
        ("boot/grub2/grubenv", &environment("kernelopts=root=UUID=33-44 ro\n")),
        ("boot/loader/entries/8f00-6.1.0-56.conf", &entry("6.1.0-56", "$kernelopts rhgb")),
        ("boot/loader/entries/8f00-6.1.0-56-rt.conf", &entry("6.1.0-56-rt", "root=UUID=33-44 ro")),
    ]);
    let ids = tree.root().join("dev/disk/by-uuid");
    fs::create_dir_all(&ids).unwrap();
    std::os::unix::fs::symlink("../../vda1", ids.join("1111-1111")).unwrap();
    std::os::unix::fs::symlink("../../vda2", ids.join("5555-6666")).unwrap();
    tree
}

fn with_systemd_boot() -> Tree {
    let info = "sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
    let loader: String = "systemd-boot 252".chars().flat_map(|c| [c, '\0']).collect();
    let entry = "title Debian\nversion 6.1.0-56\noptions root=UUID=11-22 ro quiet\nlinux \
                 /debian/6.1.0-56/linux\ninitrd /debian/initrd\n";
    Tree::of(&[
        ("proc/cmdline", "initrd=\\debian\\initrd root=UUID=11-22 ro quiet"),
        (info, &loader),
        ("boot/efi/loader/entries/debian.conf", entry),
        ("boot/efi/loader/entries/rt.conf", &entry.replace("6.1.0-56", "6.1.0-56-rt")),
    ])
}

/// Raspberry Pi OS; `tryboot`: with Raspberry Pi's kernel.
fn with_raspberry(tryboot: bool) -> Tree {
    let tree = Tree::of(&[
        ("proc/cmdline", "coherent_pool=1M console=ttyS0 root=PARTUUID=1-2 quiet rootwait"),
        ("proc/device-tree/compatible", "raspberrypi,4-model-b\0brcm,bcm2711\0"),
        ("boot/firmware/config.txt", "arm_64bit=1\n[cm4]\notg_mode=1\n"),
        ("boot/firmware/cmdline.txt", "console=ttyS0 root=PARTUUID=1-2 quiet rootwait\n"),
        ("boot/firmware/vmlinuz-6.1.0-56-rt", ""),
        ("boot/firmware/initrd.img-6.1.0-56-rt", ""),
    ]);
    if tryboot {
        tree.put("sys/devices/platform/soc/soc:firmware/get_throttled", "0");
    }
    tree
}

const EXTLINUX: &str = "TIMEOUT 10\ndefault six\n\nlabel other\n\tkernel /boot/vmlinuz-5.10\n\n\
                        label six\n\tmenu label Linux six\n\tlinux ../vmlinuz-6.1.0-56\n\tinitrd \
                        /boot/initrd.img-6.1.0-56\n\tfdtdir /dtbs\n\tappend console=ttyAMA0 \
                        quiet\n";

fn with_u_boot() -> Tree {
    Tree::of(&[
        ("proc/cmdline", "console=ttyAMA0 quiet"),
        ("proc/device-tree/compatible", "linux,dummy-virt\0"),
        ("proc/self/mounts", "none / rootfs rw 0 0\n/dev/vda1 /media/boot vfat rw 0 0\n"),
        ("media/boot/boot/extlinux/extlinux.conf", EXTLINUX),
        ("media/boot/boot/vmlinuz-6.1.0-56-rt", ""),
        ("media/boot/boot/initrd.img-6.1.0-56-rt", ""),
    ])
}

/// U-Boot with extlinux.conf on ext4 and its environment in a file.
fn with_environment() -> Tree {
    let tree = Tree::of(&[
        ("proc/cmdline", "console=ttyAMA0 quiet"),
        ("proc/device-tree/compatible", "linux,dummy-virt\0"),
        ("proc/self/mounts", "none / rootfs rw 0 0\n/dev/vda1 / ext4 rw 0 0\n"),
        ("boot/extlinux/extlinux.conf", EXTLINUX),
        ("usr/bin/fw_setenv", ""),
        ("etc/fw_env.config", "# device offset size\n/boot/uboot.env 0x10 0x40\n"),
    ]);
    let mut variables = b"bootdelay=0\0bootcmd=run distro_bootcmd\0".to_vec();
    variables.resize(0x40 - 4, 0);
    let sum = crc32fast::hash(&variables).to_le_bytes();
    let file = [&[0xff; 0x10][..], &sum, &variables].concat();
    fs::write(tree.root().join("boot/uboot.env"), file).unwrap();
    tree
}

/// systemd-boot with unified kernel images.
fn with_unified_images(secure: &str) -> Tree {
    let tree = with_systemd_boot();
    fs::remove_dir_all(tree.root().join("boot/efi/loader")).unwrap();
    let variable = |name: &str| format!("sys/firmware/efi/efivars/{name}");
    let id: String = "debian-6.1.0-56.efi\0".chars().flat_map(|c| [c, '\0']).collect();
    let selected = "LoaderEntrySelected-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
    tree.put(&variable(selected), &format!("\u{6}\0\0\0{id}"));
    let of_secure = variable("SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c");
    tree.put(&of_secure, &format!("\u{6}\0\0\0{secure}"));
    tree.put("boot/efi/EFI/Linux/debian-6.1.0-56.efi", "MZ");
    tree.put("boot/efi/EFI/Linux/debian-6.1.0-56-rt.efi", "MZ");
    tree.put("proc/cmdline", "root=UUID=11-22 ro quiet");
    tree
}

fn with_kexec() -> Tree {
    Tree::of(&[
        ("proc/cmdline", "BOOT_IMAGE=x root=/dev/sda1"),
        ("sys/kernel/kexec_loaded", "0"),
        ("usr/sbin/kexec", ""),
        ("boot/vmlinuz-6.1.0-56", ""),
        ("boot/vmlinuz-6.1.0-56-rt", ""),
        ("var/lib/other", ""),
    ])
}

fn words(add: &str) -> Trial {
    Trial { add: add.to_owned(), remove: vec!["quiet".to_owned()], ..Trial::default() }
}

/// Two trials, each booted and verified, and the way back.
fn trials(tree: &Tree, any: bool) {
    let fine = "root=UUID=11-22 ro";
    let loader = find_loader(&Root::from_base(tree.root()), any).unwrap();
    for (boot, trial) in [(1, words("isolcpus=3")), (2, words("nohz_full=2,3 isolcpus=3"))] {
        let machine = tree.machine();
        machine.request_trial(&trial, any).unwrap_or_else(|why| panic!("{why}"));
        let status = machine.read_status().unwrap();
        let asked = status.trial.unwrap();
        tree.boots(&loader, &format!("{fine} {}", asked.trial.add), boot);
        let verified = tree.machine().verify_boot().unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(verified.trial.unwrap().progress, TrialProgress::Running);
    }
    assert_eq!(tree.machine().revert_trials().unwrap(), (true, Vec::new()));
}

#[test]
fn every_boot_loader_is_restored_after_a_kill_at_any_write() {
    let trees: [(&str, &dyn Fn() -> Tree, bool); 8] = [
        ("GRUB", &with_grub, false),
        ("BLS", &with_specified_entries, false),
        ("systemd-boot", &with_systemd_boot, false),
        ("tryboot", &|| with_raspberry(true), false),
        ("config.txt", &|| with_raspberry(false), true),
        ("U-Boot", &with_u_boot, false),
        ("environment", &with_environment, false),
        ("unified", &|| with_unified_images("\0"), false),
    ];
    for (name, tree, any) in trees {
        let whole = tree();
        let before = whole.all();
        COUNT.set(0);
        trials(&whole, any);
        assert_eq!(whole.all(), before, "{name}, undisturbed");
        let steps = COUNT.get();
        assert!(steps > 15, "{name}: {steps}");
        for left in 0..steps {
            let tree = tree();
            LEFT.set(Some(left));
            let killed = catch_unwind(AssertUnwindSafe(|| trials(&tree, any)));
            assert!(killed.is_err_and(|why| why.is::<Killed>()), "{name}: step {left}");
            // The same holds if reverting is killed.
            LEFT.set(Some(left % 3));
            let _ = catch_unwind(AssertUnwindSafe(|| tree.machine().revert_trials().is_ok()));
            LEFT.set(None);
            let (_, not_done) =
                tree.machine().revert_trials().unwrap_or_else(|why| panic!("{why}"));
            assert_eq!(not_done, Vec::<String>::new(), "{name}: step {left}");
            assert_eq!(tree.all(), before, "{name}: step {left}");
        }
    }
}

#[test]
fn the_usual_files_stay_as_they_are_while_a_trial_is_requested() {
    let trees: [(Tree, &[&str]); 6] = [
        (with_grub(), &["boot/grub/custom.cfg", "boot/grub/grubenv"]),
        (with_specified_entries(), &["boot/grub2/custom.cfg", "boot/grub2/grubenv"]),
        (with_systemd_boot(), &["boot/efi/loader/entries/punctual-once+1.conf"]),
        (with_raspberry(true), &["boot/firmware/cmdline.punctual", "boot/firmware/tryboot.txt"]),
        (
            with_u_boot(),
            &["media/boot/boot.scr", "media/boot/punctual/once", "media/boot/punctual/trial.conf"],
        ),
        (with_environment(), &["boot.scr", "punctual/trial.conf"]),
    ];
    for (tree, own) in trees {
        let before = tree.all();
        tree.machine().request_trial(&words("isolcpus=3"), false).unwrap();
        let after = tree.all();
        let changed = after.iter().filter(|(path, content)| before.get(*path) != Some(content));
        let changed: Vec<String> = changed.map(|(path, _)| path.display().to_string()).collect();
        // The journal of the trial is in one directory of its own.
        let is_journal = |path: &&String| {
            path.ends_with("/punctual")
                || path.ends_with("punctual/boot.json")
                || path.ends_with("punctual/reboots-files.json")
                || *path == "punctual"
        };
        let written: Vec<&String> = changed.iter().filter(|path| !is_journal(path)).collect();
        assert_eq!(written, own, "{:?}", tree.found());
    }
}

#[test]
fn a_trial_of_another_kernel_boots_that_kernel() {
    let trial = Trial { kernel: Some("6.1.0-56-rt".to_owned()), ..words("isolcpus=3") };
    let arm = |tree: &Tree| tree.machine().request_trial(&trial, false).map(|_| ());
    let marked = "panic=10 punctual.boot=aaaa00001111 isolcpus=3";

    let tree = with_grub();
    arm(&tree).unwrap();
    let custom = tree.read("boot/grub/custom.cfg");
    let line = format!("\t\tlinux\t/boot/vmlinuz-6.1.0-56-rt root=UUID=11-22 ro {marked}\n");
    assert!(custom.contains(&line), "{custom}");
    assert!(custom.contains("initrd\t/boot/initrd.img-6.1.0-56-rt\n}\n"), "{custom}");
    assert!(tree.read("boot/grub/grubenv").contains("\nnext_entry=punctual-once\n#"));

    let tree = with_specified_entries();
    arm(&tree).unwrap();
    let custom = tree.read("boot/grub2/custom.cfg");
    let entry = format!(
        "{{\n\tsearch --no-floppy --fs-uuid --set=root 5555-6666\n\tlinux /vmlinuz-6.1.0-56-rt \
         root=UUID=33-44 ro {marked}\n\tinitrd /initramfs-6.1.0-56-rt.img\n}}\n"
    );
    assert!(custom.contains(&entry), "{custom}");

    let tree = with_systemd_boot();
    arm(&tree).unwrap();
    let entry = tree.read("boot/efi/loader/entries/punctual-once+1.conf");
    let rest = format!(
        "title punctual: one boot\noptions root=UUID=11-22 ro\nlinux \
         /debian/6.1.0-56-rt/linux\ninitrd /debian/initrd\noptions {marked}\n"
    );
    assert!(entry.ends_with(&rest), "{entry}");

    let tree = with_raspberry(true);
    arm(&tree).unwrap();
    assert_eq!(
        tree.read("boot/firmware/tryboot.txt"),
        "arm_64bit=1\n[cm4]\notg_mode=1\n\n# Added by punctual for one \
         boot.\n[all]\ncmdline=cmdline.punctual\nkernel=vmlinuz-6.1.0-56-rt\ninitramfs \
         initrd.img-6.1.0-56-rt followkernel\n"
    );
    let cmdline = tree.read("boot/firmware/cmdline.punctual");
    assert_eq!(cmdline, format!("console=ttyS0 root=PARTUUID=1-2 rootwait {marked}\n"));

    let tree = with_u_boot();
    arm(&tree).unwrap();
    let trial_conf = tree.read("media/boot/punctual/trial.conf");
    let entry = format!(
        "LABEL punctual\n\tLINUX /boot/vmlinuz-6.1.0-56-rt\n\tFDTDIR /dtbs\n\tINITRD \
         /boot/initrd.img-6.1.0-56-rt\n\tAPPEND console=ttyAMA0 {marked}\n"
    );
    assert!(trial_conf.ends_with(&entry), "{trial_conf}");

    let tree = with_unified_images("\0");
    tree.machine().request_trial(&trial, false).unwrap();
    let entry = tree.read("boot/efi/loader/entries/punctual-once+1.conf");
    let expected = format!(
        "title punctual: one boot\nefi /EFI/Linux/debian-6.1.0-56-rt.efi\noptions root=UUID=11-22 \
         ro\noptions {marked}\n"
    );
    assert!(entry.ends_with(&expected), "{entry}");

    let missing = Trial { kernel: Some("9.9".to_owned()), ..Trial::default() };
    for tree in [with_grub(), with_specified_entries(), with_systemd_boot(), with_u_boot()] {
        let before = tree.all();
        let why = tree.machine().request_trial(&missing, false).unwrap_err().to_string();
        assert!(why.contains("kernel 9.9"), "{why}");
        assert_eq!(tree.all(), before, "nothing is left of a refused trial");
    }
}

/// The script is one that U-Boot accepts (its `source` checks both sums), and asks for
/// the removal of the request before it boots the trial.
#[test]
fn the_script_for_u_boot_has_valid_checksums() {
    let tree = with_u_boot();
    tree.machine().request_trial(&words("isolcpus=3"), false).unwrap();
    let bytes = fs::read(tree.root().join("media/boot/boot.scr")).unwrap();
    let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    let (header, data) = bytes.split_at(64);
    let mut blank = header.to_vec();
    blank[4..8].fill(0);
    assert_eq!((word(0), word(4)), (0x2705_1956, crc32fast::hash(&blank)));
    assert_eq!((word(12) as usize, word(24)), (data.len(), crc32fast::hash(data)));
    let script = String::from_utf8(data[8..].to_vec()).unwrap();
    let tree = with_environment();
    tree.machine().request_trial(&words("isolcpus=3"), false).unwrap();
    let by_variable = tree.read("boot.scr");
    let once = "= 1; then\n\tsetenv punctual_once\n\tif saveenv; then\n\t\tsysboot";
    assert!(by_variable.contains(once), "{by_variable}");
    assert_eq!((word(64) as usize, word(68)), (script.len(), 0));
    let place = |text: &str| script.find(text).unwrap_or_else(|| panic!("{text}: {script}"));
    assert!(place("fatrm") < place("/punctual/trial.conf"));
    assert!(place("/punctual/trial.conf") < place("/boot/extlinux/extlinux.conf"));
}

#[test]
fn a_boot_loader_without_a_way_back_is_refused() {
    let raid = format!("{ON_DISK}23 22 8:2 / /boot rw shared:1 - ext4 /dev/md0 rw\n");
    let btrfs = ON_DISK.replace("ext4", "btrfs");
    let lvm = ON_DISK.replace("/dev/sda1", "/dev/mapper/vg-root");
    let mounts = "/dev/vda1 /media/boot vfat ro 0 0\n";
    let elsewhere = "/dev/vda1 / ext4 rw 0 0\n";
    let fw = "etc/fw_env.config";
    let cases: [(Tree, &str, &str, &str); 14] = [
        (with_grub(), "proc/self/mountinfo", &raid, "/dev/md0, which is not a plain disk"),
        (with_grub(), "proc/self/mountinfo", &lvm, "/dev/mapper/vg-root, which is not"),
        (with_grub(), "proc/self/mountinfo", &btrfs, "/boot/grub is on btrfs"),
        (with_raspberry(false), "x", "", "mainline kernels do not"),
        (
            with_raspberry(true),
            "boot/firmware/autoboot.txt",
            "[all]\ntryboot_a_b=1\n",
            "switches partitions",
        ),
        (with_u_boot(), "proc/self/mounts", mounts, "is mounted read-only"),
        (with_u_boot(), "media/boot/boot.scr", "theirs", "boot.scr is there, and decides first"),
        (with_u_boot(), "media/boot/extlinux/extlinux.conf", "", "decides first"),
        (with_u_boot(), "proc/self/mounts", elsewhere, "there are no files of GRUB"),
        (with_environment(), fw, "/boot/uboot.env 0x0 0x40\n", "names no valid environment"),
        (with_environment(), fw, "/dev/mtd9 0x10 zz\n#", "names no valid environment"),
        (with_environment(), "extlinux/extlinux.conf", "", "decides first"),
        (with_unified_images("\u{1}"), "x", "", "debian-6.1.0-56.efi is a unified kernel image"),
        (with_unified_images(""), "x", "", "Secure Boot is on, or not known to be off"),
    ];
    for (tree, path, text, reason) in cases {
        tree.put(path, text);
        let before = tree.all();
        let why =
            tree.machine().request_trial(&words("isolcpus=3"), false).unwrap_err().to_string();
        assert!(why.contains(reason), "{path}: {why}");
        assert_eq!(tree.all(), before, "{path}");
    }
    // On request also without: and it is said.
    let tree = with_grub();
    tree.put("proc/self/mountinfo", &raid);
    tree.machine().request_trial(&words("isolcpus=3"), true).unwrap();
    let way_back = tree.machine().read_status().unwrap().way_back.unwrap();
    assert!(way_back.starts_with("NONE"), "{way_back}");
}

#[test]
fn a_trial_that_fell_back_is_not_taken_for_it() {
    let tree = with_u_boot();
    let machine = tree.machine();
    assert!(machine.verify_boot().unwrap_err().to_string().contains("no trial"));
    machine.request_trial(&words("isolcpus=3"), false).unwrap();
    let why = |tree: &Tree| tree.machine().verify_boot().unwrap_err().to_string();
    assert!(why(&tree).contains("has not been booted"), "{}", why(&tree));
    let flag = tree.root().join("media/boot/punctual/once");
    // It panicked, and the usual boot followed.
    tree.put("proc/sys/kernel/random/boot_id", "cccc");
    assert!(why(&tree).contains("fell back"), "{}", why(&tree));
    // It came up with another command line or kernel.
    tree.put("proc/cmdline", "punctual.boot=aaaa00001111 panic=10 quiet");
    let differences = why(&tree);
    assert!(differences.contains("has no isolcpus=3"), "{differences}");
    assert!(differences.contains("still has quiet"), "{differences}");
    tree.put("proc/cmdline", "punctual.boot=aaaa00001111 panic=10 isolcpus=3");
    // The kernel took no notice of the words.
    tree.put("sys/devices/system/cpu/possible", "0-3");
    tree.put("sys/devices/system/cpu/isolated", "\n");
    assert!(why(&tree).contains("not in force: isolcpus=3"), "{}", why(&tree));
    tree.put("sys/devices/system/cpu/isolated", "3\n");
    assert!(flag.exists() && why(&tree).contains("did not remove"), "{}", why(&tree));
    fs::remove_file(flag).unwrap();
    assert_eq!(tree.machine().verify_boot().unwrap().trial.unwrap().unknown, [""; 0]);
}

#[test]
fn a_preemption_model_that_the_kernel_ignored_is_a_difference() {
    let tree = with_u_boot();
    tree.machine().request_trial(&words("preempt=full"), false).unwrap();
    fs::remove_file(tree.root().join("media/boot/punctual/once")).unwrap();
    tree.put("proc/sys/kernel/random/boot_id", "cccc");
    tree.put("proc/cmdline", "punctual.boot=aaaa00001111 panic=10 preempt=full");
    // A kernel without PREEMPT_DYNAMIC, as Debian's for arm64.
    tree.put("proc/sys/kernel/version", "#1 SMP Debian 6.1.170-3\n");
    tree.put("boot/config-6.1.0-56", "CONFIG_PREEMPT_VOLUNTARY=y\n");
    let why = tree.machine().verify_boot().unwrap_err().to_string();
    assert!(why.contains("preempt=full") && why.contains("voluntary"), "{why}");
    tree.put("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.170-3\n");
    let status = tree.machine().verify_boot().expect("it may be in force");
    let unknown = status.trial.expect("it runs").unknown;
    assert!(unknown[0].contains("cannot be read"), "{unknown:?}");
    tree.put("sys/kernel/debug/sched/preempt", "none voluntary (full)\n");
    assert_eq!(tree.machine().verify_boot().unwrap().trial.unwrap().unknown, [""; 0]);
}

#[test]
fn kexec_is_the_last_way_and_changes_no_file_of_the_boot() {
    let tree = with_kexec();
    let Ok(Loader::Kexec { cmdline, .. }) = tree.found() else { panic!("{:?}", tree.found()) };
    assert_eq!(cmdline, "root=/dev/sda1");
    let before = tree.all();
    let hang = |tree: &Tree| tree.machine().read_status().unwrap().hang.unwrap();
    assert!(hang(&tree).starts_with("NOTHING"), "{}", hang(&tree));
    let cmdline = tree.read("proc/cmdline");
    tree.put("sys/class/watchdog/watchdog0/state", "active\n");
    tree.put("proc/cmdline", &format!("{} watchdog.stop_on_reboot=0\n", cmdline.trim()));
    assert!(hang(&tree).starts_with("the armed watchdog"), "{}", hang(&tree));
    assert!(hang(&with_grub()).contains("not known"));
    tree.put("proc/cmdline", &cmdline);
    fs::remove_dir_all(tree.root().join("sys/class")).unwrap();
    assert_eq!(tree.machine().request_trial(&words("isolcpus=3"), false).unwrap(), ["kexec", "-e"]);
    tree.boots(&tree.found().unwrap(), "root=/dev/sda1 panic=10", 1);
    assert_eq!(tree.machine().revert_trials().unwrap(), (true, Vec::new()));
    assert_eq!(tree.all(), before);
    let nothing = Tree::of(&[("proc/cmdline", "root=/dev/sda1")]);
    let why = nothing.found().unwrap_err();
    assert!(why.contains("there are no files of GRUB") && why.contains("kexec"), "{why}");
    let status = nothing.machine().read_status().unwrap();
    assert_eq!((status.loader, status.trial), (None, None));
}

#[test]
fn hostile_files_of_boot_loaders_change_nothing_else() {
    let tree = with_grub();
    tree.put("etc/shadow", "secret");
    tree.machine().request_trial(&words("isolcpus=3"), false).unwrap();
    let note = r#"{"directories":[],"files":[{"path":"etc/shadow","how":"own","before":null,
        "wrote":["2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"]}]}"#;
    tree.put("boot/grub/punctual/reboots-files.json", note);
    let why = tree.machine().revert_trials().unwrap_err().to_string();
    assert!(why.contains("which punctual does not write"), "{why}");
    assert_eq!(tree.read("etc/shadow"), "secret");
    let state = tree.read("boot/grub/punctual/boot.json").replace("boot/grub", "home/me");
    tree.put("boot/grub/punctual/boot.json", &state);
    assert!(tree.machine().revert_trials().unwrap_err().to_string().contains("elsewhere"));
    for add in ["a;reboot", "a\nb", "$(x)", "-- init", "a\"b"] {
        let refused = with_u_boot();
        let before = refused.all();
        assert!(refused.machine().request_trial(&words(add), false).is_err(), "{add}");
        assert_eq!(refused.all(), before, "{add}");
    }
    for name in ["", "../x", "a b"] {
        let trial = Trial { kernel: Some(name.to_owned()), ..Trial::default() };
        assert!(with_u_boot().machine().request_trial(&trial, false).is_err(), "{name}");
    }
}
