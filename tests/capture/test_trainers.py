"""Callbacks for trainers, driven as Lightning and the Hugging Face Trainer drive theirs."""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.captured_job import Job, document_of, traces_in
from tests.support.full_disk import full_disk

pytestmark = pytest.mark.torch

LIGHTNING, TRANSFORMERS = "tb_tidy_plugin.capture.lightning", "tb_tidy_plugin.capture.transformers"


class Callback:
    """The base class's protocol: all hooks exist and do nothing."""

    def on_train_start(self, trainer: object, pl_module: object) -> None: ...
    def on_train_batch_end(
        self, trainer: object, pl_module: object, outputs: object, batch: object, batch_idx: int
    ) -> None: ...
    def on_train_end(self, trainer: object, pl_module: object) -> None: ...
    def on_exception(self, trainer: object, pl_module: object, exception: BaseException) -> None: ...


class TrainerCallback:
    def on_train_begin(self, args: object, state: object, control: object, **kwargs: object) -> None: ...
    def on_step_end(self, args: object, state: object, control: object, **kwargs: object) -> None: ...
    def on_train_end(self, args: object, state: object, control: object, **kwargs: object) -> None: ...


@pytest.fixture(autouse=True)
def _fresh_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        for name in (LIGHTNING, TRANSFORMERS):
            patch.delitem(sys.modules, name, raising=False)
        yield
    for name in (LIGHTNING, TRANSFORMERS):
        sys.modules.pop(name, None)


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **contents: object) -> None:
    parts = name.split(".")
    for depth in range(1, len(parts) + 1):
        module = ModuleType(".".join(parts[:depth]))
        module.__path__ = []
        monkeypatch.setitem(sys.modules, module.__name__, module)
    vars(sys.modules[name]).update(contents)


def without(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    for name in names:
        monkeypatch.setitem(sys.modules, name, None)


def fit(callback: Callback, steps: int = 6, fails_at: int | None = None) -> None:
    """As `lightning.pytorch.Trainer.fit` calls its callbacks."""
    job = Job()
    try:
        callback.on_train_start(job, job.model)
        for number, batch in zip(range(steps), job.batches(), strict=False):
            if number == fails_at:
                raise ArithmeticError
            job.step(*batch)
            callback.on_train_batch_end(job, job.model, None, batch, number)
        callback.on_train_end(job, job.model)
    except ArithmeticError as error:
        callback.on_exception(job, job.model, error)
        raise


class TestLightning:
    @pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
    def test_a_training_is_recorded(self, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        without(monkeypatch, "lightning", "pytorch_lightning")
        stand_in(monkeypatch, package, Callback=Callback)
        callback = importlib.import_module(LIGHTNING).TidyCallback(str(tmp_path), wait=2, warmup=1, active=2)
        assert isinstance(callback, Callback)
        fit(pickle.loads(pickle.dumps(callback)))
        (trace,) = traces_in(tmp_path)
        assert document_of(trace)["steps"]["count"] == 2
        assert [each["kind"] for each in document_of(trace)["settings"]["optimizers"]].count("AdamW") >= 1

    def test_a_training_that_fails_ends_the_recording(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        stand_in(monkeypatch, "lightning.pytorch", Callback=Callback)
        callback = importlib.import_module(LIGHTNING).TidyCallback(str(tmp_path), wait=0, warmup=1, active=2)
        with pytest.raises(ArithmeticError):
            fit(callback, fails_at=2)
        fit(callback)
        assert len(traces_in(tmp_path)) == 2, "what was recorded until then, and the next training"

    def test_a_trace_that_is_lost_is_said_and_the_training_goes_on(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        stand_in(monkeypatch, "lightning.pytorch", Callback=Callback)
        callback = importlib.import_module(LIGHTNING).TidyCallback(str(tmp_path), wait=0, warmup=1, active=2)
        with full_disk():
            fit(callback)
        assert " could not be written: OSError: File too large." in caplog.text

    def test_without_the_package_it_is_said(self, monkeypatch: pytest.MonkeyPatch) -> None:
        without(monkeypatch, "lightning", "pytorch_lightning")
        with pytest.raises(ImportError, match="needs Lightning: pip install lightning"):
            importlib.import_module(LIGHTNING)


def train(callback: TrainerCallback, steps: int = 6) -> None:
    """As `transformers.Trainer.train` calls its callbacks."""
    job, context = Job(), {"model": None, "optimizer": None}
    callback.on_train_begin("args", "state", "control", **context)
    for _, batch in zip(range(steps), job.batches(), strict=False):
        job.step(*batch)
        callback.on_step_end("args", "state", "control", **context)
    callback.on_train_end("args", "state", "control", **context)


class TestTransformers:
    def test_a_trace_that_is_lost_is_said_and_the_training_goes_on(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        stand_in(monkeypatch, "transformers", TrainerCallback=TrainerCallback)
        callback = importlib.import_module(TRANSFORMERS).TidyCallback(str(tmp_path), wait=0, warmup=1, active=2)
        with full_disk():
            train(callback)
        assert " could not be written: OSError: File too large." in caplog.text

    def test_a_training_is_recorded(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        stand_in(monkeypatch, "transformers", TrainerCallback=TrainerCallback)
        callback = importlib.import_module(TRANSFORMERS).TidyCallback(str(tmp_path), wait=2, warmup=1, active=2)
        assert isinstance(callback, TrainerCallback)
        train(callback)
        (trace,) = traces_in(tmp_path)
        assert document_of(trace)["steps"]["count"] == 2

    def test_without_the_package_it_is_said(self, monkeypatch: pytest.MonkeyPatch) -> None:
        without(monkeypatch, "transformers")
        with pytest.raises(ImportError, match="needs Transformers: pip install transformers"):
            importlib.import_module(TRANSFORMERS)
