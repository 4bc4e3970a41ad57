"""Pickles of plain containers, read without unpickling: a stream of opcodes that cannot create objects of any class.

`pickle.load` calls whatever a file names. This reader knows only opcodes for dictionaries, lists, tuples, numbers and
text, as in https://github.com/python/cpython/blob/v3.13.0/Lib/pickletools.py, and refuses all others.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from struct import Struct
from typing import Any, NoReturn

from tb_tidy_plugin.words.errors import TraceError

NEWEST = 5
SHARE_BYTES, SPARE_BYTES = 16, 32 << 20
"""Most bytes of objects per byte of the pickle, and a fixed extra."""

DICT_BYTES, LIST_BYTES, TUPLE_BYTES, NUMBER_BYTES, TEXT_BYTES, SLOT_BYTES = 240, 88, 56, 32, 64, 16
"""Approximate bytes of one of each in CPython, and of a slot in a container."""

LONGEST_NUMBER = 16
_ADVICE = "Write it again with `torch.cuda.memory._dump_snapshot`, or delete it."

INT4, INT2, FLOAT8 = Struct("<i"), Struct("<H"), Struct(">d")
COUNT1, COUNT4, COUNT8 = Struct("<B"), Struct("<I"), Struct("<Q")


def plain_object(data: bytes) -> object:
    """The content of a pickle of plain containers.

    Raises:
        TraceError: it holds something else, is cut short, or would take far more memory than its size.
    """
    try:
        return _Reader(data).read()
    except (IndexError, TypeError, ValueError, KeyError, struct.error):
        raise TraceError("It is not a complete pickle.", _ADVICE) from None


class _Reader:
    """One pass over the opcodes, with the stack, its marks and the memo of a pickle."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._left = SHARE_BYTES * len(data) + SPARE_BYTES
        self._stack: list[Any] = []
        self._marks: list[list[Any]] = []
        self._memo: dict[int, Any] = {}

    def read(self) -> object:
        data, actions = self._data, ACTIONS
        while True:
            code = data[self._at]
            self._at += 1
            if code == STOP:
                break
            action = actions.get(code)
            if action is None:
                self._refuse(code)
            action(self)
        if len(self._stack) != 1 or self._marks:
            raise ValueError
        return self._stack[0]

    def _refuse(self, code: int) -> NoReturn:
        held = (
            "It asks for an object of a class, which is not created"
            if code in OBJECTS
            else f"It has opcode {code:#04x}"
        )
        raise TraceError(f"{held}: only dictionaries, lists, tuples, numbers and text are read.", _ADVICE)

    def _takes(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise TraceError("It would take far more memory than its size.", _ADVICE)

    def _bytes(self, count: int) -> bytes:
        found = self._data[self._at : self._at + count]
        if len(found) != count:
            raise ValueError
        self._at += count
        return found

    def _number(self, form: Struct) -> Any:  # noqa: ANN401 - int or float, by its form
        (number,) = form.unpack_from(self._data, self._at)
        self._at += form.size
        return number

    def _push(self, value: object, size: int) -> None:
        self._takes(size)
        self._stack.append(value)

    def _since_mark(self) -> list[Any]:
        items, self._stack = self._stack, self._marks.pop()
        return items

    def frame(self) -> None:
        """Skips a frame, which only says how much to read at once."""
        self._bytes(8)

    def protocol(self) -> None:
        """Refuses protocols newer than this reader."""
        if self._bytes(1)[0] > NEWEST:
            raise TraceError(f"It is a pickle with a protocol newer than {NEWEST}.", _ADVICE)

    def mark(self) -> None:
        """Starts a new stack above this one."""
        self._takes(LIST_BYTES)
        self._marks.append(self._stack)
        self._stack = []

    def text(self, form: Struct) -> None:
        """UTF-8, with lone surrogates as `pickle` writes them."""
        data = self._bytes(self._number(form))
        self._push(data.decode("utf-8", "surrogatepass"), TEXT_BYTES + 2 * len(data))

    def number(self, form: Struct) -> None:
        """A number of fixed length."""
        self._push(self._number(form), NUMBER_BYTES)

    def small(self) -> None:
        """A number of one byte."""
        self._push(self._bytes(1)[0], NUMBER_BYTES)

    def long(self) -> None:
        """A number with its own length in bytes."""
        count = self._bytes(1)[0]
        if count > LONGEST_NUMBER:
            raise TraceError(f"It has a number of {count} bytes.", _ADVICE)
        self._push(int.from_bytes(self._bytes(count), "little", signed=True), NUMBER_BYTES)

    def tuple_of(self, count: int) -> None:
        """A tuple of the last values."""
        if len(self._stack) < count:
            raise ValueError
        items = tuple(self._stack[len(self._stack) - count :])
        del self._stack[len(self._stack) - count :]
        self._push(items, TUPLE_BYTES)

    def tuple_since_mark(self) -> None:
        """A tuple of all since the mark."""
        items = self._since_mark()
        self._push(tuple(items), TUPLE_BYTES + SLOT_BYTES * len(items))

    def append(self) -> None:
        value = self._stack.pop()
        self._extend([value])

    def appends(self) -> None:
        """Appends all values since the mark to a list."""
        self._extend(self._since_mark())

    def _extend(self, items: list[Any]) -> None:
        into = self._stack[-1]
        if type(into) is not list:
            raise TypeError
        self._takes(SLOT_BYTES * len(items))
        into += items

    def set_item(self) -> None:
        """Adds a key to a dictionary."""
        value, key = self._stack.pop(), self._stack.pop()
        self._update([key, value])

    def set_items(self) -> None:
        """Adds all keys since the mark to a dictionary."""
        self._update(self._since_mark())

    def _update(self, items: list[Any]) -> None:
        into = self._stack[-1]
        if type(into) is not dict or len(items) % 2 or not all(isinstance(key, (str, int)) for key in items[::2]):
            raise TypeError
        self._takes(2 * SLOT_BYTES * len(items))
        into.update(zip(items[::2], items[1::2], strict=True))

    def keep(self, number: int) -> None:
        """Stores the last value under a number."""
        self._takes(6 * SLOT_BYTES)
        self._memo[number] = self._stack[-1]

    def keep_next(self) -> None:
        """Stores the last value under the next number."""
        self.keep(len(self._memo))

    def keep_small(self) -> None:
        """Stores the last value under a number of one byte."""
        self.keep(self._bytes(1)[0])

    def keep_large(self) -> None:
        """Stores the last value under a number of four bytes."""
        self.keep(self._number(COUNT4))

    def again_small(self) -> None:
        """Loads the value stored under a number of one byte."""
        self._push(self._memo[self._bytes(1)[0]], 0)

    def again_large(self) -> None:
        """Loads the value stored under a number of four bytes."""
        self._push(self._memo[self._number(COUNT4)], 0)

    def none(self) -> None:
        self._push(None, 0)

    def true(self) -> None:
        self._push(True, 0)

    def false(self) -> None:
        self._push(False, 0)

    def empty_dict(self) -> None:
        self._push({}, DICT_BYTES)

    def empty_list(self) -> None:
        self._push([], LIST_BYTES)


STOP = ord(".")
OBJECTS = frozenset(b"cio\x93RbQP\x81\x92\x82\x83\x84")
"""Opcodes that look up a class or a function, call it, or fill its result."""

ACTIONS: dict[int, Callable[[_Reader], None]] = {
    0x80: _Reader.protocol,
    0x95: _Reader.frame,
    ord("("): _Reader.mark,
    ord("}"): _Reader.empty_dict,
    ord("]"): _Reader.empty_list,
    ord(")"): lambda reader: reader.tuple_of(0),
    0x85: lambda reader: reader.tuple_of(1),
    0x86: lambda reader: reader.tuple_of(2),
    0x87: lambda reader: reader.tuple_of(3),
    ord("t"): _Reader.tuple_since_mark,
    ord("a"): _Reader.append,
    ord("e"): _Reader.appends,
    ord("s"): _Reader.set_item,
    ord("u"): _Reader.set_items,
    0x8C: lambda reader: reader.text(COUNT1),
    ord("X"): lambda reader: reader.text(COUNT4),
    0x8D: lambda reader: reader.text(COUNT8),
    ord("J"): lambda reader: reader.number(INT4),
    ord("M"): lambda reader: reader.number(INT2),
    ord("G"): lambda reader: reader.number(FLOAT8),
    ord("K"): _Reader.small,
    0x8A: _Reader.long,
    ord("N"): _Reader.none,
    0x88: _Reader.true,
    0x89: _Reader.false,
    0x94: _Reader.keep_next,
    ord("q"): _Reader.keep_small,
    ord("r"): _Reader.keep_large,
    ord("h"): _Reader.again_small,
    ord("j"): _Reader.again_large,
}
"""Action of each opcode of a plain pickle, of protocols 2 to 5."""
