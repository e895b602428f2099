"""Reductions of the `stablehlo` dialect as text, with and without conversions."""

from __future__ import annotations

from collections.abc import Sequence


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
