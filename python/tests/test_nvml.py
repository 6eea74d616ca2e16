"""`flatout.gpu_utilization` without `flatout run`: NVML's answers, and none of its errors."""

import ctypes
import types

import flatout
from flatout import _nvml


class FakeNvml:
    def __init__(self, failing=""):
        self.failing = failing
        self.asked = None

    def nvmlInit_v2(self):
        return 1 if self.failing == "init" else 0

    def nvmlDeviceGetHandleByIndex_v2(self, index, handle):
        self.asked = index
        return 6 if self.failing == "device" else 0

    def nvmlDeviceGetHandleByUUID(self, name, handle):
        self.asked = name
        return 0

    def nvmlDeviceGetUtilizationRates(self, device, rates):
        rates[0] = 49
        return 3 if self.failing == "rates" else 0


def utilization(monkeypatch, fake, visible=None):
    monkeypatch.setattr(_nvml, "_found", [])
    monkeypatch.setattr(ctypes, "CDLL", lambda name: fake)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    return flatout.gpu_utilization()


def test_the_first_visible_gpu_is_asked(monkeypatch):
    for visible, asked in ((None, 0), ("2,0", 2), ("GPU-ab,GPU-cd", b"GPU-ab")):
        fake = FakeNvml()
        assert utilization(monkeypatch, fake, visible) == 0.49
        assert fake.asked == asked
    for visible in ("", "-1", "MIG-1"):
        assert utilization(monkeypatch, FakeNvml(), visible) is None


def test_what_fails_is_unknown(monkeypatch):
    for failing in ("init", "device", "rates"):
        assert utilization(monkeypatch, FakeNvml(failing)) is None
    assert utilization(monkeypatch, types.SimpleNamespace()) is None


def test_the_status_is_printed_without_a_record(monkeypatch, capsys):
    utilization(monkeypatch, FakeNvml())
    flatout.gpu_status("training")
    assert capsys.readouterr().err.startswith("training: GPU 49%")
