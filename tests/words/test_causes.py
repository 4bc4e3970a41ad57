"""What is stated of causes and kinds, and that the page states none of it again."""

from __future__ import annotations

import re

import pytest

from tb_tidy_plugin.words.causes import Cause, CauseGroup, Kind, Proof, legend_of
from tests.support.recordings import ROOT

PAGE = ROOT / "frontend" / "src"

OTHER_MEANINGS = {
    "allocation": "a line of the memory chart",
    "communication": "a part of a rank's step",
    "compute": "a part of a rank's step, and what limits work",
    "copies": "a part of a rank's step",
    "copy": "of text to the clipboard",
    "cpu": "a device, a view, and what works",
    "cpu work": "nodes of the flame graph",
    "fill": "of a bar with colour",
    "fused": "a setting of optimizers",
    "other": "the other one of two",
    "python": "the language",
    "python between operators": "a table of the view of CPU work",
    "runtime call": "nodes of the flame graph",
    "runtime calls": "events of the timeline",
    "sort": "of a table",
    "optimizer": "a pass of a training step",
}
"""Names of causes and kinds that the page uses for something else."""

SPELLED = re.compile(
    r"""'([^'\n]*)'|"([^"\n]*)"|`([^`]*)`|\b(\w+)\??:|[.]part-([\w-]+)|--part-([\w-]+)|>([^<>{}\n]+)<"""
)
"""Strings, keys, colours of parts, and the text of elements."""


def of_page() -> dict[str, str]:
    """The page's own sources by their paths, without comments, tests and generated types."""
    found = {}
    for path in PAGE.rglob("*"):
        if path.suffix in {".ts", ".tsx", ".css"} and ".test." not in path.name and path.parent.name != "testing":
            text = re.sub(r"/\*.*?\*/|(?<![:'\"])//[^\n]*", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
            found[str(path.relative_to(PAGE))] = text
    assert len(found) > 200
    del found["api/types.gen.ts"]
    return found


def names() -> set[str]:
    """Every name of a cause, a kind and a group, and every proof, as a search compares them."""
    stated = [name for each in (*Cause, *Kind) for name in (each.word, each.title, each.label)]
    stated += [each.label for each in CauseGroup] + [each.text for each in Proof if each.text]
    return {name.casefold() for name in stated}


def spelled(text: str) -> set[str]:
    return {"".join(groups).strip().casefold() for groups in SPELLED.findall(text)}


def test_the_page_names_no_cause() -> None:
    repeated = {
        path: found for path, text in of_page().items() if (found := (spelled(text) & names()) - set(OTHER_MEANINGS))
    }
    assert repeated == {}


def test_other_meanings_are_on_the_page() -> None:
    assert set().union(*map(spelled, of_page().values())) & names() == set(OTHER_MEANINGS)


@pytest.mark.parametrize(
    "text",
    [
        "const CAUSES = { host_work: { group: 'host' } };",
        "export const KINDS = { x: 'Matrix products' };",
        'if (cause === "launch_pace") return;',
        ".part-mixture_of_experts { background: red; }",
        "background: var(--part-softmax);",
        "<p>Host work</p>",
        "`silent`: 'No thread launched anything for a while'",
    ],
)
def test_a_repeated_name_is_found(text: str) -> None:
    assert (spelled(text) & names()) - set(OTHER_MEANINGS)


def test_parts_of_a_bar_have_distinct_labels() -> None:
    """Parts of one group with one label would be one part."""
    for labels in ([each.label for each in Cause], [each.label for each in Kind], [each.label for each in CauseGroup]):
        assert len(set(labels)) == len(labels)


def test_the_same_works_in_all_time_of_a_group() -> None:
    """The page's short bar and its flame graph take a group as a whole."""
    for group in CauseGroup:
        assert len({each.at_work for each in Cause if each.group is group}) == 1


@pytest.mark.parametrize(
    ("cause", "kind", "shown"),
    [
        (Cause.COMPUTE, Kind.MATRIX, ("Matrix products", "blue")),
        (Cause.COPY, Kind.TO_HOST, ("Copies to the host", "orange-dark")),
        (Cause.CPU, Kind.PYTHON, ("Python between operators", "red")),
        (Cause.CPU, None, ("Other work", "grey")),
        (Cause.COMMUNICATION, Kind.COMMUNICATION, ("Exposed communication", "pink")),
        (Cause.GRAPH_START, None, ("Graph start", "rows")),
        (Cause.QUEUED_UNKNOWN, None, ("Queued, cause unknown", "grey")),
    ],
)
def test_legend(cause: Cause, kind: Kind | None, shown: tuple[str, str]) -> None:
    assert legend_of(cause, kind) == shown
