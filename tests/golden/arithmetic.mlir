// ===== ADD, int8, three scales, fused RELU
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}, %arg1: tensor<1x8x!quant.uniform<i8:f32, 0.02:-20>> {tflq.name = "y"}) -> tensor<1x8x!quant.uniform<i8:f32, 0.06:-7>> {
    %0 = "tfl.add"(%arg0, %arg1) {fused_activation_function = "RELU"} : (tensor<1x8x!quant.uniform<i8:f32, 0.05:3>>, tensor<1x8x!quant.uniform<i8:f32, 0.02:-20>>) -> tensor<1x8x!quant.uniform<i8:f32, 0.06:-7>>
    return %0 : tensor<1x8x!quant.uniform<i8:f32, 0.06:-7>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}, %arg1: tensor<1x8x!quant.uniform<i8:f32, 0.02:-20>> {tflq.name = "y"}) -> tensor<1x8x!quant.uniform<i8:f32, 0.06:-7>> {
    %0 = quant.scast %arg0 : tensor<1x8x!quant.uniform<i8:f32, 0.05:3>> to tensor<1x8xi8>
    %1 = quant.scast %arg1 : tensor<1x8x!quant.uniform<i8:f32, 0.02:-20>> to tensor<1x8xi8>
    %2 = "tosa.cast"(%0) : (tensor<1x8xi8>) -> tensor<1x8xi32>
    %cst0 = "tosa.const"() {values = dense<3> : tensor<i32>} : () -> tensor<i32>
    %3 = "tosa.sub"(%2, %cst0) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %cst1 = "tosa.const"() {values = dense<524288> : tensor<i32>} : () -> tensor<i32>
    %4 = "tosa.mul"(%3, %cst1) {shift = 0} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %5 = "tosa.cast"(%1) : (tensor<1x8xi8>) -> tensor<1x8xi32>
    %cst2 = "tosa.const"() {values = dense<-20> : tensor<i32>} : () -> tensor<i32>
    %6 = "tosa.sub"(%5, %cst2) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %cst3 = "tosa.const"() {values = dense<1048576> : tensor<i32>} : () -> tensor<i32>
    %7 = "tosa.mul"(%6, %cst3) {shift = 0} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %8 = "tosa.rescale"(%7) {multiplier = dense<[1717986854]> : tensor<1xi32>, shift = dense<[33]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xi32>) -> tensor<1x8xi32>
    %9 = "tosa.add"(%4, %8) : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %10 = "tosa.rescale"(%9) {multiplier = dense<[1789569773]> : tensor<1xi32>, shift = dense<[50]> : tensor<1xi8>, input_zp = 0, output_zp = -7, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xi32>) -> tensor<1x8xi8>
    %11 = "tosa.clamp"(%10) {min_val = -7, max_val = 127} : (tensor<1x8xi8>) -> tensor<1x8xi8>
    %12 = quant.scast %11 : tensor<1x8xi8> to tensor<1x8x!quant.uniform<i8:f32, 0.06:-7>>
    return %12 : tensor<1x8x!quant.uniform<i8:f32, 0.06:-7>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}, %arg1: tensor<1x8x!quant.uniform<i8:f32, 0.02:-20>> {tflq.name = "y"}) -> tensor<1x8x!quant.uniform<i8:f32, 0.06:-7>> {
    %0 = "tfl.bitcast"(%arg0) : (tensor<1x8x!quant.uniform<i8:f32, 0.05:3>>) -> tensor<1x8xui8>
    %1 = "tfl.cast"(%0) : (tensor<1x8xui8>) -> tensor<1x8xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense<256> : tensor<i32>} : () -> tensor<i32>
    %2 = "tfl.mul"(%1, %cst0) {fused_activation_function = "NONE"} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %3 = "tfl.bitcast"(%arg1) : (tensor<1x8x!quant.uniform<i8:f32, 0.02:-20>>) -> tensor<1x8xui8>
    %4 = "tfl.cast"(%3) : (tensor<1x8xui8>) -> tensor<1x8xi32>
    %5 = "tfl.add"(%2, %4) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst1 = "tfl.pseudo_const"() {value = dense_resource<96c3ada1> : tensor<65536xi8>} : () -> tensor<65536xi8>
    %6 = "tfl.gather"(%cst1, %5) {axis = 0, batch_dims = 0} : (tensor<65536xi8>, tensor<1x8xi32>) -> tensor<1x8x!quant.uniform<i8:f32, 0.06:-7>>
    return %6 : tensor<1x8x!quant.uniform<i8:f32, 0.06:-7>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<1x8xi8> {tflq.name = "x"}, %arg1: tensor<1x8xi8> {tflq.name = "y"}) -> tensor<1x8xi8> {
    %0 = "tosa.rescale"(%arg0) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[11]> : tensor<1xi8>, input_zp = 3, output_zp = 0, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xi8>) -> tensor<1x8xi32>
    %1 = "tosa.rescale"(%arg1) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[10]> : tensor<1xi8>, input_zp = -20, output_zp = 0, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xi8>) -> tensor<1x8xi32>
    %2 = "tosa.rescale"(%1) {multiplier = dense<[1717986854]> : tensor<1xi32>, shift = dense<[33]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xi32>) -> tensor<1x8xi32>
    %3 = "tosa.add"(%0, %2) : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %4 = "tosa.rescale"(%3) {multiplier = dense<[1789569773]> : tensor<1xi32>, shift = dense<[50]> : tensor<1xi8>, input_zp = 0, output_zp = -7, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xi32>) -> tensor<1x8xi8>
    %5 = "tosa.clamp"(%4) {min_val = -7, max_val = 127} : (tensor<1x8xi8>) -> tensor<1x8xi8>
    return %5 : tensor<1x8xi8>
  }
}

// ===== ADD, int16
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i16:f32, 0.001>> {tflq.name = "x"}, %arg1: tensor<1x8x!quant.uniform<i16:f32, 0.003>> {tflq.name = "y"}) -> tensor<1x8x!quant.uniform<i16:f32, 0.004>> {
    %0 = "tfl.add"(%arg0, %arg1) : (tensor<1x8x!quant.uniform<i16:f32, 0.001>>, tensor<1x8x!quant.uniform<i16:f32, 0.003>>) -> tensor<1x8x!quant.uniform<i16:f32, 0.004>>
    return %0 : tensor<1x8x!quant.uniform<i16:f32, 0.004>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i16:f32, 0.001>> {tflq.name = "x"}, %arg1: tensor<1x8x!quant.uniform<i16:f32, 0.003>> {tflq.name = "y"}) -> tensor<1x8x!quant.uniform<i16:f32, 0.004>> {
    %0 = quant.scast %arg0 : tensor<1x8x!quant.uniform<i16:f32, 0.001>> to tensor<1x8xi16>
    %1 = quant.scast %arg1 : tensor<1x8x!quant.uniform<i16:f32, 0.003>> to tensor<1x8xi16>
    %2 = "tosa.cast"(%0) : (tensor<1x8xi16>) -> tensor<1x8xi32>
    %cst0 = "tosa.const"() {values = dense<32768> : tensor<i32>} : () -> tensor<i32>
    %3 = "tosa.mul"(%2, %cst0) {shift = 0} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %4 = "tosa.rescale"(%3) {multiplier = dense<[1431655821]> : tensor<1xi32>, shift = dense<[33]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xi32>) -> tensor<1x8xi32>
    %5 = "tosa.cast"(%1) : (tensor<1x8xi16>) -> tensor<1x8xi32>
    %cst1 = "tosa.const"() {values = dense<16384> : tensor<i32>} : () -> tensor<i32>
    %6 = "tosa.mul"(%5, %cst1) {shift = 0} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %7 = "tosa.add"(%4, %6) : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %8 = "tosa.rescale"(%7) {multiplier = dense<[1610612674]> : tensor<1xi32>, shift = dense<[45]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xi32>) -> tensor<1x8xi16>
    %9 = quant.scast %8 : tensor<1x8xi16> to tensor<1x8x!quant.uniform<i16:f32, 0.004>>
    return %9 : tensor<1x8x!quant.uniform<i16:f32, 0.004>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i16:f32, 0.001>> {tflq.name = "x"}, %arg1: tensor<1x8x!quant.uniform<i16:f32, 0.003>> {tflq.name = "y"}) -> tensor<1x8x!quant.uniform<i16:f32, 0.004>> {
    %0 = "tfl.cast"(%arg0) : (tensor<1x8x!quant.uniform<i16:f32, 0.001>>) -> tensor<1x8xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense<32768> : tensor<i32>} : () -> tensor<i32>
    %1 = "tfl.mul"(%0, %cst0) {fused_activation_function = "NONE"} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %2 = "tfl.cast"(%1) : (tensor<1x8xi32>) -> tensor<1x8xi64>
    %cst1 = "tfl.pseudo_const"() {value = dense<1431655821> : tensor<i64>} : () -> tensor<i64>
    %3 = "tfl.mul"(%2, %cst1) {fused_activation_function = "NONE"} : (tensor<1x8xi64>, tensor<i64>) -> tensor<1x8xi64>
    %4 = "tfl.sign"(%1) : (tensor<1x8xi32>) -> tensor<1x8xi32>
    %5 = "tfl.cast"(%4) : (tensor<1x8xi32>) -> tensor<1x8xi64>
    %cst2 = "tfl.pseudo_const"() {value = dense<1073741824> : tensor<i64>} : () -> tensor<i64>
    %6 = "tfl.mul"(%5, %cst2) {fused_activation_function = "NONE"} : (tensor<1x8xi64>, tensor<i64>) -> tensor<1x8xi64>
    %7 = "tfl.add"(%3, %6) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi64>, tensor<1x8xi64>) -> tensor<1x8xi64>
    %cst3 = "tfl.pseudo_const"() {value = dense<4294967296> : tensor<i64>} : () -> tensor<i64>
    %8 = "tfl.add"(%7, %cst3) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi64>, tensor<i64>) -> tensor<1x8xi64>
    %9 = "tfl.bitcast"(%8) : (tensor<1x8xi64>) -> tensor<1x8x2xi32>
    %cst4 = "tfl.pseudo_const"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %10 = "tfl.gather"(%9, %cst4) {axis = 2, batch_dims = 0} : (tensor<1x8x2xi32>, tensor<i32>) -> tensor<1x8xi32>
    %11 = "tfl.right_shift"(%10, %cst4) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %12 = "tfl.cast"(%arg1) : (tensor<1x8x!quant.uniform<i16:f32, 0.003>>) -> tensor<1x8xi32>
    %cst5 = "tfl.pseudo_const"() {value = dense<16384> : tensor<i32>} : () -> tensor<i32>
    %13 = "tfl.mul"(%12, %cst5) {fused_activation_function = "NONE"} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %14 = "tfl.add"(%11, %13) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %15 = "tfl.cast"(%14) : (tensor<1x8xi32>) -> tensor<1x8xi64>
    %cst6 = "tfl.pseudo_const"() {value = dense<1610612674> : tensor<i64>} : () -> tensor<i64>
    %16 = "tfl.mul"(%15, %cst6) {fused_activation_function = "NONE"} : (tensor<1x8xi64>, tensor<i64>) -> tensor<1x8xi64>
    %17 = "tfl.sign"(%14) : (tensor<1x8xi32>) -> tensor<1x8xi32>
    %18 = "tfl.cast"(%17) : (tensor<1x8xi32>) -> tensor<1x8xi64>
    %19 = "tfl.mul"(%18, %cst2) {fused_activation_function = "NONE"} : (tensor<1x8xi64>, tensor<i64>) -> tensor<1x8xi64>
    %20 = "tfl.add"(%16, %19) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi64>, tensor<1x8xi64>) -> tensor<1x8xi64>
    %cst7 = "tfl.pseudo_const"() {value = dense<1152903912420802559> : tensor<i64>} : () -> tensor<i64>
    %21 = "tfl.sub"(%cst7, %20) {fused_activation_function = "RELU", pot_scale_int16 = false} : (tensor<i64>, tensor<1x8xi64>) -> tensor<1x8xi64>
    %cst8 = "tfl.pseudo_const"() {value = dense<2305843009213693951> : tensor<i64>} : () -> tensor<i64>
    %22 = "tfl.sub"(%cst8, %21) {fused_activation_function = "RELU", pot_scale_int16 = false} : (tensor<i64>, tensor<1x8xi64>) -> tensor<1x8xi64>
    %23 = "tfl.bitcast"(%22) : (tensor<1x8xi64>) -> tensor<1x8x2xi32>
    %24 = "tfl.gather"(%23, %cst4) {axis = 2, batch_dims = 0} : (tensor<1x8x2xi32>, tensor<i32>) -> tensor<1x8xi32>
    %cst9 = "tfl.pseudo_const"() {value = dense<13> : tensor<i32>} : () -> tensor<i32>
    %25 = "tfl.right_shift"(%24, %cst9) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %cst10 = "tfl.pseudo_const"() {value = dense<-32768> : tensor<i32>} : () -> tensor<i32>
    %26 = "tfl.add"(%25, %cst10) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %27 = "tfl.cast"(%26) : (tensor<1x8xi32>) -> tensor<1x8x!quant.uniform<i16:f32, 0.004>>
    return %27 : tensor<1x8x!quant.uniform<i16:f32, 0.004>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<1x8xi16> {tflq.name = "x"}, %arg1: tensor<1x8xi16> {tflq.name = "y"}) -> tensor<1x8xi16> {
    %0 = "tosa.cast"(%arg0) : (tensor<1x8xi16>) -> tensor<1x8xi32>
    %cst0 = "tosa.const"() {values = dense<[[32768]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %1 = "tosa.mul"(%0, %cst0) {shift = 0} : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %2 = "tosa.rescale"(%1) {multiplier = dense<[1431655821]> : tensor<1xi32>, shift = dense<[33]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xi32>) -> tensor<1x8xi32>
    %3 = "tosa.cast"(%arg1) : (tensor<1x8xi16>) -> tensor<1x8xi32>
    %cst1 = "tosa.const"() {values = dense<[[16384]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %4 = "tosa.mul"(%3, %cst1) {shift = 0} : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %5 = "tosa.add"(%2, %4) : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %6 = "tosa.rescale"(%5) {multiplier = dense<[1610612674]> : tensor<1xi32>, shift = dense<[45]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xi32>) -> tensor<1x8xi16>
    return %6 : tensor<1x8xi16>
  }
}

// ===== ADD, int16, scales that are powers of two
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i16:f32, 0.00024414062>> {tflq.name = "x"}, %arg1: tensor<1x8x!quant.uniform<i16:f32, 0.0009765625>> {tflq.name = "y"}) -> tensor<1x8x!quant.uniform<i16:f32, 0.0009765625>> {
    %0 = "tfl.add"(%arg0, %arg1) {pot_scale_int16 = true} : (tensor<1x8x!quant.uniform<i16:f32, 0.00024414062>>, tensor<1x8x!quant.uniform<i16:f32, 0.0009765625>>) -> tensor<1x8x!quant.uniform<i16:f32, 0.0009765625>>
    return %0 : tensor<1x8x!quant.uniform<i16:f32, 0.0009765625>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i16:f32, 0.00024414062>> {tflq.name = "x"}, %arg1: tensor<1x8x!quant.uniform<i16:f32, 0.0009765625>> {tflq.name = "y"}) -> tensor<1x8x!quant.uniform<i16:f32, 0.0009765625>> {
    %0 = quant.scast %arg0 : tensor<1x8x!quant.uniform<i16:f32, 0.00024414062>> to tensor<1x8xi16>
    %1 = quant.scast %arg1 : tensor<1x8x!quant.uniform<i16:f32, 0.0009765625>> to tensor<1x8xi16>
    %2 = "tosa.cast"(%0) : (tensor<1x8xi16>) -> tensor<1x8xi32>
    %cst0 = "tosa.const"() {values = dense<31> : tensor<i32>} : () -> tensor<i32>
    %3 = "tosa.arithmetic_right_shift"(%2, %cst0) {round = false} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %4 = "tosa.add"(%2, %3) : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst1 = "tosa.const"() {values = dense<2> : tensor<i32>} : () -> tensor<i32>
    %5 = "tosa.arithmetic_right_shift"(%4, %cst1) {round = true} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %6 = "tosa.cast"(%1) : (tensor<1x8xi16>) -> tensor<1x8xi32>
    %7 = "tosa.add"(%5, %6) : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %8 = "tosa.clamp"(%7) {min_val = -32768, max_val = 32767} : (tensor<1x8xi32>) -> tensor<1x8xi32>
    %9 = "tosa.cast"(%8) : (tensor<1x8xi32>) -> tensor<1x8xi16>
    %10 = quant.scast %9 : tensor<1x8xi16> to tensor<1x8x!quant.uniform<i16:f32, 0.0009765625>>
    return %10 : tensor<1x8x!quant.uniform<i16:f32, 0.0009765625>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i16:f32, 0.00024414062>> {tflq.name = "x"}, %arg1: tensor<1x8x!quant.uniform<i16:f32, 0.0009765625>> {tflq.name = "y"}) -> tensor<1x8x!quant.uniform<i16:f32, 0.0009765625>> {
    %0 = "tfl.cast"(%arg0) : (tensor<1x8x!quant.uniform<i16:f32, 0.00024414062>>) -> tensor<1x8xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense<31> : tensor<i32>} : () -> tensor<i32>
    %1 = "tfl.right_shift"(%0, %cst0) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %2 = "tfl.add"(%0, %1) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst1 = "tfl.pseudo_const"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %3 = "tfl.right_shift"(%2, %cst1) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %4 = "tfl.right_shift"(%3, %cst1) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %5 = "tfl.sub"(%3, %4) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %6 = "tfl.cast"(%arg1) : (tensor<1x8x!quant.uniform<i16:f32, 0.0009765625>>) -> tensor<1x8xi32>
    %7 = "tfl.add"(%5, %6) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst2 = "tfl.pseudo_const"() {value = dense<-32768> : tensor<i32>} : () -> tensor<i32>
    %8 = "tfl.maximum"(%7, %cst2) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %cst3 = "tfl.pseudo_const"() {value = dense<32767> : tensor<i32>} : () -> tensor<i32>
    %9 = "tfl.minimum"(%8, %cst3) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %10 = "tfl.cast"(%9) : (tensor<1x8xi32>) -> tensor<1x8x!quant.uniform<i16:f32, 0.0009765625>>
    return %10 : tensor<1x8x!quant.uniform<i16:f32, 0.0009765625>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<1x8xi16> {tflq.name = "x"}, %arg1: tensor<1x8xi16> {tflq.name = "y"}) -> tensor<1x8xi16> {
    %0 = "tosa.cast"(%arg0) : (tensor<1x8xi16>) -> tensor<1x8xi32>
    %cst0 = "tosa.const"() {values = dense<[[31]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %1 = "tosa.arithmetic_right_shift"(%0, %cst0) {round = false} : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %2 = "tosa.add"(%0, %1) : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst1 = "tosa.const"() {values = dense<[[2]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %3 = "tosa.arithmetic_right_shift"(%2, %cst1) {round = true} : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %4 = "tosa.cast"(%arg1) : (tensor<1x8xi16>) -> tensor<1x8xi32>
    %5 = "tosa.add"(%3, %4) : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %6 = "tosa.rescale"(%5) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[30]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xi32>) -> tensor<1x8xi16>
    return %6 : tensor<1x8xi16>
  }
}

// ===== SUB, broadcast
module {
  func.func @main(%arg0: tensor<2x8x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}, %arg1: tensor<8x!quant.uniform<i8:f32, 0.02:5>> {tflq.name = "y"}) -> tensor<2x8x!quant.uniform<i8:f32, 0.06:-7>> {
    %0 = "tfl.sub"(%arg0, %arg1) : (tensor<2x8x!quant.uniform<i8:f32, 0.05:3>>, tensor<8x!quant.uniform<i8:f32, 0.02:5>>) -> tensor<2x8x!quant.uniform<i8:f32, 0.06:-7>>
    return %0 : tensor<2x8x!quant.uniform<i8:f32, 0.06:-7>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<2x8x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}, %arg1: tensor<8x!quant.uniform<i8:f32, 0.02:5>> {tflq.name = "y"}) -> tensor<2x8x!quant.uniform<i8:f32, 0.06:-7>> {
    %0 = quant.scast %arg0 : tensor<2x8x!quant.uniform<i8:f32, 0.05:3>> to tensor<2x8xi8>
    %1 = quant.scast %arg1 : tensor<8x!quant.uniform<i8:f32, 0.02:5>> to tensor<8xi8>
    %2 = "tosa.cast"(%0) : (tensor<2x8xi8>) -> tensor<2x8xi32>
    %cst0 = "tosa.const"() {values = dense<3> : tensor<i32>} : () -> tensor<i32>
    %3 = "tosa.sub"(%2, %cst0) : (tensor<2x8xi32>, tensor<i32>) -> tensor<2x8xi32>
    %cst1 = "tosa.const"() {values = dense<524288> : tensor<i32>} : () -> tensor<i32>
    %4 = "tosa.mul"(%3, %cst1) {shift = 0} : (tensor<2x8xi32>, tensor<i32>) -> tensor<2x8xi32>
    %5 = "tosa.cast"(%1) : (tensor<8xi8>) -> tensor<8xi32>
    %cst2 = "tosa.const"() {values = dense<5> : tensor<i32>} : () -> tensor<i32>
    %6 = "tosa.sub"(%5, %cst2) : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
    %cst3 = "tosa.const"() {values = dense<1048576> : tensor<i32>} : () -> tensor<i32>
    %7 = "tosa.mul"(%6, %cst3) {shift = 0} : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
    %8 = "tosa.rescale"(%7) {multiplier = dense<[1717986854]> : tensor<1xi32>, shift = dense<[33]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<8xi32>) -> tensor<8xi32>
    %9 = "tosa.sub"(%4, %8) : (tensor<2x8xi32>, tensor<8xi32>) -> tensor<2x8xi32>
    %10 = "tosa.rescale"(%9) {multiplier = dense<[1789569773]> : tensor<1xi32>, shift = dense<[50]> : tensor<1xi8>, input_zp = 0, output_zp = -7, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<2x8xi32>) -> tensor<2x8xi8>
    %11 = quant.scast %10 : tensor<2x8xi8> to tensor<2x8x!quant.uniform<i8:f32, 0.06:-7>>
    return %11 : tensor<2x8x!quant.uniform<i8:f32, 0.06:-7>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<2x8x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}, %arg1: tensor<8x!quant.uniform<i8:f32, 0.02:5>> {tflq.name = "y"}) -> tensor<2x8x!quant.uniform<i8:f32, 0.06:-7>> {
    %0 = "tfl.bitcast"(%arg0) : (tensor<2x8x!quant.uniform<i8:f32, 0.05:3>>) -> tensor<2x8xui8>
    %1 = "tfl.cast"(%0) : (tensor<2x8xui8>) -> tensor<2x8xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense<256> : tensor<i32>} : () -> tensor<i32>
    %2 = "tfl.mul"(%1, %cst0) {fused_activation_function = "NONE"} : (tensor<2x8xi32>, tensor<i32>) -> tensor<2x8xi32>
    %3 = "tfl.bitcast"(%arg1) : (tensor<8x!quant.uniform<i8:f32, 0.02:5>>) -> tensor<8xui8>
    %4 = "tfl.cast"(%3) : (tensor<8xui8>) -> tensor<8xi32>
    %5 = "tfl.add"(%2, %4) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<2x8xi32>, tensor<8xi32>) -> tensor<2x8xi32>
    %cst1 = "tfl.pseudo_const"() {value = dense_resource<a598be89> : tensor<65536xi8>} : () -> tensor<65536xi8>
    %6 = "tfl.gather"(%cst1, %5) {axis = 0, batch_dims = 0} : (tensor<65536xi8>, tensor<2x8xi32>) -> tensor<2x8x!quant.uniform<i8:f32, 0.06:-7>>
    return %6 : tensor<2x8x!quant.uniform<i8:f32, 0.06:-7>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<2x8xi8> {tflq.name = "x"}, %arg1: tensor<8xi8> {tflq.name = "y"}) -> tensor<2x8xi8> {
    %0 = "tosa.rescale"(%arg0) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[11]> : tensor<1xi8>, input_zp = 3, output_zp = 0, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<2x8xi8>) -> tensor<2x8xi32>
    %1 = "tosa.rescale"(%arg1) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[10]> : tensor<1xi8>, input_zp = 5, output_zp = 0, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<8xi8>) -> tensor<8xi32>
    %2 = "tosa.rescale"(%1) {multiplier = dense<[1717986854]> : tensor<1xi32>, shift = dense<[33]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<8xi32>) -> tensor<8xi32>
    %3 = "tosa.reshape"(%2) : (tensor<8xi32>) -> tensor<1x8xi32>
    %4 = "tosa.sub"(%0, %3) : (tensor<2x8xi32>, tensor<1x8xi32>) -> tensor<2x8xi32>
    %5 = "tosa.rescale"(%4) {multiplier = dense<[1789569773]> : tensor<1xi32>, shift = dense<[50]> : tensor<1xi8>, input_zp = 0, output_zp = -7, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<2x8xi32>) -> tensor<2x8xi8>
    return %5 : tensor<2x8xi8>
  }
}

// ===== MUL, uint8
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<u8:f32, 0.05:128>> {tflq.name = "x"}, %arg1: tensor<1x8x!quant.uniform<u8:f32, 0.02:3>> {tflq.name = "y"}) -> tensor<1x8x!quant.uniform<u8:f32, 0.01:128>> {
    %0 = "tfl.mul"(%arg0, %arg1) : (tensor<1x8x!quant.uniform<u8:f32, 0.05:128>>, tensor<1x8x!quant.uniform<u8:f32, 0.02:3>>) -> tensor<1x8x!quant.uniform<u8:f32, 0.01:128>>
    return %0 : tensor<1x8x!quant.uniform<u8:f32, 0.01:128>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<u8:f32, 0.05:128>> {tflq.name = "x"}, %arg1: tensor<1x8x!quant.uniform<u8:f32, 0.02:3>> {tflq.name = "y"}) -> tensor<1x8x!quant.uniform<u8:f32, 0.01:128>> {
    %0 = quant.scast %arg0 : tensor<1x8x!quant.uniform<u8:f32, 0.05:128>> to tensor<1x8xui8>
    %1 = quant.scast %arg1 : tensor<1x8x!quant.uniform<u8:f32, 0.02:3>> to tensor<1x8xui8>
    %2 = "tosa.cast"(%0) : (tensor<1x8xui8>) -> tensor<1x8xi32>
    %cst0 = "tosa.const"() {values = dense<128> : tensor<i32>} : () -> tensor<i32>
    %3 = "tosa.sub"(%2, %cst0) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %4 = "tosa.cast"(%1) : (tensor<1x8xui8>) -> tensor<1x8xi32>
    %cst1 = "tosa.const"() {values = dense<3> : tensor<i32>} : () -> tensor<i32>
    %5 = "tosa.sub"(%4, %cst1) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %6 = "tosa.mul"(%3, %5) {shift = 0} : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %7 = "tosa.rescale"(%6) {multiplier = dense<[1717987072]> : tensor<1xi32>, shift = dense<[34]> : tensor<1xi8>, input_zp = 0, output_zp = 128, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xi32>) -> tensor<1x8xui8>
    %8 = quant.scast %7 : tensor<1x8xui8> to tensor<1x8x!quant.uniform<u8:f32, 0.01:128>>
    return %8 : tensor<1x8x!quant.uniform<u8:f32, 0.01:128>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<u8:f32, 0.05:128>> {tflq.name = "x"}, %arg1: tensor<1x8x!quant.uniform<u8:f32, 0.02:3>> {tflq.name = "y"}) -> tensor<1x8x!quant.uniform<u8:f32, 0.01:128>> {
    %0 = "tfl.cast"(%arg0) : (tensor<1x8x!quant.uniform<u8:f32, 0.05:128>>) -> tensor<1x8xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense<256> : tensor<i32>} : () -> tensor<i32>
    %1 = "tfl.mul"(%0, %cst0) {fused_activation_function = "NONE"} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %2 = "tfl.cast"(%arg1) : (tensor<1x8x!quant.uniform<u8:f32, 0.02:3>>) -> tensor<1x8xi32>
    %3 = "tfl.add"(%1, %2) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst1 = "tfl.pseudo_const"() {value = dense_resource<1467f27a> : tensor<65536xui8>} : () -> tensor<65536xui8>
    %4 = "tfl.gather"(%cst1, %3) {axis = 0, batch_dims = 0} : (tensor<65536xui8>, tensor<1x8xi32>) -> tensor<1x8x!quant.uniform<u8:f32, 0.01:128>>
    return %4 : tensor<1x8x!quant.uniform<u8:f32, 0.01:128>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<1x8xui8> {tflq.name = "x"}, %arg1: tensor<1x8xui8> {tflq.name = "y"}) -> tensor<1x8xui8> {
    %0 = "tosa.rescale"(%arg0) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[30]> : tensor<1xi8>, input_zp = 0, output_zp = -128, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xui8>) -> tensor<1x8xi8>
    %1 = "tosa.rescale"(%arg1) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[30]> : tensor<1xi8>, input_zp = 0, output_zp = -128, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xui8>) -> tensor<1x8xi8>
    %2 = "tosa.rescale"(%0) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[30]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xi8>) -> tensor<1x8xi32>
    %3 = "tosa.rescale"(%1) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[30]> : tensor<1xi8>, input_zp = -125, output_zp = 0, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xi8>) -> tensor<1x8xi32>
    %4 = "tosa.mul"(%2, %3) {shift = 0} : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %5 = "tosa.rescale"(%4) {multiplier = dense<[1717987072]> : tensor<1xi32>, shift = dense<[34]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xi32>) -> tensor<1x8xi8>
    %6 = "tosa.rescale"(%5) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[30]> : tensor<1xi8>, input_zp = -128, output_zp = 0, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xi8>) -> tensor<1x8xui8>
    return %6 : tensor<1x8xui8>
  }
}

// ===== DIV, int8
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}, %arg1: tensor<1x8x!quant.uniform<i8:f32, 0.02:-2>> {tflq.name = "y"}) -> tensor<1x8x!quant.uniform<i8:f32, 0.1>> {
    %0 = "tfl.div"(%arg0, %arg1) : (tensor<1x8x!quant.uniform<i8:f32, 0.05:3>>, tensor<1x8x!quant.uniform<i8:f32, 0.02:-2>>) -> tensor<1x8x!quant.uniform<i8:f32, 0.1>>
    return %0 : tensor<1x8x!quant.uniform<i8:f32, 0.1>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}, %arg1: tensor<1x8x!quant.uniform<i8:f32, 0.02:-2>> {tflq.name = "y"}) -> tensor<1x8x!quant.uniform<i8:f32, 0.1>> {
    %0 = quant.scast %arg0 : tensor<1x8x!quant.uniform<i8:f32, 0.05:3>> to tensor<1x8xi8>
    %1 = quant.scast %arg1 : tensor<1x8x!quant.uniform<i8:f32, 0.02:-2>> to tensor<1x8xi8>
    %cst0 = "tfl.pseudo_const"() {value = dense_resource<0d1640b3> : tensor<65536xi8>} : () -> tensor<65536xi8>
    %2 = "ext.table_2d"(%0, %1, %cst0) : (tensor<1x8xi8>, tensor<1x8xi8>, tensor<65536xi8>) -> tensor<1x8xi8>
    %3 = quant.scast %2 : tensor<1x8xi8> to tensor<1x8x!quant.uniform<i8:f32, 0.1>>
    return %3 : tensor<1x8x!quant.uniform<i8:f32, 0.1>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}, %arg1: tensor<1x8x!quant.uniform<i8:f32, 0.02:-2>> {tflq.name = "y"}) -> tensor<1x8x!quant.uniform<i8:f32, 0.1>> {
    %0 = "tfl.bitcast"(%arg0) : (tensor<1x8x!quant.uniform<i8:f32, 0.05:3>>) -> tensor<1x8xui8>
    %1 = "tfl.cast"(%0) : (tensor<1x8xui8>) -> tensor<1x8xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense<256> : tensor<i32>} : () -> tensor<i32>
    %2 = "tfl.mul"(%1, %cst0) {fused_activation_function = "NONE"} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %3 = "tfl.bitcast"(%arg1) : (tensor<1x8x!quant.uniform<i8:f32, 0.02:-2>>) -> tensor<1x8xui8>
    %4 = "tfl.cast"(%3) : (tensor<1x8xui8>) -> tensor<1x8xi32>
    %5 = "tfl.add"(%2, %4) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst1 = "tfl.pseudo_const"() {value = dense_resource<a7e3065d> : tensor<65536xi8>} : () -> tensor<65536xi8>
    %6 = "tfl.gather"(%cst1, %5) {axis = 0, batch_dims = 0} : (tensor<65536xi8>, tensor<1x8xi32>) -> tensor<1x8x!quant.uniform<i8:f32, 0.1>>
    return %6 : tensor<1x8x!quant.uniform<i8:f32, 0.1>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<1x8xi8> {tflq.name = "x"}, %arg1: tensor<1x8xi8> {tflq.name = "y"}) -> tensor<1x8xi8> {
    %0 = "tosa.cast"(%arg0) : (tensor<1x8xi8>) -> tensor<1x8xi32>
    %1 = "tosa.cast"(%arg1) : (tensor<1x8xi8>) -> tensor<1x8xi32>
    %cst0 = "tosa.const"() {values = dense<[[256]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %2 = "tosa.mul"(%0, %cst0) {shift = 0} : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %cst1 = "tosa.const"() {values = dense<[[32896]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %3 = "tosa.add"(%2, %cst1) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %4 = "tosa.add"(%3, %1) : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst2 = "tosa.const"() {values = dense_resource<0d1640b3> : tensor<1x65536x1xi8>} : () -> tensor<1x65536x1xi8>
    %5 = "tosa.gather"(%cst2, %4) : (tensor<1x65536x1xi8>, tensor<1x8xi32>) -> tensor<1x8x1xi8>
    %6 = "tosa.reshape"(%5) : (tensor<1x8x1xi8>) -> tensor<1x8xi8>
    return %6 : tensor<1x8xi8>
  }
}

// ===== SQUARED_DIFFERENCE
module {
  func.func @main(%arg0: tensor<8x!quant.uniform<i8:f32, 0.1>> {tflq.name = "x"}, %arg1: tensor<8x!quant.uniform<i8:f32, 0.1:4>> {tflq.name = "x"}) -> tensor<8x!quant.uniform<i8:f32, 0.2>> {
    %0 = "tfl.squared_difference"(%arg0, %arg1) : (tensor<8x!quant.uniform<i8:f32, 0.1>>, tensor<8x!quant.uniform<i8:f32, 0.1:4>>) -> tensor<8x!quant.uniform<i8:f32, 0.2>>
    return %0 : tensor<8x!quant.uniform<i8:f32, 0.2>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<8x!quant.uniform<i8:f32, 0.1>> {tflq.name = "x"}, %arg1: tensor<8x!quant.uniform<i8:f32, 0.1:4>> {tflq.name = "x"}) -> tensor<8x!quant.uniform<i8:f32, 0.2>> {
    %0 = quant.scast %arg0 : tensor<8x!quant.uniform<i8:f32, 0.1>> to tensor<8xi8>
    %1 = quant.scast %arg1 : tensor<8x!quant.uniform<i8:f32, 0.1:4>> to tensor<8xi8>
    %2 = "tosa.cast"(%0) : (tensor<8xi8>) -> tensor<8xi32>
    %cst0 = "tosa.const"() {values = dense<64> : tensor<i32>} : () -> tensor<i32>
    %3 = "tosa.mul"(%2, %cst0) {shift = 0} : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
    %4 = "tosa.cast"(%1) : (tensor<8xi8>) -> tensor<8xi32>
    %cst1 = "tosa.const"() {values = dense<4> : tensor<i32>} : () -> tensor<i32>
    %5 = "tosa.sub"(%4, %cst1) : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
    %6 = "tosa.mul"(%5, %cst0) {shift = 0} : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
    %7 = "tosa.sub"(%3, %6) : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
    %8 = "tosa.mul"(%7, %7) {shift = 0} : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
    %9 = "tosa.rescale"(%8) {multiplier = dense<[1717986944]> : tensor<1xi32>, shift = dense<[47]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<8xi32>) -> tensor<8xi8>
    %10 = quant.scast %9 : tensor<8xi8> to tensor<8x!quant.uniform<i8:f32, 0.2>>
    return %10 : tensor<8x!quant.uniform<i8:f32, 0.2>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<8x!quant.uniform<i8:f32, 0.1>> {tflq.name = "x"}, %arg1: tensor<8x!quant.uniform<i8:f32, 0.1:4>> {tflq.name = "x"}) -> tensor<8x!quant.uniform<i8:f32, 0.2>> {
    %0 = "tfl.bitcast"(%arg0) : (tensor<8x!quant.uniform<i8:f32, 0.1>>) -> tensor<8xui8>
    %1 = "tfl.cast"(%0) : (tensor<8xui8>) -> tensor<8xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense<256> : tensor<i32>} : () -> tensor<i32>
    %2 = "tfl.mul"(%1, %cst0) {fused_activation_function = "NONE"} : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
    %3 = "tfl.bitcast"(%arg1) : (tensor<8x!quant.uniform<i8:f32, 0.1:4>>) -> tensor<8xui8>
    %4 = "tfl.cast"(%3) : (tensor<8xui8>) -> tensor<8xi32>
    %5 = "tfl.add"(%2, %4) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
    %cst1 = "tfl.pseudo_const"() {value = dense_resource<b9bc2f03> : tensor<65536xi8>} : () -> tensor<65536xi8>
    %6 = "tfl.gather"(%cst1, %5) {axis = 0, batch_dims = 0} : (tensor<65536xi8>, tensor<8xi32>) -> tensor<8x!quant.uniform<i8:f32, 0.2>>
    return %6 : tensor<8x!quant.uniform<i8:f32, 0.2>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<8xi8> {tflq.name = "x"}, %arg1: tensor<8xi8> {tflq.name = "x"}) -> tensor<8xi8> {
    %0 = "tosa.rescale"(%arg0) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[24]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<8xi8>) -> tensor<8xi32>
    %1 = "tosa.rescale"(%arg1) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[24]> : tensor<1xi8>, input_zp = 4, output_zp = 0, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<8xi8>) -> tensor<8xi32>
    %2 = "tosa.sub"(%0, %1) : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
    %3 = "tosa.mul"(%2, %2) {shift = 0} : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
    %4 = "tosa.rescale"(%3) {multiplier = dense<[1717986944]> : tensor<1xi32>, shift = dense<[47]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<8xi32>) -> tensor<8xi8>
    return %4 : tensor<8xi8>
  }
}
