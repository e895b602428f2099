"""Models of the coverage table on types that kernels misread, and run."""

from __future__ import annotations

from collections.abc import Iterator

from tflq.tools.coverage.table import samples_of

_STEPS = (
    "abs div exp fake_quant gelu hard_swish leaky_relu log mean mul neg prelu reduce_prod relu relu6 relu_0_to_1 "
    "relu_n1_to_1 rsqrt sqrt sum"
)
_KEYS = {
    "i16 → i8: equal scales": (
        "div embedding_lookup fake_quant floor_div floor_mod matrix_diag matrix_set_diag maximum minimum neg prelu "
        "stablehlo_add stablehlo_gather stablehlo_maximum stablehlo_minimum stablehlo_multiply"
    ),
    "i8 → i16: equal scales": (
        "add div embedding_lookup exp fake_quant floor_div floor_mod matrix_diag matrix_set_diag maximum mean minimum "
        "neg prelu reduce_prod right_shift scatter_nd sparse_to_dense squared_difference stablehlo_add stablehlo_and "
        "stablehlo_gather stablehlo_maximum stablehlo_minimum stablehlo_multiply stablehlo_shift_left sub sum"
    ),
    "i8 per axis, operand 0: ": f"{_STEPS} elu logistic tanh",
    "i8 per axis, operand 1: ": "mul prelu",
    "i8 per axis, result: ": f"{_STEPS} batch_matmul sub",
    "i8 per axis, all: ": "reduce_max reduce_min",
    "i8 → i8: per axis, operand": "quantize",
    "i4: equal scales": (
        "broadcast_to dilate embedding_lookup fake_quant gather hashtable_lookup matrix_diag matrix_set_diag "
        "stablehlo_pad"
    ),
    "i4 → f32: ": "cast",
    "i8 → f16: ": "dequantize",
    **dict.fromkeys(("i8: equal scales", "ui8: equal scales", "i16: equal scales"), "fake_quant"),
    **dict.fromkeys(("i8 × i8: blockwise", "i16 × i8: blockwise"), "batch_matmul"),
    **dict.fromkeys(("f32 × i16: per layer", "f32 × i16: per axis"), "conv_2d"),
    "f32 × i8: per layer": "depthwise_conv_2d",
    "f32 × i8: constant i8": "matrix_set_diag prelu",
    "f32 × ui8: hybrid": "bidirectional_sequence_lstm",
}


def models() -> Iterator[tuple[str, bytes]]:
    """The operator and the file of each, by operator."""
    wanted = {f"{name} {key}" for key, names in _KEYS.items() for name in names.split()}
    for name in sorted({key.partition(" ")[0] for key in wanted}):
        for key, model in samples_of(name):
            if key in wanted:
                wanted.remove(key)
                yield name, model
    if wanted:
        raise LookupError(f"the coverage table has no {', '.join(sorted(wanted))}")
