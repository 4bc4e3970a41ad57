"""Pickles of plain containers: read as `pickle` reads them; whatever else they hold is refused, and nothing runs."""

from __future__ import annotations

import os
import pickle
import pickletools
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_tidy_plugin.trace.plain_pickle import ACTIONS, OBJECTS, STOP, plain_object
from tb_tidy_plugin.words.errors import TraceError

SCALARS = (
    st.none() | st.booleans() | st.integers(-(1 << 126), 1 << 126) | st.floats(allow_nan=False) | st.text(max_size=300)
)
PLAIN = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text() | st.integers(-9, 300), inner)
        | st.lists(inner, max_size=5).map(tuple)
    ),
    max_leaves=60,
)


@given(value=PLAIN, protocol=st.integers(2, pickle.HIGHEST_PROTOCOL))
def test_it_is_what_pickle_reads(value: object, protocol: int) -> None:
    shared = [value, value]
    assert plain_object(pickle.dumps(shared, protocol=protocol)) == shared


def test_long_containers_and_many_values_that_come_again() -> None:
    frames = [{"filename": "a" * 300, "line": at} for at in range(3000)]
    value = {"traces": [frames[at % 3000] for at in range(20_000)]}
    assert plain_object(pickle.dumps(value)) == value


MAKE_OBJECTS = frozenset(
    {
        "GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "PERSID", "BINPERSID",
        "EXT1", "EXT2", "EXT4",
    }
)  # fmt: skip
"""Opcodes that look up a class or a function, call it, or fill what it made, by their names in `pickletools`."""


class Runs:
    """Runs a command when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (os.mkdir, (str(self.path),))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_runs(tmp_path: Path, protocol: int) -> None:
    bad = pickle.dumps({"segments": [], "x": Runs(tmp_path / "ran")}, protocol=protocol)
    with pytest.raises(TraceError) as raised:
        plain_object(bad)
    assert "object of a class" in raised.value.error or protocol < 2
    assert not (tmp_path / "ran").exists()
    pickle.loads(bad)
    assert (tmp_path / "ran").exists(), "the file would have run something"


def test_no_opcode_that_makes_an_object_is_known() -> None:
    makes = {opcode.code.encode("latin-1")[0] for opcode in pickletools.opcodes if opcode.name in MAKE_OBJECTS}
    assert makes == OBJECTS
    assert not makes & set(ACTIONS)
    assert STOP not in ACTIONS


@pytest.mark.parametrize(
    "data",
    [
        b"", b".", b"\x80\x04", b"\x80\x04}", b"\x80\x04]]].", b"\x80\x04(.", b"\x80\x04a.", b"\x80\x04}}s.",
        b"\x80\x04]K\x01K\x02s.", b"\x80\x04h\x07.", b"\x80\x04t.", b"\x80\x04X\xff\xff\xff\xffabc.", b"\x80\x04\x87.",
        b"\x80\x04\x8c\x01\xff.", b"\x80\x04](e", b"\x80\x04}(K\x01u.", b"\x80\x04}]K\x01s.",
    ],
)  # fmt: skip
def test_what_is_cut_or_makes_no_sense_is_refused(data: bytes) -> None:
    with pytest.raises(TraceError, match=r"pickle"):
        plain_object(data)


@given(cut=st.integers(0, 2000), at=st.integers(0, 2000), byte=st.integers(0, 255))
def test_a_damaged_pickle_is_read_or_refused(cut: int, at: int, byte: int) -> None:
    whole = bytearray(pickle.dumps([{"action": "alloc", "size": at, "frames": [("f", 1.5, None)]} for at in range(60)]))
    whole[at % len(whole)] = byte
    with suppress(TraceError):
        plain_object(bytes(whole[: max(len(whole) - cut, 0)]))


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x04" + b"]\x94" * 6_000_000 + b".",  # empty lists, each kept
        b"\x80\x04" + b"}" * 3_000_000 + b".",
        b"\x80\x04" + b"(" * 9_000_000 + b".",
        b"\x80\x04]" + b"\x8a\x10" + b"\xff" * 16 + b"2" + b".",
    ],
    ids=["lists", "dictionaries", "marks", "an opcode that only repeats"],
)
def test_small_files_that_would_take_much_memory_are_refused(data: bytes) -> None:
    with pytest.raises(TraceError):
        plain_object(data)


def test_a_kept_value_of_a_high_number_takes_no_more_memory() -> None:
    """`pickle` makes room for all numbers below: 64 GB for this one."""
    assert plain_object(b"\x80\x04]r\xff\xff\xff\xff.") == []


def test_numbers_of_many_bytes_are_refused() -> None:
    with pytest.raises(TraceError, match=r"number of \d+ bytes"):
        plain_object(pickle.dumps(1 << 1590))
