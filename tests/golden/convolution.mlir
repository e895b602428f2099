// ===== CONV_2D, int8, scales per channel, RELU6
module {
  func.func @main(%arg0: tensor<1x4x4x2x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}) -> tensor<1x4x4x3x!quant.uniform<i8:f32, 0.06:-128>> {
    %cst0 = "tfl.pseudo_const"() {value = dense<[[[[-127, -90], [-53, -16], [21, 58]], [[95, -123], [-86, -49], [-12, 25]], [[62, 99], [-119, -82], [-45, -8]]], [[[29, 66], [103, -115], [-78, -41]], [[-4, 33], [70, 107], [-111, -74]], [[-37, 0], [37, 74], [111, -107]]], [[[-70, -33], [4, 41], [78, 115]], [[-103, -66], [-29, 8], [45, 82]], [[119, -99], [-62, -25], [12, 49]]]]> : tensor<3x3x3x2xi8>} : () -> tensor<3x3x3x2x!quant.uniform<i8:f32:0, {0.01, 0.02, 0.03}>>
    %cst1 = "tfl.pseudo_const"() {value = dense<[-500, 500, 1500]> : tensor<3xi32>} : () -> tensor<3x!quant.uniform<i32:f32:0, {0.0005, 0.001, 0.0015}>>
    %0 = "tfl.conv_2d"(%arg0, %cst0, %cst1) {padding = "SAME", stride_w = 1, stride_h = 1, fused_activation_function = "RELU6"} : (tensor<1x4x4x2x!quant.uniform<i8:f32, 0.05:3>>, tensor<3x3x3x2x!quant.uniform<i8:f32:0, {0.01, 0.02, 0.03}>>, tensor<3x!quant.uniform<i32:f32:0, {0.0005, 0.001, 0.0015}>>) -> tensor<1x4x4x3x!quant.uniform<i8:f32, 0.06:-128>>
    return %0 : tensor<1x4x4x3x!quant.uniform<i8:f32, 0.06:-128>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<1x4x4x2x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}) -> tensor<1x4x4x3x!quant.uniform<i8:f32, 0.06:-128>> {
    %0 = quant.scast %arg0 : tensor<1x4x4x2x!quant.uniform<i8:f32, 0.05:3>> to tensor<1x4x4x2xi8>
    %cst0 = "tosa.const"() {values = dense<[[[[-127, -90], [-53, -16], [21, 58]], [[95, -123], [-86, -49], [-12, 25]], [[62, 99], [-119, -82], [-45, -8]]], [[[29, 66], [103, -115], [-78, -41]], [[-4, 33], [70, 107], [-111, -74]], [[-37, 0], [37, 74], [111, -107]]], [[[-70, -33], [4, 41], [78, 115]], [[-103, -66], [-29, 8], [45, 82]], [[119, -99], [-62, -25], [12, 49]]]]> : tensor<3x3x3x2xi8>} : () -> tensor<3x3x3x2xi8>
    %cst1 = "tosa.const"() {values = dense<[-500, 500, 1500]> : tensor<3xi32>} : () -> tensor<3xi32>
    %1 = "tosa.conv2d"(%0, %cst0, %cst1) {pad = #tflq.tuple<[1, 1, 1, 1]>, stride = #tflq.tuple<[1, 1]>, dilation = #tflq.tuple<[1, 1]>, input_zp = 3, weight_zp = 0} : (tensor<1x4x4x2xi8>, tensor<3x3x3x2xi8>, tensor<3xi32>) -> tensor<1x4x4x3xi32>
    %2 = "tosa.rescale"(%1) {multiplier = dense<[1145324629, 1145324629, 1717986944]> : tensor<3xi32>, shift = dense<[37, 36, 36]> : tensor<3xi8>, input_zp = 0, output_zp = -128, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = true, input_range = #tflq.tuple<[-152338, 152897]>} : (tensor<1x4x4x3xi32>) -> tensor<1x4x4x3xi8>
    %3 = "tosa.clamp"(%2) {min_val = -128, max_val = -28} : (tensor<1x4x4x3xi8>) -> tensor<1x4x4x3xi8>
    %4 = quant.scast %3 : tensor<1x4x4x3xi8> to tensor<1x4x4x3x!quant.uniform<i8:f32, 0.06:-128>>
    return %4 : tensor<1x4x4x3x!quant.uniform<i8:f32, 0.06:-128>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<1x4x4x2x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}) -> tensor<1x4x4x3x!quant.uniform<i8:f32, 0.06:-128>> {
    %0 = "tfl.cast"(%arg0) : (tensor<1x4x4x2x!quant.uniform<i8:f32, 0.05:3>>) -> tensor<1x4x4x2xi8>
    %cst0 = "tfl.pseudo_const"() {value = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi32>} : () -> tensor<4x2xi32>
    %cst1 = "tfl.pseudo_const"() {value = dense<3> : tensor<i8>} : () -> tensor<i8>
    %1 = "tfl.padv2"(%0, %cst0, %cst1) : (tensor<1x4x4x2xi8>, tensor<4x2xi32>, tensor<i8>) -> tensor<1x6x6x2xi8>
    %cst2 = "tfl.pseudo_const"() {value = dense<[0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4, 5]> : tensor<12xi32>} : () -> tensor<12xi32>
    %2 = "tfl.gather"(%1, %cst2) {axis = 2, batch_dims = 0} : (tensor<1x6x6x2xi8>, tensor<12xi32>) -> tensor<1x6x12x2xi8>
    %cst3 = "tfl.pseudo_const"() {value = dense<[-1, 6, 4, 6]> : tensor<4xi32>} : () -> tensor<4xi32>
    %3 = "tfl.reshape"(%2, %cst3) {new_shape = dense<[-1, 6, 4, 6]> : tensor<4xi32>} : (tensor<1x6x12x2xi8>, tensor<4xi32>) -> tensor<1x6x4x6xi8>
    %cst4 = "tfl.pseudo_const"() {value = dense<[0, 1, 2, 3]> : tensor<4xi32>} : () -> tensor<4xi32>
    %4 = "tfl.gather"(%3, %cst4) {axis = 1, batch_dims = 0} : (tensor<1x6x4x6xi8>, tensor<4xi32>) -> tensor<1x4x4x6xi8>
    %cst5 = "tfl.pseudo_const"() {value = dense<[1, 2, 3, 4]> : tensor<4xi32>} : () -> tensor<4xi32>
    %5 = "tfl.gather"(%3, %cst5) {axis = 1, batch_dims = 0} : (tensor<1x6x4x6xi8>, tensor<4xi32>) -> tensor<1x4x4x6xi8>
    %cst6 = "tfl.pseudo_const"() {value = dense<[2, 3, 4, 5]> : tensor<4xi32>} : () -> tensor<4xi32>
    %6 = "tfl.gather"(%3, %cst6) {axis = 1, batch_dims = 0} : (tensor<1x6x4x6xi8>, tensor<4xi32>) -> tensor<1x4x4x6xi8>
    %7 = "tfl.concatenation"(%4, %5, %6) {axis = 3, fused_activation_function = "NONE"} : (tensor<1x4x4x6xi8>, tensor<1x4x4x6xi8>, tensor<1x4x4x6xi8>) -> tensor<1x4x4x18xi8>
    %cst7 = "tfl.pseudo_const"() {value = dense<[[-127, -90, -53, -16, 21, 58, 95, -123, -86, -49, -12, 25, 62, 99, -119, -82, -45, -8], [29, 66, 103, -115, -78, -41, -4, 33, 70, 107, -111, -74, -37, 0, 37, 74, 111, -107], [-70, -33, 4, 41, 78, 115, -103, -66, -29, 8, 45, 82, 119, -99, -62, -25, 12, 49]]> : tensor<3x18xi8>} : () -> tensor<3x18xi8>
    %8 = "tfl.batch_matmul"(%7, %cst7) {adj_x = false, adj_y = true, asymmetric_quantize_inputs = false} : (tensor<1x4x4x18xi8>, tensor<3x18xi8>) -> tensor<1x4x4x3xi32>
    %cst8 = "tfl.pseudo_const"() {value = dense<[850, 311, 1302]> : tensor<3xi32>} : () -> tensor<3xi32>
    %9 = "tfl.add"(%8, %cst8) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x4x4x3xi32>, tensor<3xi32>) -> tensor<1x4x4x3xi32>
    %cst9 = "tfl.pseudo_const"() {value = dense<[14008, 14011, 14012]> : tensor<3xi32>} : () -> tensor<3xi32>
    %10 = "tfl.mul"(%9, %cst9) {fused_activation_function = "NONE"} : (tensor<1x4x4x3xi32>, tensor<3xi32>) -> tensor<1x4x4x3xi32>
    %cst10 = "tfl.pseudo_const"() {value = dense<[847484, 427335, 287246]> : tensor<3xi32>} : () -> tensor<3xi32>
    %11 = "tfl.add"(%10, %cst10) {fused_activation_function = "RELU", pot_scale_int16 = false} : (tensor<1x4x4x3xi32>, tensor<3xi32>) -> tensor<1x4x4x3xi32>
    %cst11 = "tfl.pseudo_const"() {value = dense<[1680960, 840660, 560480]> : tensor<3xi32>} : () -> tensor<3xi32>
    %12 = "tfl.div"(%11, %cst11) {fused_activation_function = "NONE"} : (tensor<1x4x4x3xi32>, tensor<3xi32>) -> tensor<1x4x4x3xi32>
    %cst12 = "tfl.pseudo_const"() {value = dense<100> : tensor<i32>} : () -> tensor<i32>
    %13 = "tfl.sub"(%cst12, %12) {fused_activation_function = "RELU", pot_scale_int16 = false} : (tensor<i32>, tensor<1x4x4x3xi32>) -> tensor<1x4x4x3xi32>
    %cst13 = "tfl.pseudo_const"() {value = dense<-28> : tensor<i32>} : () -> tensor<i32>
    %14 = "tfl.sub"(%cst13, %13) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<i32>, tensor<1x4x4x3xi32>) -> tensor<1x4x4x3xi32>
    %15 = "tfl.cast"(%14) : (tensor<1x4x4x3xi32>) -> tensor<1x4x4x3x!quant.uniform<i8:f32, 0.06:-128>>
    return %15 : tensor<1x4x4x3x!quant.uniform<i8:f32, 0.06:-128>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<1x4x4x2xi8> {tflq.name = "x"}) -> tensor<1x4x4x3xi8> {
    %cst0 = "tosa.const"() {values = dense<[[[[-127, -90], [-53, -16], [21, 58]], [[95, -123], [-86, -49], [-12, 25]], [[62, 99], [-119, -82], [-45, -8]]], [[[29, 66], [103, -115], [-78, -41]], [[-4, 33], [70, 107], [-111, -74]], [[-37, 0], [37, 74], [111, -107]]], [[[-70, -33], [4, 41], [78, 115]], [[-103, -66], [-29, 8], [45, 82]], [[119, -99], [-62, -25], [12, 49]]]]> : tensor<3x3x3x2xi8>} : () -> tensor<3x3x3x2xi8>
    %cst1 = "tosa.const"() {values = dense<[-500, 500, 1500]> : tensor<3xi32>} : () -> tensor<3xi32>
    %0 = "tosa.conv2d"(%arg0, %cst0, %cst1) {pad = #tflq.tuple<[1, 1, 1, 1]>, stride = #tflq.tuple<[1, 1]>, dilation = #tflq.tuple<[1, 1]>, input_zp = 3, weight_zp = 0} : (tensor<1x4x4x2xi8>, tensor<3x3x3x2xi8>, tensor<3xi32>) -> tensor<1x4x4x3xi32>
    %1 = "tosa.rescale"(%0) {multiplier = dense<[1145324629, 1145324629, 1717986944]> : tensor<3xi32>, shift = dense<[37, 36, 36]> : tensor<3xi8>, input_zp = 0, output_zp = -128, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = true} : (tensor<1x4x4x3xi32>) -> tensor<1x4x4x3xi8>
    %2 = "tosa.clamp"(%1) {min_val = -128, max_val = -28} : (tensor<1x4x4x3xi8>) -> tensor<1x4x4x3xi8>
    return %2 : tensor<1x4x4x3xi8>
  }
}

// ===== DEPTHWISE_CONV_2D, int8
module {
  func.func @main(%arg0: tensor<1x4x4x2x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}) -> tensor<1x4x4x2x!quant.uniform<i8:f32, 0.06:-4>> {
    %cst0 = "tfl.pseudo_const"() {value = dense<[[[[-127, -90], [-53, -16], [21, 58]], [[95, -123], [-86, -49], [-12, 25]], [[62, 99], [-119, -82], [-45, -8]]]]> : tensor<1x3x3x2xi8>} : () -> tensor<1x3x3x2x!quant.uniform<i8:f32:3, {0.01, 0.02}>>
    %cst1 = "tfl.pseudo_const"() {value = dense<[-500, 500]> : tensor<2xi32>} : () -> tensor<2x!quant.uniform<i32:f32:0, {0.0005, 0.001}>>
    %0 = "tfl.depthwise_conv_2d"(%arg0, %cst0, %cst1) {padding = "SAME", stride_w = 1, stride_h = 1, fused_activation_function = "RELU6", depth_multiplier = 1} : (tensor<1x4x4x2x!quant.uniform<i8:f32, 0.05:3>>, tensor<1x3x3x2x!quant.uniform<i8:f32:3, {0.01, 0.02}>>, tensor<2x!quant.uniform<i32:f32:0, {0.0005, 0.001}>>) -> tensor<1x4x4x2x!quant.uniform<i8:f32, 0.06:-4>>
    return %0 : tensor<1x4x4x2x!quant.uniform<i8:f32, 0.06:-4>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<1x4x4x2x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}) -> tensor<1x4x4x2x!quant.uniform<i8:f32, 0.06:-4>> {
    %0 = quant.scast %arg0 : tensor<1x4x4x2x!quant.uniform<i8:f32, 0.05:3>> to tensor<1x4x4x2xi8>
    %cst0 = "tosa.const"() {values = dense<[[[[-127], [-90]], [[-53], [-16]], [[21], [58]]], [[[95], [-123]], [[-86], [-49]], [[-12], [25]]], [[[62], [99]], [[-119], [-82]], [[-45], [-8]]]]> : tensor<3x3x2x1xi8>} : () -> tensor<3x3x2x1xi8>
    %cst1 = "tosa.const"() {values = dense<[-500, 500]> : tensor<2xi32>} : () -> tensor<2xi32>
    %1 = "tosa.depthwise_conv2d"(%0, %cst0, %cst1) {pad = #tflq.tuple<[1, 1, 1, 1]>, stride = #tflq.tuple<[1, 1]>, dilation = #tflq.tuple<[1, 1]>, input_zp = 3, weight_zp = 0} : (tensor<1x4x4x2xi8>, tensor<3x3x2x1xi8>, tensor<2xi32>) -> tensor<1x4x4x2xi32>
    %2 = "tosa.rescale"(%1) {multiplier = dense<1145324629> : tensor<2xi32>, shift = dense<[37, 36]> : tensor<2xi8>, input_zp = 0, output_zp = -4, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = true, input_range = #tflq.tuple<[-78626, 79474]>} : (tensor<1x4x4x2xi32>) -> tensor<1x4x4x2xi8>
    %3 = "tosa.clamp"(%2) {min_val = -4, max_val = 96} : (tensor<1x4x4x2xi8>) -> tensor<1x4x4x2xi8>
    %4 = quant.scast %3 : tensor<1x4x4x2xi8> to tensor<1x4x4x2x!quant.uniform<i8:f32, 0.06:-4>>
    return %4 : tensor<1x4x4x2x!quant.uniform<i8:f32, 0.06:-4>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<1x4x4x2x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}) -> tensor<1x4x4x2x!quant.uniform<i8:f32, 0.06:-4>> {
    %0 = "tfl.cast"(%arg0) : (tensor<1x4x4x2x!quant.uniform<i8:f32, 0.05:3>>) -> tensor<1x4x4x2xi8>
    %cst0 = "tfl.pseudo_const"() {value = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi32>} : () -> tensor<4x2xi32>
    %cst1 = "tfl.pseudo_const"() {value = dense<3> : tensor<i8>} : () -> tensor<i8>
    %1 = "tfl.padv2"(%0, %cst0, %cst1) : (tensor<1x4x4x2xi8>, tensor<4x2xi32>, tensor<i8>) -> tensor<1x6x6x2xi8>
    %cst2 = "tfl.pseudo_const"() {value = dense<[0, 1, 2, 3]> : tensor<4xi32>} : () -> tensor<4xi32>
    %2 = "tfl.gather"(%1, %cst2) {axis = 2, batch_dims = 0} : (tensor<1x6x6x2xi8>, tensor<4xi32>) -> tensor<1x6x4x2xi8>
    %cst3 = "tfl.pseudo_const"() {value = dense<[-1, 6, 1, 8]> : tensor<4xi32>} : () -> tensor<4xi32>
    %3 = "tfl.reshape"(%2, %cst3) {new_shape = dense<[-1, 6, 1, 8]> : tensor<4xi32>} : (tensor<1x6x4x2xi8>, tensor<4xi32>) -> tensor<1x6x1x8xi8>
    %4 = "tfl.cast"(%3) : (tensor<1x6x1x8xi8>) -> tensor<1x6x1x8xi32>
    %cst4 = "tfl.pseudo_const"() {value = dense<[-127, -90, -127, -90, -127, -90, -127, -90]> : tensor<8xi32>} : () -> tensor<8xi32>
    %5 = "tfl.mul"(%4, %cst4) {fused_activation_function = "NONE"} : (tensor<1x6x1x8xi32>, tensor<8xi32>) -> tensor<1x6x1x8xi32>
    %cst5 = "tfl.pseudo_const"() {value = dense<[95, -123, 95, -123, 95, -123, 95, -123]> : tensor<8xi32>} : () -> tensor<8xi32>
    %6 = "tfl.mul"(%4, %cst5) {fused_activation_function = "NONE"} : (tensor<1x6x1x8xi32>, tensor<8xi32>) -> tensor<1x6x1x8xi32>
    %cst6 = "tfl.pseudo_const"() {value = dense<[62, 99, 62, 99, 62, 99, 62, 99]> : tensor<8xi32>} : () -> tensor<8xi32>
    %7 = "tfl.mul"(%4, %cst6) {fused_activation_function = "NONE"} : (tensor<1x6x1x8xi32>, tensor<8xi32>) -> tensor<1x6x1x8xi32>
    %cst7 = "tfl.pseudo_const"() {value = dense<[1, 2, 3, 4]> : tensor<4xi32>} : () -> tensor<4xi32>
    %8 = "tfl.gather"(%1, %cst7) {axis = 2, batch_dims = 0} : (tensor<1x6x6x2xi8>, tensor<4xi32>) -> tensor<1x6x4x2xi8>
    %9 = "tfl.reshape"(%8, %cst3) {new_shape = dense<[-1, 6, 1, 8]> : tensor<4xi32>} : (tensor<1x6x4x2xi8>, tensor<4xi32>) -> tensor<1x6x1x8xi8>
    %10 = "tfl.cast"(%9) : (tensor<1x6x1x8xi8>) -> tensor<1x6x1x8xi32>
    %cst8 = "tfl.pseudo_const"() {value = dense<[-53, -16, -53, -16, -53, -16, -53, -16]> : tensor<8xi32>} : () -> tensor<8xi32>
    %11 = "tfl.mul"(%10, %cst8) {fused_activation_function = "NONE"} : (tensor<1x6x1x8xi32>, tensor<8xi32>) -> tensor<1x6x1x8xi32>
    %12 = "tfl.add"(%5, %11) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x6x1x8xi32>, tensor<1x6x1x8xi32>) -> tensor<1x6x1x8xi32>
    %cst9 = "tfl.pseudo_const"() {value = dense<[-86, -49, -86, -49, -86, -49, -86, -49]> : tensor<8xi32>} : () -> tensor<8xi32>
    %13 = "tfl.mul"(%10, %cst9) {fused_activation_function = "NONE"} : (tensor<1x6x1x8xi32>, tensor<8xi32>) -> tensor<1x6x1x8xi32>
    %14 = "tfl.add"(%6, %13) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x6x1x8xi32>, tensor<1x6x1x8xi32>) -> tensor<1x6x1x8xi32>
    %cst10 = "tfl.pseudo_const"() {value = dense<[-119, -82, -119, -82, -119, -82, -119, -82]> : tensor<8xi32>} : () -> tensor<8xi32>
    %15 = "tfl.mul"(%10, %cst10) {fused_activation_function = "NONE"} : (tensor<1x6x1x8xi32>, tensor<8xi32>) -> tensor<1x6x1x8xi32>
    %16 = "tfl.add"(%7, %15) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x6x1x8xi32>, tensor<1x6x1x8xi32>) -> tensor<1x6x1x8xi32>
    %cst11 = "tfl.pseudo_const"() {value = dense<[2, 3, 4, 5]> : tensor<4xi32>} : () -> tensor<4xi32>
    %17 = "tfl.gather"(%1, %cst11) {axis = 2, batch_dims = 0} : (tensor<1x6x6x2xi8>, tensor<4xi32>) -> tensor<1x6x4x2xi8>
    %18 = "tfl.reshape"(%17, %cst3) {new_shape = dense<[-1, 6, 1, 8]> : tensor<4xi32>} : (tensor<1x6x4x2xi8>, tensor<4xi32>) -> tensor<1x6x1x8xi8>
    %19 = "tfl.cast"(%18) : (tensor<1x6x1x8xi8>) -> tensor<1x6x1x8xi32>
    %cst12 = "tfl.pseudo_const"() {value = dense<[21, 58, 21, 58, 21, 58, 21, 58]> : tensor<8xi32>} : () -> tensor<8xi32>
    %20 = "tfl.mul"(%19, %cst12) {fused_activation_function = "NONE"} : (tensor<1x6x1x8xi32>, tensor<8xi32>) -> tensor<1x6x1x8xi32>
    %21 = "tfl.add"(%12, %20) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x6x1x8xi32>, tensor<1x6x1x8xi32>) -> tensor<1x6x1x8xi32>
    %cst13 = "tfl.pseudo_const"() {value = dense<[-12, 25, -12, 25, -12, 25, -12, 25]> : tensor<8xi32>} : () -> tensor<8xi32>
    %22 = "tfl.mul"(%19, %cst13) {fused_activation_function = "NONE"} : (tensor<1x6x1x8xi32>, tensor<8xi32>) -> tensor<1x6x1x8xi32>
    %23 = "tfl.add"(%14, %22) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x6x1x8xi32>, tensor<1x6x1x8xi32>) -> tensor<1x6x1x8xi32>
    %cst14 = "tfl.pseudo_const"() {value = dense<[-45, -8, -45, -8, -45, -8, -45, -8]> : tensor<8xi32>} : () -> tensor<8xi32>
    %24 = "tfl.mul"(%19, %cst14) {fused_activation_function = "NONE"} : (tensor<1x6x1x8xi32>, tensor<8xi32>) -> tensor<1x6x1x8xi32>
    %25 = "tfl.add"(%16, %24) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x6x1x8xi32>, tensor<1x6x1x8xi32>) -> tensor<1x6x1x8xi32>
    %26 = "tfl.gather"(%21, %cst2) {axis = 1, batch_dims = 0} : (tensor<1x6x1x8xi32>, tensor<4xi32>) -> tensor<1x4x1x8xi32>
    %27 = "tfl.gather"(%23, %cst7) {axis = 1, batch_dims = 0} : (tensor<1x6x1x8xi32>, tensor<4xi32>) -> tensor<1x4x1x8xi32>
    %28 = "tfl.gather"(%25, %cst11) {axis = 1, batch_dims = 0} : (tensor<1x6x1x8xi32>, tensor<4xi32>) -> tensor<1x4x1x8xi32>
    %29 = "tfl.add"(%26, %27) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x4x1x8xi32>, tensor<1x4x1x8xi32>) -> tensor<1x4x1x8xi32>
    %30 = "tfl.add"(%29, %28) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x4x1x8xi32>, tensor<1x4x1x8xi32>) -> tensor<1x4x1x8xi32>
    %cst15 = "tfl.pseudo_const"() {value = dense<[-1, 4, 4, 2]> : tensor<4xi32>} : () -> tensor<4xi32>
    %31 = "tfl.reshape"(%30, %cst15) {new_shape = dense<[-1, 4, 4, 2]> : tensor<4xi32>} : (tensor<1x4x1x8xi32>, tensor<4xi32>) -> tensor<1x4x4x2xi32>
    %cst16 = "tfl.pseudo_const"() {value = dense<[292, 1058]> : tensor<2xi32>} : () -> tensor<2xi32>
    %32 = "tfl.add"(%31, %cst16) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x4x4x2xi32>, tensor<2xi32>) -> tensor<1x4x4x2xi32>
    %cst17 = "tfl.pseudo_const"() {value = dense<[26969, 26979]> : tensor<2xi32>} : () -> tensor<2xi32>
    %33 = "tfl.mul"(%32, %cst17) {fused_activation_function = "NONE"} : (tensor<1x4x4x2xi32>, tensor<2xi32>) -> tensor<1x4x4x2xi32>
    %cst18 = "tfl.pseudo_const"() {value = dense<[1631624, 822859]> : tensor<2xi32>} : () -> tensor<2xi32>
    %34 = "tfl.add"(%33, %cst18) {fused_activation_function = "RELU", pot_scale_int16 = false} : (tensor<1x4x4x2xi32>, tensor<2xi32>) -> tensor<1x4x4x2xi32>
    %cst19 = "tfl.pseudo_const"() {value = dense<[3236280, 1618740]> : tensor<2xi32>} : () -> tensor<2xi32>
    %35 = "tfl.div"(%34, %cst19) {fused_activation_function = "NONE"} : (tensor<1x4x4x2xi32>, tensor<2xi32>) -> tensor<1x4x4x2xi32>
    %cst20 = "tfl.pseudo_const"() {value = dense<100> : tensor<i32>} : () -> tensor<i32>
    %36 = "tfl.sub"(%cst20, %35) {fused_activation_function = "RELU", pot_scale_int16 = false} : (tensor<i32>, tensor<1x4x4x2xi32>) -> tensor<1x4x4x2xi32>
    %cst21 = "tfl.pseudo_const"() {value = dense<96> : tensor<i32>} : () -> tensor<i32>
    %37 = "tfl.sub"(%cst21, %36) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<i32>, tensor<1x4x4x2xi32>) -> tensor<1x4x4x2xi32>
    %38 = "tfl.cast"(%37) : (tensor<1x4x4x2xi32>) -> tensor<1x4x4x2x!quant.uniform<i8:f32, 0.06:-4>>
    return %38 : tensor<1x4x4x2x!quant.uniform<i8:f32, 0.06:-4>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<1x4x4x2xi8> {tflq.name = "x"}) -> tensor<1x4x4x2xi8> {
    %cst0 = "tosa.const"() {values = dense<[[[[-127], [-90]], [[-53], [-16]], [[21], [58]]], [[[95], [-123]], [[-86], [-49]], [[-12], [25]]], [[[62], [99]], [[-119], [-82]], [[-45], [-8]]]]> : tensor<3x3x2x1xi8>} : () -> tensor<3x3x2x1xi8>
    %cst1 = "tosa.const"() {values = dense<[-500, 500]> : tensor<2xi32>} : () -> tensor<2xi32>
    %0 = "tosa.depthwise_conv2d"(%arg0, %cst0, %cst1) {pad = #tflq.tuple<[1, 1, 1, 1]>, stride = #tflq.tuple<[1, 1]>, dilation = #tflq.tuple<[1, 1]>, input_zp = 3, weight_zp = 0} : (tensor<1x4x4x2xi8>, tensor<3x3x2x1xi8>, tensor<2xi32>) -> tensor<1x4x4x2xi32>
    %1 = "tosa.rescale"(%0) {multiplier = dense<1145324629> : tensor<2xi32>, shift = dense<[37, 36]> : tensor<2xi8>, input_zp = 0, output_zp = -4, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = true} : (tensor<1x4x4x2xi32>) -> tensor<1x4x4x2xi8>
    %2 = "tosa.clamp"(%1) {min_val = -4, max_val = 96} : (tensor<1x4x4x2xi8>) -> tensor<1x4x4x2xi8>
    return %2 : tensor<1x4x4x2xi8>
  }
}

// ===== TRANSPOSE_CONV, int8
module {
  func.func @main(%arg0: tensor<1x4x4x2x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}) -> tensor<1x8x8x3x!quant.uniform<i8:f32, 0.06:-4>> {
    %cst0 = "tfl.pseudo_const"() {value = dense<[1, 8, 8, 3]> : tensor<4xi32>} : () -> tensor<4xi32>
    %cst1 = "tfl.pseudo_const"() {value = dense<[[[[-127, -90], [-53, -16], [21, 58]], [[95, -123], [-86, -49], [-12, 25]], [[62, 99], [-119, -82], [-45, -8]]], [[[29, 66], [103, -115], [-78, -41]], [[-4, 33], [70, 107], [-111, -74]], [[-37, 0], [37, 74], [111, -107]]], [[[-70, -33], [4, 41], [78, 115]], [[-103, -66], [-29, 8], [45, 82]], [[119, -99], [-62, -25], [12, 49]]]]> : tensor<3x3x3x2xi8>} : () -> tensor<3x3x3x2x!quant.uniform<i8:f32:0, {0.01, 0.02, 0.03}>>
    %0 = "tfl.transpose_conv"(%cst0, %cst1, %arg0) {padding = "SAME", stride_w = 2, stride_h = 2} : (tensor<4xi32>, tensor<3x3x3x2x!quant.uniform<i8:f32:0, {0.01, 0.02, 0.03}>>, tensor<1x4x4x2x!quant.uniform<i8:f32, 0.05:3>>) -> tensor<1x8x8x3x!quant.uniform<i8:f32, 0.06:-4>>
    return %0 : tensor<1x8x8x3x!quant.uniform<i8:f32, 0.06:-4>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<1x4x4x2x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}) -> tensor<1x8x8x3x!quant.uniform<i8:f32, 0.06:-4>> {
    %0 = quant.scast %arg0 : tensor<1x4x4x2x!quant.uniform<i8:f32, 0.05:3>> to tensor<1x4x4x2xi8>
    %cst0 = "tosa.const"() {values = dense<[[[[-127, -90], [-53, -16], [21, 58]], [[95, -123], [-86, -49], [-12, 25]], [[62, 99], [-119, -82], [-45, -8]]], [[[29, 66], [103, -115], [-78, -41]], [[-4, 33], [70, 107], [-111, -74]], [[-37, 0], [37, 74], [111, -107]]], [[[-70, -33], [4, 41], [78, 115]], [[-103, -66], [-29, 8], [45, 82]], [[119, -99], [-62, -25], [12, 49]]]]> : tensor<3x3x3x2xi8>} : () -> tensor<3x3x3x2xi8>
    %cst1 = "tosa.const"() {values = dense<0> : tensor<3xi32>} : () -> tensor<3xi32>
    %1 = "tosa.transpose_conv2d"(%0, %cst0, %cst1) {out_pad = #tflq.tuple<[0, -1, 0, -1]>, stride = #tflq.tuple<[2, 2]>, input_zp = 3, weight_zp = 0} : (tensor<1x4x4x2xi8>, tensor<3x3x3x2xi8>, tensor<3xi32>) -> tensor<1x8x8x3xi32>
    %2 = "tosa.rescale"(%1) {multiplier = dense<[1145324629, 1145324629, 1717986944]> : tensor<3xi32>, shift = dense<[37, 36, 36]> : tensor<3xi8>, input_zp = 0, output_zp = -4, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = true, input_range = #tflq.tuple<[-152838, 152397]>} : (tensor<1x8x8x3xi32>) -> tensor<1x8x8x3xi8>
    %3 = quant.scast %2 : tensor<1x8x8x3xi8> to tensor<1x8x8x3x!quant.uniform<i8:f32, 0.06:-4>>
    return %3 : tensor<1x8x8x3x!quant.uniform<i8:f32, 0.06:-4>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<1x4x4x2x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}) -> tensor<1x8x8x3x!quant.uniform<i8:f32, 0.06:-4>> {
    %0 = "tfl.cast"(%arg0) : (tensor<1x4x4x2x!quant.uniform<i8:f32, 0.05:3>>) -> tensor<1x4x4x2xi8>
    %cst0 = "tfl.pseudo_const"() {value = dense<[[0, 0], [1, 0], [1, 0], [0, 0]]> : tensor<4x2xi32>} : () -> tensor<4x2xi32>
    %cst1 = "tfl.pseudo_const"() {value = dense<3> : tensor<i8>} : () -> tensor<i8>
    %1 = "tfl.padv2"(%0, %cst0, %cst1) : (tensor<1x4x4x2xi8>, tensor<4x2xi32>, tensor<i8>) -> tensor<1x5x5x2xi8>
    %cst2 = "tfl.pseudo_const"() {value = dense<[0, 1, 1, 2, 2, 3, 3, 4]> : tensor<8xi32>} : () -> tensor<8xi32>
    %2 = "tfl.gather"(%1, %cst2) {axis = 2, batch_dims = 0} : (tensor<1x5x5x2xi8>, tensor<8xi32>) -> tensor<1x5x8x2xi8>
    %cst3 = "tfl.pseudo_const"() {value = dense<[-1, 5, 4, 4]> : tensor<4xi32>} : () -> tensor<4xi32>
    %3 = "tfl.reshape"(%2, %cst3) {new_shape = dense<[-1, 5, 4, 4]> : tensor<4xi32>} : (tensor<1x5x8x2xi8>, tensor<4xi32>) -> tensor<1x5x4x4xi8>
    %cst4 = "tfl.pseudo_const"() {value = dense<[0, 1, 2, 3]> : tensor<4xi32>} : () -> tensor<4xi32>
    %4 = "tfl.gather"(%3, %cst4) {axis = 1, batch_dims = 0} : (tensor<1x5x4x4xi8>, tensor<4xi32>) -> tensor<1x4x4x4xi8>
    %cst5 = "tfl.pseudo_const"() {value = dense<[1, 2, 3, 4]> : tensor<4xi32>} : () -> tensor<4xi32>
    %5 = "tfl.gather"(%3, %cst5) {axis = 1, batch_dims = 0} : (tensor<1x5x4x4xi8>, tensor<4xi32>) -> tensor<1x4x4x4xi8>
    %6 = "tfl.concatenation"(%4, %5) {axis = 3, fused_activation_function = "NONE"} : (tensor<1x4x4x4xi8>, tensor<1x4x4x4xi8>) -> tensor<1x4x4x8xi8>
    %cst6 = "tfl.pseudo_const"() {value = dense_resource<ffe57e82> : tensor<12x8xi8>} : () -> tensor<12x8xi8>
    %7 = "tfl.batch_matmul"(%6, %cst6) {adj_x = false, adj_y = true, asymmetric_quantize_inputs = false} : (tensor<1x4x4x8xi8>, tensor<12x8xi8>) -> tensor<1x4x4x12xi32>
    %cst7 = "tfl.pseudo_const"() {value = dense<[90, 171, -513, 810, -297, 126, 45, 468, 126, 405, -531, 63]> : tensor<12xi32>} : () -> tensor<12xi32>
    %8 = "tfl.add"(%7, %cst7) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x4x4x12xi32>, tensor<12xi32>) -> tensor<1x4x4x12xi32>
    %cst8 = "tfl.pseudo_const"() {value = dense<[-1, 4, 2, 6]> : tensor<4xi32>} : () -> tensor<4xi32>
    %9 = "tfl.reshape"(%8, %cst8) {new_shape = dense<[-1, 4, 2, 6]> : tensor<4xi32>} : (tensor<1x4x4x12xi32>, tensor<4xi32>) -> tensor<4x4x2x6xi32>
    %cst9 = "tfl.pseudo_const"() {value = dense<[0, 2, 1, 3]> : tensor<4xi32>} : () -> tensor<4xi32>
    %10 = "tfl.transpose"(%9, %cst9) : (tensor<4x4x2x6xi32>, tensor<4xi32>) -> tensor<4x2x4x6xi32>
    %cst10 = "tfl.pseudo_const"() {value = dense<[-1, 8, 8, 3]> : tensor<4xi32>} : () -> tensor<4xi32>
    %11 = "tfl.reshape"(%10, %cst10) {new_shape = dense<[-1, 8, 8, 3]> : tensor<4xi32>} : (tensor<4x2x4x6xi32>, tensor<4xi32>) -> tensor<1x8x8x3xi32>
    %cst11 = "tfl.pseudo_const"() {value = dense<[14014, 14016, 14017]> : tensor<3xi32>} : () -> tensor<3xi32>
    %12 = "tfl.mul"(%11, %cst11) {fused_activation_function = "NONE"} : (tensor<1x8x8x3xi32>, tensor<3xi32>) -> tensor<1x8x8x3xi32>
    %13 = "tfl.sign"(%11) : (tensor<1x8x8x3xi32>) -> tensor<1x8x8x3xi32>
    %cst12 = "tfl.pseudo_const"() {value = dense<[847847, 427488, 287348]> : tensor<3xi32>} : () -> tensor<3xi32>
    %14 = "tfl.mul"(%13, %cst12) {fused_activation_function = "NONE"} : (tensor<1x8x8x3xi32>, tensor<3xi32>) -> tensor<1x8x8x3xi32>
    %15 = "tfl.add"(%12, %14) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8x8x3xi32>, tensor<1x8x8x3xi32>) -> tensor<1x8x8x3xi32>
    %cst13 = "tfl.pseudo_const"() {value = dense<[1681680, 840960, 560680]> : tensor<3xi32>} : () -> tensor<3xi32>
    %16 = "tfl.div"(%15, %cst13) {fused_activation_function = "NONE"} : (tensor<1x8x8x3xi32>, tensor<3xi32>) -> tensor<1x8x8x3xi32>
    %cst14 = "tfl.pseudo_const"() {value = dense<131> : tensor<i32>} : () -> tensor<i32>
    %17 = "tfl.sub"(%cst14, %16) {fused_activation_function = "RELU", pot_scale_int16 = false} : (tensor<i32>, tensor<1x8x8x3xi32>) -> tensor<1x8x8x3xi32>
    %cst15 = "tfl.pseudo_const"() {value = dense<255> : tensor<i32>} : () -> tensor<i32>
    %18 = "tfl.sub"(%cst15, %17) {fused_activation_function = "RELU", pot_scale_int16 = false} : (tensor<i32>, tensor<1x8x8x3xi32>) -> tensor<1x8x8x3xi32>
    %cst16 = "tfl.pseudo_const"() {value = dense<-128> : tensor<i32>} : () -> tensor<i32>
    %19 = "tfl.add"(%18, %cst16) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8x8x3xi32>, tensor<i32>) -> tensor<1x8x8x3xi32>
    %20 = "tfl.cast"(%19) : (tensor<1x8x8x3xi32>) -> tensor<1x8x8x3x!quant.uniform<i8:f32, 0.06:-4>>
    return %20 : tensor<1x8x8x3x!quant.uniform<i8:f32, 0.06:-4>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<1x4x4x2xi8> {tflq.name = "x"}) -> tensor<1x8x8x3xi8> {
    %cst0 = "tosa.const"() {values = dense<[[[[-127, -90], [-53, -16], [21, 58]], [[95, -123], [-86, -49], [-12, 25]], [[62, 99], [-119, -82], [-45, -8]]], [[[29, 66], [103, -115], [-78, -41]], [[-4, 33], [70, 107], [-111, -74]], [[-37, 0], [37, 74], [111, -107]]], [[[-70, -33], [4, 41], [78, 115]], [[-103, -66], [-29, 8], [45, 82]], [[119, -99], [-62, -25], [12, 49]]]]> : tensor<3x3x3x2xi8>} : () -> tensor<3x3x3x2xi8>
    %cst1 = "tosa.const"() {values = dense<0> : tensor<3xi32>} : () -> tensor<3xi32>
    %0 = "tosa.transpose_conv2d"(%arg0, %cst0, %cst1) {out_pad = #tflq.tuple<[0, -1, 0, -1]>, stride = #tflq.tuple<[2, 2]>, input_zp = 3, weight_zp = 0} : (tensor<1x4x4x2xi8>, tensor<3x3x3x2xi8>, tensor<3xi32>) -> tensor<1x8x8x3xi32>
    %1 = "tosa.rescale"(%0) {multiplier = dense<[1145324629, 1145324629, 1717986944]> : tensor<3xi32>, shift = dense<[37, 36, 36]> : tensor<3xi8>, input_zp = 0, output_zp = -4, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = true} : (tensor<1x8x8x3xi32>) -> tensor<1x8x8x3xi8>
    return %1 : tensor<1x8x8x3xi8>
  }
}
