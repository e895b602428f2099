// ===== FULLY_CONNECTED, int8
module {
  func.func @main(%arg0: tensor<2x4x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}) -> tensor<2x3x!quant.uniform<i8:f32, 0.06:-4>> {
    %cst0 = "tfl.pseudo_const"() {value = dense<[[-127, -90, -53, -16], [21, 58, 95, -123], [-86, -49, -12, 25]]> : tensor<3x4xi8>} : () -> tensor<3x4x!quant.uniform<i8:f32:0, {0.01, 0.02, 0.03}>>
    %cst1 = "tfl.pseudo_const"() {value = dense<[-500, 500, 1500]> : tensor<3xi32>} : () -> tensor<3x!quant.uniform<i32:f32:0, {0.0005, 0.001, 0.0015}>>
    %0 = "tfl.fully_connected"(%arg0, %cst0, %cst1) : (tensor<2x4x!quant.uniform<i8:f32, 0.05:3>>, tensor<3x4x!quant.uniform<i8:f32:0, {0.01, 0.02, 0.03}>>, tensor<3x!quant.uniform<i32:f32:0, {0.0005, 0.001, 0.0015}>>) -> tensor<2x3x!quant.uniform<i8:f32, 0.06:-4>>
    return %0 : tensor<2x3x!quant.uniform<i8:f32, 0.06:-4>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<2x4x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}) -> tensor<2x3x!quant.uniform<i8:f32, 0.06:-4>> {
    %0 = quant.scast %arg0 : tensor<2x4x!quant.uniform<i8:f32, 0.05:3>> to tensor<2x4xi8>
    %1 = "tosa.reshape"(%0) : (tensor<2x4xi8>) -> tensor<2x1x1x4xi8>
    %cst0 = "tosa.const"() {values = dense<[[[[-127, -90, -53, -16]]], [[[21, 58, 95, -123]]], [[[-86, -49, -12, 25]]]]> : tensor<3x1x1x4xi8>} : () -> tensor<3x1x1x4xi8>
    %cst1 = "tosa.const"() {values = dense<[-500, 500, 1500]> : tensor<3xi32>} : () -> tensor<3xi32>
    %2 = "tosa.conv2d"(%1, %cst0, %cst1) {pad = #tflq.tuple<[0, 0, 0, 0]>, stride = #tflq.tuple<[1, 1]>, dilation = #tflq.tuple<[1, 1]>, input_zp = 3, weight_zp = 0} : (tensor<2x1x1x4xi8>, tensor<3x1x1x4xi8>, tensor<3xi32>) -> tensor<2x1x1x3xi32>
    %3 = "ext.rescale_f64"(%2) {scale = dense<[0.008333333457509676, 0.016666666915019352, 0.02500000037252903]> : tensor<3xf64>, output_zp = -4, input_range = #tflq.tuple<[-37546, 38189]>} : (tensor<2x1x1x3xi32>) -> tensor<2x1x1x3xi8>
    %4 = "tosa.reshape"(%3) : (tensor<2x1x1x3xi8>) -> tensor<2x3xi8>
    %5 = quant.scast %4 : tensor<2x3xi8> to tensor<2x3x!quant.uniform<i8:f32, 0.06:-4>>
    return %5 : tensor<2x3x!quant.uniform<i8:f32, 0.06:-4>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<2x4x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}) -> tensor<2x3x!quant.uniform<i8:f32, 0.06:-4>> {
    %cst0 = "tfl.pseudo_const"() {value = dense<[-1, 1, 1, 4]> : tensor<4xi32>} : () -> tensor<4xi32>
    %0 = "tfl.reshape"(%arg0, %cst0) {new_shape = dense<[-1, 1, 1, 4]> : tensor<4xi32>} : (tensor<2x4x!quant.uniform<i8:f32, 0.05:3>>, tensor<4xi32>) -> tensor<2x1x1x4xi8>
    %cst1 = "tfl.pseudo_const"() {value = dense<[[-127, -90, -53, -16], [21, 58, 95, -123], [-86, -49, -12, 25]]> : tensor<3x4xi8>} : () -> tensor<3x4xi8>
    %1 = "tfl.batch_matmul"(%0, %cst1) {adj_x = false, adj_y = true, asymmetric_quantize_inputs = false} : (tensor<2x1x1x4xi8>, tensor<3x4xi8>) -> tensor<2x1x1x3xi32>
    %cst2 = "tfl.pseudo_const"() {value = dense<[358, 347, 1866]> : tensor<3xi32>} : () -> tensor<3xi32>
    %2 = "tfl.add"(%1, %cst2) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<2x1x1x3xi32>, tensor<3xi32>) -> tensor<2x1x1x3xi32>
    %cst3 = "tfl.pseudo_const"() {value = dense<[56014, 56058, 56073]> : tensor<3xi32>} : () -> tensor<3xi32>
    %3 = "tfl.mul"(%2, %cst3) {fused_activation_function = "NONE"} : (tensor<2x1x1x3xi32>, tensor<3xi32>) -> tensor<2x1x1x3xi32>
    %4 = "tfl.sign"(%2) : (tensor<2x1x1x3xi32>) -> tensor<2x1x1x3xi32>
    %cst4 = "tfl.pseudo_const"() {value = dense<[3388846, 1709768, 1149496]> : tensor<3xi32>} : () -> tensor<3xi32>
    %5 = "tfl.mul"(%4, %cst4) {fused_activation_function = "NONE"} : (tensor<2x1x1x3xi32>, tensor<3xi32>) -> tensor<2x1x1x3xi32>
    %6 = "tfl.add"(%3, %5) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<2x1x1x3xi32>, tensor<2x1x1x3xi32>) -> tensor<2x1x1x3xi32>
    %cst5 = "tfl.pseudo_const"() {value = dense<[6721680, 3363480, 2242920]> : tensor<3xi32>} : () -> tensor<3xi32>
    %7 = "tfl.div"(%6, %cst5) {fused_activation_function = "NONE"} : (tensor<2x1x1x3xi32>, tensor<3xi32>) -> tensor<2x1x1x3xi32>
    %cst6 = "tfl.pseudo_const"() {value = dense<131> : tensor<i32>} : () -> tensor<i32>
    %8 = "tfl.sub"(%cst6, %7) {fused_activation_function = "RELU", pot_scale_int16 = false} : (tensor<i32>, tensor<2x1x1x3xi32>) -> tensor<2x1x1x3xi32>
    %cst7 = "tfl.pseudo_const"() {value = dense<255> : tensor<i32>} : () -> tensor<i32>
    %9 = "tfl.sub"(%cst7, %8) {fused_activation_function = "RELU", pot_scale_int16 = false} : (tensor<i32>, tensor<2x1x1x3xi32>) -> tensor<2x1x1x3xi32>
    %cst8 = "tfl.pseudo_const"() {value = dense<-128> : tensor<i32>} : () -> tensor<i32>
    %10 = "tfl.add"(%9, %cst8) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<2x1x1x3xi32>, tensor<i32>) -> tensor<2x1x1x3xi32>
    %11 = "tfl.cast"(%10) : (tensor<2x1x1x3xi32>) -> tensor<2x1x1x3xi8>
    %cst9 = "tfl.pseudo_const"() {value = dense<[-1, 3]> : tensor<2xi32>} : () -> tensor<2xi32>
    %12 = "tfl.reshape"(%11, %cst9) {new_shape = dense<[-1, 3]> : tensor<2xi32>} : (tensor<2x1x1x3xi8>, tensor<2xi32>) -> tensor<2x3x!quant.uniform<i8:f32, 0.06:-4>>
    return %12 : tensor<2x3x!quant.uniform<i8:f32, 0.06:-4>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<2x4xi8> {tflq.name = "x"}) -> tensor<2x3xi8> {
    %0 = "tosa.reshape"(%arg0) : (tensor<2x4xi8>) -> tensor<2x1x1x4xi8>
    %cst0 = "tosa.const"() {values = dense<[[[[-127, -90, -53, -16]]], [[[21, 58, 95, -123]]], [[[-86, -49, -12, 25]]]]> : tensor<3x1x1x4xi8>} : () -> tensor<3x1x1x4xi8>
    %cst1 = "tosa.const"() {values = dense<[-500, 500, 1500]> : tensor<3xi32>} : () -> tensor<3xi32>
    %1 = "tosa.conv2d"(%0, %cst0, %cst1) {pad = #tflq.tuple<[0, 0, 0, 0]>, stride = #tflq.tuple<[1, 1]>, dilation = #tflq.tuple<[1, 1]>, input_zp = 3, weight_zp = 0} : (tensor<2x1x1x4xi8>, tensor<3x1x1x4xi8>, tensor<3xi32>) -> tensor<2x1x1x3xi32>
    %2 = "tosa.rescale"(%1) {multiplier = dense<[1145361183, 1145397758, 1718151508]> : tensor<3xi32>, shift = dense<[37, 36, 36]> : tensor<3xi8>, input_zp = 0, output_zp = -4, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = true} : (tensor<2x1x1x3xi32>) -> tensor<2x1x1x3xi8>
    %3 = "tosa.reshape"(%2) : (tensor<2x1x1x3xi8>) -> tensor<2x3xi8>
    return %3 : tensor<2x3xi8>
  }
}

// ===== BATCH_MATMUL, int8
module {
  func.func @main(%arg0: tensor<2x3x4x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}, %arg1: tensor<2x4x5x!quant.uniform<i8:f32, 0.02:-6>> {tflq.name = "y"}) -> tensor<2x3x5x!quant.uniform<i8:f32, 0.1:1>> {
    %0 = "tfl.batch_matmul"(%arg0, %arg1) : (tensor<2x3x4x!quant.uniform<i8:f32, 0.05:3>>, tensor<2x4x5x!quant.uniform<i8:f32, 0.02:-6>>) -> tensor<2x3x5x!quant.uniform<i8:f32, 0.1:1>>
    return %0 : tensor<2x3x5x!quant.uniform<i8:f32, 0.1:1>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<2x3x4x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}, %arg1: tensor<2x4x5x!quant.uniform<i8:f32, 0.02:-6>> {tflq.name = "y"}) -> tensor<2x3x5x!quant.uniform<i8:f32, 0.1:1>> {
    %0 = quant.scast %arg0 : tensor<2x3x4x!quant.uniform<i8:f32, 0.05:3>> to tensor<2x3x4xi8>
    %1 = quant.scast %arg1 : tensor<2x4x5x!quant.uniform<i8:f32, 0.02:-6>> to tensor<2x4x5xi8>
    %2 = "tosa.matmul"(%0, %1) {a_zp = 3, b_zp = -6} : (tensor<2x3x4xi8>, tensor<2x4x5xi8>) -> tensor<2x3x5xi32>
    %3 = "tosa.rescale"(%2) {multiplier = dense<[1374389580]> : tensor<1xi32>, shift = dense<[37]> : tensor<1xi8>, input_zp = 0, output_zp = 1, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false, input_range = #tflq.tuple<[-69692, 65968]>} : (tensor<2x3x5xi32>) -> tensor<2x3x5xi8>
    %4 = quant.scast %3 : tensor<2x3x5xi8> to tensor<2x3x5x!quant.uniform<i8:f32, 0.1:1>>
    return %4 : tensor<2x3x5x!quant.uniform<i8:f32, 0.1:1>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<2x3x4x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}, %arg1: tensor<2x4x5x!quant.uniform<i8:f32, 0.02:-6>> {tflq.name = "y"}) -> tensor<2x3x5x!quant.uniform<i8:f32, 0.1:1>> {
    %0 = "tfl.batch_matmul"(%arg0, %arg1) {adj_x = false, adj_y = false, asymmetric_quantize_inputs = false} : (tensor<2x3x4x!quant.uniform<i8:f32, 0.05:3>>, tensor<2x4x5x!quant.uniform<i8:f32, 0.02:-6>>) -> tensor<2x3x5xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense<1> : tensor<1x4xi8>} : () -> tensor<1x4xi8>
    %1 = "tfl.batch_matmul"(%arg0, %cst0) {adj_x = false, adj_y = true, asymmetric_quantize_inputs = false} : (tensor<2x3x4x!quant.uniform<i8:f32, 0.05:3>>, tensor<1x4xi8>) -> tensor<2x3x1xi32>
    %cst1 = "tfl.pseudo_const"() {value = dense<6> : tensor<i32>} : () -> tensor<i32>
    %2 = "tfl.mul"(%1, %cst1) {fused_activation_function = "NONE"} : (tensor<2x3x1xi32>, tensor<i32>) -> tensor<2x3x1xi32>
    %3 = "tfl.add"(%0, %2) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<2x3x5xi32>, tensor<2x3x1xi32>) -> tensor<2x3x5xi32>
    %4 = "tfl.batch_matmul"(%cst0, %arg1) {adj_x = false, adj_y = false, asymmetric_quantize_inputs = false} : (tensor<1x4xi8>, tensor<2x4x5x!quant.uniform<i8:f32, 0.02:-6>>) -> tensor<2x1x5xi32>
    %cst2 = "tfl.pseudo_const"() {value = dense<-3> : tensor<i32>} : () -> tensor<i32>
    %5 = "tfl.mul"(%4, %cst2) {fused_activation_function = "NONE"} : (tensor<2x1x5xi32>, tensor<i32>) -> tensor<2x1x5xi32>
    %cst3 = "tfl.pseudo_const"() {value = dense<-72> : tensor<i32>} : () -> tensor<i32>
    %6 = "tfl.add"(%5, %cst3) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<2x1x5xi32>, tensor<i32>) -> tensor<2x1x5xi32>
    %7 = "tfl.add"(%3, %6) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<2x3x5xi32>, tensor<2x1x5xi32>) -> tensor<2x3x5xi32>
    %cst4 = "tfl.pseudo_const"() {value = dense<30759> : tensor<i32>} : () -> tensor<i32>
    %8 = "tfl.mul"(%7, %cst4) {fused_activation_function = "NONE"} : (tensor<2x3x5xi32>, tensor<i32>) -> tensor<2x3x5xi32>
    %9 = "tfl.sign"(%7) : (tensor<2x3x5xi32>) -> tensor<2x3x5xi32>
    %cst5 = "tfl.pseudo_const"() {value = dense<1553329> : tensor<i32>} : () -> tensor<i32>
    %10 = "tfl.mul"(%9, %cst5) {fused_activation_function = "NONE"} : (tensor<2x3x5xi32>, tensor<i32>) -> tensor<2x3x5xi32>
    %11 = "tfl.add"(%8, %10) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<2x3x5xi32>, tensor<2x3x5xi32>) -> tensor<2x3x5xi32>
    %cst6 = "tfl.pseudo_const"() {value = dense<3075900> : tensor<i32>} : () -> tensor<i32>
    %12 = "tfl.div"(%11, %cst6) {fused_activation_function = "NONE"} : (tensor<2x3x5xi32>, tensor<i32>) -> tensor<2x3x5xi32>
    %cst7 = "tfl.pseudo_const"() {value = dense<126> : tensor<i32>} : () -> tensor<i32>
    %13 = "tfl.sub"(%cst7, %12) {fused_activation_function = "RELU", pot_scale_int16 = false} : (tensor<i32>, tensor<2x3x5xi32>) -> tensor<2x3x5xi32>
    %cst8 = "tfl.pseudo_const"() {value = dense<255> : tensor<i32>} : () -> tensor<i32>
    %14 = "tfl.sub"(%cst8, %13) {fused_activation_function = "RELU", pot_scale_int16 = false} : (tensor<i32>, tensor<2x3x5xi32>) -> tensor<2x3x5xi32>
    %cst9 = "tfl.pseudo_const"() {value = dense<-128> : tensor<i32>} : () -> tensor<i32>
    %15 = "tfl.add"(%14, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<2x3x5xi32>, tensor<i32>) -> tensor<2x3x5xi32>
    %16 = "tfl.cast"(%15) : (tensor<2x3x5xi32>) -> tensor<2x3x5x!quant.uniform<i8:f32, 0.1:1>>
    return %16 : tensor<2x3x5x!quant.uniform<i8:f32, 0.1:1>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<2x3x4xi8> {tflq.name = "x"}, %arg1: tensor<2x4x5xi8> {tflq.name = "y"}) -> tensor<2x3x5xi8> {
    %0 = "tosa.matmul"(%arg0, %arg1) {a_zp = 3, b_zp = -6} : (tensor<2x3x4xi8>, tensor<2x4x5xi8>) -> tensor<2x3x5xi32>
    %1 = "tosa.rescale"(%0) {multiplier = dense<[1374389580]> : tensor<1xi32>, shift = dense<[37]> : tensor<1xi8>, input_zp = 0, output_zp = 1, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<2x3x5xi32>) -> tensor<2x3x5xi8>
    return %1 : tensor<2x3x5xi8>
  }
}
