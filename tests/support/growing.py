"""Inputs that grow in one respect each: for the growth tests, and for tests that need many of something.

Each of `INPUTS` writes a run folder with `count` of what it is named after. Everything else stays the same, so the
cost of the analysis may grow as `count` does, and no faster.
"""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from tb_tidy_plugin.rulekit.testing import A100
from tb_tidy_plugin.rulekit.testing.drawn import draw_into

TRACE = "w.1.pt.trace.json"
STEP_US = 1000

Write: TypeAlias = Callable[[Path, int], object]


@dataclass(frozen=True)
class Growing:
    """One kind of input.

    Attributes:
        write: writes the run with the given number of items into an empty folder.
        count: the number that takes about a quarter of a second of processor time.
    """

    write: Write
    count: int


# Events as text: much faster than `json.dumps`, and small


def op(
    name: str, ts: float, dur: float, args: str = "", *, pid: object = 1, tid: object = 1, cat: str = "cpu_op"
) -> str:
    """One complete event of the host; `args` are the members of an object."""
    return (
        f'{{"ph":"X","cat":"{cat}","name":"{name}","pid":{pid},"tid":{tid},"ts":{ts:.3f},"dur":{dur:.3f},'
        f'"args":{{{args}}}}}'
    )


def frame(name: str, ts: float, dur: float, number: int, parent: int | None = None, *, tid: object = 1) -> str:
    """One Python function."""
    ids = f'"Python id":{number},"Python parent id":{"null" if parent is None else parent}'
    return op(name, ts, dur, ids, tid=tid, cat="python_function")


def step(number: int, ts: float, dur: float) -> str:
    """One step of the profiler."""
    return op(f"ProfilerStep#{number}", ts, dur, cat="user_annotation")


def launched(
    number: int, ts: float, name: str = "gemm", *, stream: int = 7, device: int = 0, after: float = 20, dur: float = 5
) -> Iterator[str]:
    """An operator with its launch, its kernel and the arrow between them."""
    ids = f'"External id":{number},"correlation":{number}'
    yield op("aten::mm", ts, 8, f'"External id":{number}')
    yield op("cudaLaunchKernel", ts + 2, 4, ids, cat="cuda_runtime")
    at = ts + after
    yield (
        f'{{"ph":"X","cat":"kernel","name":"{name}","pid":{device},"tid":{stream},"ts":{at:.3f},"dur":{dur:.3f},'
        f'"args":{{{ids},"device":{device},"stream":{stream}}}}}'
    )
    yield f'{{"ph":"s","id":{number},"pid":1,"tid":1,"ts":{ts + 2:.3f},"cat":"ac2g","name":"ac2g"}}'
    yield f'{{"ph":"f","id":{number},"pid":{device},"tid":{stream},"ts":{at:.3f},"cat":"ac2g","name":"ac2g","bp":"e"}}'


def document(events: Iterable[str], before: str = "", after: str = "") -> bytes:
    """A trace; `before` and `after` are further members of the document."""
    lines = ",\n".join(events)
    return f'{{{before and before + ","}"traceEvents":[\n{lines}\n]{after and "," + after}}}'.encode()


def _trace(events: Callable[[int], Iterable[str]]) -> Write:
    def write(folder: Path, count: int) -> None:
        (folder / TRACE).write_bytes(document(events(count)))

    return write


# Packing


def member(text: bytes) -> bytes:
    """A member of a gz file, its text stored uncompressed."""
    head = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
    stored = struct.pack("<BHH", 1, len(text), len(text) ^ 0xFFFF) + text
    return head + stored + struct.pack("<II", zlib.crc32(text), len(text))


def _members(texts: Callable[[int], Iterable[bytes]]) -> Write:
    def write(folder: Path, count: int) -> None:
        (folder / f"{TRACE}.gz").write_bytes(b"".join(map(member, texts(count))))

    return write


def _one_event_each(count: int) -> Iterator[bytes]:
    yield b'{"traceEvents":['
    yield from (f"{op('aten::mm', at, 0.5)},\n".encode() for at in range(count))
    yield op("aten::mm", count, 0.5).encode() + b"]}"


def _one_byte_each(count: int) -> Iterator[bytes]:
    text = document(op("aten::mm", at, 0.5) for at in range(1 + count // 100))
    return (text[at : at + 1] for at in range(len(text)))


def _empty(count: int) -> Iterator[bytes]:
    yield document([op("aten::mm", 0, 0.5)])
    yield from (b"" for _ in range(count))


# The timeline


def _threads(count: int) -> Iterator[str]:
    for thread in range(count):
        yield op("aten::mm", thread % 50, 0.5, tid=thread)
        yield op("aten::add", thread % 50 + 0.6, 0.3, tid=thread)


def _processes(count: int) -> Iterator[str]:
    for process in range(count):
        yield op("aten::mm", process % 50, 0.5, pid=process)
        yield op("aten::add", process % 50 + 0.6, 0.3, pid=process)


def _threads_in_steps(count: int) -> Iterator[str]:
    """One thread for each step: what looks up all steps for each thread takes the square."""
    for number in range(count):
        at = STEP_US * number
        yield step(number, at, STEP_US - 1)
        yield op("aten::mm", at + 1, 500)
        yield op("aten::add", at, STEP_US - 1, tid=number + 2)


def _steps_inside_each_other(count: int) -> Iterator[str]:
    return (step(at, at / 10, count / 5 - at / 10) for at in range(count))


def _threads_with_frames(count: int) -> Iterator[str]:
    for thread in range(count):
        yield frame(f"train.py({thread % 9}): work", 0, 90, 2 * thread, tid=thread)
        yield frame("<built-in method acquire>", 1, 80, 2 * thread + 1, 2 * thread, tid=thread)


def _threads_that_launch(count: int) -> Iterator[str]:
    for thread in range(count):
        yield from (text.replace('"tid":1,', f'"tid":{thread},') for text in launched(thread + 1, thread % 50))


def _steps(count: int) -> Iterator[str]:
    for number in range(count):
        at = STEP_US * number
        yield step(number, at, STEP_US - 1)
        yield frame("train.py(7): train", at + 1, STEP_US - 3, number)
        yield from launched(number + 1, at + 10, dur=200)
        yield op("aten::add", at + 300, 20)


def _names(count: int) -> Iterator[str]:
    return (op(f"aten::op{at}", at, 0.5) for at in range(count))


def _frames(count: int) -> Iterator[str]:
    return (frame(f"f{at}.py({at}): g{at}", at, 0.5, at) for at in range(count))


def _built_ins(count: int) -> Iterator[str]:
    return (frame(f"<built-in method f of object at 0x{at:x}>", at, 0.5, at) for at in range(count))


def _modules(count: int) -> Iterator[str]:
    yield step(1, 0, 3 * count + 5)
    for at in range(count):
        yield frame(f"nn.Module: Linear_{at}", 3 * at, 2.5, at)
        yield op("aten::mm", 3 * at + 0.5, 1)


def _deep(count: int) -> Iterator[str]:
    return (op("aten::mm", at / 10, count / 5 - at / 10) for at in range(count))


def _deep_frames(count: int) -> Iterator[str]:
    return (
        frame(f"a.py({at % 99}): f{at % 77}", at / 10, count / 5 - at / 10, at, at - 1 if at else None)
        for at in range(count)
    )


def _deep_modules(count: int) -> Iterator[str]:
    return (
        frame(f"nn.Module: Block_{at}", at / 10, count / 5 - at / 10, at, at - 1 if at else None) for at in range(count)
    )


def _at_once(count: int) -> Iterator[str]:
    return (op("aten::mm", 0, 1) for at in range(count))


def _crossing(count: int) -> Iterator[str]:
    """Each event begins inside the previous one and ends after it, as no call does."""
    return (op("aten::mm", at, count) for at in range(count))


# Devices


def _kernels(count: int) -> Iterator[str]:
    yield step(1, 0, 10 * count)
    for at in range(count):
        yield from launched(at + 1, 10 * at)


def _kernel_names(count: int) -> Iterator[str]:
    for at in range(count):
        yield from launched(at + 1, 10 * at, f"void kernel<{at}>(float*)")


def _streams(count: int) -> Iterator[str]:
    for at in range(count):
        yield from launched(at + 1, 10 * at, stream=at, dur=500)


def _devices(count: int) -> Iterator[str]:
    for at in range(count):
        yield from launched(at + 1, 10 * at, device=at, dur=500)


def _overlapping_kernels(count: int) -> Iterator[str]:
    for at in range(count):
        yield from launched(at + 1, 10 * at, stream=at % 16, dur=10 * count)


def _one_id(count: int) -> Iterator[str]:
    for at in range(count):
        yield from launched(1, 10 * at)


def _launches_of_one_call(count: int) -> Iterator[str]:
    """A graph: one launch, many kernels."""
    yield from launched(1, 0)
    for at in range(count):
        yield list(launched(1, 10 * at))[2]


def _flows_of_autograd(count: int) -> Iterator[str]:
    for at in range(count):
        forward, backward = 10 * at, 10 * (count + at)
        numbers = f'"Sequence number":{at},"Fwd thread id":'
        yield op("aten::mm", forward, 8, numbers + "0")
        yield op("autograd::engine::evaluate_function: MmBackward0", backward, 9, numbers + "1", tid=2)
        yield op("MmBackward0", backward + 1, 7, numbers + "1", tid=2)
        for mark, thread, time in (("s", 1, forward), ("f", 2, backward + 1)):
            yield (
                f'{{"ph":"{mark}","id":{at},"pid":1,"tid":{thread},"ts":{time},"cat":"fwdbwd","name":"fwdbwd","bp":"e"}}'
            )


def _one_sequence_number(count: int) -> Iterator[str]:
    for at in range(count):
        yield op("aten::mm", 10 * at, 8, '"Sequence number":1,"Fwd thread id":0')
        yield op("MmBackward0", 10 * (count + at), 7, '"Sequence number":1,"Fwd thread id":1', tid=2)


def _waits(count: int) -> Iterator[str]:
    """Streams that wait for each other through events."""
    yield step(1, 0, 30 * count)
    for at in range(count):
        ids = f'"External id":{at},"correlation":{3 * at + 1}'
        yield from launched(3 * at, 30 * at, stream=7 + at % 2)
        yield op("cudaEventRecord", 30 * at + 9, 1, ids, cat="cuda_runtime")
        yield op(
            "cudaStreamWaitEvent", 30 * at + 11, 1, ids.replace(f"{3 * at + 1}", f"{3 * at + 2}"), cat="cuda_runtime"
        )
        yield (
            f'{{"ph":"X","cat":"cuda_sync","name":"Stream Wait Event","pid":0,"tid":{7 + (at + 1) % 2},'
            f'"ts":{30 * at + 11},"dur":1,"args":{{"cuda_sync_kind":"Stream Wait Event","wait_on_stream":{7 + at % 2},'
            f'"wait_on_cuda_event_record_corr_id":{3 * at + 1},"wait_on_cuda_event_id":9,"stream":{7 + (at + 1) % 2},'
            f'"correlation":{3 * at + 2},"device":0}}}}'
        )


def _synchronisations(count: int) -> Iterator[str]:
    yield step(1, 0, 40 * count)
    for at in range(count):
        yield from launched(at + 1, 40 * at)
        yield op("cudaStreamSynchronize", 40 * at + 10, 16, f'"correlation":{count + at + 1}', cat="cuda_runtime")


def _collectives(count: int) -> Iterator[str]:
    yield step(1, 0, 100 * count)
    for at in range(count):
        group = f'"Input Dims":[[1024]],"Input type":["float"],"Process Group Name":"{at}"'
        yield op("record_param_comms", 100 * at, 9, group)
        yield op("c10d::allreduce_", 100 * at + 10, 20)
        yield op("gloo:all_reduce", 100 * at + 12, 60, '"Input Dims":[[1024]],"Input type":["float"]', tid=2,
                 cat="user_annotation")  # fmt: skip


def _launches_behind_a_deep_call(count: int) -> Iterator[str]:
    """All calls have ended when the launches come."""
    yield from (op("aten::mm", at / 10, count / 5 - at / 10) for at in range(count))
    for at in range(count):
        yield op("cudaLaunchKernel", count / 5 + at, 0.5, f'"correlation":{at + 1}', cat="cuda_runtime")


def _kernels_inside_each_other(count: int) -> Iterator[str]:
    """Each call launches a kernel and calls the next one."""
    for at in range(count):
        ids = f'"External id":{at + 1},"correlation":{at + 1}'
        yield op("aten::mm", 10 * at, 30 * count - 20 * at, f'"External id":{at + 1}')
        yield op("cudaLaunchKernel", 10 * at + 2, 4, ids, cat="cuda_runtime")
        yield (
            f'{{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":{10 * at + 8},"dur":5,'
            f'"args":{{{ids},"device":0,"stream":7}}}}'
        )


def _readbacks_below_a_deep_call(count: int) -> Iterator[str]:
    yield step(1, 0, 3000 * count)
    yield from (frame(f"a.py({at % 99}): f{at % 77}", 1 + at, 2990 * count - 2 * at, at, at - 1) for at in range(count))
    for at in range(count):
        time = 2 * count + 1000 * at
        yield op("aten::item", time, 900)
        yield op("aten::_local_scalar_dense", time + 1, 890)
        ids = f'"correlation":{at + 1}'
        yield op("cudaMemcpyAsync", time + 2, 4, ids, cat="cuda_runtime")
        yield op("cudaStreamSynchronize", time + 10, 800, cat="cuda_runtime")
        yield (
            '{"ph":"X","cat":"gpu_memcpy","name":"Memcpy DtoH (Device -> Pageable)","pid":0,"tid":7,'
            f'"ts":{time + 500},"dur":300,"args":{{{ids},"device":0,"stream":7,"bytes":4}}}}'
        )


def _memory_devices(count: int) -> Iterator[str]:
    for at in range(count):
        yield (
            '{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":1,"tid":1,'
            f'"ts":{at},"args":{{"Ev Idx":{at},"Device Type":1,"Device Id":{at},"Addr":{at + 1},'
            f'"Bytes":512,"Total Allocated":512,"Total Reserved":0}}}}'
        )


def _memory(count: int) -> Iterator[str]:
    """Each allocation is freed only at the end."""
    for at in range(2 * count):
        taken = at < count
        yield (
            '{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":1,"tid":1,'
            f'"ts":{at},"args":{{"Ev Idx":{at},"Device Type":0,"Device Id":-1,"Addr":{at % count},'
            f'"Bytes":{512 if taken else -512},'
            f'"Total Allocated":{512 * (at if taken else 2 * count - at)},"Total Reserved":0}}}}'
        )


# Arguments of operators


def _inputs(count: int) -> Iterator[str]:
    for at in range(count):
        dims = f'"Input Dims":[[{at},64],[64,64]],"Input type":["float","float"],"Concrete Inputs":["","{at}"]'
        yield op("aten::mm", at, 0.9, dims)


def _long_inputs(count: int) -> Iterator[str]:
    shapes, types = ",".join(["[8,8]"] * count), ",".join(['"float"'] * count)
    yield op("aten::cat", 0, 9, f'"Input Dims":[[{shapes}]],"Input type":["TensorList"],"Concrete Inputs":[{types}]')
    yield op("aten::add", 10, 9, f'"Input Dims":[{shapes}],"Input type":[{types}]')


def _args(count: int) -> Iterator[str]:
    for at in range(count):
        yield op("aten::mm", at, 0.5, f'"a{at}":{at},"b":"{at}"')


def _args_of_one(count: int) -> Iterator[str]:
    yield op("aten::mm", 0, 1, ",".join(f'"key{at}":{at}' for at in range(count)))


def _call_stacks(count: int) -> Iterator[str]:
    for at in range(count):
        stack = ";".join(f"model.py({line}): f{at % 50}" for line in range(9))
        yield op("aten::mm", at, 0.9, f'"Call stack":"{stack}"')


# Findings


UNIT_US = 10_000
UNIT = """
    ProfilerStep#1                0-9999
      train.py(9): work             10-9890
        aten::ones                  20-200
          aten::empty               21-25
          aten::fill_               30-190    dims=64x64,-  types=float,Scalar
        aten::to                    210-500   dims=64x64    types=float
          aten::_to_copy            215-495   dims=64x64    types=float
            aten::empty_strided     220-230
            aten::copy_             240-490   dims=64x64,64x64  types=float,float  copy=HtoD@300-480:16384
        aten::mm                    510-890   dims=1001x1003,1003x1005 types=float,float kernel=magma_sgemm@520-1500
        aten::item                  900-1900
          aten::_local_scalar_dense 905-1890  copy=DtoH@1600-1700:4  wait=950-1880
        aten::transpose             1910-1920 dims=512x1024,-,- types=float,Scalar,Scalar
        aten::contiguous            1930-2400 dims=1024x512  types=float
          aten::clone               1935-2390 dims=1024x512  types=float
            aten::copy_ 1940-2380 dims=1024x512,1024x512 types=float,float kernel=elementwise_kernel@2000-2370
        aten::to                    2410-2500 dims=512x1024 types=float
          aten::_to_copy            2415-2490 dims=512x1024 types=float
            aten::copy_             2420-2480 dims=512x1024,- types=half,float kernel=elementwise_kernel@2440-2700
        aten::to                    2510-2600 dims=512x1024 types=half
          aten::_to_copy            2515-2590 dims=512x1024 types=half
            aten::copy_             2520-2580 dims=512x1024,- types=float,half kernel=elementwise_kernel@2700-2900
        aten::abs                   2910-2950 dims=512x1024 types=float kernel=elementwise_kernel@2920-3100
        aten::neg                   2960-3000 dims=512x1024 types=float kernel=elementwise_kernel@3100-3300
        aten::exp                   3010-3050 dims=512x1024 types=float kernel=elementwise_kernel@3300-3500
        aten::log1p                 3060-3100 dims=512x1024 types=float kernel=elementwise_kernel@3500-3700
        aten::tanh                  3110-3150 dims=512x1024 types=float kernel=elementwise_kernel@3700-3900
        aten::sigmoid               3160-3200 dims=512x1024 types=float kernel=elementwise_kernel@3900-4100
        aten::cat                   4110-4200 dims=1x64+1x64 types=TensorList kernel=CatArrayBatchedCopy@4120-4190
        aten::cat                   4210-4300 dims=2x64+1x64 types=TensorList kernel=CatArrayBatchedCopy@4220-4290
        aten::cat                   4310-4400 dims=3x64+1x64 types=TensorList kernel=CatArrayBatchedCopy@4320-4390
        aten::cat                   4410-4500 dims=4x64+1x64 types=TensorList kernel=CatArrayBatchedCopy@4420-4490
        aten::select                5010-5020 dims=64x64,-,- types=float,Scalar,Scalar
        aten::item                  5030-5800
          aten::_local_scalar_dense 5035-5790 copy=DtoH@5100-5200:4  wait=5050-5780
        c10d::allreduce_            6000-6100
          nccl:all_reduce           6010-6090 dims=1024x1024 types=float kernel=ncclDevKernel_AllReduce@6050-7500
        aten::add_                  7600-7700 dims=1024x1024 types=float kernel=elementwise_kernel@7620-7690
        train.py(30): zero_grad     8000-8500
          aten::zero_               8010-8100 dims=1024x1024 types=float
            aten::fill_             8020-8090 fill=8030-8080:4194304
"""
"""A function in which many rules find their pattern."""


@lru_cache
def _unit() -> tuple[list[dict[str, Any]], str]:
    """The unit's events, and the rest of its trace."""
    with TemporaryDirectory() as folder:
        draw_into(Path(folder), UNIT, A100)
        document = json.loads((Path(folder) / "drawn.pt.trace.json").read_text())
    events = document.pop("traceEvents")
    return [each for each in events if not each["name"].startswith("ProfilerStep")], json.dumps(document)[1:-1]


def _units(steps: int, in_step: int, file: Callable[[int], str], caller: Callable[[int], str] | None = None) -> bytes:
    """A trace of `steps` with `in_step` units each; unit `n` is in `file(n)`, called from `caller(n)`."""
    events, about = _unit()
    lines = []
    for number in range(steps * in_step):
        at, ids = UNIT_US * number, 1000 * number
        if number % in_step == 0:
            lines.append(step(number // in_step, at, UNIT_US * in_step - 1))
        if caller is not None:
            lines.append(frame(caller(number), at + 1, UNIT_US - 3, ids))
        for each in events:
            args = {key: value + ids if key in NUMBERED else value for key, value in each.get("args", {}).items()}
            name = each["name"].replace("train.py", file(number))
            place = {"pid": 1, "tid": 1} if each["pid"] == 100 else {}
            lines.append(json.dumps({**each, **place, "name": name, "ts": each["ts"] + at, "args": args}))
    return document(lines, after=about)


NUMBERED = frozenset({"External id", "correlation", "Python id", "Ev Idx"})


def _findings(folder: Path, count: int) -> None:
    """Each finding in its own function; so many that each is too small to be shown."""
    (folder / TRACE).write_bytes(_units(1, count, lambda number: f"f{number}.py"))


def _findings_in_steps(folder: Path, count: int) -> None:
    (folder / TRACE).write_bytes(_units(count, 1, lambda _: "train.py"))


def _places(folder: Path, count: int) -> None:
    """One function called from many lines."""
    (folder / TRACE).write_bytes(_units(1, count, lambda _: "train.py", lambda number: f"main.py({number}): main"))


# Damage


def _damaged(literal: str) -> Write:
    def write(folder: Path, count: int) -> None:
        text = document(op("NAME" if at % 2 else "aten::mm", at, 0.5, '"x":"ARGS"') for at in range(count))
        name, _, args = literal.partition("|")
        text = text.replace(b"NAME", name.encode("latin-1")) if name else text
        (folder / TRACE).write_bytes(text.replace(b'"ARGS"', args.encode("latin-1") or b'"ARGS"'))

    return write


def _one_event(args: Callable[[int], str]) -> Write:
    def write(folder: Path, count: int) -> None:
        (folder / TRACE).write_bytes(document([op("aten::mm", 0, 0.5, args(count)), op("aten::mm", 1, 0.5)]))

    return write


# Beside the events


def _metadata(entry: Callable[[int], str], where: str) -> Write:
    def write(folder: Path, count: int) -> None:
        members = {where: ",".join(map(entry, range(count)))}
        (folder / TRACE).write_bytes(document([op("aten::mm", 0, 0.5)], **members))

    return write


def _thread_names(count: int) -> Iterator[str]:
    yield op("aten::mm", 0, 1)
    for at in range(count):
        yield f'{{"ph":"M","name":"thread_name","pid":{at},"tid":{at},"ts":0,"args":{{"name":"thread {at}"}}}}'


def _ranks(folder: Path, count: int) -> None:
    for rank in range(count):
        events = []
        for number in range(4):
            at = STEP_US * number
            events.append(step(number, at, STEP_US - 1))
            events.append(op("c10d::allreduce_", at + 100, 20))
            sent = '"Input Dims":[[1024]],"Input type":["float"]'
            events.append(op("gloo:all_reduce", at + 110, 300 + rank, sent, tid=2, cat="user_annotation"))
        about = f'"distributedInfo":{{"rank":{rank},"world_size":{count},"backend":"gloo"}}'
        (folder / f"host_{rank}.1.pt.trace.json").write_bytes(document(events, after=about))


def _side_file(folder: Path, **fields: object) -> None:
    text = json.dumps({"version": 1, **fields}).encode()
    (folder / f"{TRACE}.tidy.json.gz").write_bytes(gzip.compress(text, 1, mtime=0))


def _captured_calls(folder: Path, count: int) -> None:
    (folder / TRACE).write_bytes(document(_built_ins(count)))
    names = [zlib.crc32(f"<built-in method f of object at 0x{at:x}>".encode()) for at in range(count)]
    starts = [0] + [1000] * (count - 1)
    _side_file(folder, calls={"start_ns": starts, "name": names, "line": [7] * count})


def _captured_tensors(folder: Path, count: int) -> None:
    (folder / TRACE).write_bytes(document(op("aten::mm", at, 0.5) for at in range(count)))
    ids = [[at, at + 1] for at in range(count)]
    name = zlib.crc32(b"aten::mm")
    starts = [0] + [1000] * (count - 1)
    _side_file(folder, tensors={"start_ns": starts, "name": [name] * count, "tensors": ids, "storages": ids})


def _captured_sources(folder: Path, count: int) -> None:
    (folder / TRACE).write_bytes(document(_frames(count)))
    text = "def g():\n    return 1\n" * 10
    _side_file(folder, sources=[{"file": f"f{at}.py", "text": text} for at in range(count)])


def _lines_of_a_source(folder: Path, count: int) -> None:
    """Lines of one function, each of them a call."""
    lines = ["def work(x):", *("    x = x.exp()" for _ in range(count))]
    events = [step(1, 0, count + 20), frame("work.py(1): work", 1, count + 10, 0)]
    events += [op("aten::exp", at + 2, 0.5) for at in range(count)]
    (folder / TRACE).write_bytes(document(events))
    (folder / "work.py").write_text("\n".join(lines))


def _functions_of_a_source(folder: Path, count: int) -> None:
    lines = [f"def work_{at}(x):\n    x = x.exp()\n    return x.log()\n" for at in range(count)]
    events = [step(1, 0, 10 * count + 20)]
    for at in range(count):
        events.append(frame(f"work.py({3 * at + 1}): work_{at}", 10 * at + 1, 9, at))
        events += [op("aten::exp", 10 * at + 2, 2), op("aten::log", 10 * at + 5, 2)]
    (folder / TRACE).write_bytes(document(events))
    (folder / "work.py").write_text("".join(lines))


def _operators_of_a_device(folder: Path, count: int) -> None:
    (folder / TRACE).write_bytes(document(op("aten::mm", at, 0.5, f'"External id":{at + 1}') for at in range(count)))
    operators = [{"name": "aten::mm", "external_id": at + 1, "thread": 1, "device_time_ns": 300} for at in range(count)]
    memory = [{"time_ns": at, "bytes": at} for at in range(count)]
    about = {"version": 1, "device": {"kind": "npu"}, "launch_latency_ns": 5, "operators": operators, "memory": memory}
    (folder / f"{TRACE}.device_events.json").write_text(json.dumps(about))


INPUTS: dict[str, Growing] = {
    "members of a gz with one event each": Growing(_members(_one_event_each), 10_000),
    "members of a gz with one byte each": Growing(_members(_one_byte_each), 20_000),
    "empty members of a gz": Growing(_members(_empty), 20_000),
    "threads": Growing(_trace(_threads), 4_000),
    "processes": Growing(_trace(_processes), 4_000),
    "threads in steps": Growing(_trace(_threads_in_steps), 2_000),
    "threads with frames": Growing(_trace(_threads_with_frames), 4_000),
    "threads that launch": Growing(_trace(_threads_that_launch), 2_000),
    "steps": Growing(_trace(_steps), 1_000),
    "steps inside each other": Growing(_trace(_steps_inside_each_other), 2_000),
    "names": Growing(_trace(_names), 10_000),
    "functions": Growing(_trace(_frames), 10_000),
    "built-in functions": Growing(_trace(_built_ins), 10_000),
    "modules": Growing(_trace(_modules), 4_000),
    "operators inside each other": Growing(_trace(_deep), 10_000),
    "frames inside each other": Growing(_trace(_deep_frames), 5_000),
    "modules inside each other": Growing(_trace(_deep_modules), 2_000),
    "events at once": Growing(_trace(_at_once), 10_000),
    "events across each other": Growing(_trace(_crossing), 10_000),
    "kernels": Growing(_trace(_kernels), 4_000),
    "names of kernels": Growing(_trace(_kernel_names), 4_000),
    "streams": Growing(_trace(_streams), 2_000),
    "devices": Growing(_trace(_devices), 500),
    "kernels over each other": Growing(_trace(_overlapping_kernels), 4_000),
    "events of one id": Growing(_trace(_one_id), 4_000),
    "kernels of one launch": Growing(_trace(_launches_of_one_call), 5_000),
    "flows of autograd": Growing(_trace(_flows_of_autograd), 3_000),
    "events of one sequence number": Growing(_trace(_one_sequence_number), 5_000),
    "waits between streams": Growing(_trace(_waits), 2_000),
    "synchronisations": Growing(_trace(_synchronisations), 3_000),
    "collectives": Growing(_trace(_collectives), 2_000),
    "launches behind a deep call": Growing(_trace(_launches_behind_a_deep_call), 5_000),
    "kernels inside each other": Growing(_trace(_kernels_inside_each_other), 2_000),
    "readbacks below a deep call": Growing(_trace(_readbacks_below_a_deep_call), 300),
    "devices with memory": Growing(_trace(_memory_devices), 500),
    "allocations": Growing(_trace(_memory), 5_000),
    "inputs": Growing(_trace(_inputs), 5_000),
    "inputs of one operator": Growing(_trace(_long_inputs), 10_000),
    "args": Growing(_trace(_args), 10_000),
    "args of one event": Growing(_trace(_args_of_one), 50_000),
    "call stacks": Growing(_trace(_call_stacks), 2_000),
    "findings": Growing(_findings, 250),
    "places of a finding": Growing(_places, 50),
    "findings in steps": Growing(_findings_in_steps, 100),
    "names with quotes in them": Growing(_damaged('a "b" c|'), 5_000),
    "lone backslashes": Growing(_damaged("C:\\data|"), 10_000),
    "numbers that are none": Growing(_damaged("|nan"), 10_000),
    "invalid UTF-8": Growing(_damaged("caf\xe9|"), 10_000),
    "numbers that are none in one event": Growing(_one_event(lambda count: f'"x":[{"nan," * count}1]'), 100_000),
    "lists in one event": Growing(_one_event(lambda count: f'"x":[{"[]," * count}1]'), 100_000),
    "objects in one event": Growing(_one_event(lambda count: f'"x":[{"{}," * count}1]'), 100_000),
    "cuts in one event": Growing(_one_event(lambda count: '"x":[' + '{},{"s":0},' * count + "1]"), 50_000),
    "keys before the events": Growing(_metadata(lambda at: f'"key{at}":[{at}]', "before"), 50_000),
    "keys after the events": Growing(_metadata(lambda at: f'"key{at}":[{at}]', "after"), 50_000),
    "names of threads": Growing(_trace(_thread_names), 10_000),
    "ranks": Growing(_ranks, 4),
    "captured calls": Growing(_captured_calls, 10_000),
    "captured tensors": Growing(_captured_tensors, 10_000),
    "captured sources": Growing(_captured_sources, 1_000),
    "lines of a source": Growing(_lines_of_a_source, 200),
    "functions of a source": Growing(_functions_of_a_source, 1_000),
    "operators of a device": Growing(_operators_of_a_device, 5_000),
}
"""Inputs by what grows."""

MANY: dict[str, int] = {
    "threads": 20_000,
    "processes": 20_000,
    "threads in steps": 10_000,
    "threads with frames": 20_000,
    "threads that launch": 10_000,
}
"""The smallest of three sizes, each twice the one before, of inputs whose square shows late.

Each lane has a constant cost of its own, next to which a cheap step that looks at all lanes for each does not show.
"""
