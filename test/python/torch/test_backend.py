# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`torch.compile` with Tilewright. Skipped where torch or onnxscript is missing."""

from __future__ import annotations

import gc
import logging
import threading
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")

import tilewright as tw  # noqa: E402
import tilewright.torch  # noqa: E402
from tilewright.compiler import driver  # noqa: E402

pytestmark = pytest.mark.slow


class Built:
    """How many models were compiled, and what the log says."""

    def __init__(self) -> None:
        self.models = 0
        self.lines: list[str] = []


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> Iterator[Built]:
    found = Built()
    build = driver.build

    def counted(*args: Any) -> Any:
        done = build(*args)
        found.models += 1
        return done

    torch.compiler.reset()
    torch.manual_seed(0)
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(driver, "build", counted)
    with caplog.at_level(logging.WARNING, logger="tilewright"), torch.no_grad():
        yield found
        found.lines = [record.getMessage() for record in caplog.records]


def compiled(module: Any, dynamic: bool | None = None, **options: Any) -> Any:
    options = {"threads": 1, "fallback": "error", **options}
    return torch.compile(module, backend="tilewright", options=options, dynamic=dynamic)


def equal(found: Any, expected: Any) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def mlp() -> Any:
    layers = [torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4)]
    return torch.nn.Sequential(*layers).eval()


def test_one_compilation_serves_all_sizes(built: Built) -> None:
    module = mlp()
    fast = compiled(module)
    for size in (2, 3, 5):
        x = torch.randn(size, 8)
        torch._dynamo.mark_dynamic(x, 0)
        equal(fast(x), module(x))
    assert built.models == 1


def test_graph_breaks_and_the_form_of_results(built: Built) -> None:
    class Broken(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)

        def forward(self, x: Any) -> dict[str, Any]:
            y = self.first(x).relu()
            y = y + 1 if y.sum() > 1e6 else -y  # breaks the graph
            return {"out": self.last(y), "parts": (y.T, [x * 2, None, x.shape[0]])}

    module = Broken().eval()
    x = torch.randn(3, 4)
    found, expected = compiled(module)(x), module(x)
    equal(found, expected)
    assert found["parts"][0].stride() == expected["parts"][0].stride() == (1, 4)
    assert built.models == 2


def test_what_a_graph_changes_in_place(built: Built) -> None:
    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(2))

        def forward(self, x: Any) -> Any:
            self.calls += 1
            x.mul_(2)
            return x + self.calls

    ours, theirs = Counting().eval(), Counting().eval()
    fast = compiled(ours)
    for _ in range(2):
        x = torch.randn(3, 2)
        other = x.clone()
        equal(fast(x), theirs(other))
        equal(x, other)
    equal(ours.calls, theirs.calls)
    assert built.models == 1


def test_equal_graphs_compile_once(built: Built) -> None:
    module = mlp()
    x = torch.randn(2, 8)
    for _ in range(2):
        torch.compiler.reset()
        fast = compiled(module)
        equal(fast(x), module(x))
    assert built.models == 1


def test_another_process_converts_and_compiles_nothing(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright.frontend.torch import graph
    from tilewright.torch import skeletons

    module, x = mlp(), torch.randn(2, 8)
    equal(compiled(module)(x), module(x))
    monkeypatch.setattr(skeletons, "_known", OrderedDict())
    monkeypatch.setattr(graph, "simple_onnx_of", None)
    torch.compiler.reset()
    gc.collect()
    equal(compiled(module)(x), module(x))
    assert built.models == 1


def test_how_arguments_lie_in_memory(built: Built) -> None:
    """PyTorch traces a graph anew for other strides; it is the same model."""
    module = mlp()
    fast = compiled(module, dynamic=False)
    for x in (torch.randn(4, 8), torch.randn(8, 4).T, torch.randn(4, 16)[:, ::2], torch.randn(1, 8).expand(4, 8)):
        equal(fast(x), module(x))
    assert built.models == 1


def test_batch_norms_in_training_mode(built: Built) -> None:
    def network() -> Any:
        return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU()).train()

    ours, theirs = network(), network()
    theirs.load_state_dict(ours.state_dict())
    fast = compiled(ours)
    for size in (2, 3):
        x = torch.randn(size, 3, 8, 8)
        equal(fast(x), theirs(x))
        for found, expected in zip(ours.buffers(), theirs.buffers(), strict=True):
            equal(found, expected)


def test_weights_that_change(built: Built, caplog: pytest.LogCaptureFixture) -> None:
    module = torch.nn.Linear(4, 4).eval()
    fast = compiled(module)
    x = torch.randn(2, 4)
    for change in range(6):
        module.weight.add_(0.1)
        equal(fast(x), module(x))
        assert built.models == min(change + 1, 4)  # three with constants, then one that takes them
    assert "the weights of a graph changed 3 times; they are inputs now" in caplog.text


def test_weights_that_are_replaced(built: Built, caplog: pytest.LogCaptureFixture) -> None:
    module = torch.nn.Linear(4, 4).eval()
    fast, x = compiled(module), torch.randn(2, 4)
    for _ in range(6):
        module.weight = torch.nn.Parameter(torch.randn(4, 4))
        equal(fast(x), module(x))
    assert built.models <= 4
    assert "they are inputs now" in caplog.text


def test_weights_that_do_not_count_their_changes(built: Built, caplog: pytest.LogCaptureFixture) -> None:
    with torch.inference_mode():
        module, x = torch.nn.Linear(4, 4).eval(), torch.randn(2, 4)
        fast = compiled(module)
        for _ in range(3):
            equal(fast(x), module(x))
            module.weight.mul_(2)
    assert built.models == 1 and "2 weights of a graph are inputs" in caplog.text


def test_weights_that_change_while_threads_call(built: Built) -> None:
    module = torch.nn.Linear(4, 4).eval()
    fast, x = compiled(module), torch.randn(2, 4)
    fast(x)
    errors: list[BaseException] = []
    stop = threading.Event()

    def call() -> None:
        try:
            with torch.no_grad():
                while not stop.is_set():
                    fast(x)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(4):  # the last change makes them inputs
        module.weight.add_(0.1)
        equal(fast(x), module(x))
    stop.set()
    for thread in threads:
        thread.join()
    assert not errors


def test_results_share_memory_where_those_of_pytorch_do(built: Built) -> None:
    def views(x: Any) -> Any:
        y = x + 1
        return x.T, y.view(-1), y[1:].T, y

    for dynamic in (False, True):
        torch.compiler.reset()
        fast = compiled(views, dynamic=dynamic)
        x = torch.randn(3, 4)
        found, expected = fast(x), views(x)
        for made in (found, expected):
            made[-1][1:] = 7  # is seen in the others
        equal(found, expected)
        assert found[0].data_ptr() == x.data_ptr()
        assert [each.stride() for each in found] == [each.stride() for each in expected]


def test_integers_that_are_no_sizes(built: Built) -> None:
    def cut(x: Any, count: int) -> Any:
        return x[:, :count] * count

    fast = compiled(cut, dynamic=True)
    x = torch.randn(3, 9)
    for count in (2, 5, 2):
        equal(fast(x, count), cut(x, count))
    assert built.models <= 2


def test_the_fast_path_of_a_transformer(built: Built) -> None:
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True)
    module = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    x, padding = torch.randn(2, 5, 16), torch.zeros(2, 5, dtype=torch.bool)
    padding[1, 3:] = True
    for fused in (module, torch.nn.TransformerEncoderLayer(16, 2, 32, activation="gelu", batch_first=True).eval()):
        found, expected = compiled(fused)(x, src_key_padding_mask=padding), fused(x, src_key_padding_mask=padding)
        equal(found[~padding], expected[~padding])
    assert built.models >= 2


def test_gradients(built: Built, caplog: pytest.LogCaptureFixture) -> None:
    """The forward pass is compiled once for all steps; PyTorch makes the gradients of what it kept."""
    ours, theirs = mlp(), mlp()
    theirs.load_state_dict(ours.state_dict())
    fast = compiled(ours)
    steps = [torch.optim.SGD(module.parameters(), lr=0.1) for module in (ours, theirs)]
    for _ in range(3):
        x = torch.randn(2, 8)
        given = [x.clone().requires_grad_() for _ in steps]
        with torch.enable_grad():
            for run, step, value in zip((fast, theirs), steps, given, strict=True):
                step.zero_grad()
                run(value).square().mean().backward()
                step.step()
        equal(given[0].grad, given[1].grad)
        for found, expected in zip(ours.parameters(), theirs.parameters(), strict=True):
            equal(found, expected)
    assert built.models == 1 and "call it under torch.inference_mode()" in caplog.text
    with torch.inference_mode():
        assert not fast(x).requires_grad
    assert built.models == 2


def test_operators_without_a_form_run_in_pytorch_between_compiled_parts(
    built: Built, caplog: pytest.LogCaptureFixture
) -> None:
    layer = torch.nn.Linear(6, 6)

    def eigen(x: Any) -> Any:
        y = layer(x).relu()
        y = y.T @ y
        return (torch.linalg.eigh(y)[0] * 2).softmax(0), x.shape[0] * 3, y, y.T

    fast = torch.compile(eigen, backend="tilewright", options={"threads": 1})
    for size in (3, 4, 5):
        x = torch.randn(size, 6)
        torch._dynamo.mark_dynamic(x, 0)
        found, expected = fast(x), eigen(x)
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
        found[2][0, 1] = 7
        assert found[3][1, 0] == 7
    assert built.models == 2
    assert "11 operators 1 run in PyTorch, between 2 parts" in caplog.text and "aten._linalg_eigh" in caplog.text
    torch.compiler.reset()
    with pytest.raises(Exception, match="no ONNX form of aten._linalg_eigh"):
        compiled(eigen)(x)


def test_what_cannot_be_compiled_at_all(built: Built, caplog: pytest.LogCaptureFixture) -> None:
    def greatest(x: Any) -> Any:
        return torch.cummax(x, 0)

    x = torch.randn(3, 3)
    equal(tuple(torch.compile(greatest, backend="tilewright")(x)), tuple(greatest(x)))
    assert "runs in PyTorch: torch's exporter has no ONNX form of aten.cummax.default" in caplog.text
    assert built.models == 0


def test_random_numbers_are_drawn_by_pytorch(built: Built, caplog: pytest.LogCaptureFixture) -> None:
    layers = [torch.nn.Linear(8, 64), torch.nn.Dropout(0.5), torch.nn.Linear(64, 64), torch.nn.Dropout(0.1)]
    module = torch.nn.Sequential(*layers)
    x = torch.randn(4, 8)
    fast = torch.compile(module, backend="tilewright", options={"threads": 1})
    results = []
    for run in (fast, module):
        torch.manual_seed(3)
        results.append(run(x))
    equal(*results)
    assert not torch.equal(fast(x), fast(x))
    assert "draws random numbers" in caplog.text and "call .eval()" in caplog.text and built.models == 2
    equal(compiled(module.eval())(x), module(x))
    attention = torch.nn.functional.scaled_dot_product_attention  # may drop out, and does not here
    q = torch.randn(1, 2, 5, 8)
    equal(compiled(lambda q: attention(q, q, q))(q), attention(q, q, q))


def test_complex_numbers_are_left_to_pytorch(built: Built, caplog: pytest.LogCaptureFixture) -> None:
    def double(x: Any) -> Any:
        return x * 2

    x = torch.randn(3, dtype=torch.complex64)
    equal(torch.compile(double, backend="tilewright")(x), double(x))
    assert "is of dtype torch.complex64" in caplog.text and built.models == 0


def test_results_on_another_device_are_left_to_pytorch(built: Built, caplog: pytest.LogCaptureFixture) -> None:
    found = torch.compile(lambda x: (x * 2, (x + 1).to("meta")), backend="tilewright")(torch.ones(3))
    assert found[1].device.type == "meta" and "a result of a graph, is on meta" in caplog.text


def test_options_are_checked(built: Built) -> None:
    with pytest.raises(Exception, match="the backend has no 'thread'; it has target, threads"):
        compiled(mlp(), thread=1)(torch.randn(2, 8))
    for wrong, told in (
        ({"precision": "fp16"}, "there is no precision 'fp16'"),
        ({"precision": "int8"}, "precision='int8' needs calibration"),
        ({"threads": 0}, "threads must be a whole number"),
        ({"target": "gpu"}, "gpu"),
    ):
        with pytest.raises(tw.UserError, match=told):
            tilewright.torch.Settings(**wrong)
    with pytest.raises(tw.UserError, match="fallback must be 'eager' or 'error'"):
        tilewright.torch.Settings(fallback="none")
    for name, value, text in (
        ("precision", "f23", "there is no precision 'f23'"),
        ("accuracy", "most", "there is no accuracy 'most'"),
        ("threads", 0, "threads must be a whole number >= 1"),
        ("target", "gpu9", "gpu9"),
    ):
        with pytest.raises(tw.UserError, match=text):
            tilewright.torch.Settings(**{name: value})


def test_frozen_or_not_the_results_are_equal(built: Built) -> None:
    module, x = mlp(), torch.randn(2, 8)
    equal(compiled(module, freeze=False)(x), module(x))


def test_half_precision_and_integers(built: Built) -> None:
    def mixed(x: Any, n: Any) -> Any:
        return (x.to(torch.bfloat16) * 2, n + 1, x > 0, x.half())

    x, n = torch.randn(5), torch.arange(5)
    for found, expected in zip(compiled(mixed)(x, n), mixed(x, n), strict=True):
        assert found.dtype == expected.dtype
        equal(found, expected)
