"""Which module declares each op, and which says what a stage does with it. Made by scripts/make_index.py.

A module of a dialect or of a stage is imported when the first op is met that it is needed for.
"""

from __future__ import annotations

from typing import Final

__all__ = ["ANY", "DIALECTS", "ROOMS"]

ANY: Final = "*"
"""Stands for ops from outside: the modules that have a function for a trait."""

DIALECTS: Final[dict[str, dict[str, str]]] = {
    "tfl": {
        "activation": (
            "relu relu6 relu_n1_to_1 relu_0_to_1 leaky_relu prelu elu gelu hard_swish logistic tanh softmax log_softmax"
        ),
        "arithmetic": ("add sub mul div floor_div floor_mod pow squared_difference maximum minimum atan2 add_n"),
        "bits": "bitwise_xor right_shift bitcast",
        "casts": "cast quantize dequantize fake_quant",
        "comparison": (
            "equal not_equal greater greater_equal less less_equal logical_and logical_or logical_not "
            "select select_v2 where"
        ),
        "control": "call call_once if while custom delegate placeholder_for_greater_op_codes",
        "convolution": "conv_2d depthwise_conv_2d transpose_conv conv_3d conv_3d_transpose",
        "indexing": (
            "gather gather_nd scatter_nd sparse_to_dense dynamic_update_slice one_hot matrix_diag "
            "matrix_set_diag embedding_lookup embedding_lookup_sparse hashtable_lookup lsh_projection "
            "unique bucketize non_max_suppression_v4 non_max_suppression_v5 skip_gram concat_embeddings"
        ),
        "matmul": "fully_connected batch_matmul",
        "movement": (
            "reshape squeeze expand_dims transpose concatenation split split_v pack unpack pad padv2 "
            "mirror_pad slice strided_slice tile broadcast_to reverse_v2 reverse_sequence "
            "space_to_depth depth_to_space space_to_batch_nd batch_to_space_nd dilate densify"
        ),
        "normalization": "l2_normalization local_response_normalization",
        "pooling": "average_pool_2d max_pool_2d l2_pool_2d reduce_window",
        "random": "random_uniform random_standard_normal multinomial",
        "recurrent": (
            "lstm unidirectional_sequence_lstm bidirectional_sequence_lstm rnn "
            "unidirectional_sequence_rnn bidirectional_sequence_rnn svdf"
        ),
        "reduction": (
            "mean sum reduce_prod reduce_max reduce_min reduce_any reduce_all cumsum arg_max arg_min "
            "topk_v2 segment_sum unsorted_segment_sum unsorted_segment_prod unsorted_segment_max "
            "unsorted_segment_min"
        ),
        "resize": "resize_bilinear resize_nearest_neighbor",
        "shape": "shape rank range fill broadcast_args",
        "signal": "real imag complex_abs rfft2d",
        "stablehlo": (
            "stablehlo_abs stablehlo_add stablehlo_and stablehlo_broadcast_in_dim stablehlo_case "
            "stablehlo_cbrt stablehlo_clamp stablehlo_compare stablehlo_composite stablehlo_concatenate "
            "stablehlo_convert stablehlo_convolution stablehlo_cosine stablehlo_custom_call "
            "stablehlo_divide stablehlo_dot_general stablehlo_dynamic_slice "
            "stablehlo_dynamic_update_slice stablehlo_exponential stablehlo_floor stablehlo_gather "
            "stablehlo_iota stablehlo_log stablehlo_logistic stablehlo_maximum stablehlo_minimum "
            "stablehlo_multiply stablehlo_negate stablehlo_or stablehlo_pad stablehlo_power "
            "stablehlo_reduce stablehlo_reduce_window stablehlo_remainder stablehlo_reshape "
            "stablehlo_rng_bit_generator stablehlo_rsqrt stablehlo_scatter stablehlo_select "
            "stablehlo_shift_left stablehlo_slice stablehlo_sort stablehlo_subtract stablehlo_tanh "
            "stablehlo_transpose stablehlo_while"
        ),
        "state": ("var_handle read_variable assign_variable hashtable hashtable_find hashtable_import hashtable_size"),
        "unary": "abs ceil cos exp floor log neg round rsqrt sign sin sqrt square zeros_like",
    },
    "tosa": {
        "activation": "ceil clamp cos erf exp floor log reciprocal rsqrt sigmoid sin tanh",
        "arithmetic": "abs add intdiv maximum minimum mul negate pow sub",
        "bits": (
            "arithmetic_right_shift bitwise_and bitwise_not bitwise_or bitwise_xor clz logical_and "
            "logical_left_shift logical_not logical_or logical_right_shift logical_xor"
        ),
        "casts": "cast rescale",
        "comparison": "equal greater greater_equal select",
        "control": "cond_if while_loop",
        "convolution": "conv2d conv3d depthwise_conv2d transpose_conv2d",
        "indexing": "gather scatter table",
        "matmul": "matmul",
        "movement": "concat identity pad reshape reverse slice tile transpose",
        "pooling": "avg_pool2d max_pool2d",
        "reduction": "argmax reduce_all reduce_any reduce_max reduce_min reduce_product reduce_sum",
        "resize": "resize",
        "state": "variable variable_read variable_write",
    },
    "quant": {
        "casts": "qcast dcast scast",
        "regions": "region return rescale",
        "statistics": "const_fake_quant const_fake_quant_per_axis stats stats_ref coupled_ref",
    },
    "ext": {
        "casts": "truncate",
        "rescale": "rescale_f64 rescale_i64 rescale_mean rounding_divide_by_pot",
        "tables": "table_16bit table_2d",
    },
    "stablehlo": {
        "arithmetic": "add subtract multiply divide remainder maximum minimum power and or xor",
        "casts": "uniform_quantize uniform_dequantize convert",
        "comparison": "compare select clamp",
        "control": "return optimization_barrier custom_call",
        "convolution": "convolution",
        "matmul": "dot_general",
        "movement": "reshape transpose broadcast_in_dim slice concatenate reverse",
        "reduction": "reduce",
        "unary": (
            "abs negate not sign ceil floor round_nearest_even round_nearest_afz exponential log "
            "logistic sqrt rsqrt tanh cosine sine"
        ),
        "windows": "reduce_window select_and_scatter",
    },
    "arith": {
        "casts": ("extsi extui trunci extf truncf sitofp uitofp fptosi fptoui index_cast index_castui bitcast"),
        "comparison": "cmpi cmpf select",
        "extended": "addui_extended mulsi_extended mului_extended",
        "floats": "addf subf mulf divf remf maximumf minimumf maxnumf minnumf negf",
        "integers": (
            "addi subi muli divsi divui ceildivsi ceildivui floordivsi remsi remui andi ori xori shli "
            "shrsi shrui maxsi maxui minsi minui"
        ),
    },
    "math": {
        "classes": "isfinite isinf isnan isnormal",
        "functions": (
            "acos acosh asin asinh atan atanh cbrt cos cosh erf erfc exp exp2 expm1 log log10 log1p "
            "log2 rsqrt sin sinh sqrt tan tanh"
        ),
        "integers": "absi ctlz ctpop cttz ipowi",
        "rounding": "absf ceil floor round roundeven trunc",
        "several": "atan2 copysign powf fma clampf fpowi",
    },
    "tensor": {
        "making": "empty splat from_elements generate yield",
        "parts": "dim rank extract insert concat extract_slice insert_slice pad",
        "views": "cast bitcast reshape collapse_shape expand_shape",
    },
    "linalg": {
        "generic": "generic index yield",
    },
    "shape": {
        "extents": "const_shape shape_of num_elements split_at concat broadcast get_extent dim rank",
    },
    "func": {
        "calls": "call call_indirect constant",
    },
}
"""The ops of each dialect, by the module that declares them."""

ROOMS: Final[dict[str, dict[str, str]]] = {
    "tflq.evaluate": {
        "activation": (
            "tosa.ceil tosa.clamp tosa.cos tosa.erf tosa.exp tosa.floor tosa.log tosa.reciprocal "
            "tosa.rsqrt tosa.sigmoid tosa.sin tosa.tanh"
        ),
        "arithmetic": (
            "tfl.add tfl.div tfl.floor_div tfl.floor_mod tfl.maximum tfl.minimum tfl.mul tfl.sub "
            "tosa.abs tosa.add tosa.intdiv tosa.maximum tosa.minimum tosa.mul tosa.negate tosa.pow "
            "tosa.sub"
        ),
        "bits": (
            "tfl.bitcast tosa.arithmetic_right_shift tosa.bitwise_and tosa.bitwise_not tosa.bitwise_or "
            "tosa.bitwise_xor tosa.clz tosa.logical_and tosa.logical_left_shift tosa.logical_not "
            "tosa.logical_or tosa.logical_right_shift tosa.logical_xor"
        ),
        "casts": "ext.truncate quant.dcast quant.qcast quant.scast tfl.cast tosa.cast tosa.rescale",
        "comparison": (
            "tfl.equal tfl.greater tfl.greater_equal tfl.less tfl.less_equal tfl.logical_and "
            "tfl.logical_not tfl.logical_or tfl.not_equal tfl.select tfl.select_v2 tosa.equal "
            "tosa.greater tosa.greater_equal tosa.select"
        ),
        "control": "tosa.cond_if tosa.while_loop",
        "convolution": "tosa.conv2d tosa.conv3d tosa.depthwise_conv2d tosa.transpose_conv2d",
        "core.calls": "func.call func.call_indirect func.constant",
        "core.casts": (
            "arith.bitcast arith.extf arith.extsi arith.extui arith.fptosi arith.fptoui "
            "arith.index_cast arith.index_castui arith.sitofp arith.truncf arith.trunci arith.uitofp"
        ),
        "core.comparison": "arith.cmpf arith.cmpi arith.select",
        "core.extents": (
            "shape.broadcast shape.concat shape.const_shape shape.dim shape.get_extent "
            "shape.num_elements shape.rank shape.shape_of shape.split_at"
        ),
        "core.floats": (
            "arith.addf arith.divf arith.maximumf arith.maxnumf arith.minimumf arith.minnumf arith.mulf "
            "arith.negf arith.remf arith.subf math.absf math.ceil math.clampf math.copysign math.floor "
            "math.fma math.isfinite math.isinf math.isnan math.isnormal math.round math.roundeven "
            "math.trunc"
        ),
        "core.functions": (
            "math.acos math.acosh math.asin math.asinh math.atan math.atan2 math.atanh math.cbrt "
            "math.cos math.cosh math.erf math.erfc math.exp math.exp2 math.expm1 math.fpowi math.log "
            "math.log10 math.log1p math.log2 math.powf math.rsqrt math.sin math.sinh math.sqrt math.tan "
            "math.tanh"
        ),
        "core.integers": (
            "arith.addi arith.addui_extended arith.andi arith.ceildivsi arith.ceildivui arith.divsi "
            "arith.divui arith.floordivsi arith.maxsi arith.maxui arith.minsi arith.minui arith.muli "
            "arith.mulsi_extended arith.mului_extended arith.ori arith.remsi arith.remui arith.shli "
            "arith.shrsi arith.shrui arith.subi arith.xori math.absi math.ctlz math.ctpop math.cttz "
            "math.ipowi"
        ),
        "core.loops": "linalg.generic",
        "core.tensors": (
            "tensor.bitcast tensor.cast tensor.collapse_shape tensor.concat tensor.dim tensor.empty "
            "tensor.expand_shape tensor.extract tensor.extract_slice tensor.from_elements "
            "tensor.generate tensor.insert tensor.insert_slice tensor.pad tensor.rank tensor.reshape "
            "tensor.splat"
        ),
        "indexing": "tfl.gather tfl.gather_nd tosa.gather tosa.scatter tosa.table",
        "matmul": "tosa.matmul",
        "movement": (
            "tfl.batch_to_space_nd tfl.broadcast_to tfl.concatenation tfl.depth_to_space "
            "tfl.expand_dims tfl.mirror_pad tfl.pack tfl.pad tfl.padv2 tfl.reshape tfl.reverse_sequence "
            "tfl.reverse_v2 tfl.slice tfl.space_to_batch_nd tfl.space_to_depth tfl.split tfl.split_v "
            "tfl.squeeze tfl.strided_slice tfl.tile tfl.transpose tfl.unpack tosa.concat tosa.identity "
            "tosa.pad tosa.reshape tosa.reverse tosa.slice tosa.tile tosa.transpose"
        ),
        "pooling": "tosa.avg_pool2d tosa.max_pool2d",
        "reduction": (
            "tfl.reduce_all tfl.reduce_any tfl.reduce_max tfl.reduce_min tfl.reduce_prod tfl.sum "
            "tosa.argmax tosa.reduce_all tosa.reduce_any tosa.reduce_max tosa.reduce_min "
            "tosa.reduce_product tosa.reduce_sum"
        ),
        "rescale": "ext.rescale_f64 ext.rescale_i64 ext.rescale_mean ext.rounding_divide_by_pot",
        "resize": "tfl.resize_nearest_neighbor tosa.resize",
        "shape": "tfl.broadcast_args tfl.fill tfl.range tfl.rank tfl.shape",
        "stablehlo.contraction": "stablehlo.convolution stablehlo.dot_general",
        "stablehlo.elementwise": (
            "stablehlo.abs stablehlo.add stablehlo.and stablehlo.ceil stablehlo.clamp stablehlo.compare "
            "stablehlo.convert stablehlo.cosine stablehlo.divide stablehlo.exponential stablehlo.floor "
            "stablehlo.log stablehlo.logistic stablehlo.maximum stablehlo.minimum stablehlo.multiply "
            "stablehlo.negate stablehlo.not stablehlo.optimization_barrier stablehlo.or stablehlo.power "
            "stablehlo.remainder stablehlo.round_nearest_afz stablehlo.round_nearest_even "
            "stablehlo.rsqrt stablehlo.select stablehlo.sign stablehlo.sine stablehlo.sqrt "
            "stablehlo.subtract stablehlo.tanh stablehlo.uniform_dequantize stablehlo.uniform_quantize "
            "stablehlo.xor"
        ),
        "stablehlo.layout": (
            "stablehlo.broadcast_in_dim stablehlo.concatenate stablehlo.reshape stablehlo.reverse "
            "stablehlo.slice stablehlo.transpose"
        ),
        "stablehlo.reduction": "stablehlo.reduce stablehlo.reduce_window stablehlo.select_and_scatter",
        "state": "tosa.variable tosa.variable_read tosa.variable_write",
        "tables": "ext.table_16bit ext.table_2d",
        "unary": "tfl.abs tfl.ceil tfl.floor tfl.neg tfl.square tfl.zeros_like",
    },
    "tflq.legalize": {
        "reference.quant_casts": "quant.dcast quant.qcast quant.scast",
        "stablehlo.reductions": "stablehlo.reduce stablehlo.reduce_window stablehlo.select_and_scatter",
        "stablehlo.quantizing": "stablehlo.uniform_dequantize stablehlo.uniform_quantize",
        "reference.unary": ("tfl.abs tfl.elu tfl.exp tfl.gelu tfl.log tfl.neg tfl.rsqrt tfl.sqrt tfl.zeros_like"),
        "reference.arithmetic.elementwise": ("tfl.add tfl.maximum tfl.minimum tfl.mul tfl.squared_difference tfl.sub"),
        "reference.reduction": (
            "tfl.arg_max tfl.arg_min tfl.mean tfl.reduce_max tfl.reduce_min tfl.reduce_prod tfl.sum tfl.topk_v2"
        ),
        "reference.state": "tfl.assign_variable tfl.read_variable",
        "reference.pooling": "tfl.average_pool_2d tfl.max_pool_2d tfl.reduce_window",
        "reference.matmul.batch_matmul": "tfl.batch_matmul",
        "reference.generic.movement": (
            "tfl.batch_to_space_nd tfl.broadcast_to tfl.densify tfl.depth_to_space tfl.dilate "
            "tfl.expand_dims tfl.mirror_pad tfl.pack tfl.reshape tfl.reverse_sequence tfl.reverse_v2 "
            "tfl.slice tfl.space_to_depth tfl.split tfl.split_v tfl.squeeze tfl.strided_slice tfl.tile "
            "tfl.transpose tfl.unpack"
        ),
        "reference.bits": (
            "tfl.bitcast tfl.bitwise_xor tfl.broadcast_args tfl.fill tfl.rank tfl.right_shift tfl.shape"
        ),
        "reference.indexing.lookup": (
            "tfl.bucketize tfl.dynamic_update_slice tfl.embedding_lookup tfl.gather tfl.gather_nd "
            "tfl.hashtable_lookup tfl.matrix_diag tfl.matrix_set_diag tfl.one_hot tfl.unique"
        ),
        "reference.casts": "tfl.cast tfl.dequantize tfl.quantize",
        "reference.movement.joining": "tfl.concatenation",
        "reference.convolution.convolution": "tfl.conv_2d tfl.depthwise_conv_2d",
        "reference.arithmetic.division": "tfl.div tfl.floor_div tfl.floor_mod",
        "reference.comparison": (
            "tfl.equal tfl.greater tfl.greater_equal tfl.less tfl.less_equal tfl.not_equal tfl.select "
            "tfl.select_v2 tfl.where"
        ),
        "reference.matmul.fully_connected": "tfl.fully_connected",
        "reference.activation.relu": (
            "tfl.hard_swish tfl.leaky_relu tfl.prelu tfl.relu tfl.relu6 tfl.relu_0_to_1 tfl.relu_n1_to_1"
        ),
        "reference.normalization": "tfl.l2_normalization",
        "reference.activation.log_softmax": "tfl.log_softmax",
        "reference.activation.sigmoid": "tfl.logistic tfl.tanh",
        "recurrent.lstm": "tfl.lstm tfl.unidirectional_sequence_lstm",
        "reference.movement.padding": "tfl.pad tfl.padv2 tfl.space_to_batch_nd",
        "reference.resize.resize": "tfl.resize_bilinear tfl.resize_nearest_neighbor",
        "reference.indexing.scattering": "tfl.scatter_nd tfl.sparse_to_dense",
        "real.reduction.segments": (
            "tfl.segment_sum tfl.unsorted_segment_max tfl.unsorted_segment_min tfl.unsorted_segment_sum"
        ),
        "reference.activation.softmax": "tfl.softmax",
        "stablehlo.kernels": (
            "tfl.stablehlo_abs tfl.stablehlo_add tfl.stablehlo_and tfl.stablehlo_cbrt "
            "tfl.stablehlo_clamp tfl.stablehlo_compare tfl.stablehlo_concatenate tfl.stablehlo_convert "
            "tfl.stablehlo_cosine tfl.stablehlo_custom_call tfl.stablehlo_divide "
            "tfl.stablehlo_exponential tfl.stablehlo_floor tfl.stablehlo_iota tfl.stablehlo_log "
            "tfl.stablehlo_logistic tfl.stablehlo_maximum tfl.stablehlo_minimum tfl.stablehlo_multiply "
            "tfl.stablehlo_negate tfl.stablehlo_or tfl.stablehlo_power tfl.stablehlo_reduce "
            "tfl.stablehlo_remainder tfl.stablehlo_reshape tfl.stablehlo_rng_bit_generator "
            "tfl.stablehlo_rsqrt tfl.stablehlo_scatter tfl.stablehlo_select tfl.stablehlo_shift_left "
            "tfl.stablehlo_slice tfl.stablehlo_sort tfl.stablehlo_subtract tfl.stablehlo_tanh "
            "tfl.stablehlo_transpose tfl.stablehlo_while"
        ),
        "stablehlo.movement": (
            "tfl.stablehlo_broadcast_in_dim tfl.stablehlo_dynamic_slice "
            "tfl.stablehlo_dynamic_update_slice tfl.stablehlo_gather tfl.stablehlo_pad"
        ),
        "stablehlo.contracting": "tfl.stablehlo_convolution tfl.stablehlo_dot_general",
        "stablehlo.windows": "tfl.stablehlo_reduce_window",
        "recurrent.svdf": "tfl.svdf",
        "reference.convolution.transpose_conv": "tfl.transpose_conv",
        "real.arithmetic.functions": "tfl.add_n tfl.atan2 tfl.cumsum tfl.pow tfl.squared_difference",
        "real.reduction.reduction": "tfl.mean tfl.reduce_max tfl.reduce_min tfl.reduce_prod tfl.sum",
        "real.matmul.batch_matmul": "tfl.batch_matmul",
        "real.comparison": ("tfl.equal tfl.greater tfl.greater_equal tfl.less tfl.less_equal tfl.not_equal"),
        "reference.generic.reinterpreted": "tfl.conv_2d tfl.depthwise_conv_2d tfl.fully_connected",
        "real.generic.square_sums": ("tfl.l2_normalization tfl.l2_pool_2d tfl.local_response_normalization"),
        "real.unary": (
            "tfl.abs tfl.ceil tfl.cos tfl.elu tfl.exp tfl.fake_quant tfl.floor tfl.gelu tfl.hard_swish "
            "tfl.leaky_relu tfl.log tfl.logistic tfl.neg tfl.quantize tfl.relu tfl.relu6 "
            "tfl.relu_0_to_1 tfl.relu_n1_to_1 tfl.round tfl.rsqrt tfl.sign tfl.sin tfl.sqrt tfl.square "
            "tfl.tanh"
        ),
        "real.arithmetic.with_number": "tfl.atan2 tfl.floor_div tfl.floor_mod tfl.pow",
        "real.arithmetic.arithmetic": (
            "tfl.add tfl.div tfl.maximum tfl.minimum tfl.mul tfl.prelu tfl.squared_difference tfl.sub"
        ),
        "real.matmul.blocks": "tfl.fully_connected",
        "real.generic.sums": (
            "tfl.conv_2d tfl.conv_3d tfl.conv_3d_transpose tfl.depthwise_conv_2d tfl.fully_connected tfl.transpose_conv"
        ),
    },
    "tflq.legalize.core": {
        "casts": (
            "arith.bitcast arith.extf arith.extsi arith.extui arith.fptosi arith.fptoui "
            "arith.index_cast arith.index_castui arith.sitofp arith.truncf arith.trunci arith.uitofp"
        ),
        "comparison": "arith.cmpf arith.cmpi arith.select math.isfinite math.isinf math.isnan",
        "floats": (
            "arith.addf arith.divf arith.maximumf arith.minimumf arith.mulf arith.negf arith.remf "
            "arith.subf math.absf math.ceil math.clampf math.cos math.exp math.floor math.log math.powf "
            "math.round math.roundeven math.rsqrt math.sin math.sqrt math.tanh math.trunc"
        ),
        "integers": (
            "arith.addi arith.andi arith.ceildivsi arith.ceildivui arith.divsi arith.divui "
            "arith.floordivsi arith.maxsi arith.maxui arith.minsi arith.minui arith.muli arith.ori "
            "arith.remsi arith.remui arith.shli arith.shrsi arith.shrui arith.subi arith.xori math.absi "
            "math.ctlz"
        ),
        "loops": "linalg.generic",
        "tensors": (
            "shape.dim shape.get_extent shape.shape_of tensor.cast tensor.collapse_shape tensor.concat "
            "tensor.dim tensor.empty tensor.expand_shape tensor.extract tensor.extract_slice "
            "tensor.from_elements tensor.rank tensor.reshape tensor.splat"
        ),
    },
    "tflq.select": {
        "activation": (
            "tosa.ceil tosa.clamp tosa.cos tosa.erf tosa.exp tosa.floor tosa.log tosa.reciprocal "
            "tosa.rsqrt tosa.sigmoid tosa.sin tosa.tanh"
        ),
        "arithmetic": (
            "tosa.abs tosa.add tosa.intdiv tosa.maximum tosa.minimum tosa.mul tosa.negate tosa.pow tosa.sub"
        ),
        "bits": (
            "tosa.arithmetic_right_shift tosa.bitwise_and tosa.bitwise_not tosa.bitwise_or "
            "tosa.bitwise_xor tosa.clz tosa.logical_and tosa.logical_left_shift tosa.logical_not "
            "tosa.logical_or tosa.logical_right_shift tosa.logical_xor"
        ),
        "casts": "ext.truncate quant.dcast quant.qcast quant.scast tosa.cast",
        "comparison": "tosa.equal tosa.greater tosa.greater_equal tosa.select",
        "control": "tosa.cond_if tosa.while_loop",
        "convolution.conv2d": "tosa.conv2d",
        "convolution.conv3d": "tosa.conv3d",
        "convolution.depthwise": "tosa.depthwise_conv2d",
        "convolution.transposed": "tosa.transpose_conv2d",
        "indexing": "tosa.gather tosa.scatter",
        "matmul": "tosa.matmul",
        "movement": (
            "tosa.concat tosa.identity tosa.pad tosa.reshape tosa.reverse tosa.slice tosa.tile tosa.transpose"
        ),
        "pooling": "tosa.avg_pool2d tosa.max_pool2d",
        "reduction": (
            "tosa.argmax tosa.reduce_all tosa.reduce_any tosa.reduce_max tosa.reduce_min "
            "tosa.reduce_product tosa.reduce_sum"
        ),
        "rescale.integer": "ext.rescale_i64 ext.rounding_divide_by_pot tosa.rescale",
        "rescale.mean": "ext.rescale_mean",
        "rescale.real": "ext.rescale_f64",
        "resize": "tosa.resize",
        "state": "tosa.variable_read tosa.variable_write",
        "tables": "ext.table_16bit ext.table_2d tosa.table",
    },
    "tflq.tosa.laws": {
        "activation": "tosa.clamp",
        "arithmetic": "tosa.mul tosa.negate",
        "casts": "tosa.rescale",
        "control": "tosa.cond_if tosa.while_loop",
        "convolution": "tosa.conv2d tosa.conv3d tosa.depthwise_conv2d tosa.transpose_conv2d",
        "generic": (
            "* ext.rescale_f64 ext.rescale_i64 ext.rescale_mean ext.rounding_divide_by_pot "
            "ext.table_16bit ext.table_2d ext.truncate quant.dcast quant.qcast quant.scast tfl.abs "
            "tfl.add tfl.add_n tfl.atan2 tfl.bitwise_xor tfl.bucketize tfl.cast tfl.ceil "
            "tfl.complex_abs tfl.cos tfl.cumsum tfl.densify tfl.dequantize tfl.div "
            "tfl.dynamic_update_slice tfl.elu tfl.equal tfl.exp tfl.fake_quant tfl.floor tfl.floor_div "
            "tfl.floor_mod tfl.gelu tfl.greater tfl.greater_equal tfl.hard_swish tfl.imag "
            "tfl.l2_normalization tfl.leaky_relu tfl.less tfl.less_equal "
            "tfl.local_response_normalization tfl.log tfl.log_softmax tfl.logical_and tfl.logical_not "
            "tfl.logical_or tfl.logistic tfl.maximum tfl.minimum tfl.mul tfl.neg tfl.not_equal tfl.pow "
            "tfl.prelu tfl.quantize tfl.real tfl.relu tfl.relu6 tfl.relu_0_to_1 tfl.relu_n1_to_1 "
            "tfl.reverse_sequence tfl.reverse_v2 tfl.right_shift tfl.round tfl.rsqrt tfl.select_v2 "
            "tfl.sign tfl.sin tfl.softmax tfl.sqrt tfl.square tfl.squared_difference tfl.stablehlo_abs "
            "tfl.stablehlo_add tfl.stablehlo_and tfl.stablehlo_cbrt tfl.stablehlo_compare "
            "tfl.stablehlo_convert tfl.stablehlo_cosine tfl.stablehlo_divide tfl.stablehlo_exponential "
            "tfl.stablehlo_floor tfl.stablehlo_log tfl.stablehlo_logistic tfl.stablehlo_maximum "
            "tfl.stablehlo_minimum tfl.stablehlo_multiply tfl.stablehlo_negate tfl.stablehlo_or "
            "tfl.stablehlo_power tfl.stablehlo_remainder tfl.stablehlo_rsqrt tfl.stablehlo_scatter "
            "tfl.stablehlo_shift_left tfl.stablehlo_subtract tfl.stablehlo_tanh tfl.sub tfl.tanh "
            "tfl.zeros_like tosa.abs tosa.add tosa.arithmetic_right_shift tosa.bitwise_and "
            "tosa.bitwise_not tosa.bitwise_or tosa.bitwise_xor tosa.cast tosa.ceil tosa.clz tosa.cos "
            "tosa.equal tosa.erf tosa.exp tosa.floor tosa.greater tosa.greater_equal tosa.identity "
            "tosa.intdiv tosa.log tosa.logical_and tosa.logical_left_shift tosa.logical_not "
            "tosa.logical_or tosa.logical_right_shift tosa.logical_xor tosa.maximum tosa.minimum "
            "tosa.pow tosa.reciprocal tosa.rsqrt tosa.select tosa.sigmoid tosa.sin tosa.sub tosa.tanh"
        ),
        "indexing": "tosa.gather tosa.scatter tosa.table",
        "matmul": "tosa.matmul",
        "movement": ("tosa.concat tosa.pad tosa.reshape tosa.reverse tosa.slice tosa.tile tosa.transpose"),
        "pooling": "tosa.avg_pool2d tosa.max_pool2d",
        "reduction": (
            "tosa.argmax tosa.reduce_all tosa.reduce_any tosa.reduce_max tosa.reduce_min "
            "tosa.reduce_product tosa.reduce_sum"
        ),
        "resize": "tosa.resize",
        "state": "tosa.variable tosa.variable_read tosa.variable_write",
    },
    "tflq.tosa.lowering": {
        "activation": "tosa.clamp",
        "arithmetic.integers": (
            "tosa.abs tosa.add tosa.intdiv tosa.maximum tosa.minimum tosa.mul tosa.negate tosa.sub"
        ),
        "arithmetic.kernels": (
            "tfl.add tfl.add_n tfl.div tfl.floor_div tfl.floor_mod tfl.maximum tfl.minimum tfl.mul "
            "tfl.squared_difference tfl.sub"
        ),
        "bits": (
            "tfl.bitwise_xor tfl.right_shift tosa.arithmetic_right_shift tosa.bitwise_and "
            "tosa.bitwise_not tosa.bitwise_or tosa.bitwise_xor tosa.clz tosa.logical_and "
            "tosa.logical_left_shift tosa.logical_not tosa.logical_or tosa.logical_right_shift "
            "tosa.logical_xor"
        ),
        "casts.conversion": "ext.truncate tfl.cast tfl.dequantize tosa.cast",
        "casts.quantization": "quant.dcast quant.qcast",
        "comparison": (
            "tfl.equal tfl.greater tfl.greater_equal tfl.less tfl.less_equal tfl.logical_and "
            "tfl.logical_not tfl.logical_or tfl.not_equal tfl.select tfl.select_v2 tosa.equal "
            "tosa.greater tosa.greater_equal tosa.select"
        ),
        "control": "tfl.call tfl.if tfl.stablehlo_composite tfl.while",
        "convolution.floats": "tfl.conv_2d tfl.conv_3d tfl.depthwise_conv_2d tfl.transpose_conv",
        "convolution.integers": "tosa.conv2d tosa.conv3d tosa.depthwise_conv2d tosa.transpose_conv2d",
        "floats.operators": (
            "tfl.atan2 tfl.ceil tfl.cos tfl.elu tfl.exp tfl.floor tfl.gelu tfl.hard_swish "
            "tfl.l2_normalization tfl.leaky_relu tfl.local_response_normalization tfl.log "
            "tfl.log_softmax tfl.logistic tfl.pow tfl.prelu tfl.relu tfl.relu6 tfl.relu_0_to_1 "
            "tfl.relu_n1_to_1 tfl.round tfl.rsqrt tfl.sin tfl.softmax tfl.sqrt tfl.square tfl.tanh"
        ),
        "indexing.diagonals": "tfl.matrix_diag tfl.matrix_set_diag",
        "indexing.gathering": "tfl.embedding_lookup tfl.gather tfl.gather_nd tfl.one_hot tosa.gather",
        "indexing.scattering": "tfl.dynamic_update_slice tfl.scatter_nd",
        "matmul": "tfl.batch_matmul tfl.fully_connected tosa.matmul",
        "movement.joining": "tfl.concatenation tfl.pack tfl.split tfl.split_v tfl.unpack tosa.concat",
        "movement.padding": "tfl.dilate tfl.mirror_pad tfl.pad tfl.padv2 tosa.pad",
        "movement.reordering": (
            "tfl.broadcast_to tfl.expand_dims tfl.reshape tfl.squeeze tfl.tile tfl.transpose "
            "tosa.reshape tosa.tile tosa.transpose"
        ),
        "movement.reversing": "tfl.reverse_sequence tfl.reverse_v2 tosa.reverse",
        "movement.slicing": "tfl.slice tfl.strided_slice tosa.slice",
        "movement.space_blocks": ("tfl.batch_to_space_nd tfl.depth_to_space tfl.space_to_batch_nd tfl.space_to_depth"),
        "pooling": "tfl.average_pool_2d tfl.l2_pool_2d tfl.max_pool_2d tosa.avg_pool2d tosa.max_pool2d",
        "recurrent": "tfl.bidirectional_sequence_rnn tfl.rnn tfl.svdf tfl.unidirectional_sequence_rnn",
        "reduction.arg": "tfl.arg_max tfl.arg_min tosa.argmax",
        "reduction.axes": (
            "tfl.mean tfl.reduce_all tfl.reduce_any tfl.reduce_max tfl.reduce_min tfl.reduce_prod "
            "tfl.sum tosa.reduce_all tosa.reduce_any tosa.reduce_max tosa.reduce_min "
            "tosa.reduce_product tosa.reduce_sum"
        ),
        "reduction.cumulative": "tfl.cumsum",
        "reduction.top_k": "tfl.topk_v2",
        "registry": "quant.scast tosa.identity",
        "rescale.doubles": "ext.rescale_f64 ext.rounding_divide_by_pot",
        "rescale.integers": "ext.rescale_mean tosa.rescale",
        "rescale.low_word": "ext.rescale_i64",
        "resize": "tfl.resize_bilinear tfl.resize_nearest_neighbor tosa.resize",
        "shape": "tfl.fill tfl.range tfl.rank tfl.shape",
        "state": (
            "tfl.assign_variable tfl.call_once tfl.read_variable tfl.var_handle tosa.variable "
            "tosa.variable_read tosa.variable_write"
        ),
        "tables": "ext.table_16bit ext.table_2d tosa.table",
        "unary": "tfl.abs tfl.neg tfl.sign tfl.zeros_like",
    },
}
"""By package: the ops that each module has a function for. Rules of legalization are tried in this order."""
