"""StableHLO's pretty forms stand for the same as its generic forms, as MLIR prints both."""

from __future__ import annotations

import pytest

from tflq.ir.module import Module
from tflq.ir.text.parser import parse_module

T, C, S, N = "tensor<2x3xf32>", "tensor<2x3xcomplex<f32>>", "tensor<2x2xf32>", "tensor<3xi64>"


def function(line: str) -> Module:
    arguments = f"%a: {T}, %i: tensor<i32>, %s: {N}, %c: {C}, %q: {S}, %z: tensor<f32>, %n: tensor<2xi64>"
    return parse_module(f"func.func @f({arguments}) {{\n  {line}\n  return\n}}\n")


@pytest.mark.parametrize(
    ("pretty", "generic"),
    [
        (
            f"%0 = stablehlo.get_dimension_size %a, dim = 1 : ({T}) -> tensor<i32>",
            f'%0 = "stablehlo.get_dimension_size"(%a) <{{dimension = 1 : i64}}> : ({T}) -> tensor<i32>',
        ),
        (
            f"%0 = stablehlo.dynamic_broadcast_in_dim %a, %s, dims = [1, 2] : ({T}, {N}) -> tensor<4x2x3xf32>",
            (
                f'%0 = "stablehlo.dynamic_broadcast_in_dim"(%a, %s) <{{broadcast_dimensions = array<i64: 1, 2>}}> :'
                f" ({T}, {N}) -> tensor<4x2x3xf32>"
            ),
        ),
        (
            f"%0 = stablehlo.fft %c, type = FFT, length = [3] : ({C}) -> {C}",
            (
                f'%0 = "stablehlo.fft"(%c) <{{fft_length = array<i64: 3>, fft_type = #stablehlo<fft_type FFT>}}> :'
                f" ({C}) -> {C}"
            ),
        ),
        (
            f"%0 = stablehlo.cholesky %q, lower = true : {S}",
            f'%0 = "stablehlo.cholesky"(%q) <{{lower = true}}> : ({S}) -> {S}',
        ),
        (
            f"%0 = stablehlo.rng %z, %z, %n, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> {T}",
            (
                '%0 = "stablehlo.rng"(%z, %z, %n) <{rng_distribution = #stablehlo<rng_distribution UNIFORM>}> :'
                f" (tensor<f32>, tensor<f32>, tensor<2xi64>) -> {T}"
            ),
        ),
        (
            f"%0 = stablehlo.reduce_precision %a, format = e5m10 : {T}",
            (
                '%0 = "stablehlo.reduce_precision"(%a) <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}> :'
                f" ({T}) -> {T}"
            ),
        ),
        (
            f'%0 = stablehlo.composite "a.b" %a {{decomposition = @g, version = 1 : i32}} : ({T}) -> {T}',
            f'%0 = "stablehlo.composite"(%a) <{{decomposition = @g, name = "a.b", version = 1 : i32}}> : ({T}) -> {T}',
        ),
        (
            f"""%0:2 = stablehlo.while(%x = %i, %y = %a) : tensor<i32>, {T} attributes {{k = "v"}} cond {{
    %1 = stablehlo.compare LT, %x, %i, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }} do {{
    stablehlo.return %x, %y : tensor<i32>, {T}
  }}""",
            f"""%0:2 = "stablehlo.while"(%i, %a) ({{
  ^bb0(%x: tensor<i32>, %y: {T}):
    %1 = "stablehlo.compare"(%x, %i) <{{comparison_direction = #stablehlo<comparison_direction LT>,
      compare_type = #stablehlo<comparison_type SIGNED>}}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "stablehlo.return"(%1) : (tensor<i1>) -> ()
  }}, {{
  ^bb0(%x: tensor<i32>, %y: {T}):
    "stablehlo.return"(%x, %y) : (tensor<i32>, {T}) -> ()
  }}) {{k = "v"}} : (tensor<i32>, {T}) -> (tensor<i32>, {T})""",
        ),
    ],
)
def test_a_pretty_form(pretty: str, generic: str) -> None:
    assert function(pretty) == function(generic)
