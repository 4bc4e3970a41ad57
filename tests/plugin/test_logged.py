"""Scalars and hyperparameters of runs, read from event files by TensorBoard's own provider."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c
from tensorboard.plugins.hparams import metadata, plugin_data_pb2

from tb_tidy_plugin.plugin.logged import LoggedRuns
from tb_tidy_plugin.plugin.models import LoggedRun


def written(folder: Path, *summaries: summary_pb2.Summary) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "events.out.tfevents.1.host").open("wb") as file:
        for step, each in enumerate(summaries):
            text = event_pb2.Event(step=step, summary=each, wall_time=step + 1).SerializeToString()
            length = struct.pack("<Q", len(text))
            for part in (length, text):
                file.write(part + struct.pack("<I", masked_crc32c(part)))


def scalar(tag: str, value: float) -> summary_pb2.Summary:
    return summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=tag, simple_value=value)])


def session(**hparams: float | bool | str) -> summary_pb2.Summary:
    """What `SummaryWriter.add_hparams` writes first."""
    told = plugin_data_pb2.HParamsPluginData(session_start_info=plugin_data_pb2.SessionStartInfo())
    for name, value in hparams.items():
        kind = "bool_value" if isinstance(value, bool) else "string_value" if isinstance(value, str) else "number_value"
        setattr(told.session_start_info.hparams[name], kind, value)
    value = summary_pb2.Summary.Value(tag=metadata.SESSION_START_INFO_TAG)
    value.metadata.CopyFrom(metadata.create_summary_metadata(told))
    value.tensor.CopyFrom(metadata.NULL_TENSOR)
    return summary_pb2.Summary(value=[value])


def provider(logdir: Path) -> MultiplexerDataProvider:
    multiplexer = EventMultiplexer().AddRunsFromDirectory(str(logdir))
    multiplexer.Reload()
    return MultiplexerDataProvider(multiplexer, str(logdir))


def test_the_last_value_of_each_scalar_and_hyperparameters_of_a_run_below(tmp_path: Path) -> None:
    written(tmp_path / "job", scalar("loss", 2.0), scalar("loss", 0.5), scalar("accuracy", 0.25))
    written(tmp_path / "job" / "17", session(lr=0.125, amp=True, name="a"))
    logged = LoggedRuns(provider(tmp_path))()
    assert logged["job"] == LoggedRun({"accuracy": 0.25, "loss": 0.5}, {"amp": True, "lr": 0.125, "name": "a"})


def test_the_folder_itself_is_the_run_without_a_name(tmp_path: Path) -> None:
    written(tmp_path, scalar("loss", 2.0))
    assert LoggedRuns(provider(tmp_path))() == {"": LoggedRun({"loss": 2.0}, {})}


def test_no_provider_and_one_that_cannot_answer_know_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert LoggedRuns(None)() == {}
    written(tmp_path / "job", scalar("loss", 2.0))
    broken = provider(tmp_path)
    monkeypatch.setattr(broken, "list_scalars", lambda **_: (_ for _ in ()).throw(NotImplementedError("no scalars")))
    assert LoggedRuns(broken)() == {}


def test_it_is_asked_every_ten_seconds_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "job", scalar("loss", 2.0))
    counted = provider(tmp_path)
    asked: list[str] = []

    def listed(**query: str) -> dict[str, object]:
        asked.append(query["plugin_name"])
        return {}

    monkeypatch.setattr(counted, "list_scalars", listed)
    logged = LoggedRuns(counted)
    logged(), logged()
    assert asked == ["scalars"]
