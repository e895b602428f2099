"""StableHLO's products and reductions as text, about half of them with a fault: a size, a type or an attribute."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

Dims = list[int | str]
Random = random.Random
_ELEMENTS = (
    *("f32", "f32", "f16", "i32", "i8"),
    *("!quant.uniform<i8:f32, 0.5:3>", "!quant.uniform<u8:f32, 0.5:3>", "!quant.uniform<i32:f32, 0.25>"),
)


def random_products(count: int, seed: int) -> list[str]:
    """Functions of a dot_general or a convolution of floats, of quantized tensors, or of both."""
    r = Random(seed)
    return [r.choice([_dot, _convolution])(r) for _ in range(count)]


def random_reductions(count: int, seed: int) -> list[str]:
    """Functions of a reduce, a reduce_window or a select_and_scatter without conversions."""
    r = Random(seed)
    return [r.choice([_reduce, _reduce_window, _select_and_scatter])(r) for _ in range(count)]


def _tensor(shape: Sequence[int | str], element: str) -> str:
    return f"tensor<{''.join(f'{dim}x' for dim in shape)}{element}>"


def _unknown(r: Random, shape: Sequence[int], often: float = 0.06) -> Dims:
    return ["?" if r.random() < often else dim for dim in shape]


def _array(values: Sequence[int]) -> str:
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


def _function(op: str, given: Sequence[str], made: Sequence[str], regions: str, attributes: str) -> str:
    names = [f"%a{i}" for i in range(len(given))]
    header = ", ".join(f"{name}: {kind}" for name, kind in zip(names, given, strict=True))
    results = f"%r:{len(made)}" if len(made) > 1 else "%r"
    signature = f"({', '.join(given)}) -> ({', '.join(made)})"
    call = f'"stablehlo.{op}"({", ".join(names)}) {regions} {{{attributes}}} : {signature}'
    return f"func.func @f({header}) {{\n  {results} = {call}\n  return\n}}\n"


def _kind(r: Random, shape: Dims, expressed: str, storage: str, axes: Sequence[int] = (), zero: bool = True) -> str:
    """A quantized type; along one of the axes, if there are any."""

    def pair() -> str:
        point = r.choice([0, 0, 3, 127]) if zero else 0
        scale = r.choice(["0.5", "0.25", "2.0"])
        return f"{scale}:{point}" if point else scale

    if not axes:
        return f"!quant.uniform<{storage}:{expressed}, {pair()}>"
    axis = r.choice(axes)
    size = shape[axis]
    count = size if isinstance(size, int) and size else 1
    return f"!quant.uniform<{storage}:{expressed}:{axis}, {{{', '.join(pair() for _ in range(count))}}}>"


def _elements(r: Random, shapes: Sequence[Dims], axes: tuple[int, int], *, zero: bool) -> list[str]:
    """Element types of lhs, rhs and result: all of floats, all quantized or rhs alone; now and then others. `axes`:
    along which rhs and the result may have scales."""
    left, right, made = shapes
    expressed, storage = r.choice(["f32", "f32", "bf16", "f16"]), r.choice(["i8", "u8", "i16"])
    kinds = [expressed] * 3
    mode = r.choice(["quantized", "hybrid", "float"])
    if mode != "float":
        along = [axes[0] if r.random() < 0.7 else r.randrange(len(right))] if r.random() < 0.4 else []
        kinds[1] = _kind(r, right, expressed, storage, along, zero and r.random() < 0.3)
    if mode == "quantized":
        other = storage if r.random() < 0.85 else r.choice(["i8", "u8", "i16"])
        kinds[0] = _kind(r, left, expressed, other, [r.randrange(len(left))] if r.random() < 0.05 else [])
        along = [axes[1] if r.random() < 0.7 else r.randrange(len(made))] if r.random() < 0.3 else []
        kinds[2] = _kind(r, made, expressed, r.choice(["i8", "i32"]), along)
    for place, shape in enumerate(shapes):
        if r.random() < 0.06:
            kinds[place] = r.choice(["f32", "f16", "i32", _kind(r, shape, expressed, storage)])
    return kinds


def _shifted(r: Random, shape: list[int], often: float = 0.1) -> list[int]:
    if shape and r.random() < often:
        shape[r.randrange(len(shape))] += 1
    return shape


def _dot(r: Random) -> str:
    batch, rows, depth, columns = (r.randint(1, 4) for _ in range(4))
    batches = [batch] if r.random() < 0.5 else []
    shapes = [[*batches, rows, depth], [*batches, depth, columns], [*batches, rows, columns]]
    known = [_unknown(r, _shifted(r, shape), 0.1) for shape in shapes]
    along = [0] if batches else []
    lists = [along, along, [len(batches) + 1], [len(batches)]]
    if r.random() < 0.12:
        lists[r.randrange(4)] = [r.randrange(4)]
    names = ("lhs_batching", "rhs_batching", "lhs_contracting", "rhs_contracting")
    numbers = ", ".join(f"{name}_dimensions = {dims}" for name, dims in zip(names, lists, strict=True) if dims)
    kinds = _elements(r, known, (len(batches) + 1, len(batches) + 1), zero=False)
    left, right, made = (_tensor(shape, kind) for shape, kind in zip(known, kinds, strict=True))
    return _function("dot_general", [left, right], [made], "", f"dot_dimension_numbers = #stablehlo.dot<{numbers}>")


def _windows(n: int, size: int, stride: int, padding: Sequence[int], base: int, spread: int) -> int:
    padded, reach = ((n - 1) * base + 1 if n else 0) + sum(padding), (size - 1) * spread + 1
    return 0 if padded <= 0 or reach > padded else (padded - reach) // stride + 1


class _Window:
    def __init__(self, r: Random, rank: int, *, dilated: bool = True) -> None:
        self.sizes = [r.choice([1, 1, 2, 3]) for _ in range(rank)]
        self.strides, base, spread = ([r.choice([1, 1, 2]) for _ in range(rank)] for _ in range(3))
        self.base, self.spread = (base, spread) if dilated else ([1] * rank, [1] * rank)
        self.padding = [[r.choice([0, 0, 1, -1]), r.choice([0, 1])] for _ in range(rank)]

    def counts(self, shape: Sequence[int]) -> list[int]:
        rows = zip(shape, self.sizes, self.strides, self.padding, self.base, self.spread, strict=True)
        return [_windows(*row) for row in rows]

    def attributes(self, r: Random, names: dict[str, list[int]]) -> list[str]:
        """Of those that say the default some are left out, of all some are wrong."""
        said = []
        for name, values in names.items():
            if any(value != 1 for value in values) or r.random() < 0.5:
                changed = r.choice([[*values, 1], [0, *values[1:]]]) if r.random() < 0.03 else values
                said.append(f"{name} = {_array(changed)}")
        if any(sum(map(abs, pair)) for pair in self.padding) or r.random() < 0.5:
            said.append(f"padding = dense<{self.padding}> : tensor<{len(self.padding)}x2xi64>")
        return said


def _convolution(r: Random) -> str:
    groups = r.choice([1, 1, 2])
    batches = r.choice([1, 1, 2]) if groups == 1 else 1
    window = _Window(r, 2)
    rows, channels, outputs = batches * r.randint(1, 2), r.randint(1, 2), groups * batches * r.randint(1, 3)
    size = [r.randint(3, 5), r.randint(3, 5)]
    height, width = window.counts(size)
    layouts = r.choice(["b01f", "bf01"]), r.choice(["01io", "oi01", "01oi"]), r.choice(["b01f", "fb01"])
    sides = (
        {"b": rows, "0": size[0], "1": size[1], "f": channels * groups},
        {"0": window.sizes[0], "1": window.sizes[1], "i": channels, "o": outputs},
        {"b": rows // batches, "0": height, "1": width, "f": outputs},
    )
    shapes = [
        _unknown(r, _shifted(r, [side[letter] for letter in layout], 0.08))
        for side, layout in zip(sides, layouts, strict=True)
    ]
    left, right, made = (f"[{', '.join(layout)}]" for layout in layouts)
    attributes = [
        f"batch_group_count = {batches if r.random() < 0.95 else r.choice([0, -1, 3])} : i64",
        f"feature_group_count = {groups if r.random() < 0.95 else r.choice([0, -1, 3])} : i64",
        f"dimension_numbers = #stablehlo.conv<{left}x{right}->{made}>",
        *window.attributes(
            r, {"window_strides": window.strides, "lhs_dilation": window.base, "rhs_dilation": window.spread}
        ),
    ]
    r.shuffle(attributes)
    kinds = _elements(r, shapes, (layouts[1].index("o"), layouts[2].index("f")), zero=True)
    types = [_tensor(shape, kind) for shape, kind in zip(shapes, kinds, strict=True)]
    return _function("convolution", types[:2], types[2:], "", ", ".join(attributes))


def _other(r: Random, element: str, often: float = 0.03) -> str:
    return r.choice(_ELEMENTS) if r.random() < often else element


def _body(r: Random, elements: Sequence[str]) -> str:
    given = [_tensor([], _other(r, element)) for element in [*elements, *elements]]
    if r.random() < 0.03:
        given = given[:-1]
    made = [_tensor([], _other(r, element)) for element in elements]
    lines = [f'    %y{i} = "ml.f"(%x{i}) : ({given[i]}) -> {kind}' for i, kind in enumerate(made) if i < len(given)]
    made = made[: len(lines)]
    header = ", ".join(f"%x{i}: {kind}" for i, kind in enumerate(given))
    if len(elements) == 1 and len(given) == 2 and len({*given, *made}) == 1 and r.random() < 0.5:
        op = r.choice(["add", "maximum", "multiply", "minimum"])
        lines = [f"    %y0 = stablehlo.{op} %x0, %x1 : {made[0]}"]
    names = ", ".join(f"%y{i}" for i in range(len(made)))
    end = f"    stablehlo.return {names} : {', '.join(made)}" if made else "    stablehlo.return"
    return f"{{\n  ^bb0({header}):\n" + "\n".join([*lines, end]) + "\n  }"


def _accumulated(
    r: Random, op: str, elements: list[str], shape: list[int], counts: Callable[[], list[int]], said: str
) -> str:
    inputs = [_tensor(_unknown(r, shape), element) for element in elements]
    inits = [_tensor([], _other(r, element)) for element in elements]
    made = [_tensor(_unknown(r, _shifted(r, counts(), 0.05)), _other(r, element)) for element in elements]
    if r.random() < 0.03:
        inits = inits[:-1]
    return _function(op, [*inputs, *inits], made, f"({_body(r, elements)})", said)


def _reduce(r: Random) -> str:
    rank = r.choice([0, 1, 2, 2, 3])
    shape = [r.randint(0, 4) for _ in range(rank)]
    dims = sorted(r.sample(range(rank), r.randint(0, rank)))
    left = [size for axis, size in enumerate(shape) if axis not in dims]
    named = [*dims, r.choice([-1, rank, 0])] if r.random() < 0.05 else dims
    elements = [r.choice(_ELEMENTS) for _ in range(r.choice([1, 1, 2, 3]))]
    return _accumulated(r, "reduce", elements, shape, lambda: [*left], f"dimensions = {_array(named)}")


def _reduce_window(r: Random) -> str:
    shape = [r.randint(0, 5) for _ in range(r.randint(1, 3))]
    window = _Window(r, len(shape))
    names = {"window_strides": window.strides, "base_dilations": window.base, "window_dilations": window.spread}
    said = [f"window_dimensions = {_array(window.sizes)}", *window.attributes(r, names)]
    elements = [r.choice(_ELEMENTS) for _ in range(r.choice([1, 1, 2]))]
    return _accumulated(r, "reduce_window", elements, shape, lambda: window.counts(shape), ", ".join(said))


def _select_and_scatter(r: Random) -> str:
    shape = [r.randint(2, 6) for _ in range(r.randint(1, 3))]
    window = _Window(r, len(shape), dilated=False)
    element = r.choice(_ELEMENTS)
    said = [f"window_dimensions = {_array(window.sizes)}", *window.attributes(r, {"window_strides": window.strides})]
    given = [
        _tensor(_unknown(r, shape), element),
        _tensor(_unknown(r, _shifted(r, window.counts(shape), 0.05)), _other(r, element)),
        _tensor([], _other(r, element)),
    ]
    scalar, truth = _tensor([], _other(r, element)), "tensor<i1>" if r.random() < 0.96 else "tensor<i8>"
    select = f"""{{
  ^bb0(%x: {scalar}, %y: {scalar}):
    %c = "ml.ge"(%x, %y) : ({scalar}, {scalar}) -> {truth}
    stablehlo.return %c : {truth}
  }}"""
    made = _tensor(_unknown(r, _shifted(r, [*shape], 0.05)), _other(r, element))
    return _function("select_and_scatter", given, [made], f"({select}, {_body(r, [element])})", ", ".join(said))
