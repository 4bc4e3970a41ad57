"""Values that a job logged beside its traces, from TensorBoard's own store of events."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from tensorboard import context, errors
from tensorboard.data import provider as data
from tensorboard.plugins.hparams import error, metadata

from tb_tidy_plugin.plugin.models import LoggedRun
from tb_tidy_plugin.words.visible import log_called

if TYPE_CHECKING:
    from tensorboard.data.provider import DataProvider

log = log_called("tensorboard.torchtidy")

_FRESH_S = 10.0
MOST_SCALARS = 4
MOST_HPARAMS = 12
_LONGEST = 80
_ROOT = "."
EXPERIMENT = ""
FAULTS = (errors.PublicError, error.HParamsError, NotImplementedError, LookupError, TypeError, ValueError)
"""Exceptions of a store for an unknown run or an unsupported query."""


class LoggedRuns:
    """Last scalars and hyperparameters by run, read at most every 10 s. May be called from any thread."""

    def __init__(self, provider: DataProvider | None) -> None:
        """Without a `provider` there are no values."""
        self._provider = provider
        self._lock = threading.Lock()
        self._asked_at = float("-inf")  # on the monotonic clock
        self._known: dict[str, LoggedRun] = {}

    def __call__(self) -> Mapping[str, LoggedRun]:
        with self._lock:
            if self._provider is not None and time.monotonic() - self._asked_at >= _FRESH_S:
                self._known = _read(self._provider)
                self._asked_at = time.monotonic()
            return self._known


def _read(provider: DataProvider) -> dict[str, LoggedRun]:
    try:
        scalars, hparams = _scalars(provider), _hparams(provider)
    except FAULTS as problem:
        log.info("torchtidy: scalars and hyperparameters are not known: %s", problem)
        return {}
    runs = dict.fromkeys([*scalars, *hparams])
    return {_named(run): LoggedRun(scalars.get(run, {}), hparams.get(run, {})) for run in runs}


def _named(run: str) -> str:
    """The name of a run; empty for the folder of the logdir itself."""
    return "" if run == _ROOT else run


def _scalars(provider: DataProvider) -> dict[str, dict[str, float]]:
    asked = {"ctx": context.RequestContext(), "experiment_id": EXPERIMENT, "plugin_name": "scalars"}
    tags = {run: sorted(found)[:MOST_SCALARS] for run, found in provider.list_scalars(**asked).items()}
    if not tags:
        return {}
    chosen = data.RunTagFilter(runs=list(tags), tags=sorted({tag for found in tags.values() for tag in found}))
    last = provider.read_last_scalars(**asked, run_tag_filter=chosen)
    return {
        run: {tag[:_LONGEST]: float(last[run][tag].value) for tag in found if tag in last.get(run, {})}
        for run, found in tags.items()
    }


def _hparams(provider: DataProvider) -> dict[str, dict[str, str | float | bool]]:
    """Hyperparameters by run; `SummaryWriter.add_hparams` creates a run below the logged one, which counts as it."""
    asked = {"ctx": context.RequestContext(), "experiment_id": EXPERIMENT, "plugin_name": metadata.PLUGIN_NAME}
    chosen = data.RunTagFilter(tags=[metadata.SESSION_START_INFO_TAG])
    found: dict[str, dict[str, str | float | bool]] = {}
    for run, tags in provider.list_tensors(**asked, run_tag_filter=chosen).items():
        for series in tags.values():
            values = metadata.parse_session_start_info_plugin_data(series.plugin_content).hparams
            known = {name[:_LONGEST]: _value(value) for name, value in islice(sorted(values.items()), MOST_HPARAMS)}
            found[run] = known
            found.setdefault(run.rpartition("/")[0] or _ROOT, known)
    return found


def _value(value: Any) -> str | float | bool:  # noqa: ANN401 - a protobuf
    kind = value.WhichOneof("kind")
    if kind == "number_value":
        return float(value.number_value)
    return bool(value.bool_value) if kind == "bool_value" else str(value.string_value)[:_LONGEST]
