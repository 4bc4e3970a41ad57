"""A callback for Lightning: `Trainer(callbacks=[TidyCallback("runs/baseline")])`."""

from __future__ import annotations

from tb_tidy_plugin.capture.loops import RecordedLoop

try:
    from lightning.pytorch import Callback
except ImportError:
    try:
        from pytorch_lightning import Callback
    except ImportError:
        raise ImportError(
            "tb_tidy_plugin.capture.lightning needs Lightning: pip install lightning. In a loop of your own use "
            "tb_tidy_plugin.capture.tidy_profile."
        ) from None


class TidyCallback(Callback):
    """Records a few batches of the training and times those around them, as `tidy_profile` does."""

    def __init__(self, dir_name: str, **arguments: object) -> None:
        super().__init__()
        self._loop = RecordedLoop(dir_name, arguments)

    def on_train_start(self, trainer: object, pl_module: object) -> None:
        self._loop.begin()

    def on_train_batch_end(self, *arguments: object, **named: object) -> None:
        self._loop.step()

    def on_train_end(self, trainer: object, pl_module: object) -> None:
        self._loop.end()

    def on_exception(self, trainer: object, pl_module: object, exception: BaseException) -> None:
        self._loop.end()
