"""Annotations of vLLM, SGLang, ATOM and xDiT around one scheduled batch.

- vLLM: `execute_context_<n>(<q>)_generation_<m>(<t>)`: requests that are prefilled and that decode, and the tokens that
  each group computes; `execute_new_<n>_cached_<m>`: new and continuing requests, in older versions;
- vLLM, in detail: `execute_<T>_context_<n>(sq<q>sk<k>sqsq<qq>sqsk<qk>)_generation_<m>(…)`: tokens, and for each group
  the sums of query tokens, key tokens and their products; `execute_context_<n>(<q>_<qk>)_generation_<m>(<k>)`: the
  same, shorter, with the key tokens of the decoding requests;
- SGLang: `step[<MODE> bs=<n> toks=<T>]`, in detail with `c=`, `g=` and `c_sk=`, `g_sk=` and so on for the two groups;
- ATOM: `prefill[bs=<n> tok=<T> …]`, `decode[bs=<n>/<padded> tok=<T> p=<prefilled> d=<decoding> …]`;
- xDiT: `execute_diffusion_<n>_<W>x<H>`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

import msgspec
from msgspec.structs import fields, replace

from tb_tidy_plugin.words.vocabulary import Phase

_NUMBER = r"(\d{1,15})"
GROUP = rf"\(sq{_NUMBER}sk{_NUMBER}sqsq{_NUMBER}sqsk{_NUMBER}\)"
LONG = re.compile(rf"execute_{_NUMBER}_context_{_NUMBER}{GROUP}_generation_{_NUMBER}{GROUP}")
SHORT = re.compile(
    rf"execute_context_{_NUMBER}\({_NUMBER}(?:_{_NUMBER})?\)_generation_{_NUMBER}\({_NUMBER}(?:_{_NUMBER})?\)"
)
CACHED = re.compile(rf"execute_new_{_NUMBER}_cached_{_NUMBER}")
_STEP = re.compile(r"step\[(\w{1,40})((?: \w{1,20}=\d{1,15}){0,16})\]")
ATOM = re.compile(rf"(?:eager_)?(prefill|decode)\[bs={_NUMBER}(?:/{_NUMBER})?( [^\n]{{0,400}})?\]")
DIFFUSION = re.compile(rf"execute_diffusion_{_NUMBER}_(\d{{1,6}}x\d{{1,6}})")
FIELD = re.compile(r"\b(\w{1,20})=(\d{1,15})\b")

_MODES: dict[str, Phase] = {
    "EXTEND": "prefill", "PREFILL": "prefill", "DRAFT_EXTEND": "prefill", "DRAFT_EXTEND_V2": "prefill",
    "SPLIT_PREFILL": "prefill", "DLLM_EXTEND": "prefill", "DECODE": "decode", "TARGET_VERIFY": "decode",
    "VERIFY": "decode", "MIXED": "mixed",
}  # fmt: skip


class Batch(msgspec.Struct, frozen=True):
    """One scheduled batch, as far as its annotations describe it; None for missing figures.

    Attributes:
        requests: number of requests; of a diffusion model, images.
        prefills, decodes: requests of each phase.
        tokens: tokens that are computed. kv_tokens: tokens that attention reads, summed over the requests.
        decode_kv_tokens: those of the decoding requests.
        query_key: sum of the products of each request's query and key tokens.
        size: width and height of an image, `256x256`.
        padded: requests that the graph was captured for, if there are fewer.
    """

    phase: Phase = "unknown"
    requests: int | None = None
    prefills: int | None = None
    decodes: int | None = None
    tokens: int | None = None
    kv_tokens: int | None = None
    decode_kv_tokens: int | None = None
    query_key: int | None = None
    size: str | None = None
    padded: int | None = None


def batch_of(name: str) -> Batch | None:
    """The batch of one annotation, None if it has none of the known forms."""
    return next((said_by(match) for form, said_by in FORMS if (match := form.fullmatch(name))), None)


def _long(match: re.Match[str]) -> Batch:
    tokens, prefills, _, k, _, qk, decodes, _, decode_k, _, decode_qk = map(int, match.groups())
    return _batch(prefills, decodes, tokens, k + decode_k, decode_k, qk + decode_qk)


def _cached(match: re.Match[str]) -> Batch:
    new, cached = map(int, match.groups())
    return Batch(_phase(new, cached), new + cached)


def _diffusion(match: re.Match[str]) -> Batch:
    return Batch("diffusion", int(match[1]), size=match[2])


def _fields(text: str) -> dict[str, int]:
    return {key: int(digits) for key, digits in FIELD.findall(text)}


def _short(match: re.Match[str]) -> Batch:
    """The batch from the numbers of the shorter forms, -1 for missing ones; without products, `k` counts tokens."""
    prefills, q, qk, decodes, k, decode_qk = map(int, match.groups("-1"))
    if qk < 0 and decode_qk < 0:
        return _batch(prefills, decodes, q + k, None, None, None)
    prefilled = 0 if not prefills else qk // q if qk >= 0 and prefills == 1 and q else None
    products = None if qk < 0 else qk + (k if decode_qk < 0 else decode_qk)
    return _batch(prefills, decodes, q + decodes, None if prefilled is None else prefilled + k, k, products)


def _step(match: re.Match[str]) -> Batch:
    """The batch from SGLang's mode and fields: `c_` is for prefilled requests, `g_` for decoding ones."""
    mode, told = match[1].upper(), _fields(match[2])
    phase, requests = _MODES.get(mode, "unknown"), told.get("bs")
    prefills = told.get("c", {"prefill": requests, "decode": 0}.get(phase))
    decodes = told.get("g", {"prefill": 0, "decode": requests}.get(phase))
    if prefills is not None and decodes is not None:
        phase = _phase(prefills, decodes)
    tokens = told.get("toks", _sum(told, "c_sq", "g_sq"))
    return Batch(
        phase,
        requests,
        prefills,
        decodes,
        tokens=requests if tokens is None and mode == "DECODE" else tokens,
        kv_tokens=_sum(told, "c_sk", "g_sk"),
        decode_kv_tokens=told.get("g_sk"),
        query_key=_sum(told, "c_sqsk", "g_sqsk"),
    )


def _atom(match: re.Match[str]) -> Batch:
    """The batch from ATOM's fields, which are sums over all requests."""
    requests, padded, told = int(match[2]), int(match[3] or 0), _fields(match[4] or "")
    prefills = requests if match[1] == "prefill" else min(told.get("p", 0), requests)
    return Batch(
        _phase(prefills, requests - prefills),
        requests,
        prefills,
        requests - prefills,
        told.get("tok"),
        told.get("sk"),
        None if prefills else told.get("sk"),
        told.get("sqsk"),
        padded=padded if padded > requests else None,
    )


def _sum(told: Mapping[str, int], *keys: str) -> int | None:
    """Sum of the fields that exist, None without any."""
    known = [told[key] for key in keys if key in told]
    return sum(known) if known else None


def _phase(prefills: int, decodes: int) -> Phase:
    return "mixed" if prefills and decodes else "prefill" if prefills else "decode" if decodes else "unknown"


def _batch(
    prefills: int, decodes: int, tokens: int, kv: int | None, decode_kv: int | None, products: int | None
) -> Batch:
    return Batch(_phase(prefills, decodes), prefills + decodes, prefills, decodes, tokens, kv, decode_kv, products)


FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Batch]], ...] = (
    (LONG, _long),
    (SHORT, _short),
    (CACHED, _cached),
    (_STEP, _step),
    (ATOM, _atom),
    (DIFFUSION, _diffusion),
)


def merged(names: Iterable[str]) -> Batch:
    """The batch of nested annotations; if two disagree, the outer one, which comes first, counts."""
    whole = Batch()
    for batch in filter(None, map(batch_of, names)):
        told = {
            field.name: value
            for field in fields(Batch)
            if getattr(whole, field.name) in {None, "unknown"} and (value := getattr(batch, field.name)) is not None
        }
        whole = replace(whole, **told)
    return whole


def sizes_of(names: Iterable[str]) -> frozenset[int]:
    """Sizes of a batch by which graphs are chosen: its requests and its tokens."""
    batch = merged(names)
    return frozenset(size for size in (batch.requests, batch.tokens) if size)
