from tb_tidy_plugin.estimate.host import Floats
from tb_tidy_plugin.trace.columns import Rows

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
