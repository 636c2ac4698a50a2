//! The allocating process: a small program linked with the machine's own C library, so that its
//! malloc is the one that local programs use; or, if the machine has no loader for such programs,
//! punctual itself under another name.

use super::shared_memory::{END, HeapMemory, SMALL_PAGES};
use crate::stop::Stop;
use punctual_sys::attributes;
use punctual_sys::descriptor::create_memfd;
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The program, compressed; empty if none could be linked for this target.
static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/heap.z"));
/// The time limit for its start.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The word for punctual itself in place of a library.
const BUILT_IN: &str = "built-in";

/// The first argument that makes punctual that program.
pub const ARGUMENT: &str = "__allocate";

unsafe extern "C" {
    /// Defined in heap.c: serves until END is set.
    fn punctual_heap_program(count: libc::c_long, words: *mut *mut libc::c_char) -> !;
}

/// Runs punctual as that program.
pub fn run_heap_program() -> ! {
    let words: Vec<CString> =
        std::env::args_os().filter_map(|word| CString::new(word.into_vec()).ok()).collect();
    let mut pointers: Vec<*mut libc::c_char> =
        words.iter().map(|word| word.as_ptr().cast_mut()).collect();
    // SAFETY: as many pointers to strings that end with a NUL; nothing is written through them.
    unsafe { punctual_heap_program(pointers.len() as libc::c_long, pointers.as_mut_ptr()) }
}

/// The malloc to be measured.
#[derive(Clone, Debug, PartialEq)]
pub enum Allocator {
    /// The malloc of the machine's C library.
    Machine,
    /// The malloc of a shared library.
    Preloaded(PathBuf),
    /// The malloc of the C library that punctual is linked with.
    BuiltIn,
}

impl Allocator {
    /// From the plan. The error names what is missing.
    pub fn from_plan(path: Option<&Path>) -> Result<Allocator, String> {
        let Some(path) = path else { return Ok(Allocator::Machine) };
        if path.as_os_str() == BUILT_IN {
            return Ok(Allocator::BuiltIn);
        }
        let shown_path = path.display();
        let help =
            "give the file of a shared library, like /usr/lib/x86_64-linux-gnu/libjemalloc.so.2";
        let real =
            path.canonicalize().map_err(|why| format!("allocator {shown_path}: {why}: {help}"))?;
        if !real.is_file() {
            return Err(format!("allocator {shown_path} is not a file: {help}"));
        }
        let mut magic = [0; 4];
        let read = File::open(&real).and_then(|mut file| file.read_exact(&mut magic));
        read.map_err(|why| format!("allocator {shown_path}: {why}: {help}"))?;
        if magic != *b"\x7fELF" {
            return Err(format!(
                "allocator {shown_path} is not a library (not an ELF file): {help}"
            ));
        }
        // ld.so(8): LD_PRELOAD is a list without quoting.
        if real.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b':' | b' ')) {
            let reason = "LD_PRELOAD takes no path with a colon or a space in it";
            return Err(format!("allocator {}: {reason}: copy the file elsewhere", real.display()));
        }
        Ok(Allocator::Preloaded(real))
    }
}

/// An allocating process that waits for its turn.
pub struct Helper {
    pid: libc::pid_t,
    has_ended: bool,
    pub shared_memory: HeapMemory,
    /// The source of its malloc: `glibc 2.36 (dynamic)`.
    pub name: String,
    /// The file that contains its malloc.
    pub library: Option<String>,
    /// Why it is not the requested one.
    pub instead: Option<String>,
}

impl Helper {
    /// Starts it as a child of the calling thread, with that thread's CPUs.
    pub fn start(
        allocator: &Allocator,
        blocks: usize,
        small_pages: bool,
    ) -> Result<Helper, String> {
        let shared_memory = HeapMemory::new(blocks)
            .map_err(|why| format!("memory for {blocks} blocks' times: {why}"))?;
        let mut helper = Helper {
            pid: 0,
            has_ended: false,
            shared_memory,
            name: String::new(),
            library: None,
            instead: None,
        };
        helper.shared_memory.batch_head().flags = if small_pages { SMALL_PAGES } else { 0 };
        helper.pid = match allocator {
            Allocator::BuiltIn => helper.spawn_own()?,
            Allocator::Preloaded(library) => helper.spawn_image(Some(library))?,
            Allocator::Machine => match helper.spawn_image(None) {
                Ok(pid) => pid,
                Err(why) => {
                    helper.instead = Some(why);
                    helper.spawn_own()?
                }
            },
        };
        helper.await_ready()?;
        helper.identify_allocator(allocator)?;
        Ok(helper)
    }

    /// Not by fork(2): then all memory of punctual would be copied on the next write, locked or
    /// not, and every measuring thread would see those page faults. posix_spawn(3) of the C library
    /// stops the caller until the child has executed the other program.
    fn spawn_program(&self, program: &str, preload: Option<&Path>) -> io::Result<libc::pid_t> {
        let nul = |_| io::Error::from(io::ErrorKind::InvalidInput);
        let (shared, [descriptor, length, blocks]) = self.shared_memory.describe_mapping();
        let parent = std::process::id().to_string();
        let words = ["punctual-heap", ARGUMENT, &descriptor, &length, &blocks, &parent];
        let words = words
            .iter()
            .map(|word| CString::new(*word))
            .collect::<Result<Vec<_>, _>>()
            .map_err(nul)?;
        let inherited = std::env::vars_os().filter(|(name, _)| name != "LD_PRELOAD");
        let preload = preload.map(|library| ("LD_PRELOAD".into(), library.as_os_str().to_owned()));
        let variables = inherited
            .chain(preload)
            .map(|(name, value)| CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()));
        let variables = variables.collect::<Result<Vec<_>, _>>().map_err(nul)?;
        let program = CString::new(program).map_err(nul)?;
        let pointers = |strings: &[CString]| {
            let pointers = strings.iter().map(|string| string.as_ptr().cast_mut());
            pointers.chain(std::iter::once(std::ptr::null_mut())).collect::<Vec<_>>()
        };
        let (words, variables, mut pid) = (pointers(&words), pointers(&variables), 0);
        // SAFETY: all strings end with a NUL and both lists with a null pointer, and they live
        // until the call returns; the actions are initialised before use and destroyed afterwards.
        // A descriptor that is duplicated to its own number stays open (posix_spawn(3p)).
        let error = unsafe {
            let mut actions: libc::posix_spawn_file_actions_t = std::mem::zeroed();
            libc::posix_spawn_file_actions_init(&mut actions);
            libc::posix_spawn_file_actions_adddup2(&mut actions, shared, shared);
            let no_attributes = std::ptr::null();
            let error = libc::posix_spawn(
                &mut pid,
                program.as_ptr(),
                &actions,
                no_attributes,
                words.as_ptr(),
                variables.as_ptr(),
            );
            libc::posix_spawn_file_actions_destroy(&mut actions);
            error
        };
        if error == 0 { Ok(pid) } else { Err(io::Error::from_raw_os_error(error)) }
    }

    /// The program that is linked with the machine's C library.
    fn spawn_image(&self, preload: Option<&Path>) -> Result<libc::pid_t, String> {
        let image = unpack_program()?;
        // A descriptor open in this process under that name is also open in the child until it
        // executes the program.
        self.spawn_program(&format!("/proc/self/fd/{}", image.as_raw_fd()), preload).map_err(
            |why| match why.kind() {
                io::ErrorKind::NotFound => {
                    "this machine has no loader for programs linked with glibc".to_owned()
                }
                _ => format!("the program that allocates could not be started: {why}"),
            },
        )
    }

    /// Punctual itself, as the same program.
    fn spawn_own(&self) -> Result<libc::pid_t, String> {
        self.spawn_program("/proc/self/exe", None)
            .map_err(|why| format!("the process that allocates could not be started: {why}"))
    }

    fn await_ready(&mut self) -> Result<(), String> {
        let until = Instant::now() + TIMEOUT;
        while !self.shared_memory.has_turn() {
            self.shared_memory.wait_a_while();
            if self.is_gone() {
                return Err("the program that allocates ended before it was ready".to_owned());
            }
            if Instant::now() > until {
                return Err("the program that allocates did not become ready: is its CPU used by \
                            real-time tasks?"
                    .into());
            }
        }
        if self.shared_memory.has_same_layout() {
            Ok(())
        } else {
            Err("the program that allocates is of another version".to_owned())
        }
    }

    /// Finds the source of its malloc, and whether it is the requested one.
    fn identify_allocator(&mut self, allocator: &Allocator) -> Result<(), String> {
        let ([malloc, free], version) = self.shared_memory.allocator_addresses();
        if self.instead.is_some() || *allocator == Allocator::BuiltIn {
            let how = if cfg!(target_feature = "crt-static") { "static" } else { "dynamic" };
            self.name = format!("{}, punctual's own ({how})", own_library());
            return Ok(());
        }
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.pid)).unwrap_or_default();
        self.library = mapped_at(&maps, malloc).map(str::to_owned);
        let library = if version.is_empty() {
            "a C library that is not glibc".to_owned()
        } else {
            format!("glibc {version}")
        };
        self.name = format!("{library} (dynamic)");
        let Allocator::Preloaded(asked) = allocator else { return Ok(()) };
        let wanted_library = asked.to_string_lossy();
        if [malloc, free].iter().any(|at| mapped_at(&maps, *at) != Some(&wanted_library)) {
            let found = self.library.as_deref().unwrap_or("unknown");
            return Err(format!(
                "allocator {wanted_library} is not used: malloc is that of {found} (is it a \
                 library for this machine that has malloc and free?)"
            ));
        }
        let file = Path::new(&*wanted_library).file_name().unwrap_or_default().to_string_lossy();
        self.name = format!("{file} (preloaded, over {library})");
        Ok(())
    }

    /// Gives it the CPUs and the scheduling of the calling thread.
    pub(crate) fn scheduled_like_us(&self) -> Result<(), String> {
        let failed = |why: io::Error| {
            format!("the program that allocates cannot be scheduled like its thread: {why}")
        };
        attributes::set_affinity(self.pid, &attributes::read_affinity(0).map_err(failed)?)
            .map_err(failed)?;
        attributes::set_scheduling(self.pid, &attributes::read_scheduling(0).map_err(failed)?)
            .map_err(failed)
    }

    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Lets it do a batch from the shared memory, and waits for its end.
    pub(crate) fn run_batch(&mut self, stop: &Stop) -> io::Result<()> {
        self.shared_memory.hand_over();
        while !self.shared_memory.has_turn() {
            self.shared_memory.wait_a_while();
            if stop.is_asked() {
                self.shared_memory.ask_to_stop();
            }
            if !self.shared_memory.has_turn() && self.is_gone() {
                let reason = "the process that allocates has ended: was it killed, or the machine \
                           out of memory?";
                return Err(io::Error::other(reason));
            }
        }
        match self.shared_memory.batch_head().error {
            0 => Ok(()),
            libc_enomem if libc_enomem == libc::ENOMEM as u32 => Err(io::Error::other(
                "the process that allocates could not lock its memory, or was killed: raise \
                 `ulimit -l`, or leave out `mlockall`",
            )),
            error => Err(io::Error::from_raw_os_error(error as i32)),
        }
    }

    fn is_gone(&mut self) -> bool {
        // SAFETY: a child of ours that has not been reaped; a null status is allowed.
        let ended = || unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), libc::WNOHANG) } != 0;
        self.has_ended = self.has_ended || ended();
        self.has_ended
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        if self.pid <= 0 || self.is_gone() {
            return;
        }
        if self.shared_memory.has_turn() {
            self.shared_memory.batch_head().flags = END;
            self.shared_memory.hand_over();
        } else {
            // SAFETY: a child of ours that has not been reaped: its number cannot be reused.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
        }
        // SAFETY: as above; a null status is allowed.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
    }
}

/// The program, in a file that exists only in memory.
fn unpack_program() -> Result<File, String> {
    let mut bytes = Vec::new();
    let unpacked = flate2::read::ZlibDecoder::new(PROGRAM).read_to_end(&mut bytes);
    if unpacked.is_err() || bytes.is_empty() {
        return Err(
            "this punctual was built without the program that uses the machine's own allocator"
                .to_owned(),
        );
    }
    // Linux 6.3 has vm.memfd_noexec, and a flag against it that older kernels refuse.
    const EXEC: libc::c_uint = 0x10;
    let failed = |why| format!("memory for the program that allocates: {why}");
    let make_memfd = |flags| create_memfd(c"punctual-heap", flags);
    let mut file = make_memfd(EXEC).or_else(|_| make_memfd(0)).map_err(failed)?;
    file.write_all(&bytes).map_err(failed)?;
    // A file open for writing cannot be executed.
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
        .map_err(|why| format!("the program that allocates: {why}"))
}

/// The C library that punctual is linked with.
fn own_library() -> String {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: it takes nothing and returns a string that lasts.
        let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
        format!("glibc {}", version.to_string_lossy())
    }
    #[cfg(not(target_env = "gnu"))]
    {
        "musl".to_owned()
    }
}

/// The file mapped at an address (proc_pid_maps(5)).
fn mapped_at(maps: &str, at: u64) -> Option<&str> {
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (first, after) = range.split_once('-')?;
        let bound = |word| u64::from_str_radix(word, 16).ok();
        let inside = (bound(first)?..bound(after)?).contains(&at);
        // Permissions, offset, device, inode, and padding spaces.
        let path = rest.splitn(5, ' ').nth(4)?.trim_start();
        (inside && path.starts_with('/')).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_at_an_address_is_found() {
        let maps = "55d0-55d2 r-xp 00000000 00:01 7 /memfd:punctual-heap (deleted)\n7f00-7f10 \
                    r-xp 00026000 fe:00 1234       /usr/lib/libc.so.6\n7f10-7f20 rw-p 00000000 \
                    00:00 0 \n";
        assert_eq!(mapped_at(maps, 0x7f0f), Some("/usr/lib/libc.so.6"));
        assert_eq!(mapped_at(maps, 0x7f10), None);
        assert_eq!(mapped_at(maps, 0x55d1), Some("/memfd:punctual-heap (deleted)"));
        assert_eq!(mapped_at("x\n1-\n", 1), None);
    }

    #[test]
    fn a_missing_allocator_is_an_error() {
        let of = |path: &str| Allocator::from_plan(Some(Path::new(path)));
        assert_eq!(of("built-in"), Ok(Allocator::BuiltIn));
        assert!(of("/nowhere/liballoc.so").unwrap_err().contains("No such file"));
        assert!(of("/").unwrap_err().contains("not a file"));
        assert!(of("/proc/version").unwrap_err().contains("not a library"));
    }
}
