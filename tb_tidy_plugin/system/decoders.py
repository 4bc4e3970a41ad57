"""Decoders of typed JSON: the only place that makes them, one at a time.

`msgspec` describes a struct type when it is first decoded, field by field, and publishes the description before it is
complete. A thread that decodes the same type in that moment ends the process with a segmentation fault; a decoder made
at import does not prevent that, since two modules with a type in common can be imported at the same time. So all
descriptions are made under one lock. A decoder's description contains those of all types inside, and never changes.

The linter forbids the functions of `msgspec` that describe types elsewhere. Encoding needs no description. With the
lock held, `msgspec` evaluates annotations and imports nothing, so it cannot wait for a thread that imports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

import msgspec

if TYPE_CHECKING:
    from msgspec import inspect

Hook: TypeAlias = Callable[[type, Any], Any]
JsonSchema: TypeAlias = dict[str, Any]
JsonText: TypeAlias = bytes | memoryview | str | msgspec.Raw

_Value = TypeVar("_Value")

_DESCRIBING = RLock()  # of one thread, so that code of a finalizer within does not wait for itself


@overload
def decoder_of(kind: type[_Value], *, strict: bool = ...) -> msgspec.json.Decoder[_Value]: ...
@overload
def decoder_of(kind: object, *, strict: bool = ...) -> msgspec.json.Decoder[Any]: ...
def decoder_of(kind: Any, *, strict: bool = True) -> msgspec.json.Decoder[Any]:
    """A decoder for values of one type; any thread may use it.

    Args:
        kind: any type that `msgspec` knows.
        strict: False to accept a number in a text, and the like.
    """
    with _DESCRIBING:
        return msgspec.json.Decoder(kind, strict=strict)


@overload
def decode(text: JsonText, kind: type[_Value], *, strict: bool = ...) -> _Value: ...
@overload
def decode(text: JsonText, kind: object = ..., *, strict: bool = ...) -> Any: ...  # noqa: ANN401 - a union has no name
def decode(text: JsonText, kind: Any = Any, *, strict: bool = True) -> Any:
    """The value in a JSON text. For many short texts, one `decoder_of` is faster, by 2 µs a text.

    Raises:
        MsgspecError, UnicodeDecodeError, RecursionError: the text is not JSON, or its value has another type.
    """
    return decoder_of(kind, strict=strict).decode(text)


@overload
def convert(value: object, kind: type[_Value], *, hook: Hook | None = ...) -> _Value: ...
@overload
def convert(value: object, kind: object, *, hook: Hook | None = ...) -> Any: ...  # noqa: ANN401 - as above
def convert(value: object, kind: Any, *, hook: Hook | None = None) -> Any:
    """A value made of builtin types as one of another type.

    Args:
        hook: returns the value of a type that `msgspec` does not know, given that type and the builtin value.

    Raises:
        ValidationError: the value has another type.
    """
    decoder_of(kind)  # describes the type, which keeps the description
    return msgspec.convert(value, kind, dec_hook=hook)


def type_info(kind: object) -> inspect.Type:
    """The fields of a type, their types and limits."""
    from msgspec import inspect

    with _DESCRIBING:
        return inspect.type_info(kind)


def schema_components(
    kinds: Iterable[object], references: str = "#/$defs/{name}"
) -> tuple[tuple[JsonSchema, ...], JsonSchema]:
    """The JSON schema of each type, and of the types inside by name; `references` is the address of a `{name}`."""
    with _DESCRIBING:
        return msgspec.json.schema_components(kinds, ref_template=references)
