"""Place of a fix that sets an option of an object: the call that created the object, or a trainer's options."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from tb_tidy_plugin.profile.profile import Profile
from tb_tidy_plugin.report.model import Place
from tb_tidy_plugin.sources.align import Sources, parsed
from tb_tidy_plugin.sources.constructors import Constructors, Made, Unclear, called_name
from tb_tidy_plugin.sources.frames import parse_frame
from tb_tidy_plugin.trace.columns import Category
from tb_tidy_plugin.trace.sets import distinct

TRAINERS = MappingProxyType({
    "transformers": (re.compile(r"(?:^|/)transformers/trainer\.py\(\d+\): "), "TrainingArguments"),
    "lightning": (re.compile(r"(?:^|/)(?:pytorch_lightning|lightning/pytorch)/trainer/\w+\.py\(\d+\): "), "Trainer"),
    "accelerate": (re.compile(r"(?:^|/)accelerate/(?:\w+/)*\w+\.py\(\d+\): "), "Accelerator"),
})  # fmt: skip
"""Libraries with a training loop or a part of it: their frames, and where users set their options."""

LONGEST_SHOWN_LINE = 80  # characters
_MOST_FILES = 64  # most files of the job's own code that are read


def where_to_edit(profile: Profile, anchor: int, place: Place, made: Made, sources: Sources) -> str:
    """A sentence that comes before the fix and names the place to edit; empty if the place is unknown.

    Args:
        profile: the recording.
        anchor: the event whose place is shown.
        place: that place; the object is used on its lines.
        made: the object.
        sources: gives the lines of a file that the trace names.
    """
    if option := option_of_trainer(profile, anchor, {"transformers": made.trainer}):
        return f"{option}, since `Trainer` makes the {made.what.strip('`')}. "
    lines = sources(place.file) if place.own_code else None
    constructors = _constructors("\n".join(lines)) if lines else None
    if lines is None or constructors is None:
        return ""
    used = constructors.used_on(range(place.line, place.end_line + 1), made.use)
    file = place.file
    try:
        line = constructors.constructor(used, made).lineno
    except Unclear:
        elsewhere = _elsewhere(profile, constructors.origins(used), place.file, made, sources)
        if len(elsewhere) != 1:
            return ""
        [(file, line)] = elsewhere
        lines = sources(file) or []
    text = lines[line - 1].strip().replace("`", "'")
    shown = text if len(text) <= LONGEST_SHOWN_LINE else f"{text[: LONGEST_SHOWN_LINE - 1]}…"
    return f"Edit `{file}:{line}`, `{shown}`. "


def option_of_trainer(profile: Profile, anchor: int, options: Mapping[str, str]) -> str:
    """The option to pass to the library that runs an event; empty if no library does, or it has no such option.

    Args:
        profile: the recording.
        anchor: the event.
        options: the arguments, by a key of `TRAINERS`.
    """
    names = [profile.name(row) for row in profile.ancestors(anchor)] if any(options.values()) else []
    for library, option in options.items():
        frame, taken_by = TRAINERS[library]
        if option and any(map(frame.search, names)):
            return f"Pass `{option}` to `{taken_by}`"
    return ""


def _elsewhere(
    profile: Profile, origins: Sequence[ast.Call | None], file: str, made: Made, sources: Sources
) -> set[tuple[str, int]]:
    """File and line of calls in the job's other files that may have created the object.

    Only calls returned by functions that `origins` call; all calls if an origin is an argument, or no origin is known.
    """
    is_open = None in origins or not origins
    functions = {called_name(call) for call in origins if call is not None}
    found = set()
    for other in _own_files(profile)[:_MOST_FILES]:
        lines = sources(other) if other != file else None
        module = _constructors("\n".join(lines)) if lines else None
        if module is not None:
            calls = module.making(made)
            returned = [call for name in functions for call in module.returned_by(name)]
            named = calls if is_open else [call for call in calls if call in returned]
            found |= {(other, call.lineno) for call in named if call is not None}
    return found


def _own_files(profile: Profile) -> list[str]:
    """The files of the user's own functions that ran, in the order in which the recording first names them."""
    table = profile.table
    names = distinct(table.name[table.category == Category.PYTHON])
    frames = (parse_frame(table.names[number]) for number in names.tolist())
    return list(dict.fromkeys(frame.file for frame in frames if frame is not None and frame.own_code))


@lru_cache(maxsize=_MOST_FILES)
def _constructors(text: str) -> Constructors | None:
    tree = parsed(text)
    return None if tree is None else Constructors(tree)
