"""Which module declares each op, says what a stage does with it, has a pass. Made by `make index`.

A module of a dialect or of a stage is imported when the first op is met that it is needed for.
"""

from __future__ import annotations

from typing import Final

__all__ = ["ANY", "DIALECTS", "PASSES", "ROOMS"]

ANY: Final = "*"
"""Stands for ops from outside: the modules that have a function for a trait."""

DIALECTS: Final[dict[str, dict[str, str]]] = {
    "tfl": {
        "activation": (
            "relu relu6 relu_n1_to_1 relu_0_to_1 leaky_relu prelu elu gelu hard_swish logistic tanh "
            "softmax log_softmax l2_normalization local_response_normalization"
        ),
        "arithmetic": ("add sub mul div floor_div floor_mod pow squared_difference maximum minimum atan2 add_n"),
        "casts": "cast quantize dequantize fake_quant",
        "comparison": (
            "equal not_equal greater greater_equal less less_equal logical_and logical_or logical_not "
            "select select_v2 where bitwise_xor right_shift bitcast"
        ),
        "control": "call call_once if while custom delegate placeholder_for_greater_op_codes",
        "convolution": (
            "conv_2d depthwise_conv_2d transpose_conv conv_3d conv_3d_transpose fully_connected batch_matmul"
        ),
        "gathering": "gather gather_nd embedding_lookup scatter_nd",
        "indexing": (
            "sparse_to_dense dynamic_update_slice one_hot matrix_diag matrix_set_diag "
            "embedding_lookup_sparse hashtable_lookup lsh_projection unique bucketize "
            "non_max_suppression_v4 non_max_suppression_v5 skip_gram concat_embeddings"
        ),
        "joining": "concatenation split split_v pack unpack",
        "movement": (
            "reshape squeeze expand_dims transpose pad padv2 mirror_pad slice strided_slice tile "
            "broadcast_to reverse_v2 reverse_sequence space_to_depth depth_to_space space_to_batch_nd "
            "batch_to_space_nd dilate densify"
        ),
        "pooling": ("average_pool_2d max_pool_2d l2_pool_2d reduce_window resize_bilinear resize_nearest_neighbor"),
        "random": "random_uniform random_standard_normal multinomial",
        "recurrent": (
            "lstm unidirectional_sequence_lstm bidirectional_sequence_lstm rnn "
            "unidirectional_sequence_rnn bidirectional_sequence_rnn svdf hashtable hashtable_find "
            "hashtable_import hashtable_size"
        ),
        "reduction": (
            "mean sum reduce_prod reduce_max reduce_min reduce_any reduce_all cumsum arg_max arg_min "
            "topk_v2 segment_sum unsorted_segment_sum unsorted_segment_prod unsorted_segment_max "
            "unsorted_segment_min"
        ),
        "shape": "shape rank range fill broadcast_args",
        "spectra": "real imag complex_abs rfft2d",
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
        "unary": "abs ceil cos exp floor log neg round rsqrt sign sin sqrt square zeros_like",
        "variables": "var_handle read_variable assign_variable",
    },
    "tosa": {
        "convolution": "conv2d conv3d depthwise_conv2d transpose_conv2d matmul avg_pool2d max_pool2d",
        "elementwise": (
            "ceil clamp cos erf exp floor log reciprocal rsqrt sigmoid sin tanh abs add sub intdiv "
            "maximum minimum mul negate pow arithmetic_right_shift bitwise_and bitwise_not bitwise_or "
            "bitwise_xor clz logical_and logical_left_shift logical_not logical_or logical_right_shift "
            "logical_xor equal greater greater_equal select"
        ),
        "movement": (
            "cast rescale concat identity pad reshape reverse slice tile transpose gather scatter table "
            "resize argmax reduce_all reduce_any reduce_max reduce_min reduce_product reduce_sum "
            "cond_if while_loop variable variable_read variable_write"
        ),
    },
    "quant": {
        "casts": "qcast dcast scast",
        "regions": ("region return rescale const_fake_quant const_fake_quant_per_axis stats stats_ref coupled_ref"),
    },
    "ext": {
        "ext": ("truncate rescale_f64 rescale_i64 rescale_mean rounding_divide_by_pot table_16bit table_2d"),
    },
    "fxpmath": {
        "fxpmath": (
            "real_add_ew real_sub_ew real_mul_ew real_div_ew real_unary real_matmul real_matmul_bias "
            "rounding_divide_by_pot saturating_add saturating_rounding_doubling_high_mul matmul"
        ),
    },
    "onnx": {
        "convolution": "conv conv_transpose mat_mul gemm average_pool max_pool resize",
        "elementwise": (
            "add sub mul div max min mod pow abs neg relu clip ceil cos elu erf exp floor hard_swish "
            "leaky_relu log reciprocal round sigmoid sign sin softmax sqrt tanh equal greater "
            "greater_or_equal less less_or_equal p_relu is_nan where and or xor not bitwise_and "
            "bitwise_or bitwise_xor bitwise_not bit_shift cast"
        ),
        "movement": (
            "identity reshape transpose slice pad tile expand concat cum_sum gather gather_nd "
            "scatter_nd top_k arg_max reduce_sum reduce_max reduce_min reduce_mean reduce_prod shape"
        ),
        "quantization": "dequantize_linear quantize_linear",
    },
    "stablehlo": {
        "convolution": "convolution dot_general",
        "elementwise": (
            "add subtract multiply divide remainder maximum minimum power and or xor abs negate not "
            "sign ceil floor round_nearest_even round_nearest_afz exponential log logistic sqrt rsqrt "
            "tanh cosine sine compare select clamp uniform_quantize uniform_dequantize convert return "
            "optimization_barrier custom_call"
        ),
        "movement": (
            "reshape transpose broadcast_in_dim slice concatenate reverse reduce reduce_window select_and_scatter"
        ),
    },
    "arith": {
        "arith": (
            "extsi extui trunci extf truncf sitofp uitofp fptosi fptoui index_cast index_castui bitcast "
            "cmpi cmpf select addui_extended mulsi_extended mului_extended addf subf mulf divf remf "
            "maximumf minimumf maxnumf minnumf negf addi subi muli divsi divui ceildivsi ceildivui "
            "floordivsi remsi remui andi ori xori shli shrsi shrui maxsi maxui minsi minui"
        ),
    },
    "math": {
        "math": (
            "isfinite isinf isnan isnormal acos acosh asin asinh atan atanh cbrt cos cosh erf erfc exp "
            "exp2 expm1 log log10 log1p log2 rsqrt sin sinh sqrt tan tanh absi ctlz ctpop cttz ipowi "
            "absf ceil floor round roundeven trunc atan2 copysign powf fma clampf fpowi"
        ),
    },
    "tensor": {
        "tensor": (
            "empty splat from_elements generate yield dim rank extract insert concat extract_slice "
            "insert_slice pad cast bitcast reshape collapse_shape expand_shape"
        ),
    },
    "linalg": {
        "linalg": "generic index yield",
    },
    "shape": {
        "shape": "const_shape shape_of num_elements split_at concat broadcast get_extent dim rank",
    },
    "func": {
        "func": "call call_indirect constant",
    },
    "tf": {
        "tf": "FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel",
    },
}
"""The ops of each dialect, by the module that declares them."""

ROOMS: Final[dict[str, dict[str, str]]] = {
    "tflq.evaluate": {
        "convolution": (
            "tfl.reduce_all tfl.reduce_any tfl.reduce_max tfl.reduce_min tfl.reduce_prod "
            "tfl.resize_nearest_neighbor tfl.sum tosa.argmax tosa.avg_pool2d tosa.conv2d tosa.conv3d "
            "tosa.depthwise_conv2d tosa.matmul tosa.max_pool2d tosa.reduce_all tosa.reduce_any "
            "tosa.reduce_max tosa.reduce_min tosa.reduce_product tosa.reduce_sum tosa.resize "
            "tosa.transpose_conv2d"
        ),
        "core_numbers": (
            "arith.addf arith.addi arith.addui_extended arith.andi arith.bitcast arith.ceildivsi "
            "arith.ceildivui arith.cmpf arith.cmpi arith.divf arith.divsi arith.divui arith.extf "
            "arith.extsi arith.extui arith.floordivsi arith.fptosi arith.fptoui arith.index_cast "
            "arith.index_castui arith.maximumf arith.maxnumf arith.maxsi arith.maxui arith.minimumf "
            "arith.minnumf arith.minsi arith.minui arith.mulf arith.muli arith.mulsi_extended "
            "arith.mului_extended arith.negf arith.ori arith.remf arith.remsi arith.remui arith.select "
            "arith.shli arith.shrsi arith.shrui arith.sitofp arith.subf arith.subi arith.truncf "
            "arith.trunci arith.uitofp arith.xori math.absf math.absi math.acos math.acosh math.asin "
            "math.asinh math.atan math.atan2 math.atanh math.cbrt math.ceil math.clampf math.copysign "
            "math.cos math.cosh math.ctlz math.ctpop math.cttz math.erf math.erfc math.exp math.exp2 "
            "math.expm1 math.floor math.fma math.fpowi math.ipowi math.isfinite math.isinf math.isnan "
            "math.isnormal math.log math.log10 math.log1p math.log2 math.powf math.round math.roundeven "
            "math.rsqrt math.sin math.sinh math.sqrt math.tan math.tanh math.trunc"
        ),
        "core_tensors": (
            "func.call func.call_indirect func.constant linalg.generic shape.broadcast shape.concat "
            "shape.const_shape shape.dim shape.get_extent shape.num_elements shape.rank shape.shape_of "
            "shape.split_at tensor.bitcast tensor.cast tensor.collapse_shape tensor.concat tensor.dim "
            "tensor.empty tensor.expand_shape tensor.extract tensor.extract_slice tensor.from_elements "
            "tensor.generate tensor.insert tensor.insert_slice tensor.pad tensor.rank tensor.reshape "
            "tensor.splat"
        ),
        "elementwise": (
            "ext.rescale_f64 ext.rescale_i64 ext.rescale_mean ext.rounding_divide_by_pot "
            "ext.table_16bit ext.table_2d ext.truncate quant.dcast quant.qcast quant.scast tfl.abs "
            "tfl.add tfl.bitcast tfl.cast tfl.ceil tfl.div tfl.equal tfl.floor tfl.floor_div "
            "tfl.floor_mod tfl.greater tfl.greater_equal tfl.hard_swish tfl.less tfl.less_equal "
            "tfl.logical_and tfl.logical_not tfl.logical_or tfl.maximum tfl.minimum tfl.mul tfl.neg "
            "tfl.not_equal tfl.select tfl.select_v2 tfl.square tfl.sub tfl.zeros_like tosa.abs tosa.add "
            "tosa.arithmetic_right_shift tosa.bitwise_and tosa.bitwise_not tosa.bitwise_or "
            "tosa.bitwise_xor tosa.cast tosa.ceil tosa.clamp tosa.clz tosa.cos tosa.equal tosa.erf "
            "tosa.exp tosa.floor tosa.greater tosa.greater_equal tosa.intdiv tosa.log tosa.logical_and "
            "tosa.logical_left_shift tosa.logical_not tosa.logical_or tosa.logical_right_shift "
            "tosa.logical_xor tosa.maximum tosa.minimum tosa.mul tosa.negate tosa.pow tosa.reciprocal "
            "tosa.rescale tosa.rsqrt tosa.select tosa.sigmoid tosa.sin tosa.sub tosa.tanh"
        ),
        "fxpmath": (
            "fxpmath.matmul fxpmath.real_add_ew fxpmath.real_div_ew fxpmath.real_matmul "
            "fxpmath.real_matmul_bias fxpmath.real_mul_ew fxpmath.real_sub_ew fxpmath.real_unary "
            "fxpmath.rounding_divide_by_pot fxpmath.saturating_add "
            "fxpmath.saturating_rounding_doubling_high_mul"
        ),
        "movement": (
            "tfl.batch_to_space_nd tfl.broadcast_args tfl.broadcast_to tfl.concatenation "
            "tfl.depth_to_space tfl.expand_dims tfl.fill tfl.gather tfl.gather_nd tfl.mirror_pad "
            "tfl.pack tfl.pad tfl.padv2 tfl.range tfl.rank tfl.reshape tfl.reverse_sequence "
            "tfl.reverse_v2 tfl.shape tfl.slice tfl.space_to_batch_nd tfl.space_to_depth tfl.split "
            "tfl.split_v tfl.squeeze tfl.strided_slice tfl.tile tfl.transpose tfl.unpack tosa.concat "
            "tosa.cond_if tosa.gather tosa.identity tosa.pad tosa.reshape tosa.reverse tosa.scatter "
            "tosa.slice tosa.table tosa.tile tosa.transpose tosa.variable tosa.variable_read "
            "tosa.variable_write tosa.while_loop"
        ),
        "regions": (
            "quant.const_fake_quant quant.const_fake_quant_per_axis tf.FakeQuantWithMinMaxArgs "
            "tf.FakeQuantWithMinMaxVars tf.FakeQuantWithMinMaxVarsPerChannel"
        ),
        "stablehlo_elementwise": (
            "stablehlo.abs stablehlo.add stablehlo.and stablehlo.broadcast_in_dim stablehlo.ceil "
            "stablehlo.clamp stablehlo.compare stablehlo.concatenate stablehlo.convert stablehlo.cosine "
            "stablehlo.divide stablehlo.exponential stablehlo.floor stablehlo.log stablehlo.logistic "
            "stablehlo.maximum stablehlo.minimum stablehlo.multiply stablehlo.negate stablehlo.not "
            "stablehlo.optimization_barrier stablehlo.or stablehlo.power stablehlo.remainder "
            "stablehlo.reshape stablehlo.reverse stablehlo.round_nearest_afz "
            "stablehlo.round_nearest_even stablehlo.rsqrt stablehlo.select stablehlo.sign "
            "stablehlo.sine stablehlo.slice stablehlo.sqrt stablehlo.subtract stablehlo.tanh "
            "stablehlo.transpose stablehlo.uniform_dequantize stablehlo.uniform_quantize stablehlo.xor"
        ),
        "stablehlo_reduction": (
            "stablehlo.convolution stablehlo.dot_general stablehlo.reduce stablehlo.reduce_window "
            "stablehlo.select_and_scatter"
        ),
    },
    "tflq.legalize": {
        "casts": (
            "quant.dcast quant.qcast quant.scast tfl.assign_variable tfl.cast tfl.dequantize "
            "tfl.quantize tfl.read_variable"
        ),
        "stablehlo_reductions": (
            "stablehlo.reduce stablehlo.reduce_window stablehlo.select_and_scatter "
            "stablehlo.uniform_dequantize stablehlo.uniform_quantize tfl.stablehlo_reduce_window"
        ),
        "unary": "tfl.abs tfl.elu tfl.exp tfl.gelu tfl.log tfl.neg tfl.rsqrt tfl.sqrt tfl.zeros_like",
        "arithmetic": (
            "tfl.add tfl.div tfl.floor_div tfl.floor_mod tfl.maximum tfl.minimum tfl.mul tfl.squared_difference tfl.sub"
        ),
        "reduction": (
            "tfl.arg_max tfl.arg_min tfl.mean tfl.reduce_max tfl.reduce_min tfl.reduce_prod tfl.sum tfl.topk_v2"
        ),
        "pooling": "tfl.average_pool_2d tfl.max_pool_2d tfl.reduce_window",
        "matmul": "tfl.batch_matmul tfl.fully_connected",
        "movement": (
            "tfl.batch_to_space_nd tfl.broadcast_to tfl.concatenation tfl.densify tfl.depth_to_space "
            "tfl.dilate tfl.expand_dims tfl.mirror_pad tfl.pack tfl.pad tfl.padv2 tfl.reshape "
            "tfl.reverse_sequence tfl.reverse_v2 tfl.slice tfl.space_to_batch_nd tfl.space_to_depth "
            "tfl.split tfl.split_v tfl.squeeze tfl.strided_slice tfl.tile tfl.transpose tfl.unpack"
        ),
        "comparison": (
            "tfl.bitcast tfl.bitwise_xor tfl.broadcast_args tfl.equal tfl.fill tfl.greater "
            "tfl.greater_equal tfl.less tfl.less_equal tfl.not_equal tfl.rank tfl.right_shift "
            "tfl.select tfl.select_v2 tfl.shape tfl.where"
        ),
        "indexing": (
            "tfl.bucketize tfl.dynamic_update_slice tfl.embedding_lookup tfl.gather tfl.gather_nd "
            "tfl.hashtable_lookup tfl.matrix_diag tfl.matrix_set_diag tfl.one_hot tfl.scatter_nd "
            "tfl.sparse_to_dense tfl.unique"
        ),
        "convolution": "tfl.conv_2d tfl.depthwise_conv_2d tfl.transpose_conv",
        "activation": (
            "tfl.hard_swish tfl.l2_normalization tfl.leaky_relu tfl.log_softmax tfl.logistic tfl.prelu "
            "tfl.relu tfl.relu6 tfl.relu_0_to_1 tfl.relu_n1_to_1 tfl.softmax tfl.tanh"
        ),
        "lstm": "tfl.lstm tfl.unidirectional_sequence_lstm",
        "resize": "tfl.resize_bilinear tfl.resize_nearest_neighbor",
        "stablehlo": (
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
        "stablehlo_movement": (
            "tfl.stablehlo_broadcast_in_dim tfl.stablehlo_dynamic_slice "
            "tfl.stablehlo_dynamic_update_slice tfl.stablehlo_gather tfl.stablehlo_pad"
        ),
        "stablehlo_contractions": "tfl.stablehlo_convolution tfl.stablehlo_dot_general",
        "recurrent": "tfl.svdf",
        "reduction_real": (
            "tfl.mean tfl.reduce_max tfl.reduce_min tfl.reduce_prod tfl.segment_sum tfl.sum "
            "tfl.unsorted_segment_max tfl.unsorted_segment_min tfl.unsorted_segment_sum"
        ),
        "reinterpreted": "tfl.conv_2d tfl.depthwise_conv_2d tfl.fully_connected",
        "arithmetic_real": (
            "tfl.add tfl.add_n tfl.atan2 tfl.cumsum tfl.div tfl.floor_div tfl.floor_mod tfl.maximum "
            "tfl.minimum tfl.mul tfl.pow tfl.prelu tfl.squared_difference tfl.sub"
        ),
        "unary_real": (
            "tfl.abs tfl.ceil tfl.cos tfl.elu tfl.exp tfl.fake_quant tfl.floor tfl.gelu tfl.hard_swish "
            "tfl.leaky_relu tfl.log tfl.logistic tfl.neg tfl.quantize tfl.relu tfl.relu6 "
            "tfl.relu_0_to_1 tfl.relu_n1_to_1 tfl.round tfl.rsqrt tfl.sign tfl.sin tfl.sqrt tfl.square "
            "tfl.tanh"
        ),
        "convolution_real": "tfl.batch_matmul tfl.fully_connected",
        "sums": (
            "tfl.conv_2d tfl.conv_3d tfl.conv_3d_transpose tfl.depthwise_conv_2d tfl.fully_connected "
            "tfl.l2_normalization tfl.l2_pool_2d tfl.local_response_normalization tfl.transpose_conv"
        ),
        "core_fixed_point": (
            "fxpmath.matmul fxpmath.real_add_ew fxpmath.real_div_ew fxpmath.real_matmul "
            "fxpmath.real_matmul_bias fxpmath.real_mul_ew fxpmath.real_sub_ew fxpmath.real_unary "
            "fxpmath.rounding_divide_by_pot fxpmath.saturating_add "
            "fxpmath.saturating_rounding_doubling_high_mul"
        ),
        "core_numbers": (
            "arith.addf arith.addi arith.andi arith.bitcast arith.ceildivsi arith.ceildivui arith.cmpf "
            "arith.cmpi arith.divf arith.divsi arith.divui arith.extf arith.extsi arith.extui "
            "arith.floordivsi arith.fptosi arith.fptoui arith.index_cast arith.index_castui "
            "arith.maximumf arith.maxsi arith.maxui arith.minimumf arith.minsi arith.minui arith.mulf "
            "arith.muli arith.negf arith.ori arith.remf arith.remsi arith.remui arith.select arith.shli "
            "arith.shrsi arith.shrui arith.sitofp arith.subf arith.subi arith.truncf arith.trunci "
            "arith.uitofp arith.xori math.absf math.absi math.ceil math.clampf math.cos math.ctlz "
            "math.exp math.floor math.isfinite math.isinf math.isnan math.log math.powf math.round "
            "math.roundeven math.rsqrt math.sin math.sqrt math.tanh math.trunc"
        ),
        "core_tensors": (
            "linalg.generic shape.dim shape.get_extent shape.shape_of tensor.cast tensor.collapse_shape "
            "tensor.concat tensor.dim tensor.empty tensor.expand_shape tensor.extract "
            "tensor.extract_slice tensor.from_elements tensor.rank tensor.reshape tensor.splat"
        ),
    },
    "tflq.onnx.lowering": {
        "activation": (
            "tfl.elu tfl.gelu tfl.hard_swish tfl.l2_normalization tfl.leaky_relu tfl.log_softmax "
            "tfl.logistic tfl.prelu tfl.relu tfl.relu6 tfl.relu_0_to_1 tfl.relu_n1_to_1 tfl.softmax "
            "tfl.tanh"
        ),
        "arithmetic": (
            "tfl.add tfl.add_n tfl.bitwise_xor tfl.div tfl.equal tfl.floor_div tfl.floor_mod "
            "tfl.greater tfl.greater_equal tfl.less tfl.less_equal tfl.logical_and tfl.logical_not "
            "tfl.logical_or tfl.maximum tfl.minimum tfl.mul tfl.not_equal tfl.pow tfl.right_shift "
            "tfl.select tfl.select_v2 tfl.squared_difference tfl.sub tosa.abs tosa.add "
            "tosa.arithmetic_right_shift tosa.bitwise_and tosa.bitwise_not tosa.bitwise_or "
            "tosa.bitwise_xor tosa.clamp tosa.clz tosa.equal tosa.greater tosa.greater_equal "
            "tosa.intdiv tosa.logical_and tosa.logical_left_shift tosa.logical_not tosa.logical_or "
            "tosa.logical_right_shift tosa.logical_xor tosa.maximum tosa.minimum tosa.mul tosa.negate "
            "tosa.select tosa.sub"
        ),
        "casts": "ext.truncate quant.dcast quant.qcast tfl.cast tfl.dequantize tosa.cast",
        "context": "quant.scast tosa.identity",
        "convolution": ("tosa.conv2d tosa.conv3d tosa.depthwise_conv2d tosa.matmul tosa.transpose_conv2d"),
        "convolution_real": ("tfl.batch_matmul tfl.conv_2d tfl.depthwise_conv_2d tfl.fully_connected tfl.mean"),
        "indexing": "tfl.dynamic_update_slice tfl.gather tfl.gather_nd tosa.gather tosa.scatter",
        "movement": (
            "tfl.batch_to_space_nd tfl.broadcast_to tfl.concatenation tfl.depth_to_space "
            "tfl.expand_dims tfl.mirror_pad tfl.pack tfl.pad tfl.padv2 tfl.reshape tfl.reverse_sequence "
            "tfl.reverse_v2 tfl.slice tfl.space_to_batch_nd tfl.space_to_depth tfl.split tfl.split_v "
            "tfl.squeeze tfl.strided_slice tfl.tile tfl.transpose tfl.unpack tosa.concat tosa.pad "
            "tosa.reshape tosa.reverse tosa.slice tosa.tile tosa.transpose"
        ),
        "pooling": (
            "tfl.average_pool_2d tfl.max_pool_2d tfl.resize_nearest_neighbor tosa.avg_pool2d "
            "tosa.max_pool2d tosa.resize"
        ),
        "reduction": (
            "tfl.cumsum tfl.reduce_all tfl.reduce_any tfl.reduce_max tfl.reduce_min tfl.reduce_prod "
            "tfl.sum tfl.topk_v2 tosa.argmax tosa.reduce_all tosa.reduce_any tosa.reduce_max "
            "tosa.reduce_min tosa.reduce_sum"
        ),
        "rescale": ("ext.rescale_f64 ext.rescale_i64 ext.rescale_mean ext.rounding_divide_by_pot tosa.rescale"),
        "state": (
            "tfl.assign_variable tfl.call tfl.call_once tfl.read_variable tfl.stablehlo_composite "
            "tfl.var_handle tosa.variable tosa.variable_read tosa.variable_write"
        ),
        "tables": "ext.table_16bit ext.table_2d tosa.table",
        "unary": (
            "tfl.abs tfl.ceil tfl.cos tfl.exp tfl.floor tfl.log tfl.neg tfl.round tfl.rsqrt tfl.sign "
            "tfl.sin tfl.sqrt tfl.square tfl.zeros_like tosa.ceil tosa.cos tosa.erf tosa.exp tosa.floor "
            "tosa.log tosa.pow tosa.reciprocal tosa.rsqrt tosa.sigmoid tosa.sin tosa.tanh"
        ),
    },
    "tflq.onnx.qdq": {
        "patterns": (
            "tfl.concatenation tfl.dequantize tfl.fully_connected tfl.hard_swish tfl.leaky_relu "
            "tfl.mean tfl.prelu tfl.quantize tfl.relu tfl.relu6 tfl.relu_0_to_1 tfl.relu_n1_to_1 "
            "tfl.resize_bilinear tfl.resize_nearest_neighbor tfl.softmax"
        ),
    },
    "tflq.select": {
        "arithmetic": (
            "tosa.abs tosa.add tosa.arithmetic_right_shift tosa.bitwise_and tosa.bitwise_not "
            "tosa.bitwise_or tosa.bitwise_xor tosa.ceil tosa.clamp tosa.clz tosa.cos tosa.equal "
            "tosa.erf tosa.exp tosa.floor tosa.greater tosa.greater_equal tosa.intdiv tosa.log "
            "tosa.logical_and tosa.logical_left_shift tosa.logical_not tosa.logical_or "
            "tosa.logical_right_shift tosa.logical_xor tosa.maximum tosa.minimum tosa.mul tosa.negate "
            "tosa.pow tosa.reciprocal tosa.rsqrt tosa.select tosa.sigmoid tosa.sin tosa.sub tosa.tanh"
        ),
        "casts": "ext.truncate quant.dcast quant.qcast quant.scast tosa.cast",
        "convolution": "tosa.conv2d tosa.conv3d tosa.depthwise_conv2d tosa.transpose_conv2d",
        "matmul": "tosa.matmul",
        "movement": (
            "tosa.concat tosa.cond_if tosa.gather tosa.identity tosa.pad tosa.reshape tosa.reverse "
            "tosa.scatter tosa.slice tosa.tile tosa.transpose tosa.variable_read tosa.variable_write "
            "tosa.while_loop"
        ),
        "pooling": (
            "tosa.argmax tosa.avg_pool2d tosa.max_pool2d tosa.reduce_all tosa.reduce_any "
            "tosa.reduce_max tosa.reduce_min tosa.reduce_product tosa.reduce_sum"
        ),
        "rescale": "ext.rescale_i64 ext.rescale_mean ext.rounding_divide_by_pot tosa.rescale",
        "rescale_real": "ext.rescale_f64",
        "resize": "tosa.resize",
        "tables": "ext.table_16bit ext.table_2d tosa.table",
    },
    "tflq.tosa": {
        "substitutes": (
            "tosa.bitwise_and tosa.bitwise_or tosa.bitwise_xor tosa.cast tosa.equal tosa.greater "
            "tosa.greater_equal tosa.logical_and tosa.logical_not tosa.logical_or tosa.logical_xor "
            "tosa.select"
        ),
    },
    "tflq.tosa.laws": {
        "convolution": (
            "tosa.avg_pool2d tosa.conv2d tosa.conv3d tosa.depthwise_conv2d tosa.matmul tosa.max_pool2d "
            "tosa.resize tosa.transpose_conv2d"
        ),
        "elementwise": (
            "* ext.table_2d fxpmath.real_add_ew fxpmath.real_div_ew fxpmath.real_mul_ew "
            "fxpmath.real_sub_ew fxpmath.saturating_add fxpmath.saturating_rounding_doubling_high_mul "
            "onnx.add onnx.and onnx.bit_shift onnx.bitwise_and onnx.bitwise_or onnx.bitwise_xor "
            "onnx.div onnx.equal onnx.greater onnx.greater_or_equal onnx.less onnx.less_or_equal "
            "onnx.max onnx.min onnx.mod onnx.mul onnx.or onnx.p_relu onnx.pow onnx.sub onnx.where "
            "onnx.xor tfl.add tfl.atan2 tfl.bitwise_xor tfl.div tfl.equal tfl.floor_div tfl.floor_mod "
            "tfl.greater tfl.greater_equal tfl.less tfl.less_equal tfl.logical_and tfl.logical_or "
            "tfl.maximum tfl.minimum tfl.mul tfl.not_equal tfl.pow tfl.right_shift tfl.select_v2 "
            "tfl.squared_difference tfl.sub tosa.add tosa.arithmetic_right_shift tosa.bitwise_and "
            "tosa.bitwise_or tosa.bitwise_xor tosa.clamp tosa.equal tosa.greater tosa.greater_equal "
            "tosa.intdiv tosa.logical_and tosa.logical_left_shift tosa.logical_or "
            "tosa.logical_right_shift tosa.logical_xor tosa.maximum tosa.minimum tosa.mul tosa.negate "
            "tosa.pow tosa.rescale tosa.select tosa.sub"
        ),
        "movement": (
            "tosa.argmax tosa.concat tosa.cond_if tosa.gather tosa.pad tosa.reduce_all tosa.reduce_any "
            "tosa.reduce_max tosa.reduce_min tosa.reduce_product tosa.reduce_sum tosa.reshape "
            "tosa.reverse tosa.scatter tosa.slice tosa.table tosa.tile tosa.transpose tosa.variable "
            "tosa.variable_read tosa.variable_write tosa.while_loop"
        ),
    },
    "tflq.tosa.lowering": {
        "arithmetic": (
            "tfl.add tfl.add_n tfl.atan2 tfl.bitwise_xor tfl.div tfl.equal tfl.floor_div tfl.floor_mod "
            "tfl.greater tfl.greater_equal tfl.less tfl.less_equal tfl.logical_and tfl.logical_not "
            "tfl.logical_or tfl.maximum tfl.minimum tfl.mul tfl.not_equal tfl.pow tfl.right_shift "
            "tfl.select tfl.select_v2 tfl.squared_difference tfl.sub tosa.abs tosa.add "
            "tosa.arithmetic_right_shift tosa.bitwise_and tosa.bitwise_not tosa.bitwise_or "
            "tosa.bitwise_xor tosa.clz tosa.equal tosa.greater tosa.greater_equal tosa.intdiv "
            "tosa.logical_and tosa.logical_left_shift tosa.logical_not tosa.logical_or "
            "tosa.logical_right_shift tosa.logical_xor tosa.maximum tosa.minimum tosa.mul tosa.negate "
            "tosa.select tosa.sub"
        ),
        "casts": "ext.truncate quant.dcast quant.qcast tfl.bitcast tfl.cast tfl.dequantize tosa.cast",
        "context": "quant.scast tosa.identity",
        "convolution": (
            "tfl.conv_2d tfl.conv_3d tfl.depthwise_conv_2d tfl.transpose_conv tosa.conv2d tosa.conv3d "
            "tosa.depthwise_conv2d tosa.transpose_conv2d"
        ),
        "indexing": (
            "ext.table_16bit ext.table_2d tfl.dynamic_update_slice tfl.embedding_lookup tfl.gather "
            "tfl.gather_nd tfl.matrix_diag tfl.matrix_set_diag tfl.one_hot tfl.scatter_nd tosa.gather "
            "tosa.table"
        ),
        "matmul": (
            "tfl.average_pool_2d tfl.batch_matmul tfl.fully_connected tfl.l2_pool_2d tfl.max_pool_2d "
            "tosa.avg_pool2d tosa.matmul tosa.max_pool2d"
        ),
        "movement": (
            "tfl.batch_to_space_nd tfl.broadcast_to tfl.concatenation tfl.depth_to_space tfl.dilate "
            "tfl.expand_dims tfl.mirror_pad tfl.pack tfl.pad tfl.padv2 tfl.reshape tfl.reverse_sequence "
            "tfl.reverse_v2 tfl.slice tfl.space_to_batch_nd tfl.space_to_depth tfl.split tfl.split_v "
            "tfl.squeeze tfl.strided_slice tfl.tile tfl.transpose tfl.unpack tosa.concat tosa.pad "
            "tosa.reshape tosa.reverse tosa.slice tosa.tile tosa.transpose"
        ),
        "recurrent": "tfl.bidirectional_sequence_rnn tfl.rnn tfl.svdf tfl.unidirectional_sequence_rnn",
        "reduction": (
            "tfl.arg_max tfl.arg_min tfl.cumsum tfl.mean tfl.reduce_all tfl.reduce_any tfl.reduce_max "
            "tfl.reduce_min tfl.reduce_prod tfl.sum tfl.topk_v2 tosa.argmax tosa.reduce_all "
            "tosa.reduce_any tosa.reduce_max tosa.reduce_min tosa.reduce_product tosa.reduce_sum"
        ),
        "rescale": "ext.rescale_i64 ext.rescale_mean tosa.rescale",
        "resize": (
            "ext.rescale_f64 ext.rounding_divide_by_pot tfl.resize_bilinear tfl.resize_nearest_neighbor tosa.resize"
        ),
        "shaping": "tfl.fill tfl.range tfl.rank tfl.shape",
        "state": (
            "tfl.assign_variable tfl.call tfl.call_once tfl.if tfl.read_variable "
            "tfl.stablehlo_composite tfl.var_handle tfl.while tosa.variable tosa.variable_read "
            "tosa.variable_write"
        ),
        "unary": (
            "tfl.abs tfl.ceil tfl.cos tfl.elu tfl.exp tfl.floor tfl.gelu tfl.hard_swish "
            "tfl.l2_normalization tfl.leaky_relu tfl.local_response_normalization tfl.log "
            "tfl.log_softmax tfl.logistic tfl.neg tfl.prelu tfl.relu tfl.relu6 tfl.relu_0_to_1 "
            "tfl.relu_n1_to_1 tfl.round tfl.rsqrt tfl.sign tfl.sin tfl.softmax tfl.sqrt tfl.square "
            "tfl.tanh tfl.zeros_like tosa.ceil tosa.clamp tosa.cos tosa.erf tosa.exp tosa.floor "
            "tosa.log tosa.pow tosa.reciprocal tosa.rsqrt tosa.sigmoid tosa.sin tosa.tanh"
        ),
    },
}
"""By package: the ops that each module has a function for. Rules of legalization are tried in this order."""

PASSES: Final[dict[str, str]] = {
    "legalize.engine": "core-to-integer legalize stablehlo-to-builtins",
    "named_passes": "quant-codegen tfl-to-tosa-pipeline",
    "onnx.lowering.engine": "lower-to-onnx",
    "onnx.qdq.engine": "lower-to-qdq",
    "passes.canonicalize": "canonicalize cse dce fold",
    "passes.lower_quant_tosa": "lower-quant-ops",
    "passes.lower_real_math": "lower-real-math",
    "passes.lower_rounding": "lower-rounding",
    "passes.quant_types": "normalize-quant-types strip-func-quant-types",
    "passes.raise_real_math": "raise-real-math",
    "passes.regions.apply_statistics": "quant-apply-stats",
    "passes.regions.fusion": "kernel-fusion",
    "passes.regions.instrument": "quant-instrument",
    "passes.regions.materialize": "inline-regions quant-materialize",
    "passes.regions.propagate": "quant-propagate",
    "passes.regions.quantize": "quantize tfl-quantize-pipeline",
    "passes.row_updates": "row-updates spectra",
    "passes.simulated": "convert-simulated-quantization legalize-tf prepare-tfl",
    "passes.solver.modes": "quant-simplify quant-transform",
    "passes.source": "cut cut-before-custom extract-signature record-names state-runtime",
    "passes.stablehlo_conversions": ("default-conversions fuse-conversions hybrid-dequantize-then-op"),
    "passes.tabulate": "tabulate",
    "passes.tabulate_floats": "tabulate-floats",
    "passes.through_floats": "dequantize-fallback",
    "select.engine": "check-legality select",
    "select.movement": "declare-variables",
    "select.naming": "keep-apart merge-views name-tensors trim-edges",
    "select.strips": "split-rows",
    "select.tables": "share-tables",
    "shapes.binding": "bind-shapes",
    "shapes.inference": "state-shapes",
    "shapes.settling": "restate-results settle-shapes",
    "tosa.check": "check-laws check-tosa",
    "tosa.lowering.engine": "lower-to-tosa",
    "tosa.raising": "raise-tosa",
}
"""The passes of each module."""
