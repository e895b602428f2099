"""Modules of each op: of its declaration, of the stages, and of passes. Written by `make index`.

A module of a dialect or of a stage is imported when the first op is met that it is needed for.
"""

from __future__ import annotations

from typing import Final

__all__ = ["ANY", "DIALECTS", "PACKAGES", "PASSES", "ROOMS"]

ANY: Final = "*"
"""Stands for ops from outside: the modules that have a function for a trait."""

DIALECTS: Final[dict[str, dict[str, str]]] = {
    "tfl": {
        "activation": """relu relu6 relu_n1_to_1 relu_0_to_1 leaky_relu prelu elu gelu hard_swish logistic tanh softmax
            log_softmax l2_normalization local_response_normalization""",
        "arithmetic": """add sub mul div floor_div floor_mod pow squared_difference maximum minimum atan2 add_n abs
            ceil cos exp floor log neg round rsqrt sign sin sqrt square zeros_like real imag complex_abs rfft2d""",
        "casts": "bitcast cast quantize dequantize fake_quant",
        "comparison": """equal not_equal greater greater_equal less less_equal logical_and logical_or logical_not
            select select_v2 where bitwise_xor right_shift""",
        "convolution": """conv_2d depthwise_conv_2d transpose_conv conv_3d conv_3d_transpose fully_connected
            batch_matmul""",
        "indexing": """gather gather_nd embedding_lookup scatter_nd sparse_to_dense dynamic_update_slice one_hot
            matrix_diag matrix_set_diag embedding_lookup_sparse hashtable_lookup lsh_projection unique bucketize
            non_max_suppression_v4 non_max_suppression_v5 skip_gram concat_embeddings""",
        "movement": """reshape squeeze expand_dims transpose pad padv2 mirror_pad slice strided_slice tile broadcast_to
            reverse_v2 reverse_sequence space_to_depth depth_to_space space_to_batch_nd batch_to_space_nd dilate
            densify concatenation split split_v pack unpack""",
        "pooling": """average_pool_2d max_pool_2d l2_pool_2d reduce_window resize_bilinear resize_nearest_neighbor mean
            sum reduce_prod reduce_max reduce_min reduce_any reduce_all cumsum arg_max arg_min topk_v2 segment_sum
            unsorted_segment_sum unsorted_segment_prod unsorted_segment_max unsorted_segment_min""",
        "recurrent": """lstm unidirectional_sequence_lstm bidirectional_sequence_lstm rnn unidirectional_sequence_rnn
            bidirectional_sequence_rnn svdf hashtable hashtable_find hashtable_import hashtable_size""",
        "shape": "shape rank range fill broadcast_args random_uniform random_standard_normal multinomial",
        "stablehlo": """stablehlo_abs stablehlo_add stablehlo_and stablehlo_broadcast_in_dim stablehlo_case
            stablehlo_cbrt stablehlo_clamp stablehlo_compare stablehlo_composite stablehlo_concatenate
            stablehlo_convert stablehlo_convolution stablehlo_cosine stablehlo_custom_call stablehlo_divide
            stablehlo_dot_general stablehlo_dynamic_slice stablehlo_dynamic_update_slice stablehlo_exponential
            stablehlo_floor stablehlo_gather stablehlo_iota stablehlo_log stablehlo_logistic stablehlo_maximum
            stablehlo_minimum stablehlo_multiply stablehlo_negate stablehlo_or stablehlo_pad stablehlo_power
            stablehlo_reduce stablehlo_reduce_window stablehlo_remainder stablehlo_reshape stablehlo_rng_bit_generator
            stablehlo_rsqrt stablehlo_scatter stablehlo_select stablehlo_shift_left stablehlo_slice stablehlo_sort
            stablehlo_subtract stablehlo_tanh stablehlo_transpose stablehlo_while""",
        "state": """call call_once if while custom delegate placeholder_for_greater_op_codes var_handle read_variable
            assign_variable""",
    },
    "tosa": {
        "convolution": "conv2d conv3d depthwise_conv2d transpose_conv2d matmul avg_pool2d max_pool2d",
        "elementwise": """ceil clamp cos erf exp floor log reciprocal rsqrt sigmoid sin tanh abs add sub intdiv maximum
            minimum mul negate pow arithmetic_right_shift bitwise_and bitwise_not bitwise_or bitwise_xor clz
            logical_and logical_left_shift logical_not logical_or logical_right_shift logical_xor equal greater
            greater_equal select""",
        "movement": """cast rescale concat identity pad reshape reverse slice tile transpose gather scatter table
            resize argmax reduce_all reduce_any reduce_max reduce_min reduce_product reduce_sum cond_if while_loop
            variable variable_read variable_write""",
    },
    "quant": {
        "quant": "qcast dcast scast",
        "regions": "region return rescale const_fake_quant const_fake_quant_per_axis stats stats_ref coupled_ref",
    },
    "ext": {
        "quant": """truncate rescale_f64 rescale_f32 rescale_i64 rescale_mean rounding_divide_by_pot table_16bit
            table_2d"""
    },
    "fxpmath": {
        "fxpmath": """real_add_ew real_sub_ew real_mul_ew real_div_ew real_unary real_matmul real_matmul_bias
            rounding_divide_by_pot saturating_add saturating_rounding_doubling_high_mul matmul"""
    },
    "onnx": {
        "dialect": """add sub mul div max min mod pow abs neg relu clip ceil cos elu erf exp floor hard_swish
            leaky_relu log reciprocal round sigmoid sign sin softmax sqrt tanh equal greater greater_or_equal less
            less_or_equal p_relu is_nan where and or xor not bitwise_and bitwise_or bitwise_xor bitwise_not bit_shift
            cast identity reshape transpose slice pad tile expand concat cum_sum gather gather_nd scatter_nd top_k
            non_zero arg_max arg_min reduce_sum reduce_max reduce_min reduce_mean reduce_prod shape range conv
            conv_transpose mat_mul gemm average_pool max_pool resize yield if loop dequantize_linear quantize_linear"""
    },
    "stablehlo": {
        "convolution": "convolution dot_general",
        "elementwise": """add subtract multiply divide remainder maximum minimum power and or xor abs negate not sign
            ceil floor round_nearest_even round_nearest_afz exponential log logistic sqrt rsqrt tanh cosine sine
            compare select clamp uniform_quantize uniform_dequantize convert return optimization_barrier custom_call
            reshape transpose broadcast_in_dim slice concatenate reverse reduce reduce_window select_and_scatter""",
    },
    "arith": {
        "arith": """extsi extui trunci extf truncf sitofp uitofp fptosi fptoui index_cast index_castui bitcast cmpi
            cmpf select addui_extended mulsi_extended mului_extended addf subf mulf divf remf maximumf minimumf maxnumf
            minnumf negf addi subi muli divsi divui ceildivsi ceildivui floordivsi remsi remui andi ori xori shli shrsi
            shrui maxsi maxui minsi minui"""
    },
    "math": {
        "math": """isfinite isinf isnan isnormal acos acosh asin asinh atan atanh cbrt cos cosh erf erfc exp exp2 expm1
            log log10 log1p log2 rsqrt sin sinh sqrt tan tanh absi ctlz ctpop cttz ipowi absf ceil floor round
            roundeven trunc atan2 copysign powf fma clampf fpowi"""
    },
    "tensor": {
        "tensor": """empty splat from_elements generate yield dim rank extract insert concat extract_slice insert_slice
            pad cast bitcast reshape collapse_shape expand_shape"""
    },
    "linalg": {"linalg": "generic index yield"},
    "shape": {"tensor": "const_shape shape_of num_elements split_at concat broadcast get_extent dim rank"},
    "func": {"linalg": "call call_indirect constant"},
    "tf": {"regions": "FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsPerChannel"},
}
"""The ops of each dialect, by the module that declares them."""

PACKAGES: Final[dict[str, str]] = {
    "tfl": "tflq.dialects.tfl",
    "tosa": "tflq.dialects.tosa",
    "quant": "tflq.dialects",
    "ext": "tflq.dialects",
    "fxpmath": "tflq.formats.mlir.dialects",
    "onnx": "tflq.formats.onnx",
    "stablehlo": "tflq.dialects.stablehlo",
    "arith": "tflq.formats.mlir.dialects",
    "math": "tflq.formats.mlir.dialects",
    "tensor": "tflq.formats.mlir.dialects",
    "linalg": "tflq.formats.mlir.dialects",
    "shape": "tflq.formats.mlir.dialects",
    "func": "tflq.formats.mlir.dialects",
    "tf": "tflq.dialects",
}
"""The package of each dialect's modules."""

ROOMS: Final[dict[str, dict[str, dict[str, str]]]] = {
    "tflq.analysis.evaluate": {
        "arith": {
            "tflq.formats.mlir.evaluate_numbers": """addf addi addui_extended andi bitcast ceildivsi ceildivui cmpf
                cmpi divf divsi divui extf extsi extui floordivsi fptosi fptoui index_cast index_castui maximumf
                maxnumf maxsi maxui minimumf minnumf minsi minui mulf muli mulsi_extended mului_extended negf ori remf
                remsi remui select shli shrsi shrui sitofp subf subi truncf trunci uitofp xori"""
        },
        "ext": {
            "tflq.analysis.evaluate.elementwise": """rescale_f32 rescale_f64 rescale_i64 rescale_mean
                rounding_divide_by_pot table_16bit table_2d truncate"""
        },
        "func": {"tflq.formats.mlir.evaluate_tensors": "call call_indirect constant"},
        "fxpmath": {
            "tflq.formats.mlir.evaluate_numbers": """matmul real_add_ew real_div_ew real_matmul real_matmul_bias
                real_mul_ew real_sub_ew real_unary rounding_divide_by_pot saturating_add
                saturating_rounding_doubling_high_mul"""
        },
        "linalg": {"tflq.formats.mlir.evaluate_tensors": "generic"},
        "math": {
            "tflq.formats.mlir.evaluate_numbers": """absf absi acos acosh asin asinh atan atan2 atanh cbrt ceil clampf
                copysign cos cosh ctlz ctpop cttz erf erfc exp exp2 expm1 floor fma fpowi ipowi isfinite isinf isnan
                isnormal log log10 log1p log2 powf round roundeven rsqrt sin sinh sqrt tan tanh trunc"""
        },
        "quant": {
            "tflq.analysis.evaluate.elementwise": "dcast qcast scast",
            "tflq.analysis.evaluate.stablehlo_elementwise": "const_fake_quant const_fake_quant_per_axis",
        },
        "shape": {
            "tflq.formats.mlir.evaluate_tensors": """broadcast concat const_shape dim get_extent num_elements rank
                shape_of split_at"""
        },
        "stablehlo": {
            "tflq.analysis.evaluate.stablehlo_elementwise": """abs add and broadcast_in_dim ceil clamp compare
                concatenate convert cosine divide exponential floor log logistic maximum minimum multiply negate not
                optimization_barrier or power remainder reshape reverse round_nearest_afz round_nearest_even rsqrt
                select sign sine slice sqrt subtract tanh transpose uniform_dequantize uniform_quantize xor""",
            "tflq.analysis.evaluate.stablehlo_reduction": """convolution dot_general reduce reduce_window
                select_and_scatter""",
        },
        "tensor": {
            "tflq.formats.mlir.evaluate_tensors": """bitcast cast collapse_shape concat dim empty expand_shape extract
                extract_slice from_elements generate insert insert_slice pad rank reshape splat"""
        },
        "tf": {
            "tflq.analysis.evaluate.stablehlo_elementwise": """FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars
                FakeQuantWithMinMaxVarsPerChannel"""
        },
        "tfl": {
            "tflq.analysis.evaluate.convolution": """reduce_all reduce_any reduce_max reduce_min reduce_prod
                resize_nearest_neighbor sum""",
            "tflq.analysis.evaluate.elementwise": """abs add bitcast cast ceil div equal floor floor_div floor_mod
                greater greater_equal hard_swish less less_equal logical_and logical_not logical_or maximum minimum mul
                neg not_equal select select_v2 square sub zeros_like""",
            "tflq.analysis.evaluate.movement": """batch_to_space_nd broadcast_args broadcast_to concatenation
                depth_to_space expand_dims fill gather gather_nd mirror_pad pack pad padv2 range rank reshape
                reverse_sequence reverse_v2 shape slice space_to_batch_nd space_to_depth split split_v squeeze
                strided_slice tile transpose unpack""",
        },
        "tosa": {
            "tflq.analysis.evaluate.convolution": """argmax avg_pool2d conv2d conv3d depthwise_conv2d matmul max_pool2d
                reduce_all reduce_any reduce_max reduce_min reduce_product reduce_sum resize transpose_conv2d""",
            "tflq.analysis.evaluate.elementwise": """abs add arithmetic_right_shift bitwise_and bitwise_not bitwise_or
                bitwise_xor cast ceil clamp clz cos equal erf exp floor greater greater_equal intdiv log logical_and
                logical_left_shift logical_not logical_or logical_right_shift logical_xor maximum minimum mul negate
                pow reciprocal rescale rsqrt select sigmoid sin sub tanh""",
            "tflq.analysis.evaluate.movement": """concat cond_if gather identity pad reshape reverse scatter slice
                table tile transpose variable variable_read variable_write while_loop""",
        },
    },
    "tflq.formats.mlir": {
        "arith": {
            "tflq.formats.mlir.rules_numbers": """addf addi andi bitcast ceildivsi ceildivui cmpf cmpi divf divsi divui
                extf extsi extui floordivsi fptosi fptoui index_cast index_castui maximumf maxsi maxui minimumf minsi
                minui mulf muli negf ori remf remsi remui select shli shrsi shrui sitofp subf subi truncf trunci uitofp
                xori"""
        },
        "fxpmath": {
            "tflq.formats.mlir.rules_fixed_point": """matmul real_add_ew real_div_ew real_matmul real_matmul_bias
                real_mul_ew real_sub_ew real_unary rounding_divide_by_pot saturating_add
                saturating_rounding_doubling_high_mul"""
        },
        "linalg": {"tflq.formats.mlir.rules_tensors": "generic"},
        "math": {
            "tflq.formats.mlir.rules_numbers": """absf absi ceil clampf cos ctlz exp floor isfinite isinf isnan log
                powf round roundeven rsqrt sin sqrt tanh trunc"""
        },
        "shape": {"tflq.formats.mlir.rules_tensors": "dim get_extent shape_of"},
        "tensor": {
            "tflq.formats.mlir.rules_tensors": """cast collapse_shape concat dim empty expand_shape extract
                extract_slice from_elements rank reshape splat"""
        },
    },
    "tflq.formats.onnx": {
        "ext": {
            "tflq.formats.onnx.casts": "truncate",
            "tflq.formats.onnx.rescale": "rescale_f32 rescale_f64 rescale_i64 rescale_mean rounding_divide_by_pot",
            "tflq.formats.onnx.tables": "table_16bit table_2d",
        },
        "quant": {
            "tflq.formats.onnx.casts": "dcast qcast",
            "tflq.formats.onnx.context": "scast",
        },
        "tfl": {
            "tflq.formats.onnx.arithmetic": """abs add add_n bitwise_xor ceil cos div elu equal exp floor floor_div
                floor_mod gelu greater greater_equal hard_swish l2_normalization leaky_relu less less_equal log
                log_softmax logical_and logical_not logical_or logistic maximum minimum mul neg not_equal pow prelu
                relu relu6 relu_0_to_1 relu_n1_to_1 right_shift round rsqrt select select_v2 sign sin softmax sqrt
                square squared_difference sub tanh zeros_like""",
            "tflq.formats.onnx.casts": "cast dequantize",
            "tflq.formats.onnx.convolution": """batch_matmul conv_2d conv_3d depthwise_conv_2d fully_connected
                transpose_conv""",
            "tflq.formats.onnx.indexing": """dynamic_update_slice embedding_lookup gather gather_nd matrix_diag
                matrix_set_diag one_hot scatter_nd where""",
            "tflq.formats.onnx.movement": """batch_to_space_nd broadcast_to concatenation depth_to_space expand_dims
                mirror_pad pack pad padv2 reshape reverse_sequence reverse_v2 slice space_to_batch_nd space_to_depth
                split split_v squeeze strided_slice tile transpose unpack""",
            "tflq.formats.onnx.pooling": """arg_max arg_min average_pool_2d cumsum l2_pool_2d max_pool_2d mean
                reduce_all reduce_any reduce_max reduce_min reduce_prod resize_bilinear resize_nearest_neighbor sum
                topk_v2""",
            "tflq.formats.onnx.shape": "fill range rank shape",
            "tflq.formats.onnx.state": """assign_variable call call_once if read_variable stablehlo_composite
                var_handle while""",
        },
        "tosa": {
            "tflq.formats.onnx.arithmetic": """abs add arithmetic_right_shift bitwise_and bitwise_not bitwise_or
                bitwise_xor ceil clamp clz cos equal erf exp floor greater greater_equal intdiv log logical_and
                logical_left_shift logical_not logical_or logical_right_shift logical_xor maximum minimum mul negate
                pow reciprocal rsqrt select sigmoid sin sub tanh""",
            "tflq.formats.onnx.casts": "cast",
            "tflq.formats.onnx.context": "identity",
            "tflq.formats.onnx.convolution": "conv2d conv3d depthwise_conv2d matmul transpose_conv2d",
            "tflq.formats.onnx.indexing": "gather scatter",
            "tflq.formats.onnx.movement": "concat pad reshape reverse slice tile transpose",
            "tflq.formats.onnx.pooling": """argmax avg_pool2d max_pool2d reduce_all reduce_any reduce_max reduce_min
                reduce_sum resize""",
            "tflq.formats.onnx.rescale": "rescale",
            "tflq.formats.onnx.state": "variable variable_read variable_write",
            "tflq.formats.onnx.tables": "table",
        },
    },
    "tflq.formats.tflite.lowering": {
        "ext": {
            "tflq.formats.tflite.lowering.casts": "truncate",
            "tflq.formats.tflite.lowering.rescale": "rescale_i64 rounding_divide_by_pot",
            "tflq.formats.tflite.lowering.rescale_double": "rescale_f32 rescale_f64",
            "tflq.formats.tflite.lowering.rescale_mean": "rescale_mean",
            "tflq.formats.tflite.lowering.tables": "table_16bit table_2d",
        },
        "quant": {"tflq.formats.tflite.lowering.casts": "dcast qcast scast"},
        "tosa": {
            "tflq.formats.tflite.lowering.arithmetic": """abs add arithmetic_right_shift bitwise_and bitwise_not
                bitwise_or bitwise_xor ceil clamp clz cos equal erf exp floor greater greater_equal intdiv log
                logical_and logical_left_shift logical_not logical_or logical_right_shift logical_xor maximum minimum
                mul negate pow reciprocal rsqrt select sigmoid sin sub tanh""",
            "tflq.formats.tflite.lowering.casts": "cast",
            "tflq.formats.tflite.lowering.convolution": "conv2d conv3d depthwise_conv2d transpose_conv2d",
            "tflq.formats.tflite.lowering.matmul": "matmul",
            "tflq.formats.tflite.lowering.movement": """concat cond_if gather identity pad reshape reverse scatter
                slice tile transpose variable_read variable_write while_loop""",
            "tflq.formats.tflite.lowering.pooling": """argmax avg_pool2d max_pool2d reduce_all reduce_any reduce_max
                reduce_min reduce_product reduce_sum""",
            "tflq.formats.tflite.lowering.rescale": "rescale",
            "tflq.formats.tflite.lowering.resize": "resize",
            "tflq.formats.tflite.lowering.tables": "table",
        },
    },
    "tflq.formats.tosa": {
        "tosa": {
            "tflq.formats.tosa.substitutes": """bitwise_and bitwise_or bitwise_xor cast equal greater greater_equal
                logical_and logical_not logical_or logical_xor select"""
        },
    },
    "tflq.formats.tosa.lowering": {
        "ext": {
            "tflq.formats.tosa.lowering.casts": "truncate",
            "tflq.formats.tosa.lowering.indexing": "table_16bit table_2d",
            "tflq.formats.tosa.lowering.rescale": "rescale_i64 rescale_mean",
            "tflq.formats.tosa.lowering.resize": "rescale_f32 rescale_f64 rounding_divide_by_pot",
        },
        "quant": {
            "tflq.formats.tosa.lowering.casts": "dcast qcast",
            "tflq.formats.tosa.lowering.context": "scast",
        },
        "tfl": {
            "tflq.formats.tosa.lowering.arithmetic": """add add_n atan2 bitwise_xor div equal floor_div floor_mod
                greater greater_equal less less_equal logical_and logical_not logical_or maximum minimum mul not_equal
                pow right_shift select select_v2 squared_difference sub""",
            "tflq.formats.tosa.lowering.casts": "bitcast cast dequantize",
            "tflq.formats.tosa.lowering.context": "fill range rank shape",
            "tflq.formats.tosa.lowering.convolution": "conv_2d conv_3d depthwise_conv_2d transpose_conv",
            "tflq.formats.tosa.lowering.indexing": """dynamic_update_slice embedding_lookup gather gather_nd
                matrix_diag matrix_set_diag one_hot scatter_nd""",
            "tflq.formats.tosa.lowering.matmul": "average_pool_2d batch_matmul fully_connected l2_pool_2d max_pool_2d",
            "tflq.formats.tosa.lowering.movement": """batch_to_space_nd broadcast_to concatenation depth_to_space
                dilate expand_dims mirror_pad pack pad padv2 reshape reverse_sequence reverse_v2 slice
                space_to_batch_nd space_to_depth split split_v squeeze strided_slice tile transpose unpack""",
            "tflq.formats.tosa.lowering.recurrent": "bidirectional_sequence_rnn rnn svdf unidirectional_sequence_rnn",
            "tflq.formats.tosa.lowering.reduction": """arg_max arg_min cumsum mean reduce_all reduce_any reduce_max
                reduce_min reduce_prod sum topk_v2""",
            "tflq.formats.tosa.lowering.resize": "resize_bilinear resize_nearest_neighbor",
            "tflq.formats.tosa.lowering.state": """assign_variable call call_once if read_variable stablehlo_composite
                var_handle while""",
            "tflq.formats.tosa.lowering.unary": """abs ceil cos elu exp floor gelu hard_swish l2_normalization
                leaky_relu local_response_normalization log log_softmax logistic neg prelu relu relu6 relu_0_to_1
                relu_n1_to_1 round rsqrt sign sin softmax sqrt square tanh zeros_like""",
        },
        "tosa": {
            "tflq.formats.tosa.lowering.arithmetic": """abs add arithmetic_right_shift bitwise_and bitwise_not
                bitwise_or bitwise_xor clz equal greater greater_equal intdiv logical_and logical_left_shift
                logical_not logical_or logical_right_shift logical_xor maximum minimum mul negate select sub""",
            "tflq.formats.tosa.lowering.casts": "cast",
            "tflq.formats.tosa.lowering.context": "identity",
            "tflq.formats.tosa.lowering.convolution": "conv2d conv3d depthwise_conv2d transpose_conv2d",
            "tflq.formats.tosa.lowering.indexing": "gather table",
            "tflq.formats.tosa.lowering.matmul": "avg_pool2d matmul max_pool2d",
            "tflq.formats.tosa.lowering.movement": "concat pad reshape reverse slice tile transpose",
            "tflq.formats.tosa.lowering.reduction": """argmax reduce_all reduce_any reduce_max reduce_min
                reduce_product reduce_sum""",
            "tflq.formats.tosa.lowering.rescale": "rescale",
            "tflq.formats.tosa.lowering.resize": "resize",
            "tflq.formats.tosa.lowering.state": "variable variable_read variable_write",
            "tflq.formats.tosa.lowering.unary": """ceil clamp cos erf exp floor log pow reciprocal rsqrt sigmoid sin
                tanh""",
        },
    },
    "tflq.legalize": {
        "quant": {"tflq.legalize.casts": "dcast qcast scast"},
        "stablehlo": {
            "tflq.legalize.stablehlo_reductions": """reduce reduce_window select_and_scatter uniform_dequantize
                uniform_quantize"""
        },
        "tfl": {
            "tflq.legalize.casts": "assign_variable cast dequantize quantize read_variable",
            "tflq.legalize.stablehlo_reductions": "stablehlo_reduce_window",
            "tflq.legalize.unary": "abs elu exp gelu log neg rsqrt sqrt zeros_like",
            "tflq.legalize.arithmetic": "add div floor_div floor_mod maximum minimum mul squared_difference sub",
            "tflq.legalize.reduction": "arg_max arg_min mean reduce_max reduce_min reduce_prod sum topk_v2",
            "tflq.legalize.pooling": "average_pool_2d max_pool_2d reduce_window",
            "tflq.legalize.matmul": "batch_matmul fully_connected",
            "tflq.legalize.movement": """batch_to_space_nd broadcast_to concatenation densify depth_to_space dilate
                expand_dims mirror_pad pack pad padv2 reshape reverse_sequence reverse_v2 slice space_to_batch_nd
                space_to_depth split split_v squeeze strided_slice tile transpose unpack""",
            "tflq.legalize.comparison": """bitcast bitwise_xor broadcast_args equal fill greater greater_equal less
                less_equal not_equal rank right_shift select select_v2 shape where""",
            "tflq.legalize.indexing": """bucketize dynamic_update_slice embedding_lookup gather gather_nd
                hashtable_lookup matrix_diag matrix_set_diag one_hot scatter_nd sparse_to_dense unique""",
            "tflq.legalize.convolution": "conv_2d depthwise_conv_2d transpose_conv",
            "tflq.legalize.activation": """hard_swish l2_normalization leaky_relu log_softmax logistic prelu relu relu6
                relu_0_to_1 relu_n1_to_1 softmax tanh""",
            "tflq.legalize.lstm": "lstm unidirectional_sequence_lstm",
            "tflq.legalize.resize": "resize_bilinear resize_nearest_neighbor",
            "tflq.legalize.stablehlo": """stablehlo_abs stablehlo_add stablehlo_and stablehlo_broadcast_in_dim
                stablehlo_cbrt stablehlo_clamp stablehlo_compare stablehlo_concatenate stablehlo_convert
                stablehlo_cosine stablehlo_custom_call stablehlo_divide stablehlo_dynamic_slice
                stablehlo_dynamic_update_slice stablehlo_exponential stablehlo_floor stablehlo_gather stablehlo_iota
                stablehlo_log stablehlo_logistic stablehlo_maximum stablehlo_minimum stablehlo_multiply
                stablehlo_negate stablehlo_or stablehlo_pad stablehlo_power stablehlo_reduce stablehlo_remainder
                stablehlo_reshape stablehlo_rng_bit_generator stablehlo_rsqrt stablehlo_scatter stablehlo_select
                stablehlo_shift_left stablehlo_slice stablehlo_sort stablehlo_subtract stablehlo_tanh
                stablehlo_transpose stablehlo_while""",
            "tflq.legalize.stablehlo_contractions": "stablehlo_convolution stablehlo_dot_general",
            "tflq.legalize.recurrent": "svdf",
            "tflq.legalize.reduction_real": """mean reduce_max reduce_min reduce_prod segment_sum sum
                unsorted_segment_max unsorted_segment_min unsorted_segment_sum""",
            "tflq.legalize.reinterpreted": "conv_2d depthwise_conv_2d fully_connected",
            "tflq.legalize.arithmetic_real": """abs add add_n atan2 ceil cos cumsum div elu exp fake_quant floor
                floor_div floor_mod gelu hard_swish leaky_relu log logistic maximum minimum mul neg pow prelu quantize
                relu relu6 relu_0_to_1 relu_n1_to_1 round rsqrt sign sin sqrt square squared_difference sub tanh""",
            "tflq.legalize.convolution_real": "batch_matmul fully_connected",
            "tflq.legalize.sums": """conv_2d conv_3d conv_3d_transpose depthwise_conv_2d fully_connected
                l2_normalization l2_pool_2d local_response_normalization transpose_conv""",
        },
    },
}
"""By stage and dialect: the ops that each module has a function for. Rules of legalization are tried in this order."""

PASSES: Final[dict[str, str]] = {
    "formats.c.program": "check-c",
    "formats.core_dialects": "core-to-integer",
    "formats.mlir.lower_quant": "lower-quant-ops",
    "formats.mlir.real_math": "lower-real-math raise-real-math",
    "formats.mlir.stablehlo_conversions": "default-conversions fuse-conversions hybrid-dequantize-then-op",
    "formats.onnx.engine": "lower-to-onnx",
    "formats.onnx.qdq": "lower-to-qdq",
    "formats.tflite.lowering.engine": "check-legality select",
    "formats.tflite.lowering.movement": "declare-variables",
    "formats.tflite.lowering.naming": "copy-before-overwrite merge-views name-tensors trim-edges",
    "formats.tflite.lowering.strips": "split-rows",
    "formats.tflite.lowering.tables": "share-tables",
    "formats.tosa.check": "check-laws check-tosa",
    "formats.tosa.lowering.engine": "lower-to-tosa",
    "formats.tosa.raising": "raise-tosa",
    "legalize.engine": "legalize stablehlo-to-builtins",
    "tools.opt": "tfl-to-tosa-pipeline",
    "tools.quantize.quant_types": """convert-simulated-quantization legalize-tf normalize-quant-types prepare-tfl
        strip-func-quant-types""",
    "tools.quantize.regions.codegen": "quant-codegen",
    "tools.quantize.regions.fusion": "kernel-fusion",
    "tools.quantize.regions.instrument": "quant-apply-stats quant-instrument",
    "tools.quantize.regions.materialize": "inline-regions quant-materialize",
    "tools.quantize.regions.propagate": "quant-propagate",
    "tools.quantize.regions.quantize": "quantize tfl-quantize-pipeline",
    "tools.quantize.solver.modes": "quant-simplify quant-transform",
    "transforms.by_rows": "by-rows",
    "transforms.canonicalize": "canonicalize cse dce fold",
    "transforms.floats": "dequantize-fallback row-updates spectra tabulate-floats",
    "transforms.lower_rounding": "lower-rounding",
    "transforms.narrow_storage": "narrow-storage",
    "transforms.one_channel": "one-channel",
    "transforms.shape_binding": "bind-shapes",
    "transforms.shape_settling": "close-dims infer-shapes restore-declared-shapes",
    "transforms.shared_tables": "shared-tables",
    "transforms.source": "cut cut-before-custom extract-signature record-names set-min-runtime",
    "transforms.tabulate": "tabulate",
}
"""The passes of each module of `tflq`."""
