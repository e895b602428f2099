// ===== MEAN, int8
module {
  func.func @main(%arg0: tensor<1x4x4x2x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x2x!quant.uniform<i8:f32, 0.05:-3>> {
    %cst0 = "tfl.pseudo_const"() {value = dense<[1, 2]> : tensor<2xi32>} : () -> tensor<2xi32>
    %0 = "tfl.mean"(%arg0, %cst0) : (tensor<1x4x4x2x!quant.uniform<i8:f32, 0.1:3>>, tensor<2xi32>) -> tensor<1x2x!quant.uniform<i8:f32, 0.05:-3>>
    return %0 : tensor<1x2x!quant.uniform<i8:f32, 0.05:-3>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<1x4x4x2x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x2x!quant.uniform<i8:f32, 0.05:-3>> {
    %0 = quant.scast %arg0 : tensor<1x4x4x2x!quant.uniform<i8:f32, 0.1:3>> to tensor<1x4x4x2xi8>
    %1 = "tosa.cast"(%0) : (tensor<1x4x4x2xi8>) -> tensor<1x4x4x2xi32>
    %2 = "tosa.reduce_sum"(%1) {axis = 1} : (tensor<1x4x4x2xi32>) -> tensor<1x1x4x2xi32>
    %3 = "tosa.reduce_sum"(%2) {axis = 2} : (tensor<1x1x4x2xi32>) -> tensor<1x1x1x2xi32>
    %4 = "tosa.reshape"(%3) : (tensor<1x1x1x2xi32>) -> tensor<1x2xi32>
    %cst0 = "tosa.const"() {values = dense<48> : tensor<i32>} : () -> tensor<i32>
    %5 = "tosa.sub"(%4, %cst0) : (tensor<1x2xi32>, tensor<i32>) -> tensor<1x2xi32>
    %6 = "tosa.rescale"(%5) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[33]> : tensor<1xi8>, input_zp = 0, output_zp = -3, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false, input_range = #tflq.tuple<[-2096, 1984]>} : (tensor<1x2xi32>) -> tensor<1x2xi8>
    %7 = quant.scast %6 : tensor<1x2xi8> to tensor<1x2x!quant.uniform<i8:f32, 0.05:-3>>
    return %7 : tensor<1x2x!quant.uniform<i8:f32, 0.05:-3>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<1x4x4x2x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x2x!quant.uniform<i8:f32, 0.05:-3>> {
    %0 = "tfl.cast"(%arg0) : (tensor<1x4x4x2x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<1x4x4x2xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense<[1, 2]> : tensor<2xi32>} : () -> tensor<2xi32>
    %1 = "tfl.sum"(%0, %cst0) {keep_dims = false} : (tensor<1x4x4x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
    %cst1 = "tfl.pseudo_const"() {value = dense<48> : tensor<i32>} : () -> tensor<i32>
    %2 = "tfl.sub"(%1, %cst1) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x2xi32>, tensor<i32>) -> tensor<1x2xi32>
    %3 = "tfl.cast"(%2) : (tensor<1x2xi32>) -> tensor<1x2xi64>
    %cst2 = "tfl.pseudo_const"() {value = dense<35184372088832> : tensor<i64>} : () -> tensor<i64>
    %4 = "tfl.mul"(%3, %cst2) {fused_activation_function = "NONE"} : (tensor<1x2xi64>, tensor<i64>) -> tensor<1x2xi64>
    %5 = "tfl.sign"(%2) : (tensor<1x2xi32>) -> tensor<1x2xi32>
    %6 = "tfl.cast"(%5) : (tensor<1x2xi32>) -> tensor<1x2xi64>
    %7 = "tfl.mul"(%6, %cst2) {fused_activation_function = "NONE"} : (tensor<1x2xi64>, tensor<i64>) -> tensor<1x2xi64>
    %8 = "tfl.add"(%4, %7) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x2xi64>, tensor<1x2xi64>) -> tensor<1x2xi64>
    %cst3 = "tfl.pseudo_const"() {value = dense<36732484460740607> : tensor<i64>} : () -> tensor<i64>
    %9 = "tfl.sub"(%cst3, %8) {fused_activation_function = "RELU", pot_scale_int16 = false} : (tensor<i64>, tensor<1x2xi64>) -> tensor<1x2xi64>
    %cst4 = "tfl.pseudo_const"() {value = dense<72057594037927935> : tensor<i64>} : () -> tensor<i64>
    %10 = "tfl.sub"(%cst4, %9) {fused_activation_function = "RELU", pot_scale_int16 = false} : (tensor<i64>, tensor<1x2xi64>) -> tensor<1x2xi64>
    %11 = "tfl.bitcast"(%10) : (tensor<1x2xi64>) -> tensor<1x2x4xi16>
    %cst5 = "tfl.pseudo_const"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
    %12 = "tfl.gather"(%11, %cst5) {axis = 2, batch_dims = 0} : (tensor<1x2x4xi16>, tensor<i32>) -> tensor<1x2xi16>
    %13 = "tfl.cast"(%12) : (tensor<1x2xi16>) -> tensor<1x2xi32>
    %cst6 = "tfl.pseudo_const"() {value = dense<-128> : tensor<i32>} : () -> tensor<i32>
    %14 = "tfl.add"(%13, %cst6) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x2xi32>, tensor<i32>) -> tensor<1x2xi32>
    %15 = "tfl.cast"(%14) : (tensor<1x2xi32>) -> tensor<1x2x!quant.uniform<i8:f32, 0.05:-3>>
    return %15 : tensor<1x2x!quant.uniform<i8:f32, 0.05:-3>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<1x4x4x2xi8> {tflq.name = "x"}) -> tensor<1x2xi8> {
    %0 = "tosa.cast"(%arg0) : (tensor<1x4x4x2xi8>) -> tensor<1x4x4x2xi32>
    %1 = "tosa.reduce_sum"(%0) {axis = 1} : (tensor<1x4x4x2xi32>) -> tensor<1x1x4x2xi32>
    %2 = "tosa.reduce_sum"(%1) {axis = 2} : (tensor<1x1x4x2xi32>) -> tensor<1x1x1x2xi32>
    %3 = "tosa.reshape"(%2) : (tensor<1x1x1x2xi32>) -> tensor<1x2xi32>
    %cst0 = "tosa.const"() {values = dense<[[48]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %4 = "tosa.sub"(%3, %cst0) : (tensor<1x2xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
    %5 = "tosa.rescale"(%4) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[33]> : tensor<1xi8>, input_zp = 0, output_zp = -3, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x2xi32>) -> tensor<1x2xi8>
    return %5 : tensor<1x2xi8>
  }
}

// ===== SUM, int8
module {
  func.func @main(%arg0: tensor<2x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<2x!quant.uniform<i8:f32, 0.3:-3>> {
    %cst0 = "tfl.pseudo_const"() {value = dense<[1]> : tensor<1xi32>} : () -> tensor<1xi32>
    %0 = "tfl.sum"(%arg0, %cst0) : (tensor<2x8x!quant.uniform<i8:f32, 0.1:3>>, tensor<1xi32>) -> tensor<2x!quant.uniform<i8:f32, 0.3:-3>>
    return %0 : tensor<2x!quant.uniform<i8:f32, 0.3:-3>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<2x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<2x!quant.uniform<i8:f32, 0.3:-3>> {
    %0 = quant.scast %arg0 : tensor<2x8x!quant.uniform<i8:f32, 0.1:3>> to tensor<2x8xi8>
    %1 = "tosa.cast"(%0) : (tensor<2x8xi8>) -> tensor<2x8xi32>
    %2 = "tosa.reduce_sum"(%1) {axis = 1} : (tensor<2x8xi32>) -> tensor<2x1xi32>
    %3 = "tosa.reshape"(%2) : (tensor<2x1xi32>) -> tensor<2xi32>
    %cst0 = "tosa.const"() {values = dense<24> : tensor<i32>} : () -> tensor<i32>
    %4 = "tosa.sub"(%3, %cst0) : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
    %5 = "tosa.rescale"(%4) {multiplier = dense<[1431655730]> : tensor<1xi32>, shift = dense<[32]> : tensor<1xi8>, input_zp = 0, output_zp = -3, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false, input_range = #tflq.tuple<[-1048, 992]>} : (tensor<2xi32>) -> tensor<2xi8>
    %6 = quant.scast %5 : tensor<2xi8> to tensor<2x!quant.uniform<i8:f32, 0.3:-3>>
    return %6 : tensor<2x!quant.uniform<i8:f32, 0.3:-3>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<2x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<2x!quant.uniform<i8:f32, 0.3:-3>> {
    %0 = "tfl.cast"(%arg0) : (tensor<2x8x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<2x8xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense<[1]> : tensor<1xi32>} : () -> tensor<1xi32>
    %1 = "tfl.sum"(%0, %cst0) {keep_dims = false} : (tensor<2x8xi32>, tensor<1xi32>) -> tensor<2xi32>
    %cst1 = "tfl.pseudo_const"() {value = dense<24> : tensor<i32>} : () -> tensor<i32>
    %2 = "tfl.sub"(%1, %cst1) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
    %cst2 = "tfl.pseudo_const"() {value = dense<2042273> : tensor<i32>} : () -> tensor<i32>
    %3 = "tfl.mul"(%2, %cst2) {fused_activation_function = "NONE"} : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
    %4 = "tfl.sign"(%2) : (tensor<2xi32>) -> tensor<2xi32>
    %cst3 = "tfl.pseudo_const"() {value = dense<5105682> : tensor<i32>} : () -> tensor<i32>
    %5 = "tfl.mul"(%4, %cst3) {fused_activation_function = "NONE"} : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
    %6 = "tfl.add"(%3, %5) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %cst4 = "tfl.pseudo_const"() {value = dense<6126819> : tensor<i32>} : () -> tensor<i32>
    %7 = "tfl.div"(%6, %cst4) {fused_activation_function = "NONE"} : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
    %cst5 = "tfl.pseudo_const"() {value = dense<130> : tensor<i32>} : () -> tensor<i32>
    %8 = "tfl.sub"(%cst5, %7) {fused_activation_function = "RELU", pot_scale_int16 = false} : (tensor<i32>, tensor<2xi32>) -> tensor<2xi32>
    %cst6 = "tfl.pseudo_const"() {value = dense<255> : tensor<i32>} : () -> tensor<i32>
    %9 = "tfl.sub"(%cst6, %8) {fused_activation_function = "RELU", pot_scale_int16 = false} : (tensor<i32>, tensor<2xi32>) -> tensor<2xi32>
    %cst7 = "tfl.pseudo_const"() {value = dense<-128> : tensor<i32>} : () -> tensor<i32>
    %10 = "tfl.add"(%9, %cst7) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<2xi32>, tensor<i32>) -> tensor<2xi32>
    %11 = "tfl.cast"(%10) : (tensor<2xi32>) -> tensor<2x!quant.uniform<i8:f32, 0.3:-3>>
    return %11 : tensor<2x!quant.uniform<i8:f32, 0.3:-3>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<2x8xi8> {tflq.name = "x"}) -> tensor<2xi8> {
    %0 = "tosa.cast"(%arg0) : (tensor<2x8xi8>) -> tensor<2x8xi32>
    %1 = "tosa.reduce_sum"(%0) {axis = 1} : (tensor<2x8xi32>) -> tensor<2x1xi32>
    %2 = "tosa.reshape"(%1) : (tensor<2x1xi32>) -> tensor<2xi32>
    %cst0 = "tosa.const"() {values = dense<[24]> : tensor<1xi32>} : () -> tensor<1xi32>
    %3 = "tosa.sub"(%2, %cst0) : (tensor<2xi32>, tensor<1xi32>) -> tensor<2xi32>
    %4 = "tosa.rescale"(%3) {multiplier = dense<[1431655730]> : tensor<1xi32>, shift = dense<[32]> : tensor<1xi8>, input_zp = 0, output_zp = -3, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<2xi32>) -> tensor<2xi8>
    return %4 : tensor<2xi8>
  }
}

// ===== REDUCE_MAX, int8
module {
  func.func @main(%arg0: tensor<2x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<2x!quant.uniform<i8:f32, 0.1:3>> {
    %cst0 = "tfl.pseudo_const"() {value = dense<[1]> : tensor<1xi32>} : () -> tensor<1xi32>
    %0 = "tfl.reduce_max"(%arg0, %cst0) : (tensor<2x8x!quant.uniform<i8:f32, 0.1:3>>, tensor<1xi32>) -> tensor<2x!quant.uniform<i8:f32, 0.1:3>>
    return %0 : tensor<2x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<2x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<2x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = quant.scast %arg0 : tensor<2x8x!quant.uniform<i8:f32, 0.1:3>> to tensor<2x8xi8>
    %1 = "tosa.reduce_max"(%0) {axis = 1} : (tensor<2x8xi8>) -> tensor<2x1xi8>
    %2 = "tosa.reshape"(%1) : (tensor<2x1xi8>) -> tensor<2xi8>
    %3 = quant.scast %2 : tensor<2xi8> to tensor<2x!quant.uniform<i8:f32, 0.1:3>>
    return %3 : tensor<2x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<2x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<2x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = "tfl.cast"(%arg0) : (tensor<2x8x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<2x8xi8>
    %cst0 = "tfl.pseudo_const"() {value = dense<[1]> : tensor<1xi32>} : () -> tensor<1xi32>
    %1 = "tfl.reduce_max"(%0, %cst0) {keep_dims = false} : (tensor<2x8xi8>, tensor<1xi32>) -> tensor<2xi8>
    %2 = "tfl.cast"(%1) : (tensor<2xi8>) -> tensor<2x!quant.uniform<i8:f32, 0.1:3>>
    return %2 : tensor<2x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<2x8xi8> {tflq.name = "x"}) -> tensor<2xi8> {
    %0 = "tosa.reduce_max"(%arg0) {axis = 1} : (tensor<2x8xi8>) -> tensor<2x1xi8>
    %1 = "tosa.reshape"(%0) : (tensor<2x1xi8>) -> tensor<2xi8>
    return %1 : tensor<2xi8>
  }
}
