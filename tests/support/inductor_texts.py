"""Texts that Inductor's cache stores of a graph, drawn by hand, and an entry with them."""

from __future__ import annotations

import pickle
from pathlib import Path

GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "f32[2, 3][3, 1]cpu", primals_2: "f32[3, 4][4, 1]cpu"):
        # File: /job/model.py:8 in forward, code: return gate(x @ w * 2)
        mm: "f32[2, 4][4, 1]cpu" = torch.ops.aten.mm.default(primals_1, primals_2)
        mul: "f32[2, 4][4, 1]cpu" = torch.ops.aten.mul.Tensor(mm, 2);  mm = None

        # File: /job/layers.py:3 in gate, code: y = x.sin()
        sin: "f32[2, 4][4, 1]cpu" = torch.ops.aten.sin.default(mul);  mul = None
        view: "f32[8][1]cpu" = torch.ops.aten.reshape.default(sin, [8]);  sin = None
        return (view,)
"""
CODE = """
cpp_fused_sin_0 = async_compile.cpp_pybinding(['const float*', 'float*'], r'''
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr0)
{
}
''')

class Runner:
    def call(self, args):
        primals_1, primals_2 = args
        args.clear()
        assert_size_stride(primals_1, (2, 3), (3, 1), 'input')
        buf0 = empty_strided_cpu((2, 4), (4, 1), torch.float32)
        # Topologically Sorted Source Nodes: [mm], Original ATen: [aten.mm]
        extern_kernels.mm(primals_1, primals_2, out=buf0)
        buf1 = empty_strided_cpu((8, ), (1, ), torch.float32)
        cpp_fused_sin_0(buf0, buf1)
        del buf0
        return (buf1, )

runner = Runner(partitions=[])
"""
TRITON_GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "Sym(s77)", primals_2: "f32[s77, 3][3, 1]cuda:0", primals_3: "f32[3, 4][4, 1]cuda:0"):
        # File: /job/model.py:11 in forward, code: x = x.cos()
        cos: "f32[s77, 3][3, 1]cuda:0" = torch.ops.aten.cos.default(primals_2);  primals_2 = None

        # File: /job/model.py:12 in forward, code: x = x.sum(0, keepdim=True)
        sum_1: "f32[1, 3][3, 1]cuda:0" = torch.ops.aten.sum.dim_IntList(cos, [0], True);  cos = None

        # File: /job/model.py:13 in forward, code: x = x @ w
        mm: "f32[1, 4][4, 1]cuda:0" = torch.ops.aten.mm.default(sum_1, primals_3);  sum_1 = primals_3 = None

        # File: /job/model.py:14 in forward, code: return x * n
        mul: "f32[1, 4][4, 1]cuda:0" = torch.ops.aten.mul.Tensor(mm, primals_1);  mm = primals_1 = None
        return (mul,)
"""
TRITON_CODE = """
triton_red_fused_sum_0 = async_compile.triton('triton_red_fused_sum_0', '''
@triton.jit
def triton_red_fused_sum_0(in_ptr0, out_ptr0, xnumel, r0_numel, XBLOCK : tl.constexpr, R0_BLOCK : tl.constexpr):
    pass
''', device_str='cuda')

triton_poi_fused_mul_1 = async_compile.triton('triton_poi_fused_mul_1', '''
@triton.jit
def triton_poi_fused_mul_1(in_out_ptr0, ks0, xnumel, XBLOCK : tl.constexpr):
    pass
''', device_str='cuda')

def call(args):
    primals_1, primals_2, primals_3 = args
    args.clear()
    s77 = primals_1
    with torch.cuda._DeviceGuard(0):
        torch.cuda.set_device(0)
        buf0 = empty_strided_cuda((1, 3), (3, 1), torch.float32)
        stream0 = get_raw_stream(0)
        triton_red_fused_sum_0.run(primals_2, buf0, 3, s77, stream=stream0)
        buf1 = empty_strided_cuda((1, 4), (4, 1), torch.float32)
        extern_kernels.mm(buf0, primals_3, out=buf1)
        buf2 = buf1; del buf1  # reuse
        triton_poi_fused_mul_1.run(buf2, s77, 4, stream=stream0)
    return (buf2, )

def benchmark_compiled_module(times=10, repeat=10):
    pass
"""


def stack(*frames: tuple[str, int, str, str]) -> str:
    """A stack as Python prints it, from files, lines, functions and texts."""
    return "".join(
        f'  File "{file}", line {line}, in {name}\n    {text}\n    ^^^\n' for file, line, name, text in frames
    )


WHOLE = stack(("/job/model.py", 8, "forward", "return gate(x @ w * 2)"), ("/job/layers.py", 3, "gate", "y = x.sin()"))


def entry(cache: Path, key: str, *, stacks: str = WHOLE, content: object = None) -> Path:
    """Writes a graph into a cache as Inductor pickles it; returns the file."""
    texts = {"source_code": CODE, "inductor_post_grad_graph_str": GRAPH, "cache_linemap": [(1, stacks)]}
    folder = cache / "fxgraph" / key[1:3] / key
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / "entry"
    path.write_bytes(pickle.dumps(texts if content is None else content))
    return path
