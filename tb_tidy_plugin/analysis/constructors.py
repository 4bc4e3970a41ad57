"""Where a fix belongs that sets an option of an object: at the call that made the object, or in a trainer's options."""

from __future__ import annotations

import re
from functools import lru_cache

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report.model import Place
from tb_tidy_plugin.sources.align import Sources, parsed
from tb_tidy_plugin.sources.constructors import Constructors, Made, Unclear

TRAINER = re.compile(r"(?:^|/)transformers/trainer\.py\(\d+\): ")
LONGEST = 80  # characters of a line that is shown


def where_to_edit(profile: Profile, anchor: int, place: Place, made: Made, sources: Sources) -> str:
    """A sentence that comes before the fix; empty where nothing is known.

    Args:
        profile: the recording.
        anchor: the event whose place is shown.
        place: that place, on whose lines the object is used.
        made: the object.
        sources: gives the lines of a file that the trace names.
    """
    if made.trainer and any(TRAINER.search(profile.name(row)) for row in profile.ancestors(anchor)):
        return f"Pass `{made.trainer}` to `TrainingArguments`, since `Trainer` makes the {made.what.strip('`')}. "
    lines = sources(place.file) if place.own_code else None
    constructors = _constructors("\n".join(lines)) if lines else None
    if lines is None or constructors is None:
        return ""
    try:
        used = constructors.used_on(range(place.line, place.end_line + 1), made.use)
        line = constructors.constructor(used, made).lineno
    except Unclear:
        return ""
    text = lines[line - 1].strip().replace("`", "'")
    shown = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return f"Edit `{place.file}:{line}`, `{shown}`. "


@lru_cache(maxsize=8)
def _constructors(text: str) -> Constructors | None:
    tree = parsed(text)
    return None if tree is None else Constructors(tree)
