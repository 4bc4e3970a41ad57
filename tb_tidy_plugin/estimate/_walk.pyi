import numpy as np
from numpy.typing import NDArray

from tb_tidy_plugin.estimate.host import Floats
from tb_tidy_plugin.trace.columns import Numbers, Rows, Times

def begin(
    stream: Rows,
    epoch: Rows,
    launched: Floats,
    after_stream: Floats,
    other: Rows,
    after_other: Floats,
    duration: Floats,
    first: int,
    last: int,
    offsets: Floats,
    free: Floats,
    ends: Floats,
    /,
) -> None: ...
def cut(start: Times, end: Times, marks: Times, times: Times, start_cut: Numbers, end_cut: Numbers, /) -> int: ...
def add_up(
    time: Times,
    first: Rows,
    recorded: NDArray[np.float32],
    unrecorded: float,
    kept: float,
    cuts: Rows,
    left: Floats,
    places: Rows,
    passed: Floats,
    /,
) -> None: ...
