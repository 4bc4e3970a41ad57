"""A callback for the Hugging Face Trainer: `Trainer(callbacks=[TidyCallback("runs/baseline")])`."""

from __future__ import annotations

from tb_tidy_plugin.capture.loops import RecordedLoop

try:
    from transformers import TrainerCallback
except ImportError:
    raise ImportError(
        "tb_tidy_plugin.capture.transformers needs Transformers: pip install transformers. In a loop of your own use "
        "tb_tidy_plugin.capture.tidy_profile."
    ) from None


class TidyCallback(TrainerCallback):
    """Records a few optimizer steps of the training and times those around them, as `tidy_profile` does."""

    def __init__(self, dir_name: str, **arguments: object) -> None:
        self._loop = RecordedLoop(dir_name, arguments)

    def on_train_begin(self, args: object, state: object, control: object, **named: object) -> None:
        self._loop.begin()

    def on_step_end(self, args: object, state: object, control: object, **named: object) -> None:
        self._loop.step()

    def on_train_end(self, args: object, state: object, control: object, **named: object) -> None:
        self._loop.end()
