# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch modules: exported, compiled, equal to what torch computes. Skipped where torch or onnxscript is missing."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")

import tilewright as tw  # noqa: E402


class Block(torch.nn.Module):
    """Attention, a norm, and a feed-forward part."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(32)
        self.attention = torch.nn.MultiheadAttention(32, 4, batch_first=True)
        self.ffn = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.ffn(x)


def equal(module: torch.nn.Module, *inputs: torch.Tensor) -> None:
    compiled = tw.compile(module.eval(), example_inputs=inputs, threads=2)
    with torch.no_grad():
        expected = module(*inputs)
    (found,) = compiled(*inputs)
    assert isinstance(found, torch.Tensor)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)


def test_a_transformer_block() -> None:
    torch.manual_seed(0)
    equal(Block(), torch.randn(2, 10, 32))


def test_a_convolution_network() -> None:
    torch.manual_seed(0)
    layers = [torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
    equal(torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(8 * 16, 5)), torch.randn(2, 3, 8, 8))


def test_inputs_by_name() -> None:
    class Scaled(torch.nn.Module):
        def forward(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
            return x * scale

    x, scale = torch.randn(3), torch.randn(3)
    compiled = tw.compile(Scaled().eval(), example_inputs={"x": x, "scale": scale})
    torch.testing.assert_close(compiled(x=x, scale=scale)[0], x * scale)


def test_errors_say_what_to_do() -> None:
    with pytest.raises(tw.UserError, match="needs example inputs"):
        tw.compile(Block())
    with pytest.raises(tw.UserError, match=r"write example_inputs=\(x,\)"):
        tw.compile(Block(), example_inputs=torch.randn(2, 10, 32))
    with pytest.raises(tw.UserError, match=r"training mode \(1\): call .eval\(\) first"):
        tw.compile(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Dropout()), example_inputs=(torch.randn(2),))


def test_a_branch_on_data_names_its_line_and_what_to_write() -> None:
    class Branch(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if x.sum() > 0 else -x

    with pytest.raises(
        tw.UnsupportedError, match="torch cannot export Branch: .*values of a tensor in forward"
    ) as caught:
        tw.compile(Branch().eval(), example_inputs=(torch.randn(3),))
    text = str(caught.value)
    assert "`return x if x.sum() > 0 else -x`" in text and "torch.cond(" in text and "test_torch_export.py:" in text
    assert "\x1b" not in text


def test_an_operator_without_an_onnx_form_is_named() -> None:
    class Eigen(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.eigh(x)[0]

    with pytest.raises(tw.UnsupportedError, match="torch cannot export Eigen: .*no ONNX form of aten._linalg_eigh"):
        tw.compile(Eigen().eval(), example_inputs=(torch.eye(3),))


class Nested(torch.nn.Module):
    """Results of several kinds."""

    def forward(self, x: torch.Tensor) -> dict:
        y = x + 1
        return {"a": y, "b": (x * 2, [x.sum(), None, 3]), "again": y}


def test_the_form_of_results_and_their_names(tmp_path) -> None:
    x = torch.randn(2, 3)
    model = tw.compile(Nested().eval(), example_inputs=(x,), threads=1)
    assert [spec.name for spec in model.outputs] == ["again", "b.0", "b.1.0"]
    for each in (model, tw.load(model.save(tmp_path / "model.tw"))):
        torch.testing.assert_close(each(x), Nested()(x))


def test_sizes_that_dynamic_shapes_leave_open() -> None:
    x = torch.randn(2, 3)
    model = tw.compile(Nested().eval(), example_inputs=(x,), dynamic_shapes={"x": {0: torch.export.Dim("batch")}})
    assert model.inputs[0].shape == ("batch", 3)
    for size in (2, 5):
        x = torch.randn(size, 3)
        torch.testing.assert_close(model(x), Nested()(x))
    with pytest.raises(tw.UserError, match="dynamic_shapes= is for torch modules, not for a bytes"):
        tw.compile(b"", dynamic_shapes={})


def test_programs_of_torch_export_and_of_its_onnx_exporter() -> None:
    x = torch.randn(2, 3)
    program = torch.export.export(Nested().eval(), (x,), dynamic_shapes={"x": {0: torch.export.Dim.AUTO}})
    model = tw.compile(program, threads=1)
    torch.testing.assert_close(model(x), Nested()(x))
    torch.testing.assert_close(model(x.repeat(2, 1)), Nested()(x.repeat(2, 1)))
    with pytest.raises(tw.UserError, match="this ExportedProgram was exported with its own"):
        tw.compile(program, example_inputs=(x,))
    onnx = torch.onnx.export(
        Block().eval(), (torch.randn(2, 10, 32),), dynamo=True, verbose=False, output_names=["out"]
    )
    assert [spec.name for spec in tw.compile(onnx, threads=1).outputs] == ["out"]


def test_programs_in_training_mode() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    program = torch.export.export(module.train(), (torch.randn(2, 3),))
    with pytest.raises(
        tw.UserError, match=r"batch norms in training mode \(batch_norm\): call .eval\(\) on the module"
    ):
        tw.compile(program)
    free = torch.nn.BatchNorm1d(3, track_running_stats=False)  # by the batch in either mode
    x = torch.randn(4, 3)
    torch.testing.assert_close(tw.compile(torch.export.export(free, (x,)), threads=1)(x)[0], free(x))


class Steps(torch.nn.Module):
    """A loop over time that a user wrote."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = torch.nn.LSTMCell(5, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = c = x.new_zeros(x.shape[1], 6)
        found = []
        for row in x:
            h, c = self.cell(row, (h, c))
            found.append(h)
        return torch.stack(found)


@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN, Steps])
def test_recurrences(kind: type[torch.nn.Module]) -> None:
    """LSTM and GRU enter as loops; what Python ran, and RNN, is unrolled by the exporter, and a remark says so."""
    torch.manual_seed(0)
    loops = kind in (torch.nn.LSTM, torch.nn.GRU)
    module = (Steps() if kind is Steps else kind(5, 6)).eval()
    x = torch.randn(9, 2, 5)
    compiled = tw.compile(module, example_inputs=(x,), threads=1)
    with torch.no_grad():
        expected = module(x)
    expected = expected[0] if isinstance(expected, tuple) else expected
    torch.testing.assert_close(compiled(x)[0], expected, rtol=1e-3, atol=1e-4)
    imported = next(phase for phase in compiled.report_data()["phases"] if phase["name"] == "import")
    told = [r["message"] for r in compiled.report_data()["remarks"] if "unrolled before it came here" in r["message"]]
    assert ("scf.for" in imported["ir"]) == loops
    steps = 8 if kind is torch.nn.RNN else 9  # the exporter folds the first one, of a state of zeros
    assert [message.startswith(f"a loop of {steps} steps") for message in told] == [True] * (not loops)
