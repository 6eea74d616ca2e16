//! The tracer as it ships: the embedded library, opened by the probe's Python module, against the fake libcupti.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::path::Path;
use std::process::Command;

/// Stands for torch: what `tracer.py` asks of it, and a profiler.
const SCRIPT: &str = r#"
import ctypes, importlib.util, os, sys, types

folder, module = sys.argv[1:]
torch = types.ModuleType("torch")
state = {"initialized": False, "profiling": False, "capturing": False}
torch.cuda = types.SimpleNamespace(
    is_initialized=lambda: state["initialized"],
    is_current_stream_capturing=lambda: state["capturing"],
    device_count=lambda: 1,
    synchronize=lambda device: None,
)
autograd = types.SimpleNamespace(_profiler_enabled=lambda: state["profiling"])
torch._C = types.SimpleNamespace(_autograd=autograd, _cuda_hasPrimaryContext=lambda device: True)
profiler = types.ModuleType("torch.autograd.profiler")
profiler._prepare_profiler = lambda: None
profiler._disable_profiler = lambda: "results"
sys.modules["torch.autograd.profiler"] = profiler

spec = importlib.util.spec_from_file_location("tracer", module)
tracer = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tracer)

def path(name):
    return os.path.join(folder, name)

assert tracer.open(folder) == "CUDA is not initialized"
assert tracer.start(path("a")) == "CUDA is not initialized"
assert tracer.stop() == (0, "the tracer is not open")
sys.modules["torch"] = torch
assert tracer.open(folder) == "CUDA is not initialized"
state["initialized"] = True
assert tracer.available() == "the tracer is not open"
assert "cannot be loaded" in tracer.open("/nowhere")
assert tracer.open(folder) == "" and tracer.available() == ""

cupti = ctypes.CDLL(os.environ["FLATOUT_CUPTI"])
cupti.fake_kernel.argtypes = [ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint64]
kernel = lambda: cupti.fake_kernel(b"gemm", 0, 0, 50)

assert tracer.stop() == (0, "no window is open")
assert tracer.start(path("a"), 10) == ""
assert tracer.start(path("b")) == "a window is already open"
kernel()
assert tracer.stop() == (1, "")
state["profiling"] = True
assert tracer.start(path("b")) == "torch.profiler is active"
state["profiling"] = False
state["capturing"] = True
assert tracer.start(path("b")) == "a CUDA graph is being captured"
state["capturing"] = False
assert "File exists" in tracer.start(path("a"))

# The program's own profiler closes an open window, and no other is opened until it ends.
tracer.watch()
tracer.watch()
assert tracer.start(path("c")) == ""
kernel()
profiler._prepare_profiler()
assert tracer._library.flatout_tracer_status() == 0
assert tracer.start(path("d")) == "torch.profiler is active"
assert profiler._disable_profiler() == "results"
# torch.profiler stays subscribed: windows go on, CUPTI is not finalized.
cupti.fake_set(b"other_subscriber", 39)
assert tracer.start(path("d")) == ""
assert tracer.stop(True) == (0, "not finalized: CUPTI has another subscriber")
cupti.fake_set(b"other_subscriber", 0)

# A forked child is inert; the parent goes on.
assert tracer.start(path("e")) == ""
kernel()
child = os.fork()
if child == 0:
    inert = tracer.stop() == (0, "the process was forked") and tracer.start(path("f")) == "the process was forked"
    os._exit(0 if inert else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
state["capturing"] = True
assert tracer.stop(True) == (1, "not finalized: a CUDA graph is being captured")
state["capturing"] = False
assert tracer.stop(True) == (0, "")
assert tracer._library.flatout_tracer_status() == tracer.FINALIZED
assert cupti.fake_get(b"finalized") == 1
print("done")
"#;

#[test]
fn works_from_python() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("libflatout_tracer.so"),
        flatout_run::probe::TRACER,
    )
    .unwrap();
    let cupti = folder.path().join("libcupti.so");
    let (Some(gcc), Some(python)) = (flatout_testing::gcc(), flatout_testing::python()) else {
        return;
    };
    let status = Command::new(gcc)
        .args(["-shared", "-fPIC", "-pthread", "-o"])
        .arg(&cupti)
        .arg(root.join("crates/flatout-tracer/tests/fake_cupti.c"))
        .status()
        .unwrap();
    assert!(status.success());
    let output = Command::new(python)
        .args(["-c", SCRIPT])
        .arg(folder.path())
        .arg(root.join("python/_flatout_probe/tracer.py"))
        .env("FLATOUT_CUPTI", cupti)
        .env_remove("CUDA_INJECTION64_PATH")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert_eq!(output.stdout, b"done\n", "{text}");
    assert!(text.is_empty(), "{text}");
}
