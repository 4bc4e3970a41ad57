"""What vLLM, SGLang and xDiT write into the annotation around one scheduled batch.

- `execute_<T>_context_<n>(sq<q>sk<k>sqsq<qq>sqsk<qk>)_generation_<m>(…)`: tokens, requests that are prefilled and that
  decode, and for each group the sums of query tokens, key tokens and their products;
- `execute_context_<n>(<q>_<qk>)_generation_<m>(<k>)`: the same, shorter;
- `step[<MODE> bs=<n> toks=<T>]`;
- `execute_diffusion_<n>_<W>x<H>`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from tb_tidy_plugin.vocabulary import Phase

NUMBER = r"(\d{1,15})"
GROUP = rf"\(sq{NUMBER}sk{NUMBER}sqsq{NUMBER}sqsk{NUMBER}\)"
LONG = re.compile(rf"execute_{NUMBER}_context_{NUMBER}{GROUP}_generation_{NUMBER}{GROUP}")
SHORT = re.compile(rf"execute_context_{NUMBER}\({NUMBER}(?:_{NUMBER})?\)_generation_{NUMBER}\({NUMBER}(?:_{NUMBER})?\)")
STEP = re.compile(r"step\[(\w{1,40})((?: \w{1,20}=\d{1,15}){0,8})\]")
DIFFUSION = re.compile(rf"execute_diffusion_{NUMBER}_(\d{{1,6}}x\d{{1,6}})")
FIELD = re.compile(r"(\w{1,20})=(\d{1,15})")

MODES: dict[str, Phase] = {
    "EXTEND": "prefill", "PREFILL": "prefill", "DRAFT_EXTEND": "prefill", "DECODE": "decode", "TARGET_VERIFY": "decode",
    "MIXED": "mixed",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Batch:
    """One scheduled batch, as far as its annotations tell; None stands for what they do not.

    Attributes:
        requests: how many; of a diffusion model images.
        prefills, decodes: requests of each phase.
        tokens: tokens that are computed. kv_tokens: tokens that attention reads, summed over the requests.
        decode_kv_tokens: those of the requests that decode.
        query_key: sum of the products of each request's query and key tokens.
        size: width and height of an image, `256x256`.
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


def batch_of(name: str) -> Batch | None:
    """What one annotation says, None where it has none of the known forms."""
    if match := LONG.fullmatch(name):
        tokens, prefills, _, k, _, qk, decodes, _, decode_k, _, decode_qk = map(int, match.groups())
        return _batch(prefills, decodes, tokens, k + decode_k, decode_k, qk + decode_qk)
    if match := SHORT.fullmatch(name):
        return _short(*map(int, match.groups("-1")))
    if match := STEP.fullmatch(name):
        told = {key: int(digits) for key, digits in FIELD.findall(match[2])}
        phase = MODES.get(match[1].upper(), "unknown")
        requests = told.get("bs")
        computed = told.get("toks", requests if phase == "decode" else None)
        return Batch(phase, requests, tokens=computed, decodes=requests if phase == "decode" else None)
    if match := DIFFUSION.fullmatch(name):
        return Batch("diffusion", int(match[1]), size=match[2])
    return None


def _short(prefills: int, q: int, qk: int, decodes: int, k: int, decode_qk: int) -> Batch:
    """From the numbers of the shorter form, -1 for those that are missing."""
    prefilled = 0 if not prefills else qk // q if qk >= 0 and prefills == 1 and q else None
    products = None if qk < 0 else qk + (k if decode_qk < 0 else decode_qk)
    return _batch(prefills, decodes, q + decodes, None if prefilled is None else prefilled + k, k, products)


def _batch(prefills: int, decodes: int, tokens: int, kv: int | None, decode_kv: int, products: int | None) -> Batch:
    phase: Phase = "mixed" if prefills and decodes else "prefill" if prefills else "decode" if decodes else "unknown"
    return Batch(phase, prefills + decodes, prefills, decodes, tokens, kv, decode_kv, products)


def merged(names: Iterable[str]) -> Batch:
    """What nested annotations of one batch say together; of two that disagree the outer, which comes first, counts."""
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
