"""Which module declares each op, says what a stage does with it, has a pass. Made by `make index`.

A module of a dialect or of a stage is imported when the first op is met that it is needed for.
"""

from __future__ import annotations

from typing import Final

__all__ = ["ANY", "DIALECTS", "FOLDERS", "PASSES", "ROOMS"]

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
    "ext": {"quant": "truncate rescale_f64 rescale_i64 rescale_mean rounding_divide_by_pot table_16bit table_2d"},
    "fxpmath": {
        "fxpmath": """real_add_ew real_sub_ew real_mul_ew real_div_ew real_unary real_matmul real_matmul_bias
            rounding_divide_by_pot saturating_add saturating_rounding_doubling_high_mul matmul"""
    },
    "onnx": {
        "onnx": """add sub mul div max min mod pow abs neg relu clip ceil cos elu erf exp floor hard_swish leaky_relu
            log reciprocal round sigmoid sign sin softmax sqrt tanh equal greater greater_or_equal less less_or_equal
            p_relu is_nan where and or xor not bitwise_and bitwise_or bitwise_xor bitwise_not bit_shift cast identity
            reshape transpose slice pad tile expand concat cum_sum gather gather_nd scatter_nd top_k non_zero arg_max
            arg_min reduce_sum reduce_max reduce_min reduce_mean reduce_prod shape range conv conv_transpose mat_mul
            gemm average_pool max_pool resize yield if loop dequantize_linear quantize_linear"""
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

FOLDERS: Final = frozenset({"stablehlo", "tfl", "tosa"})
"""Dialects whose modules are in a package of their own."""

ROOMS: Final[dict[str, dict[str, dict[str, str]]]] = {
    "tflq.evaluate": {
        "arith": {
            "core_numbers": """addf addi addui_extended andi bitcast ceildivsi ceildivui cmpf cmpi divf divsi divui
                extf extsi extui floordivsi fptosi fptoui index_cast index_castui maximumf maxnumf maxsi maxui minimumf
                minnumf minsi minui mulf muli mulsi_extended mului_extended negf ori remf remsi remui select shli shrsi
                shrui sitofp subf subi truncf trunci uitofp xori"""
        },
        "ext": {
            "elementwise": "rescale_f64 rescale_i64 rescale_mean rounding_divide_by_pot table_16bit table_2d truncate"
        },
        "func": {"core_tensors": "call call_indirect constant"},
        "fxpmath": {
            "core_numbers": """matmul real_add_ew real_div_ew real_matmul real_matmul_bias real_mul_ew real_sub_ew
                real_unary rounding_divide_by_pot saturating_add saturating_rounding_doubling_high_mul"""
        },
        "linalg": {"core_tensors": "generic"},
        "math": {
            "core_numbers": """absf absi acos acosh asin asinh atan atan2 atanh cbrt ceil clampf copysign cos cosh ctlz
                ctpop cttz erf erfc exp exp2 expm1 floor fma fpowi ipowi isfinite isinf isnan isnormal log log10 log1p
                log2 powf round roundeven rsqrt sin sinh sqrt tan tanh trunc"""
        },
        "quant": {
            "elementwise": "dcast qcast scast",
            "stablehlo_elementwise": "const_fake_quant const_fake_quant_per_axis",
        },
        "shape": {"core_tensors": "broadcast concat const_shape dim get_extent num_elements rank shape_of split_at"},
        "stablehlo": {
            "stablehlo_elementwise": """abs add and broadcast_in_dim ceil clamp compare concatenate convert cosine
                divide exponential floor log logistic maximum minimum multiply negate not optimization_barrier or power
                remainder reshape reverse round_nearest_afz round_nearest_even rsqrt select sign sine slice sqrt
                subtract tanh transpose uniform_dequantize uniform_quantize xor""",
            "stablehlo_reduction": "convolution dot_general reduce reduce_window select_and_scatter",
        },
        "tensor": {
            "core_tensors": """bitcast cast collapse_shape concat dim empty expand_shape extract extract_slice
                from_elements generate insert insert_slice pad rank reshape splat"""
        },
        "tf": {
            "stablehlo_elementwise": """FakeQuantWithMinMaxArgs FakeQuantWithMinMaxVars
                FakeQuantWithMinMaxVarsPerChannel"""
        },
        "tfl": {
            "convolution": "reduce_all reduce_any reduce_max reduce_min reduce_prod resize_nearest_neighbor sum",
            "elementwise": """abs add bitcast cast ceil div equal floor floor_div floor_mod greater greater_equal
                hard_swish less less_equal logical_and logical_not logical_or maximum minimum mul neg not_equal select
                select_v2 square sub zeros_like""",
            "movement": """batch_to_space_nd broadcast_args broadcast_to concatenation depth_to_space expand_dims fill
                gather gather_nd mirror_pad pack pad padv2 range rank reshape reverse_sequence reverse_v2 shape slice
                space_to_batch_nd space_to_depth split split_v squeeze strided_slice tile transpose unpack""",
        },
        "tosa": {
            "convolution": """argmax avg_pool2d conv2d conv3d depthwise_conv2d matmul max_pool2d reduce_all reduce_any
                reduce_max reduce_min reduce_product reduce_sum resize transpose_conv2d""",
            "elementwise": """abs add arithmetic_right_shift bitwise_and bitwise_not bitwise_or bitwise_xor cast ceil
                clamp clz cos equal erf exp floor greater greater_equal intdiv log logical_and logical_left_shift
                logical_not logical_or logical_right_shift logical_xor maximum minimum mul negate pow reciprocal
                rescale rsqrt select sigmoid sin sub tanh""",
            "movement": """concat cond_if gather identity pad reshape reverse scatter slice table tile transpose
                variable variable_read variable_write while_loop""",
        },
    },
    "tflq.legalize": {
        "arith": {
            "core_numbers": """addf addi andi bitcast ceildivsi ceildivui cmpf cmpi divf divsi divui extf extsi extui
                floordivsi fptosi fptoui index_cast index_castui maximumf maxsi maxui minimumf minsi minui mulf muli
                negf ori remf remsi remui select shli shrsi shrui sitofp subf subi truncf trunci uitofp xori"""
        },
        "fxpmath": {
            "core_fixed_point": """matmul real_add_ew real_div_ew real_matmul real_matmul_bias real_mul_ew real_sub_ew
                real_unary rounding_divide_by_pot saturating_add saturating_rounding_doubling_high_mul"""
        },
        "linalg": {"core_tensors": "generic"},
        "math": {
            "core_numbers": """absf absi ceil clampf cos ctlz exp floor isfinite isinf isnan log powf round roundeven
                rsqrt sin sqrt tanh trunc"""
        },
        "quant": {"casts": "dcast qcast scast"},
        "shape": {"core_tensors": "dim get_extent shape_of"},
        "stablehlo": {
            "stablehlo_reductions": "reduce reduce_window select_and_scatter uniform_dequantize uniform_quantize"
        },
        "tensor": {
            "core_tensors": """cast collapse_shape concat dim empty expand_shape extract extract_slice from_elements
                rank reshape splat"""
        },
        "tfl": {
            "casts": "assign_variable cast dequantize quantize read_variable",
            "stablehlo_reductions": "stablehlo_reduce_window",
            "unary": "abs elu exp gelu log neg rsqrt sqrt zeros_like",
            "arithmetic": "add div floor_div floor_mod maximum minimum mul squared_difference sub",
            "reduction": "arg_max arg_min mean reduce_max reduce_min reduce_prod sum topk_v2",
            "pooling": "average_pool_2d max_pool_2d reduce_window",
            "matmul": "batch_matmul fully_connected",
            "movement": """batch_to_space_nd broadcast_to concatenation densify depth_to_space dilate expand_dims
                mirror_pad pack pad padv2 reshape reverse_sequence reverse_v2 slice space_to_batch_nd space_to_depth
                split split_v squeeze strided_slice tile transpose unpack""",
            "comparison": """bitcast bitwise_xor broadcast_args equal fill greater greater_equal less less_equal
                not_equal rank right_shift select select_v2 shape where""",
            "indexing": """bucketize dynamic_update_slice embedding_lookup gather gather_nd hashtable_lookup
                matrix_diag matrix_set_diag one_hot scatter_nd sparse_to_dense unique""",
            "convolution": "conv_2d depthwise_conv_2d transpose_conv",
            "activation": """hard_swish l2_normalization leaky_relu log_softmax logistic prelu relu relu6 relu_0_to_1
                relu_n1_to_1 softmax tanh""",
            "lstm": "lstm unidirectional_sequence_lstm",
            "resize": "resize_bilinear resize_nearest_neighbor",
            "stablehlo": """stablehlo_abs stablehlo_add stablehlo_and stablehlo_broadcast_in_dim stablehlo_cbrt
                stablehlo_clamp stablehlo_compare stablehlo_concatenate stablehlo_convert stablehlo_cosine
                stablehlo_custom_call stablehlo_divide stablehlo_dynamic_slice stablehlo_dynamic_update_slice
                stablehlo_exponential stablehlo_floor stablehlo_gather stablehlo_iota stablehlo_log stablehlo_logistic
                stablehlo_maximum stablehlo_minimum stablehlo_multiply stablehlo_negate stablehlo_or stablehlo_pad
                stablehlo_power stablehlo_reduce stablehlo_remainder stablehlo_reshape stablehlo_rng_bit_generator
                stablehlo_rsqrt stablehlo_scatter stablehlo_select stablehlo_shift_left stablehlo_slice stablehlo_sort
                stablehlo_subtract stablehlo_tanh stablehlo_transpose stablehlo_while""",
            "stablehlo_contractions": "stablehlo_convolution stablehlo_dot_general",
            "recurrent": "svdf",
            "reduction_real": """mean reduce_max reduce_min reduce_prod segment_sum sum unsorted_segment_max
                unsorted_segment_min unsorted_segment_sum""",
            "reinterpreted": "conv_2d depthwise_conv_2d fully_connected",
            "arithmetic_real": """abs add add_n atan2 ceil cos cumsum div elu exp fake_quant floor floor_div floor_mod
                gelu hard_swish leaky_relu log logistic maximum minimum mul neg pow prelu quantize relu relu6
                relu_0_to_1 relu_n1_to_1 round rsqrt sign sin sqrt square squared_difference sub tanh""",
            "convolution_real": "batch_matmul fully_connected",
            "sums": """conv_2d conv_3d conv_3d_transpose depthwise_conv_2d fully_connected l2_normalization l2_pool_2d
                local_response_normalization transpose_conv""",
        },
    },
    "tflq.onnx": {
        "ext": {
            "casts": "truncate",
            "rescale": "rescale_f64 rescale_i64 rescale_mean rounding_divide_by_pot",
            "tables": "table_16bit table_2d",
        },
        "quant": {
            "casts": "dcast qcast",
            "context": "scast",
        },
        "tfl": {
            "arithmetic": """abs add add_n bitwise_xor ceil cos div elu equal exp floor floor_div floor_mod gelu
                greater greater_equal hard_swish l2_normalization leaky_relu less less_equal log log_softmax
                logical_and logical_not logical_or logistic maximum minimum mul neg not_equal pow prelu relu relu6
                relu_0_to_1 relu_n1_to_1 right_shift round rsqrt select select_v2 sign sin softmax sqrt square
                squared_difference sub tanh zeros_like""",
            "casts": "cast dequantize",
            "convolution": "batch_matmul conv_2d conv_3d depthwise_conv_2d fully_connected transpose_conv",
            "indexing": """dynamic_update_slice embedding_lookup gather gather_nd matrix_diag matrix_set_diag one_hot
                scatter_nd where""",
            "movement": """batch_to_space_nd broadcast_to concatenation depth_to_space expand_dims mirror_pad pack pad
                padv2 reshape reverse_sequence reverse_v2 slice space_to_batch_nd space_to_depth split split_v squeeze
                strided_slice tile transpose unpack""",
            "pooling": """arg_max arg_min average_pool_2d cumsum l2_pool_2d max_pool_2d mean reduce_all reduce_any
                reduce_max reduce_min reduce_prod resize_bilinear resize_nearest_neighbor sum topk_v2""",
            "shape": "fill range rank shape",
            "state": "assign_variable call call_once if read_variable stablehlo_composite var_handle while",
        },
        "tosa": {
            "arithmetic": """abs add arithmetic_right_shift bitwise_and bitwise_not bitwise_or bitwise_xor ceil clamp
                clz cos equal erf exp floor greater greater_equal intdiv log logical_and logical_left_shift logical_not
                logical_or logical_right_shift logical_xor maximum minimum mul negate pow reciprocal rsqrt select
                sigmoid sin sub tanh""",
            "casts": "cast",
            "context": "identity",
            "convolution": "conv2d conv3d depthwise_conv2d matmul transpose_conv2d",
            "indexing": "gather scatter",
            "movement": "concat pad reshape reverse slice tile transpose",
            "pooling": "argmax avg_pool2d max_pool2d reduce_all reduce_any reduce_max reduce_min reduce_sum resize",
            "rescale": "rescale",
            "state": "variable variable_read variable_write",
            "tables": "table",
        },
    },
    "tflq.select": {
        "ext": {
            "casts": "truncate",
            "rescale": "rescale_f64 rescale_i64 rescale_mean rounding_divide_by_pot",
            "tables": "table_16bit table_2d",
        },
        "quant": {"casts": "dcast qcast scast"},
        "tosa": {
            "arithmetic": """abs add arithmetic_right_shift bitwise_and bitwise_not bitwise_or bitwise_xor ceil clamp
                clz cos equal erf exp floor greater greater_equal intdiv log logical_and logical_left_shift logical_not
                logical_or logical_right_shift logical_xor maximum minimum mul negate pow reciprocal rsqrt select
                sigmoid sin sub tanh""",
            "casts": "cast",
            "convolution": "conv2d conv3d depthwise_conv2d transpose_conv2d",
            "matmul": "matmul",
            "movement": """concat cond_if gather identity pad reshape reverse scatter slice tile transpose
                variable_read variable_write while_loop""",
            "pooling": """argmax avg_pool2d max_pool2d reduce_all reduce_any reduce_max reduce_min reduce_product
                reduce_sum""",
            "rescale": "rescale",
            "resize": "resize",
            "tables": "table",
        },
    },
    "tflq.tosa": {
        "tosa": {
            "substitutes": """bitwise_and bitwise_or bitwise_xor cast equal greater greater_equal logical_and
                logical_not logical_or logical_xor select"""
        },
    },
    "tflq.tosa.lowering": {
        "ext": {
            "casts": "truncate",
            "indexing": "table_16bit table_2d",
            "rescale": "rescale_i64 rescale_mean",
            "resize": "rescale_f64 rounding_divide_by_pot",
        },
        "quant": {
            "casts": "dcast qcast",
            "context": "scast",
        },
        "tfl": {
            "arithmetic": """add add_n atan2 bitwise_xor div equal floor_div floor_mod greater greater_equal less
                less_equal logical_and logical_not logical_or maximum minimum mul not_equal pow right_shift select
                select_v2 squared_difference sub""",
            "casts": "bitcast cast dequantize",
            "context": "fill range rank shape",
            "convolution": "conv_2d conv_3d depthwise_conv_2d transpose_conv",
            "indexing": """dynamic_update_slice embedding_lookup gather gather_nd matrix_diag matrix_set_diag one_hot
                scatter_nd""",
            "matmul": "average_pool_2d batch_matmul fully_connected l2_pool_2d max_pool_2d",
            "movement": """batch_to_space_nd broadcast_to concatenation depth_to_space dilate expand_dims mirror_pad
                pack pad padv2 reshape reverse_sequence reverse_v2 slice space_to_batch_nd space_to_depth split split_v
                squeeze strided_slice tile transpose unpack""",
            "recurrent": "bidirectional_sequence_rnn rnn svdf unidirectional_sequence_rnn",
            "reduction": """arg_max arg_min cumsum mean reduce_all reduce_any reduce_max reduce_min reduce_prod sum
                topk_v2""",
            "resize": "resize_bilinear resize_nearest_neighbor",
            "state": "assign_variable call call_once if read_variable stablehlo_composite var_handle while",
            "unary": """abs ceil cos elu exp floor gelu hard_swish l2_normalization leaky_relu
                local_response_normalization log log_softmax logistic neg prelu relu relu6 relu_0_to_1 relu_n1_to_1
                round rsqrt sign sin softmax sqrt square tanh zeros_like""",
        },
        "tosa": {
            "arithmetic": """abs add arithmetic_right_shift bitwise_and bitwise_not bitwise_or bitwise_xor clz equal
                greater greater_equal intdiv logical_and logical_left_shift logical_not logical_or logical_right_shift
                logical_xor maximum minimum mul negate select sub""",
            "casts": "cast",
            "context": "identity",
            "convolution": "conv2d conv3d depthwise_conv2d transpose_conv2d",
            "indexing": "gather table",
            "matmul": "avg_pool2d matmul max_pool2d",
            "movement": "concat pad reshape reverse slice tile transpose",
            "reduction": "argmax reduce_all reduce_any reduce_max reduce_min reduce_product reduce_sum",
            "rescale": "rescale",
            "resize": "resize",
            "state": "variable variable_read variable_write",
            "unary": "ceil clamp cos erf exp floor log pow reciprocal rsqrt sigmoid sin tanh",
        },
    },
}
"""By package and dialect: the ops that each module has a function for. Rules of legalization are tried in this
order."""

PASSES: Final[dict[str, str]] = {
    "legalize.engine": "core-to-integer legalize stablehlo-to-builtins",
    "named_passes": "quant-codegen tfl-to-tosa-pipeline",
    "onnx.engine": "lower-to-onnx",
    "onnx.qdq": "lower-to-qdq",
    "passes.canonicalize": "canonicalize cse dce fold",
    "passes.floats": "dequantize-fallback row-updates spectra tabulate-floats",
    "passes.lower_quant": "lower-quant-ops",
    "passes.lower_rounding": "lower-rounding",
    "passes.quant_types": """convert-simulated-quantization legalize-tf normalize-quant-types prepare-tfl
        strip-func-quant-types""",
    "passes.real_math": "lower-real-math raise-real-math",
    "passes.regions.fusion": "kernel-fusion",
    "passes.regions.instrument": "quant-apply-stats quant-instrument",
    "passes.regions.materialize": "inline-regions quant-materialize",
    "passes.regions.propagate": "quant-propagate",
    "passes.regions.quantize": "quantize tfl-quantize-pipeline",
    "passes.solver.modes": "quant-simplify quant-transform",
    "passes.source": "cut cut-before-custom extract-signature record-names state-runtime",
    "passes.stablehlo_conversions": "default-conversions fuse-conversions hybrid-dequantize-then-op",
    "passes.tabulate": "tabulate",
    "select.engine": "check-legality select",
    "select.movement": "declare-variables",
    "select.naming": "keep-apart merge-views name-tensors trim-edges",
    "select.strips": "split-rows",
    "select.tables": "share-tables",
    "shapes.binding": "bind-shapes",
    "shapes.settling": "restate-results settle-shapes state-shapes",
    "tosa.check": "check-laws check-tosa",
    "tosa.lowering.engine": "lower-to-tosa",
    "tosa.raising": "raise-tosa",
}
"""The passes of each module."""
