"""Places of compiled code in words."""

from __future__ import annotations

import pytest

from tb_tidy_plugin.report.generated import CodeLine, Generated, generated_of, place_text
from tb_tidy_plugin.sources.frames import Frame

FRAME = Frame("model.py", 190, "forward", "exact", own_code=True)
OTHERS = [CodeLine(file="model.py", line=189), CodeLine(file="layers.py", line=12)]


def test_code_that_was_not_generated_has_nothing_to_say() -> None:
    assert generated_of(FRAME) is None
    assert place_text("model.py", 190, None) == "model.py:190"


@pytest.mark.parametrize(
    ("generated", "text"),
    [
        (Generated(of="forward", also=[]), "model.py:190"),
        (Generated(of="forward", also=OTHERS), "model.py:190 (+189, layers.py:12)"),
        (Generated(of="backward", also=OTHERS[:1]), "backward of model.py:190 (+189)"),
    ],
)
def test_the_pass_and_further_lines(generated: Generated, text: str) -> None:
    assert place_text("model.py", 190, generated) == text


def test_what_a_frame_says() -> None:
    frame = Frame(
        "m.py", 1, "f", "exact", own_code=True, compiled="backward", also=(("model.py", 189), ("layers.py", 12))
    )
    assert generated_of(frame) == Generated(of="backward", also=OTHERS)
