//! The whole path against a fake libcupti, compiled here by gcc. The tracer's state belongs to a process, so every test runs
//! itself again in a process of its own.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use flatout_tracer::abi::{self, kinds, status};
use flatout_tracer::{Activity, Trace};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(code: c_int) -> !;
}

const FOLDER: &str = "FLATOUT_TRACER_TEST";

/// Compiles a C file of this folder into a shared library.
fn compile(source: &str, library: &Path, options: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(source);
    let status = Command::new("gcc")
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-pthread"])
        .args(options)
        .arg("-o")
        .args([library, &source])
        .status()
        .expect("these tests need gcc");
    assert!(status.success(), "gcc could not compile {}", source.display());
}

/// Runs `scenario` in a process of its own, with a fake libcupti.
fn isolated(name: &str, environment: &[(&str, &str)], scenario: impl FnOnce(Fake)) {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return scenario(Fake::open(Path::new(&folder)));
    }
    let folder = tempfile::tempdir().unwrap();
    let cupti = folder.path().join("libcupti.so");
    let options: &[&str] = if name.contains("without_the_clock") {
        &["-DWITHOUT_CLOCK"]
    } else {
        &[]
    };
    compile("fake_cupti.c", &cupti, options);
    let cuda = folder.path().join("libcuda.so.1");
    compile("fake_cuda.c", &cuda, &["-Wl,-soname,libcuda.so.1"]);
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args([name, "--exact", "--nocapture", "--test-threads=1"]);
    again.env(FOLDER, folder.path()).env("FLATOUT_CUPTI", cupti);
    again.env_remove("CUDA_INJECTION64_PATH");
    again.envs(environment.iter().copied());
    let output = again.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{:?}\n{text}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}

struct Fake {
    cupti: *mut c_void,
    folder: PathBuf,
}

impl Fake {
    fn open(folder: &Path) -> Self {
        let load = |path: &Path| {
            let path = CString::new(path.as_os_str().as_bytes()).unwrap();
            // SAFETY: a library that this test compiled.
            let handle = unsafe { dlopen(path.as_ptr(), 2) };
            assert!(!handle.is_null(), "{path:?}");
            handle
        };
        let fake = Self {
            cupti: load(&folder.join("libcupti.so")),
            folder: folder.to_owned(),
        };
        let cuda = load(&folder.join("libcuda.so.1"));
        // SAFETY: the functions are those of the C files.
        unsafe {
            let connect = dlsym(cuda, c"fake_connect".as_ptr());
            let connect = std::mem::transmute::<*mut c_void, extern "C" fn(*mut c_void)>(connect);
            connect(dlsym(fake.cupti, c"fake_driver_call".as_ptr()));
        }
        fake
    }

    fn function(&self, name: &CStr) -> *mut c_void {
        // SAFETY: the library is open.
        let address = unsafe { dlsym(self.cupti, name.as_ptr()) };
        assert!(!address.is_null(), "{name:?}");
        address
    }

    fn set(&self, what: &CStr, value: i32) {
        // SAFETY: the signature in fake_cupti.c.
        unsafe {
            let set = self.function(c"fake_set");
            std::mem::transmute::<*mut c_void, extern "C" fn(*const c_char, i32)>(set)(what.as_ptr(), value);
        }
    }

    fn get(&self, what: &CStr) -> i32 {
        // SAFETY: the signature in fake_cupti.c.
        unsafe {
            let get = self.function(c"fake_get");
            std::mem::transmute::<*mut c_void, extern "C" fn(*const c_char) -> i32>(get)(what.as_ptr())
        }
    }

    fn kernel(&self, name: &CStr, graph: u32, ago: u64, length: u64) {
        // SAFETY: the signature in fake_cupti.c.
        unsafe {
            let launch = self.function(c"fake_kernel");
            let launch =
                std::mem::transmute::<*mut c_void, extern "C" fn(*const c_char, u32, u64, u64)>(launch);
            launch(name.as_ptr(), graph, ago, length);
        }
    }

    fn kernels(&self, count: usize) {
        for _ in 0..count {
            self.kernel(c"gemm", 0, 0, 50);
        }
    }

    fn call(&self, name: &CStr) {
        // SAFETY: a function without arguments in fake_cupti.c.
        unsafe { std::mem::transmute::<*mut c_void, extern "C" fn()>(self.function(name))() };
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn start(&self, name: &str, limit: u64, kinds: u32) -> i32 {
        let path = CString::new(self.path(name).as_os_str().as_bytes()).unwrap();
        // SAFETY: a C string.
        unsafe { abi::flatout_tracer_start(path.as_ptr(), limit, kinds) }
    }

    fn read(&self, name: &str) -> Trace {
        flatout_tracer::read(self.path(name)).unwrap()
    }
}

fn stop(finalize: i32) -> i64 {
    abi::flatout_tracer_stop(finalize)
}

fn failure() -> String {
    let mut text = [0_u8; 200];
    // SAFETY: the buffer has this length.
    unsafe { abi::flatout_tracer_error(text.as_mut_ptr().cast(), text.len()) };
    CStr::from_bytes_until_nul(&text)
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned()
}

fn monotonic() -> u64 {
    #[repr(C)]
    struct Time(i64, i64);
    unsafe extern "C" {
        fn clock_gettime(clock: c_int, time: *mut Time) -> c_int;
    }
    let mut time = Time(0, 0);
    // SAFETY: a valid timespec.
    unsafe { clock_gettime(1, &raw mut time) };
    (time.0 * 1_000_000_000 + time.1).cast_unsigned()
}

#[test]
fn records_every_kind() {
    isolated("records_every_kind", &[], |fake| {
        let all = kinds::DEFAULT | kinds::OVERHEAD | kinds::RUNTIME | kinds::DRIVER | kinds::GRAPH_TRACE;
        let before = monotonic();
        assert_eq!(fake.start("a", 0, all), 0, "{}", failure());
        assert_eq!(abi::flatout_tracer_status(), status::RUNNING);
        assert_eq!(fake.start("b", 0, 0), 5);
        fake.kernel(c"gemm", 0, 0, 50);
        // The same name at another address.
        let again = c"gemm".to_owned();
        fake.kernel(&again, 9, 0, 50);
        fake.kernel(c"relu", 0, 0, 50);
        fake.call(c"fake_others");
        fake.call(c"fake_unknown");
        assert_eq!(stop(0), 10);
        let after = monotonic();
        assert_eq!(
            (abi::flatout_tracer_status(), fake.get(c"enabled")),
            (status::IDLE, 0)
        );
        let trace = fake.read("a");
        assert!(trace.header.closed() && !trace.truncated);
        assert!(before <= trace.header.start && trace.header.stop <= after);
        assert_eq!((trace.header.unknown, trace.header.kinds_enabled), (1, all));
        let names: Vec<_> = trace
            .records
            .iter()
            .filter_map(|record| trace.name(record))
            .collect();
        assert_eq!(names, ["gemm", "gemm", "relu"]);
        let kernel = trace.records[1];
        assert_eq!((kernel.grid, kernel.block, kernel.shared), (60, 256, 1536));
        assert_eq!((kernel.device, kernel.stream, kernel.graph), (3, 7, 9));
        assert_eq!((kernel.registers, kernel.correlation), (42, 2));
        assert_eq!(kernel.end - kernel.start, 50);
        for record in &trace.records {
            assert!(
                record.start >= before && record.end <= after + 1_000,
                "{record:?}"
            );
        }
        let find = |activity| trace.records.iter().find(|record| record.activity == activity);
        let copy = find(Activity::Copy).unwrap();
        assert_eq!(
            (copy.detail, copy.source, copy.destination, copy.value),
            (1, 1, 3, 4096)
        );
        assert_eq!((copy.stream, copy.graph), (8, 5));
        let peer = trace
            .records
            .iter()
            .rfind(|record| record.activity == Activity::Copy)
            .unwrap();
        assert_eq!(
            (peer.detail, peer.value, peer.device, peer.correlation),
            (10, 77, 2, 5)
        );
        let memset = find(Activity::Memset).unwrap();
        assert_eq!((memset.value, memset.destination), (256, 3));
        let wait = find(Activity::Synchronization).unwrap();
        assert_eq!((wait.detail, wait.stream, wait.end - wait.start), (3, 7, 100));
        assert_eq!(find(Activity::Overhead).unwrap().detail, 21);
        let call = find(Activity::Runtime).unwrap();
        assert_eq!((call.value, call.stream), (211, 1234));
        assert_eq!(find(Activity::Graph).unwrap().graph, 11);
    });
}

#[test]
fn repeats_windows_and_starts_again_after_finalize() {
    isolated("repeats_windows_and_starts_again_after_finalize", &[], |fake| {
        for window in 0..50 {
            let name = format!("w{window}");
            assert_eq!(fake.start(&name, 0, 0), 0, "{}", failure());
            fake.kernels(10_000);
            let last = window % 10 == 9;
            assert_eq!(stop(i32::from(last)), 10_000);
            assert_eq!(abi::flatout_tracer_status(), if last { 2 } else { 0 });
            assert_eq!(fake.get(c"finalized"), i32::from(last));
            assert_eq!(fake.get(c"subscribed"), 0);
            assert_eq!(fake.read(&name).records.len(), 10_000);
        }
        assert_eq!(stop(0), -7);
        assert_eq!(stop(1), 0);
    });
}

#[test]
fn counts_what_is_over_the_limit_unfinished_or_outside() {
    isolated(
        "counts_what_is_over_the_limit_unfinished_or_outside",
        &[],
        |fake| {
            assert_eq!(fake.start("a", 100, 0), 0);
            fake.kernels(250);
            fake.kernel(c"gemm", 0, 0, 0);
            fake.kernel(c"gemm", 0, 10_000_000_000, 5);
            fake.kernel(c"gemm", 0, 0, 10_000_000_000);
            assert_eq!(stop(0), 100);
            let header = fake.read("a").header;
            assert_eq!(
                (header.records, header.refused, header.incomplete, header.outside),
                (100, 150, 1, 2)
            );
        },
    );
}

#[test]
fn counts_what_cupti_drops_when_every_buffer_is_lent() {
    isolated("counts_what_cupti_drops_when_every_buffer_is_lent", &[], |fake| {
        // No buffer comes back: the 32 of the pool hold 32 x 5,041 kernels.
        fake.set(c"hold", 1);
        assert_eq!(fake.start("a", 0, 0), 0);
        fake.kernels(200_000);
        fake.call(c"fake_release");
        let records = stop(0);
        let header = fake.read("a").header;
        assert_eq!(header.records, 32 * 5_041);
        assert_eq!(
            (records as u64, header.dropped),
            (header.records, 200_000 - header.records)
        );
    });
}

#[test]
fn ignores_buffers_that_arrive_after_stop() {
    isolated("ignores_buffers_that_arrive_after_stop", &[], |fake| {
        fake.set(c"hold", 1);
        assert_eq!(fake.start("a", 0, 0), 0);
        fake.kernels(10);
        assert_eq!(stop(0), 0);
        assert_eq!(fake.read("a").header.buffers_kept, 1);
        // The buffer arrives inside the next window and is not taken for its own.
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert_eq!(fake.start("b", 0, 0), 0);
        fake.call(c"fake_release");
        fake.kernels(3);
        assert_eq!(stop(0), 3);
        let header = fake.read("b").header;
        assert_eq!((header.outside, header.buffers_kept), (10, 0));
    });
}

#[test]
fn yields_to_another_tool() {
    isolated("yields_to_another_tool", &[], |fake| {
        for result in [39, 12] {
            fake.set(c"other_subscriber", result);
            assert_eq!(fake.start("a", 0, 0), 2);
            assert!(failure().contains("subscriber"));
            assert!(!fake.path("a").exists() && fake.get(c"enabled") == 0);
        }
        // The caller knows the other one to be idle: recorded, but never finalized.
        assert_eq!(fake.start("shared", 0, kinds::SHARED), 0);
        fake.kernels(5);
        assert_eq!(stop(1), 5);
        assert_eq!((fake.get(c"finalized"), abi::flatout_tracer_status()), (0, 0));
        fake.set(c"other_subscriber", 0);
        fake.set(c"refuse_kind", 38 << 16 | 39);
        assert_eq!(fake.start("b", 0, 0), 2);
        assert!(!fake.path("b").exists() && fake.get(c"enabled") == 0);
        fake.set(c"refuse_kind", 38 << 16 | 21);
        assert_eq!(
            (fake.start("c", 0, 0), failure().as_str()),
            (6, "FAKE_CUPTI_ERROR_21")
        );
        // An optional kind may be refused.
        fake.set(c"refuse_kind", 17 << 16 | 21);
        assert_eq!(fake.start("d", 0, kinds::DEFAULT | kinds::OVERHEAD), 0);
        assert_eq!(stop(0), 0);
        assert_eq!(fake.read("d").header.kinds_enabled, kinds::DEFAULT);
    });
}

#[test]
fn yields_to_an_injected_tool() {
    let environment = [("CUDA_INJECTION64_PATH", "/opt/tool.so")];
    isolated("yields_to_an_injected_tool", &environment, |fake| {
        assert_eq!(fake.start("a", 0, 0), 2);
        assert_eq!(failure(), "CUDA_INJECTION64_PATH is set");
    });
}

#[test]
fn refuses_an_old_cupti_and_reports_a_missing_driver() {
    let environment = [("FAKE_VERSION", "17")];
    isolated(
        "refuses_an_old_cupti_and_reports_a_missing_driver",
        &environment,
        |fake| {
            assert_eq!(fake.start("a", 0, 0), 3);
            // SAFETY: one thread.
            unsafe { std::env::set_var("FAKE_VERSION", "18") };
            fake.set(c"no_driver", 1);
            assert_eq!(fake.start("a", 0, 0), 6);
            assert_eq!(failure(), "cuptiSubscribe: FAKE_CUPTI_ERROR_15");
        },
    );
}

#[test]
fn keeps_cupti_where_finalizing_would_break_graphs() {
    isolated("keeps_cupti_where_finalizing_would_break_graphs", &[], |fake| {
        assert_eq!(fake.start("a", 0, 0), 0);
        fake.kernel(c"gemm", 4, 0, 50);
        assert_eq!(stop(1), 1);
        assert_eq!((fake.get(c"finalized"), abi::flatout_tracer_status()), (0, 0));
        assert!(failure().contains("CUDA graphs"));
    });
}

#[test]
fn aligns_clocks_without_the_clock_callback() {
    isolated("aligns_clocks_without_the_clock_callback", &[], |fake| {
        assert_eq!(fake.start("a", 0, 0), 0);
        let before = monotonic();
        fake.kernel(c"gemm", 0, 0, 1);
        let after = monotonic();
        assert_eq!(stop(0), 1);
        let trace = fake.read("a");
        assert_eq!(trace.header.flags, flatout_tracer::format::CLOSED);
        // REALTIME may be slewed and the bracket has a width, so the kernel may seem a little early or late.
        let slack = trace.header.uncertainty + 1_000_000;
        let start = trace.records[0].start;
        assert!(before - slack <= start && start <= after + slack);
    });
}

#[test]
fn leaves_a_readable_file_when_killed() {
    isolated("leaves_a_readable_file_when_killed", &[], |fake| {
        // SAFETY: the child only calls the tracer, whose locks nobody holds.
        let child = unsafe { fork() };
        if child == 0 {
            fake.start("a", 0, 0);
            fake.kernels(12_000);
            // SAFETY: ends the child inside the window.
            unsafe { _exit(0) };
        }
        // SAFETY: waits for the child.
        unsafe { waitpid(child, std::ptr::null_mut(), 0) };
        let trace = fake.read("a");
        assert!(!trace.header.closed() && !trace.truncated);
        // Two buffers were full.
        assert_eq!(trace.records.len(), 2 * 5_041);
        assert_eq!(trace.name(&trace.records[0]), Some("gemm"));
        let bytes = std::fs::read(fake.path("a")).unwrap();
        let trace = Trace::parse(&bytes[..bytes.len() - 100]).unwrap();
        assert!(trace.truncated && trace.records.len() == 2 * 5_041 - 2);
    });
}

#[test]
fn does_nothing_in_a_forked_child() {
    isolated("does_nothing_in_a_forked_child", &[], |fake| {
        assert_eq!(fake.start("a", 0, 0), 0);
        fake.kernels(6_000);
        for told in [false, true] {
            // SAFETY: the child only calls the tracer, which takes no lock there.
            let child = unsafe { fork() };
            if child == 0 {
                if told {
                    abi::flatout_tracer_after_fork();
                }
                let inert = abi::flatout_tracer_status() == -8
                    && fake.start("b", 0, 0) == 8
                    && stop(1) == -8
                    && !fake.path("b").exists();
                // SAFETY: ends the child.
                unsafe { _exit(if inert { 0 } else { 1 }) };
            }
            let mut status = -1;
            // SAFETY: waits for the child.
            unsafe { waitpid(child, &raw mut status, 0) };
            assert_eq!(status, 0);
        }
        // The parent goes on, even if it is told too.
        abi::flatout_tracer_after_fork();
        fake.kernels(4_000);
        assert_eq!(stop(1), 10_000);
        assert_eq!(fake.read("a").records.len(), 10_000);
    });
}

#[test]
fn stops_from_another_thread_while_kernels_run() {
    isolated("stops_from_another_thread_while_kernels_run", &[], |fake| {
        for window in 0..20 {
            assert_eq!(fake.start(&format!("w{window}"), 0, 0), 0);
            fake.kernels(1_000);
            let stopped = std::thread::spawn(|| stop(0)).join().unwrap();
            assert_eq!(stopped, 1_000);
        }
    });
}

#[test]
fn refuses_a_file_that_exists_or_cannot_be_made() {
    isolated("refuses_a_file_that_exists_or_cannot_be_made", &[], |fake| {
        std::fs::write(fake.path("a"), "mine").unwrap();
        assert_eq!(fake.start("a", 0, 0), 4);
        assert_eq!(std::fs::read(fake.path("a")).unwrap(), b"mine");
        assert_eq!(fake.start("no/folder", 0, 0), 4);
        // SAFETY: null is allowed.
        assert_eq!(unsafe { abi::flatout_tracer_start(std::ptr::null(), 0, 0) }, 4);
        assert_eq!(fake.start("b", 0, 0), 0);
        assert_eq!(stop(0), 0);
    });
}
