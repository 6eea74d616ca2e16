"""What the CUPTI tracer costs and whether its records are true, on a GPU.

    python3 benches/tracer_gpu.py path/to/libflatout_tracer.so

Runs an eager launch-bound loop and a CUDA-graph loop; measures steps before, inside and after windows. Prints a JSON summary
as its last line. About a minute.
"""

import importlib.util
import json
import os
import statistics
import struct
import sys
import tempfile
import time

import torch

WINDOWS, STEPS = 5, 10
HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = struct.Struct("<8s4I2Q2qQ5Q6I")
RECORD = struct.Struct("<4B2H2I3Q6I")
FIELDS = (
    "kind detail source destination device registers stream correlation start end value graph context grid block shared "
    "reserved"
).split()
HEAD = (
    "magic version header_bytes block_bytes flags start stop offset_start offset_stop uncertainty records dropped refused "
    "incomplete outside cupti process kinds_requested kinds_enabled unknown buffers_kept"
).split()


def load_tracer(library):
    spec = importlib.util.spec_from_file_location("tracer", os.path.join(HERE, "../python/_flatout_probe/tracer.py"))
    tracer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tracer)
    tracer.LIBRARY = os.path.basename(library)
    reason = tracer.open(os.path.dirname(os.path.abspath(library)))
    assert not reason, reason
    return tracer


def read(path):
    """The header, the records and the names of a window."""
    data = open(path, "rb").read()
    header = dict(zip(HEAD, HEADER.unpack_from(data)))
    records, names, at = [], [], header["header_bytes"]
    while at + 64 <= len(data):
        if data[at] == 255:
            length = struct.unpack_from("<I", data, at + 12)[0]
            names.append(data[at + 64 : at + 64 + length].decode())
            at += 64 + -(-length // 64) * 64
        else:
            records.append(dict(zip(FIELDS, RECORD.unpack_from(data, at))))
            at += 64
    return header, records, names


def eager_step():
    model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()) for _ in range(24)]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, foreach=True)
    batch = torch.randn(32, 64, device="cuda")

    def step():
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    return step


def graph_step():
    model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(100)]).cuda()
    batch = torch.randn(32, 256, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side), torch.no_grad():
        for _ in range(3):
            model(batch)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.no_grad():
        model(batch)
    return graph.replay


def timed(step, count):
    """Milliseconds per step, synchronized at both ends."""
    torch.cuda.synchronize()
    begin = time.perf_counter_ns()
    for _ in range(count):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter_ns() - begin) / count / 1e6


def median_step(step, repeats=15):
    return statistics.median(timed(step, STEPS) for _ in range(repeats))


class Check:
    def __init__(self, tracer, folder):
        self.tracer, self.folder, self.count = tracer, folder, 0

    def window(self, work, final=False, kinds=0):
        """Runs `work` inside a window. The GPU is idle at its start and at its end."""
        self.count += 1
        path = os.path.join(self.folder, "window-%d" % self.count)
        torch.cuda.synchronize()
        t0 = time.monotonic_ns()
        reason = self.tracer.start(path, 0, kinds)
        t1 = time.monotonic_ns()
        assert not reason, reason
        result = work()
        torch.cuda.synchronize()
        t2 = time.monotonic_ns()
        records, reason = self.tracer.stop(final)
        t3 = time.monotonic_ns()
        header, listed, names = read(path)
        assert records == header["records"] == len(listed), (records, header)
        return {
            "result": result,
            "reason": reason,
            "start_ms": (t1 - t0) / 1e6,
            "stop_ms": (t3 - t2) / 1e6,
            "header": header,
            "records": listed,
            "names": names,
        }

    def cost(self, step, final_each, kinds=0):
        """Steps before, inside and after five windows; with `final_each`, CUPTI is finalized after every one."""
        before = median_step(step)
        inside, after, starts, stops, kernels, dropped, reasons = [], [], [], [], [], 0, []
        for _ in range(WINDOWS):
            window = self.window(lambda: timed(step, STEPS), final_each, kinds)
            inside.append(window["result"])
            starts.append(window["start_ms"])
            stops.append(window["stop_ms"])
            kernels.append(sum(r["kind"] == 1 for r in window["records"]) / STEPS)
            dropped += window["header"]["dropped"] + window["header"]["refused"]
            reasons.append(window["reason"])
            after.append(median_step(step, 5))
        left = median_step(step)
        last = ""
        if not final_each:
            last = self.tracer.stop(True)[1]
            reasons.append(last)
        final = median_step(step)
        rows = statistics.median(kernels)
        return {
            "before_ms": before,
            "inside_ms": statistics.median(inside),
            "inside_all_ms": inside,
            "after_each_ms": statistics.median(after),
            "after_all_ms": left,
            "after_finalize_ms": final,
            "after_over_before": final / before,
            "kernels_per_step": rows,
            "us_per_kernel": (statistics.median(inside) - before) * 1e3 / rows if rows else None,
            "start_ms": starts,
            "stop_ms": stops,
            "dropped": dropped,
            "reasons": [reason for reason in reasons if reason],
        }

    def alignment(self):
        """Each synchronized launch must lie between the host's own times around it; the error is what sticks out."""
        tensor = torch.randn(2048, 2048, device="cuda")
        spans = []

        def work():
            for _ in range(50):
                torch.cuda.synchronize()
                begin = time.monotonic_ns()
                torch.mm(tensor, tensor)
                torch.cuda.synchronize()
                spans.append((begin, time.monotonic_ns()))
                time.sleep(0.002)

        work()
        spans.clear()
        window = self.window(work)
        kernels = sorted((r for r in window["records"] if r["kind"] == 1), key=lambda r: r["start"])
        errors, slack = [], []
        per_launch = len(kernels) // len(spans)
        if per_launch == 0:
            header = {key: value for key, value in window["header"].items() if key != "magic"}
            return {"kernels": len(kernels), "launches": len(spans), "header": header}
        for at, (begin, end) in enumerate(spans):
            mine = kernels[at * per_launch : (at + 1) * per_launch]
            start, stop = min(r["start"] for r in mine), max(r["end"] for r in mine)
            errors.append(max(begin - start, stop - end, 0) / 1e3)
            slack.append((end - stop) / 1e3)
        syncs = [r for r in window["records"] if r["kind"] == 4]
        return {
            "kernels": len(kernels),
            "launches": len(spans),
            "synchronizations": len(syncs),
            "outside": window["header"]["outside"],
            "incomplete": window["header"]["incomplete"],
            "own_clock": bool(window["header"]["flags"] & 2),
            "largest_error_us": max(errors),
            "median_us_from_kernel_end_to_host_return": statistics.median(slack),
        }

    def busy(self):
        """Busy time of back-to-back kernels against CUDA events around them."""
        tensor = torch.randn(4096, 4096, device="cuda")
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

        def work():
            begin.record()
            for _ in range(100):
                torch.mm(tensor, tensor)
            end.record()
            end.synchronize()
            return begin.elapsed_time(end)

        work()
        window = self.window(work)
        busy = sum(r["end"] - r["start"] for r in window["records"] if r["kind"] == 1) / 1e6
        return {"events_ms": window["result"], "kernels_ms": busy, "ratio": busy / window["result"]}

    def unsynchronized(self, step):
        """A window closed without waiting for the GPU: how many records are lost at its edge."""
        self.count += 1
        path = os.path.join(self.folder, "window-%d" % self.count)
        tensor = torch.randn(4096, 4096, device="cuda")
        torch.cuda.synchronize()
        assert not self.tracer.start(path)
        for _ in range(200):
            torch.mm(tensor, tensor)
        begin = time.monotonic_ns()
        records, reason = self.tracer.stop()
        stop_ms = (time.monotonic_ns() - begin) / 1e6
        torch.cuda.synchronize()
        header, _, _ = read(path)
        keys = ("incomplete", "outside", "dropped", "buffers_kept")
        return {"launched": 200, "records": records, "stop_ms": stop_ms, "reason": reason, **{k: header[k] for k in keys}}

    def copies(self):
        pinned, pageable = torch.empty(1 << 20).pin_memory(), torch.empty(1 << 20)

        def work():
            pinned.to("cuda", non_blocking=True)
            pageable.to("cuda").cpu()
            torch.zeros(1 << 20, device="cuda").sum().item()

        window = self.window(work)
        seen = [(r["detail"], r["source"], r["destination"], r["value"]) for r in window["records"] if r["kind"] == 2]
        kinds = {k: sum(r["kind"] == k for r in window["records"]) for k in range(1, 9)}
        waits = [r["detail"] for r in window["records"] if r["kind"] == 4]
        return {"copies": seen, "records_by_kind": kinds, "sync_types": waits}


def profile(step):
    """Whether torch.profiler sees kernels, and how many."""
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiler:
        for _ in range(3):
            step()
        torch.cuda.synchronize()
    events = [e for e in profiler.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    duration = sum(e.time_range.elapsed_us() for e in events) / 1e3
    return {"kernels": len(events), "device_ms": duration}


def raw_start(tracer, path, kinds=0):
    """Past the checks of tracer.py: what the library itself answers."""
    code = tracer._library.flatout_tracer_start(os.fsencode(path), 0, kinds)
    text = "" if code == 0 else tracer._reason(code)
    if code == 0:
        tracer._library.flatout_tracer_stop(0)
    return [code, text]


def main():
    began = time.monotonic()
    torch.zeros(1, device="cuda")
    tracer = load_tracer(sys.argv[1])
    summary = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "library_bytes": os.path.getsize(sys.argv[1]),
    }

    def part(name, function):
        begin = time.monotonic()
        try:
            summary[name] = function()
        except Exception as error:
            summary[name] = "%s: %s" % (type(error).__name__, error)
        print("%-32s %5.1f s  %s" % (name, time.monotonic() - begin, json.dumps(summary[name])), flush=True)

    with tempfile.TemporaryDirectory() as folder:
        check = Check(tracer, folder)
        eager, graph = eager_step(), graph_step()
        for _ in range(50):
            eager(), graph()
        part("eager", lambda: check.cost(eager, False))
        part("eager_finalize_each", lambda: check.cost(eager, True))
        part("graph", lambda: check.cost(graph, False))
        part("graph_finalize_each", lambda: check.cost(graph, True))
        part("eager_runtime_records", lambda: check.cost(eager, False, 15 | tracer.RUNTIME))
        part("eager_kernels_only", lambda: check.cost(eager, False, tracer.KERNEL | tracer.MEMCPY))
        part("alignment", check.alignment)
        part("alignment_next_window", check.alignment)
        part("final_after_alignment", lambda: tracer.stop(True))
        part("alignment_after_finalize", check.alignment)
        part("empty_window", lambda: len(check.window(lambda: None)["records"]))
        part("window_after_empty_window", lambda: len(check.window(lambda: timed(eager, STEPS))["records"]))
        part("busy", check.busy)
        part("unsynchronized", lambda: check.unsynchronized(eager))
        part("copies", check.copies)
        part("stop_final", lambda: tracer.stop(True))

        tracer.watch()
        path = os.path.join(folder, "raw")
        part("subscribed_before_profiler", lambda: raw_start(tracer, path + "0"))
        part("final_before_profiler", lambda: tracer.stop(True))
        part("profiler_1", lambda: profile(eager))
        part("subscribed_after_profiler", lambda: raw_start(tracer, path + "1"))
        part("window_after_profiler", lambda: len(check.window(lambda: timed(eager, STEPS))["records"]))
        part("alignment_after_profiler", check.alignment)
        part("profiler_2", lambda: profile(eager))
        part("window_final_after_profiler", lambda: check.window(lambda: timed(eager, 3), True)["reason"])
        part("status_after_that", lambda: tracer._library.flatout_tracer_status())
        part("profiler_3", lambda: profile(eager))

        def inside():
            activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
            with torch.profiler.profile(activities=activities) as profiler:
                eager()
                reasons = [tracer.start(path + "2"), raw_start(tracer, path + "3")]
                eager()
                torch.cuda.synchronize()
            kernels = sum(e.device_type == torch.autograd.DeviceType.CUDA for e in profiler.events())
            return {"reasons": reasons, "kernels": kernels}

        def profiler_inside_window():
            reason = tracer.start(path + "4")
            eager()
            seen = profile(eager)
            status = tracer._library.flatout_tracer_status()
            return {"start": reason, "profiler": seen, "status_after": status, "records": read(path + "4")[0]["records"]}

        part("window_inside_profiler", inside)
        part("profiler_inside_window", profiler_inside_window)
        part("graph_replay_still_works", lambda: timed(graph, 10))
    summary["seconds"] = time.monotonic() - began
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
