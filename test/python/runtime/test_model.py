"""Calling compiled models: binding, checks, kinds of arrays, threads."""

from __future__ import annotations

import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import fake_model
import numpy as np
import pytest

from counting import calls_of
from tilewright.core.errors import UserError
from tilewright.runtime.cpu import memory
from tilewright.targets.loading import load as load_model

X, IDS = fake_model.inputs()
SCALED = X * fake_model.WEIGHT


def check(out, x=X, ids=IDS):
    np.testing.assert_array_equal(out[0], x * fake_model.WEIGHT)
    np.testing.assert_array_equal(out["count"], ids + 1)


def test_by_position_and_by_name(model):
    check(model(X, IDS))
    check(model(ids=IDS, x=X))
    check(model(X, ids=IDS))


def test_outputs_are_a_tuple_with_names(model):
    out = model(X, IDS)
    scaled, count = out
    assert scaled is out["scaled"] and count is out[1]
    assert out.keys() == ("scaled", "count")
    assert dict(out.items())["count"] is count
    assert out[:1] == (scaled,)
    assert "scaled=float32[37, 16]" in repr(out)
    assert pickle.loads(pickle.dumps(out)).keys() == out.keys()
    with pytest.raises(KeyError, match=r"no output 'logits'; the outputs are scaled, count"):
        out["logits"]


def test_out_is_written(model):
    scaled, count = np.zeros_like(X), np.zeros(4, np.int64)
    result = model(X, IDS, out=[scaled, count])
    assert result[0] is scaled and result["count"] is count
    check(result)
    count[:] = 0
    model(X, IDS, out={"count": count, "scaled": scaled})
    assert count[0] == 2


def test_arrays_side_by_side_are_no_overlap(model):
    room = np.zeros((3 * X.shape[0], X.shape[1]), X.dtype)
    parts = np.split(room, 3)
    parts[1][:] = X
    count = np.zeros(4, np.int64)
    for part in (parts[0], parts[2]):
        check(model(parts[1], IDS, out=[part, count]))
    for shift in (-1, 1):
        first = X.shape[0] + shift
        with pytest.raises(UserError, match="overlaps"):
            model(parts[1], IDS, out=[room[first : first + X.shape[0]], count])


def test_an_out_array_at_any_address_is_filled(model):
    """Code may rely on 16 bytes; NumPy promises an element's size."""
    want = model(X, IDS)
    for skipped in (4, 8, 12, 16):
        room = np.zeros(want[0].nbytes + 32, np.uint8)
        start = -room.ctypes.data % 16 + skipped
        scaled = room[start : start + want[0].nbytes].view(want[0].dtype).reshape(want[0].shape)
        model(X, IDS, out=[scaled, np.empty_like(want[1])])
        np.testing.assert_array_equal(scaled, want[0])


@pytest.mark.parametrize(
    ("args", "named", "message"),
    [
        ((X,), {}, "missing input ids"),
        ((X, IDS, IDS), {}, "takes 2 inputs, got 3"),
        ((X,), {"mask": IDS}, "no input 'mask'"),
        ((X, IDS), {"x": X}, "'x' is given by position and by name"),
        ((X.astype(np.float64), IDS), {}, r"input x must be of dtype float32, got float64; .*astype\('float32'\)"),
        ((X, IDS.astype(">i8")), {}, "input ids must be of dtype int64, got >i8"),
        ((X[:36], IDS), {}, r"input x must have shape \[37, 16\], got \[36, 16\]"),
        ((X, "text"), {}, "input ids expects int64 values, got a str"),
        ((X, [1.5, 2, 3, 4]), {}, "input ids expects int64 values, got values of float64"),
        ((X, ["1", "2", "3", "4"]), {}, "input ids expects int64 values, got a list of strings"),
        ((X, np.array(["1", "2"])), {}, r"ids takes numbers \(int64\), got strings; look up what they stand for"),
        ((X, np.array(["1", "2"], object)), {}, r"ids takes numbers \(int64\), got strings"),
        ((X, None), {}, "input ids expects int64 values, got a NoneType"),
    ],
)
def test_wrong_inputs(model, args, named, message):
    with pytest.raises(UserError, match=message):
        model(*args, **named)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ([np.zeros_like(X)], "out= needs 2 arrays"),
        ([np.zeros_like(X), np.zeros(4, np.int32)], "output count must be of dtype int64"),
        ([np.zeros_like(X), np.zeros(8, np.int64)[::2]], "count must be C-contiguous"),
        ([X, np.zeros(4, np.int64)], "scaled overlaps an input"),
        ({"scaled": np.zeros_like(X)}, "out= must name all outputs"),
        ([[0], [1]], "out= takes NumPy arrays, got list"),
        (5, "out= needs 2 arrays .*, got a int"),
    ],
)
def test_wrong_out(model, out, message):
    with pytest.raises(UserError, match=message):
        model(X, IDS, out=out)


def test_inputs_that_are_not_contiguous(model):
    wide = np.repeat(X, 2, axis=1)
    check(model(wide[:, ::2], IDS))
    check(model(np.asfortranarray(X), IDS[::-1][::-1]))
    raw = np.zeros(X.nbytes + 1, np.uint8)
    shifted = raw[1:].view(np.float32).reshape(X.shape)
    shifted[:] = X
    check(model(shifted, IDS))


def test_python_numbers_and_read_only_arrays(model):
    frozen = X.copy()
    frozen.flags.writeable = False
    out = model(frozen, [1, 2, 3, -7])
    check(out)
    assert type(out[0]) is np.ndarray


def test_torch_in_torch_out(model):
    torch = pytest.importorskip("torch")
    out = model(torch.from_numpy(X), IDS)
    assert all(isinstance(value, torch.Tensor) for value in out)
    check([out[0].numpy()] and {0: out[0].numpy(), "count": out[1].numpy()})
    with pytest.raises(UserError, match=r"got float64; convert it with .to\(torch.float32\)"):
        model(torch.from_numpy(X).double(), IDS)
    grad = torch.from_numpy(X.copy()).requires_grad_()
    assert model(grad, IDS)[0].shape == (37, 16)
    with pytest.raises(UserError, match="on device meta"):
        model(torch.empty(37, 16, device="meta"), IDS)


class OnlyDLPack:
    """An array of an unknown library."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __array_namespace__(self):
        class Namespace:
            @staticmethod
            def from_dlpack(array):
                return OnlyDLPack(np.from_dlpack(array))

        return Namespace


def test_dlpack_in_the_same_kind_out(model):
    out = model(OnlyDLPack(X), IDS)
    assert isinstance(out[0], OnlyDLPack)
    np.testing.assert_array_equal(out[0].array, SCALED)


def test_threads(model):
    for threads in (1, 2, 3):
        model.threads = threads
        assert model.threads == threads
        check(model(X, IDS))
    for wrong in (0, -1, 1.5, "2", True):
        with pytest.raises(UserError, match="threads must be a whole number"):
            model.threads = wrong


def test_concurrent_calls(model):
    def run(i):
        x, ids = X + i, IDS + i
        for _ in range(50):
            check(model(x, ids), x, ids)
        return True

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(run, range(12)))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_fork(model):
    model.threads = 2
    check(model(X, IDS))
    child = os.fork()
    if child == 0:
        good = np.array_equal(model(X, IDS)["scaled"], SCALED)
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    check(model(X, IDS))


def test_profile(model):
    launches = model.profile(X, IDS)
    assert [(name, tasks) for name, tasks, _ in launches] == [("scale", 37), ("increment", 4), ("increment", 4)]
    assert all(ns >= 0 for _, _, ns in launches)


def test_call_overhead(model):
    model.threads = 1
    model(X, IDS)  # what only the first call does
    count = calls_of(lambda: model(X, IDS))
    assert count < 150  # 36 are needed, 10 us on a quiet machine


def test_description(model, artifact):
    assert "x: 37x16xf32" in repr(model)
    assert [str(spec) for spec in model.outputs] == ["scaled: 37x16xf32", "count: 4xi64"]
    assert model.held_bytes == {"weights": 64, "arena": 64}
    assert model.path == artifact


def test_two_models_with_equal_symbols(artifact, tmp_path):
    first = load_model(artifact)
    second = load_model(first.save(tmp_path / "copy"))
    check(first(X, IDS))
    check(second(X, IDS))


@pytest.mark.parametrize("shape", [(), (3, 5), (512, 512), (65536 * 2 + 1,)])
def test_large_results_begin_at_a_cache_line(shape: tuple[int, ...]) -> None:
    for dtype in (np.dtype(np.float32), np.dtype(np.int8)):
        array = memory.empty(shape, dtype)
        assert (array.shape, array.dtype, array.flags.carray) == (shape, dtype, True)
        assert array.nbytes < 65536 or array.ctypes.data % 64 == 0
