"""Tokenising or detokenising on the thread that launches device work.

## What it finds
Calls of a tokeniser or a detokeniser on the thread that runs a server's iterations, while no kernel runs.

## Why it is slow
Tokenising a long prompt takes milliseconds and does not need the device. On the engine's thread, no batch is launched
meanwhile, and all requests wait for the text of one.

## Example
```python
while True:
    request = requests.get()
    prompts.append(tokenizer.encode(request.text))  # all requests that decode wait for this one
    engine.step(prompts)
```

Use instead:
```python
def prepare():  # in a process of its own
    while True:
        request = requests.get()
        tokens.put(tokenizer.encode(request.text))


while True:
    prompts += drained(tokens)
    engine.step(prompts)
```

## How the saving is estimated
At best all of the waiting goes. At worst nothing goes, if the engine waits for the same text anyway, as for a single
request.

## When it stays quiet
Tokenisers on other threads or in other processes, and those that run while the device works. Recordings without Python
functions, or in which the device waits only a small part of the time.
"""

from collections.abc import Iterator

import msgspec

from tb_tidy_plugin.profile.serving.iterations import functions_that_hold_up, share_held_up
from tb_tidy_plugin.rulekit import Match, Nanoseconds, Profile, Rule, Share, Threshold
from tb_tidy_plugin.words.units import times

TOKENISER = (
    r"(?:^|/)(?:de)?tokeni[sz](?:er|ation)\w*\.py\(|(?:^|/)(?:tokenization|detokenizer)_\w+\.py\(|"
    r"<built-in method \w+ of (?:\w+\.)?Tokenizer object"
)
"""Files of vLLM, SGLang and transformers, and the compiled functions of `tokenizers`."""


class Evidence(msgspec.Struct, frozen=True):
    """Calls of one function.

    Attributes:
        function: its file and name. calls: number of calls that the device waits for. time: total waiting time.
        share: of the serving time, for all such functions.
    """

    function: str
    calls: int
    time: Nanoseconds
    share: Share

    @property
    def how_often(self) -> str:
        """The number of calls that the device waits for."""
        return times(self.calls)


class TokenisingOnEngineThread(Rule[Evidence]):
    """Tokenisers that the device waits for."""

    code = "TT1510"
    needs = frozenset({"stacks", "device"})
    action = "Tokenise in another process"
    message = "The device waits {time} for a tokeniser on the engine's thread: `{function}`, {how_often}"
    why = "All such functions delay it for {share} of the time. Reported above {min_waiting}"
    fix = (
        "Let the server tokenise in a separate process (`vllm serve`; SGLang's tokenizer manager), or pass tokens "
        "instead of text"
    )
    left = (0.0, 0.0, 1.0)

    min_waiting = Threshold(0.02, "of the time; less is hardly worth another process")

    def detect(self, profile: Profile) -> Iterator[Match[Evidence]]:
        found = functions_that_hold_up(profile, TOKENISER, inside=True)
        share = share_held_up(profile, found)
        if share <= self.min_waiting:
            return
        for function in found:
            calls, time = function.calls, Nanoseconds(function.waits_ns)
            evidence = Evidence(function.name, len(calls), time, Share(share))
            for row, spans in calls.items():
                yield Match(row, (row,), evidence, confidence="medium", lost=spans)
