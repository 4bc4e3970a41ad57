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

import tb_tidy_plugin.rulekit as tt

TOKENISER = (
    r"(?:^|/)(?:de)?tokeni[sz](?:er|ation)\w*\.py\(|(?:^|/)(?:tokenization|detokenizer)_\w+\.py\(|"
    r"<built-in method \w+ of (?:\w+\.)?Tokenizer object"
)
"""Files of vLLM, SGLang and transformers, and the compiled functions of `tokenizers`."""

_PARTS = {"": TOKENISER}


class TokenisingOnEngineThread(tt.EngineFunctionRule):
    """Tokenisers that the device waits for."""

    code = "TT1510"
    parts = _PARTS
    inside = True
    action = "Tokenise in another process"
    message = "The device waits {time} for a tokeniser on the engine's thread: `{function}`, {how_often}"
    why = "All such functions delay it for {share} of the time. Reported above {min_waiting}"
    fix = (
        "Let the server tokenise in a separate process (`vllm serve`; SGLang's tokenizer manager), or pass tokens "
        "instead of text"
    )
    left = (0.0, 0.0, 1.0)

    min_waiting = tt.Threshold(0.02, "of the time; less is hardly worth another process")
