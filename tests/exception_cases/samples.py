"""Cases among the models of the coverage table: one of each operator and warning."""

from __future__ import annotations

from collections.abc import Iterator

from exception_cases.case import Case, cases
from tflq.coverage.table import samples_of

__all__: list[str] = []

_OTHER_SCALES = (
    "average_pool_2d broadcast_to depth_to_space dilate dynamic_update_slice embedding_lookup gather gather_nd "
    "hashtable_lookup matrix_set_diag max_pool_2d maximum minimum one_hot pad reshape resize_bilinear "
    "resize_nearest_neighbor reverse_v2 scatter_nd select select_v2 slice space_to_depth sparse_to_dense split split_v "
    "squeeze stablehlo_gather stablehlo_maximum stablehlo_minimum stablehlo_pad strided_slice tile topk_v2 transpose "
    "unique"
).split()
_OTHER_SCALES_16 = "concatenation greater greater_equal less less_equal".split()
_STORED = (
    "floor_div floor_mod hashtable_lookup matrix_diag neg reduce_window scatter_nd stablehlo_add stablehlo_multiply"
).split()
_KEYS = [
    *(f"{name} i8: other scales" for name in _OTHER_SCALES),
    *(f"{name} i16: other scales" for name in _OTHER_SCALES_16),
    *(f"{name} i8: equal scales" for name in _STORED),
    *("arg_max i8 per axis, operand 0: ", "arg_min i8 per axis, operand 0: "),
    *(
        "batch_matmul i8 per axis, operand 0: ",
        "batch_matmul f32 × i8: constant i8",
        "batch_matmul f32 × i8: blockwise",
    ),
    *("batch_matmul i8 × i8 → i32: per layer", "cast i8 → f32: ", "cast f32 → i8: ", "cast i8 → i16: other scales"),
    *("conv_2d ui8 × i8: per layer", "conv_2d i16 × i16: per layer", "conv_2d f32 × i8: blockwise"),
    *("conv_2d f32 × ui8: per layer", "depthwise_conv_2d i16 × i16: per layer"),
    *("fully_connected ui8 × i8: per layer", "fully_connected i8 × ui8: per layer"),
    *("fully_connected f32 × i8: blockwise",),
    *("fully_connected f32 × ui8: per layer", "fully_connected f32 × i4: blockwise"),
    *("fully_connected i8 × i8 → i16: per layer", "fully_connected i16 × i8 → i8: per layer"),
    *("l2_normalization i8 per axis, operand 0: ", "mirror_pad i8 per axis, all: ", "mul i16 → i8: equal scales"),
    *("padv2 i8 per axis, operand 0: ", "prelu i16: equal scales", "quantize i32 → i8: "),
    "reverse_sequence ui8: other scales",
    *("where i8: ", "softmax ui8: the result has another scale than the kernel's"),
]
_CHANCE = [
    *("sum i8: equal scales", "sum i16: equal scales"),
    "batch_matmul i8 → i16: equal scales",
    *("batch_matmul i8 × i8 → f32: per layer", "depthwise_conv_2d i16 × i4: per layer"),
]


@cases
def from_the_table() -> Iterator[Case]:
    wanted = {**dict.fromkeys(_KEYS, False), **dict.fromkeys(_CHANCE, True)}
    for name in sorted({key.partition(" ")[0] for key in wanted}):
        for key, model in samples_of(name):
            if key in wanted:
                yield Case(name.upper(), model, key.partition(": ")[2], chance=wanted.pop(key))
    if wanted:
        raise LookupError(f"the coverage table has no {', '.join(wanted)}")
