"""What generated kernels compute, from the texts in Inductor's cache: all of it, or that it is not known."""

from __future__ import annotations

from tb_tidy_plugin.torchfacts.generated_code import kernel_sources
from tests.support.inductor_texts import CODE, GRAPH, TRITON_CODE, TRITON_GRAPH


def lines(graph: str = GRAPH, code: str = CODE, *, is_backward: bool = False) -> list[tuple[str, list[int]]]:
    found = kernel_sources(graph, code, is_backward=is_backward)
    return [(each.kernel, [line.line for line in each.lines]) for each in found]


class TestKernels:
    def test_of_cpp(self) -> None:
        assert lines() == [("extern_kernels.mm", [8]), ("cpp_fused_sin_0", [3, 8])]

    def test_of_triton_in_a_block_and_with_sizes(self) -> None:
        assert lines(TRITON_GRAPH, TRITON_CODE) == [
            ("triton_red_fused_sum_0", [12, 11]),
            ("extern_kernels.mm", [13]),
            ("triton_poi_fused_mul_1", [14]),
        ]

    def test_the_main_line_is_that_of_a_reduction_else_of_the_last_result(self) -> None:
        assert lines(GRAPH.replace("aten.sin.default(mul)", "aten.mul.Tensor(mul, 2)"))[1] == (
            "cpp_fused_sin_0",
            [3, 8],
        )
        graph = GRAPH.replace("aten.mul.Tensor(mm, 2)", "aten.sum.default(mm)")
        assert lines(graph)[1] == ("cpp_fused_sin_0", [8, 3])

    def test_the_sum_of_two_gradients_has_no_line_of_its_own(self) -> None:
        graph = GRAPH.replace("aten.mul.Tensor(mm, 2)", "aten.add.Tensor(mm, mm)")
        assert lines(graph, is_backward=True)[1] == ("cpp_fused_sin_0", [3])
        assert lines(graph)[1] == ("cpp_fused_sin_0", [3, 8])

    def test_what_writing_in_place_becomes_needs_no_line(self) -> None:
        copy = "# No stacktrace found\n        copy_ = torch.ops.aten.copy_.default(primals_2, sin)"
        graph = GRAPH.replace("return (view", f"{copy}\n        return (view")
        code = CODE.replace("(buf0, buf1)", "(buf0, primals_2)")
        assert lines(graph, code)[1] == ("cpp_fused_sin_0", [3, 8])


class TestUnknown:
    def test_what_a_pattern_replaced(self) -> None:
        graph = GRAPH.replace("mm:", "mm_default:").replace("(mm, 2)", "(mm_default, 2)")
        assert lines(graph) == [("extern_kernels.mm", []), ("cpp_fused_sin_0", [3, 8])]

    def test_a_node_without_a_line(self) -> None:
        graph = GRAPH.replace("# File: /job/layers.py:3 in gate, code: y = x.sin()", "# No stacktrace found")
        assert lines(graph)[1] == ("cpp_fused_sin_0", [])

    def test_a_kernel_that_does_not_read_what_its_result_needs(self) -> None:
        assert lines(code=CODE.replace("(buf0, buf1)", "(primals_2, buf1)"))[1] == ("cpp_fused_sin_0", [])

    def test_two_products_of_the_same_tensors(self) -> None:
        second = "mm_1 = torch.ops.aten.mm.default(primals_1, primals_2)"
        graph = GRAPH.replace("        mul:", f"        {second}\n        mul:")
        assert lines(graph)[0] == ("extern_kernels.mm", [])

    def test_results_that_contradict_the_graph(self) -> None:
        assert lines(code=CODE.replace("return (buf1, )", "return (buf1, buf0, )")) == []
        assert lines(code=CODE.replace("return (buf1, )", "return (primals_1, )")) == []

    def test_code_of_another_form(self) -> None:
        assert lines(code="call = None\n") == []
        assert lines("", CODE) == []
        assert lines("class G:\n    def forward(self):\n", CODE) == []
