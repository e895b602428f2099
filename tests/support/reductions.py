"""Reductions of the `stablehlo` dialect as text, with and without conversions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.analysis.evaluate.stablehlo_reduction import BODY, INIT, Schedule


def _conversion(given: str, made: str) -> str:
    if given == made:
        return f'^bb0(%x: tensor<{given}>): "stablehlo.return"(%x) : (tensor<{given}>) -> ()'
    return (
        f"^bb0(%x: tensor<{given}>):\n"
        f'%y = "stablehlo.uniform_quantize"(%x) : (tensor<{given}>) -> tensor<{made}>\n'
        f'"stablehlo.return"(%y) : (tensor<{made}>) -> ()'
    )


def reduction(
    shape: Sequence[int],
    result: Sequence[int],
    attributes: str,
    *,
    source: str,
    body: str = "add",
    accumulator: str = "",
    target: str = "",
    op: str = "reduce",
    ops: str = "",
) -> str:
    """`f(input, init) -> result`. Without `accumulator` there are no conversions, and the result is of the source's
    element type. `ops`: a body of ops of its own, from %a and %b to %c."""
    inner, target = accumulator or source, target or source
    ops = ops or f'%c = "stablehlo.{body}"(%a, %b) : (tensor<{inner}>, tensor<{inner}>) -> tensor<{inner}>'
    bodies = [
        f'^bb0(%a: tensor<{inner}>, %b: tensor<{inner}>):\n{ops}\n"stablehlo.return"(%c) : (tensor<{inner}>) -> ()'
    ]
    if accumulator:
        bodies = [_conversion(source, inner), *bodies, _conversion(inner, target)]
    regions = ", ".join(f"{{\n{text}\n}}" for text in bodies)
    dims = "".join(f"{d}x" for d in shape)
    made = "".join(f"{d}x" for d in result)
    return (
        f"func.func @f(%input: tensor<{dims}{source}>, %init: tensor<{source}>) -> tensor<{made}{target}> {{\n"
        f'%r = "stablehlo.{op}"(%input, %init) ({regions}) {{{attributes}}} : '
        f"(tensor<{dims}{source}>, tensor<{source}>) -> tensor<{made}{target}>\n"
        f"return %r : tensor<{made}{target}>\n}}\n"
    )


def random_schedule(rng: np.random.Generator) -> Schedule:
    """Trees of random shape, with init values at random places."""

    def schedule(count: int) -> list[int]:
        leaves = list(range(count))
        for _ in range(int(rng.integers(0 if count else 1, 4))):
            leaves.insert(int(rng.integers(0, len(leaves) + 1)), INIT)
        steps: list[int] = []
        pending: list[list[int] | None] = [leaves]  # None: a BODY
        while pending:
            part = pending.pop()
            if part is None:
                steps.append(BODY)
            elif len(part) == 1:
                steps.append(part[0])
            else:
                cut = int(rng.integers(1, len(part)))
                pending += [None, part[cut:], part[:cut]]
        return steps

    return schedule
