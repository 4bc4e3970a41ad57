"""Processes in which several threads decode each struct type of the package for the first time, all at once.

`python -m tests.support.first_decodes 200` starts 200 and prints the exit codes of those that died; with `unlocked`,
they lack the lock of `tb_tidy_plugin.system.decoders`, and all die.
"""

from __future__ import annotations

import importlib
import os
import pickle
import pkgutil
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any

import msgspec
from msgspec import inspect

import tb_tidy_plugin
from tb_tidy_plugin.system import decoders

TYPES = 30  # of one process
THREADS = 4
SWITCH_S = 1e-6  # as often as the interpreter can
DEPTH = 5  # from there on, examples have no more than they need: some types are inside themselves
NOT_IMPORTED = ("tb_tidy_plugin.dev", "tb_tidy_plugin.capture", "tb_tidy_plugin.ask.server")

PLAIN: dict[type[inspect.Type], object] = {
    inspect.AnyType: {},
    inspect.BoolType: False,
    inspect.BytesType: "",
    inspect.NoneType: None,
    inspect.RawType: {},
}

Texts = list[tuple[type[msgspec.Struct], bytes]]


class Unmade(Exception):  # noqa: N818 - no error: what has arrays inside is not JSON
    """A type without an example."""


def main() -> None:
    if sys.argv[1:] == ["examples"]:
        sys.stdout.buffer.write(pickle.dumps(examples()))
        return
    count, *words = sys.argv[1:]
    if "unlocked" in words:
        vars(decoders)["_DESCRIBING"] = nullcontext()
    # made elsewhere: an inspected type is described
    command = [sys.executable, "-m", "tests.support.first_decodes", "examples"]
    texts = pickle.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    ended = [os.waitstatus_to_exitcode(os.waitpid(started(texts, seed), 0)[1]) for seed in range(int(count))]
    print(f"{len(texts)} types, {len(ended)} processes, of which died: {[code for code in ended if code]}")  # noqa: T201


def started(texts: Texts, seed: int) -> int:
    """The number of a process that decodes some of `texts` in several threads at once."""
    if child := os.fork():
        return child
    sys.setswitchinterval(SWITCH_S)
    begin = threading.Barrier(THREADS)
    failed: list[BaseException] = []
    threads = [threading.Thread(target=decode_all, args=(texts, seed, begin, failed)) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os._exit(len(failed))


def decode_all(texts: Texts, seed: int, begin: threading.Barrier, failed: list[BaseException]) -> None:
    mine = random.Random(seed).sample(texts, TYPES)  # the same for all threads, so that they meet
    begin.wait()
    try:
        for kind, text in mine:
            decoders.decode(text, kind)
    except BaseException as problem:  # noqa: BLE001 - counted
        failed.append(problem)


def examples() -> Texts:
    """An example of each struct type of the package whose values can be JSON."""
    for module in pkgutil.walk_packages(tb_tidy_plugin.__path__, "tb_tidy_plugin."):
        if not module.name.startswith(NOT_IMPORTED):
            with suppress(ImportError):
                importlib.import_module(module.name)
    return [*_examples()]


def _examples() -> Iterator[tuple[type[msgspec.Struct], bytes]]:
    for kind in sorted(set(_below(msgspec.Struct)), key=lambda kind: (kind.__module__, kind.__qualname__)):
        if kind.__module__.startswith("tb_tidy_plugin."):
            with suppress(Unmade, TypeError, NameError):
                yield kind, msgspec.json.encode(_value(decoders.type_info(kind)))


def _below(kind: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)


def _value(described: inspect.Type, depth: int = 0) -> Any:  # noqa: ANN401, C901, PLR0911 - any JSON
    below = partial(_value, depth=depth + 1)
    match described:
        case inspect.StructType():
            return _fields(described, depth)
        case inspect.ListType() | inspect.VarTupleType() | inspect.SetType() | inspect.FrozenSetType():
            return [below(described.item_type)] if depth < DEPTH or described.min_length else []
        case inspect.TupleType():
            return [*map(below, described.item_types)]
        case inspect.DictType() if isinstance(described.key_type, inspect.TupleType | inspect.VarTupleType):
            raise Unmade
        case inspect.DictType():
            return {str(below(described.key_type)): below(described.value_type)} if depth < DEPTH else {}
        case inspect.UnionType():
            return below(described.types[0])
        case inspect.LiteralType():
            return described.values[0]
        case inspect.IntType() | inspect.FloatType():
            return described.ge or (described.gt or 0) + 1
        case inspect.StrType():
            return "1" * (described.min_length or 1)
        case _ if type(described) in PLAIN:
            return PLAIN[type(described)]
        case _:
            raise Unmade


def _fields(described: inspect.StructType, depth: int) -> object:
    fields = [each for each in described.fields if each.required or depth < DEPTH or described.array_like]
    values = [_value(field.type, depth + 1) for field in fields]
    if described.array_like:
        return values
    tag = {described.tag_field: described.tag} if described.tag_field else {}
    return tag | {field.encode_name: value for field, value in zip(fields, values, strict=True)}


if __name__ == "__main__":
    main()
