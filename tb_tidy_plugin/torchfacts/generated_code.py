"""Operators that each kernel of a graph in Inductor's cache computes, from the cached texts; nothing is executed.

The cache keeps Inductor's last graph, whose nodes have the line that they came from, and the Python code that calls the
kernels. Names connect them only at the ends: inputs and results. From there tensors are followed through the code. A
generated kernel computes all nodes between its outputs and its inputs; if these do not enclose a closed set, its nodes
are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tb_tidy_plugin.torchfacts import aten

STACK_FRAME = re.compile(
    r'^  File "(?P<file>[^"\n]+)", line (?P<line>\d{1,9}), in (?P<function>.+)\n(?P<text>.*)$', re.MULTILINE
)
_FORWARD = re.compile(r"^    def forward\(self(?P<inputs>.*)\):$", re.MULTILINE)
_INPUT = re.compile(r'\b(?P<name>\w+): "(?P<type>[^"]*)"')
_PLACE = re.compile(r"^ +#.*? File: (?P<file>.+?):(?P<line>\d{1,9}) in (?P<function>.+?), code: (?P<text>.*)$")
_NODE = re.compile(r'^ +(?P<name>\w+)(?:: "[^"]*")? = (?P<value>.*?)(?:;  .*)?$')
TARGET = re.compile(r"^torch\.ops\.(?P<space>\w+)\.(?P<name>\w+)(?:\.(?P<overload>\w+))?\((?P<given>.*)\)$")
_NAMED = re.compile(r"^\w+=")
ITEM = re.compile(r"^(?P<of>\w+)\[(?P<at>\d{1,4})\]$")
VALUE_NAME = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*(?![\w(.'\"]| ?=[^=])")
BODY = re.compile(r"^(?P<indent> *)def call\((?:self, )?args\):\n(?P<body>(?:(?P=indent) +.*\n|\n)+)", re.MULTILINE)
CPP = re.compile(
    r"^(\w+) = async_compile\.cpp_pybinding\(.*?'''.*?^extern \"C\" .*?kernel\((.*?)\)$", re.DOTALL | re.MULTILINE
)
TRITON = re.compile(r"^(\w+) = async_compile\.triton\('\w+', '''.*?^def \w+\((.*?)\):$", re.DOTALL | re.MULTILINE)
POINTER = re.compile(r"\b(?P<role>in_out|in|out)_ptr\d*$")
CALL = re.compile(r"^(?:(?P<result>\w+) = )?(?P<function>[\w.]+)\((?P<given>.*)\)$")
ASSIGNED = re.compile(r"^(?P<name>\w+) = (?P<value>.*?)(?:; del \w+)?(?:  # \w+)?$")
ALIAS = re.compile(r"^(?:reinterpret_tensor\()?(?P<of>\w+)(?:, .*\))?$")
REPLACED = re.compile(r"_(?:default|tensor|scalar|dim_intlist|self|dims)(?:_\d+)?$")
MOVES = aten.names("known", "copy_ select_scatter slice_scatter")
"""Operators that writing in place becomes. They compute nothing, and only some of them have a line."""

CONSTANT = aten.names("factory", "full scalar_tensor") | {"prims::iota"}
OTHER_NAMES = {"bias_addmm": "addmm"}


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A frame in the cache: absolute path, line from 1, function, and the line's text without indentation."""

    file: str
    line: int
    function: str
    text: str


@dataclass(frozen=True, slots=True)
class KernelSource:
    """A kernel that generated code calls, and the lines that it computes, the main one first; empty if unknown."""

    kernel: str
    lines: tuple[SourceLine, ...]


@dataclass(frozen=True, slots=True)
class _Node:
    name: str
    operator: str
    inputs: tuple[str, ...]
    place: SourceLine | None
    item: int = -1

    @property
    def is_replaced(self) -> bool:
        """True if a pattern of nodes became this one, whose line is that of any of them."""
        return REPLACED.search(self.name) is not None and self.operator not in MOVES

    @property
    def is_silent(self) -> bool:
        """True if it has no line and needs none."""
        return self.operator in CONSTANT or (self.operator in MOVES and self.place is None)


@dataclass(slots=True, eq=False)
class _Value:
    """Content of a buffer at a time: `node` of the graph, empty if unknown."""

    node: str = ""
    part_of: _Value | None = None
    part: int = -1
    is_written: bool = True
    is_read: bool = False


@dataclass(slots=True)
class _Call:
    """A call of a kernel. `operator` is empty for Inductor's own kernels; `is_sound` is True if it is understood."""

    kernel: str
    operator: str
    reads: list[_Value]
    writes: list[_Value]
    is_sound: bool = True
    node: str = ""


def stack_lines(text: str) -> list[SourceLine]:
    """The frames of a stack as Python prints it, outermost first."""
    found = STACK_FRAME.finditer(text)
    return [SourceLine(each["file"], int(each["line"]), each["function"], each["text"].strip()) for each in found]


class InductorGraph:
    """Inductor's last graph, as text.

    Attributes:
        nodes: by name, in the graph's order.
        inputs: types of the inputs, by name.
        results: names of what it returns, possibly `None`.
    """

    def __init__(self, text: str) -> None:
        self.nodes: dict[str, _Node] = {}
        self.inputs: dict[str, str] = {}
        self.results: list[str] = []
        if (head := _FORWARD.search(text)) is not None:
            self.inputs = {each["name"]: each["type"] for each in _INPUT.finditer(head["inputs"])}
            self._read(text[head.end() :])

    def _read(self, body: str) -> None:
        place: SourceLine | None = None
        for line in body.splitlines():
            text = line.strip()
            if text.startswith("return"):
                self.results = _parts(text.removeprefix("return").strip().removeprefix("(").removesuffix(")"))
                return
            if text.startswith("#"):
                found = _PLACE.match(line)
                place = SourceLine(found["file"], int(found["line"]), found["function"], found["text"].strip()) if (
                    found
                ) else None  # fmt: skip
            elif found := _NODE.match(line):
                self.nodes[found["name"]] = self._node(found["name"], found["value"], place)

    def _node(self, name: str, value: str, place: SourceLine | None) -> _Node:
        if (item := ITEM.match(value)) is not None:
            return _Node(name, "getitem", (item["of"],), place, int(item["at"]))
        target = TARGET.match(value)
        given = VALUE_NAME.findall(target["given"] if target else value)
        inputs = tuple(each for each in given if each in self.nodes or each in self.inputs)
        return _Node(name, f"{target['space']}::{target['name']}" if target else "", inputs, place)

    def base(self, name: str) -> str:
        """The node whose memory a node shares."""
        while (node := self.nodes.get(name)) is not None and self.is_view(node):
            name = node.inputs[0]
        return name

    def is_view(self, node: _Node) -> bool:
        """True if a node computes nothing, but is a view."""
        if node.operator == "getitem":
            of = self.nodes.get(node.inputs[0])
            return of is not None and self.is_view(of)
        return bool(node.inputs) and (aten.is_a("view", node.operator) or node.operator == "aten::reshape")

    def part(self, node: str, at: int) -> str:
        """Name of the node that takes one result of a node with several, empty if there is none."""
        found = (name for name, each in self.nodes.items() if each.item == at and each.inputs == (node,))
        return next(found, "")


class ContradictionError(ValueError):
    """The code and the graph do not match."""


def kernel_sources(graph_text: str, code: str, *, is_backward: bool) -> list[KernelSource]:
    """The kernels that generated code calls, in the order of the calls; empty if the code has another form.

    Args:
        graph_text: Inductor's graph after all passes, as it prints it.
        code: the Python code that it generated from the graph.
        is_backward: True if the graph computes gradients.
    """
    graph = InductorGraph(graph_text)
    try:
        calls = _Code(code, graph).calls
        _name_products(calls, graph)
        return [KernelSource(call.kernel, tuple(_lines(call, calls, graph, is_backward))) for call in calls]
    except ContradictionError:
        return []


@dataclass(slots=True)
class _Code:
    """Calls of generated code, with inputs and outputs of each; values are named as far as the graph's ends show."""

    text: str
    graph: InductorGraph
    calls: list[_Call] = field(default_factory=list)
    holds: dict[str, _Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        signatures = _signatures(self.text)
        bodies = list(BODY.finditer(self.text))
        if len(bodies) != 1 or not self.graph.nodes:
            return
        for line in bodies[0]["body"].splitlines():
            self._statement(line.strip(), signatures)
        for node in self.graph.nodes.values():
            if node.operator == "aten::copy_" and node.inputs[:1] and node.inputs[0] in self.holds:
                _name(self.holds[node.inputs[0]], node.name, is_read=True)

    def _statement(self, text: str, signatures: Mapping[str, Sequence[str]]) -> None:
        if text.endswith(" = args"):
            for name in VALUE_NAME.findall(text.removesuffix(" = args")):
                self.holds[name] = _Value(name)
        elif text.startswith("return "):
            self._return(text.removeprefix("return ").strip("()"))
        elif (call := CALL.match(text)) is not None and call["function"].removesuffix(".run") in signatures:
            self._kernel(call["function"].removesuffix(".run"), call["given"], signatures)
        elif call is not None and call["function"].startswith(("extern_kernels.", "torch.ops.")):
            self._extern(call["result"], call["function"], call["given"])
        elif (assigned := ASSIGNED.match(text)) is not None:
            self.holds[assigned["name"]] = self._assigned(assigned["value"])

    def _assigned(self, value: str) -> _Value:
        if (item := ITEM.match(value)) is not None and item["of"] in self.holds:
            return _Value(part_of=self.holds[item["of"]], part=int(item["at"]))
        if (alias := ALIAS.match(value)) is not None and alias["of"] in self.holds:
            return self.holds[alias["of"]]
        return _Value(is_written=not value.startswith("empty_strided"))

    def _values(self, given: str) -> list[_Value]:
        """Values of the tensors among arguments, which are read."""
        found = [self.holds[name] for name in VALUE_NAME.findall(given) if name in self.holds]
        return [value for value in found if value.is_written and not self._is_size(value)]

    def _is_size(self, value: _Value) -> bool:
        return self.graph.inputs.get(value.node, "").startswith("Sym(")

    def _kernel(self, kernel: str, given: str, signatures: Mapping[str, Sequence[str]]) -> None:
        parameters, arguments = signatures[kernel], _parts(given)
        roles = [(each, POINTER.search(each)) for each in parameters]
        call = _Call(kernel, "", [], [], is_sound=len(arguments) >= sum(role is not None for _, role in roles))
        written: list[str] = []
        for (parameter, role), argument in zip(roles, arguments, strict=False):
            names = [name for name in VALUE_NAME.findall(argument) if name in self.holds]
            if role is None:
                call.is_sound &= "*" not in parameter and not parameter.startswith("arg_")
                continue
            call.is_sound &= len(names) == 1
            if role["role"] != "out":
                call.reads += self._values(argument)
            if role["role"] != "in":
                written += names
        self._add(call, written)

    def _extern(self, result: str | None, function: str, given: str) -> None:
        arguments = _parts(given)
        out = [each.removeprefix("out=") for each in arguments if each.startswith("out=")]
        given_in = [_NAMED.sub("", each) for each in arguments if not each.startswith("out=")]
        reads = [value for each in given_in for value in self._values(each)]
        name = function.removeprefix("extern_kernels.").removeprefix("torch.ops.").split(".")[function[0] == "t"]
        call = _Call(function, OTHER_NAMES.get(name, name), reads, [], is_sound=len(out) + (result is not None) == 1)
        self._add(call, out or ([result] if result else []))

    def _add(self, call: _Call, written: Iterable[str]) -> None:
        for value in call.reads:
            value.is_read = True
        for name in written:
            self.holds[name] = _Value()
            call.writes.append(self.holds[name])
        self.calls.append(call)

    def _return(self, given: str) -> None:
        results = _parts(given)
        if len(results) != len(self.graph.results):
            raise ContradictionError
        for text, name in zip(results, self.graph.results, strict=True):
            alias = ALIAS.match(text)
            if alias is not None and alias["of"] in self.holds and name in self.graph.nodes:
                _name(self.holds[alias["of"]], self.graph.base(name), is_read=True)


def _signatures(code: str) -> Mapping[str, Sequence[str]]:
    """Parameters of each generated kernel."""
    found = [*CPP.findall(code), *TRITON.findall(code)]
    return {name: [each.partition(":")[0].strip() for each in given.split(",")] for name, given in found}


def _parts(given: str) -> list[str]:
    """Arguments of a call, split at its own commas."""
    parts, depth, start = list[str](), 0, 0
    for at, letter in enumerate(given):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(given[start:at].strip())
            start = at + 1
    return [*parts, *([last] if (last := given[start:].strip()) else [])]


def _name(value: _Value, node: str, *, is_read: bool = False) -> bool:
    """Sets the node of a value; True if it is new."""
    value.is_read |= is_read
    if value.node and value.node != node:
        raise ContradictionError
    is_new, value.node = not value.node, node
    return is_new


def _name_products(calls: Sequence[_Call], graph: InductorGraph) -> None:
    """Finds the node of each kernel that is an operator of PyTorch, and with it the nodes of its inputs and outputs."""
    left = [call for call in calls if call.operator and call.is_sound]
    values = {id(value): value for call in calls for value in (*call.reads, *call.writes)}
    free = {name for name, node in graph.nodes.items() if not graph.is_view(node)}
    is_new = True
    while is_new:
        is_new = False
        for value in values.values():
            if value.part_of is not None and value.part_of.node and not value.node:
                value.node = graph.part(value.part_of.node, value.part)
                is_new |= bool(value.node)
        for call in list(left):
            found = [name for name in free if _fits(call, graph.nodes[name], graph)]
            if len(found) == 1:
                call.node = found[0]
                for value, given in zip(call.reads, graph.nodes[call.node].inputs, strict=True):
                    _name(value, graph.base(given))
                _name(call.writes[0], call.node)
                free.discard(call.node)
                left.remove(call)
                is_new = True


def _fits(call: _Call, node: _Node, graph: InductorGraph) -> bool:
    """True if a call may be the one of a node."""
    return (
        node.operator.partition("::")[2] == call.operator
        and len(node.inputs) == len(call.reads)
        and call.writes[0].node in {"", node.name}
        and all(
            value.node in {"", graph.base(given)} for value, given in zip(call.reads, node.inputs, strict=True)
        )
    )  # fmt: skip


def _lines(call: _Call, calls: Sequence[_Call], graph: InductorGraph, is_backward: bool) -> Iterator[SourceLine]:
    """Lines that a call computes, the main one first; empty if one of them is unknown."""
    if call.operator:
        nodes = [graph.nodes[call.node]] if call.node else []
    else:
        nodes = _between(call, {each.operator for each in calls} - {""}, graph)
    computing = [node for node in nodes if not graph.is_view(node) and not node.is_silent] or nodes
    if any(node.place is None or node.is_replaced for node in computing):
        return
    if is_backward and not call.operator:  # autograd gives the sum of two gradients the line of one use of the tensor
        computing = [node for node in computing if node.operator != "aten::add"]
    reductions = [node for node in computing if aten.is_a("reduction", node.operator)]
    results = {value.node for value in call.writes[-1:]}
    last = [node for node in computing if node.name in results] or computing[-1:]
    places = [node.place for node in (*(reductions[-1:] or last), *computing)]
    yield from dict.fromkeys(place for place in places if place is not None)


def _between(call: _Call, operators: set[str], graph: InductorGraph) -> list[_Node]:
    """The nodes between a kernel's outputs and inputs, in the graph's order; empty if they do not form a closed set."""
    writes = [value.node for value in call.writes if value.is_read]
    reads = {value.node for value in call.reads}
    if not call.is_sound or not writes or "" in writes or "" in reads:
        return []
    found, waiting = set[str](), [name for name in writes if name not in reads]
    while waiting:
        name = waiting.pop()
        if name in found or name in reads:
            continue
        node = graph.nodes.get(name)
        if node is None:
            if not graph.inputs.get(name, "").startswith("Sym("):
                return []
            continue
        if node.operator.partition("::")[2] in operators or not node.operator:
            return []
        found.add(name)
        waiting += node.inputs[1:] if node.operator == "aten::copy_" else node.inputs
    return [node for name, node in graph.nodes.items() if name in found]
