// ===== LOGISTIC, int8: a table
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x8x!quant.uniform<i8:f32, 0.00390625:-128>> {
    %0 = "tfl.logistic"(%arg0) : (tensor<1x8x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<1x8x!quant.uniform<i8:f32, 0.00390625:-128>>
    return %0 : tensor<1x8x!quant.uniform<i8:f32, 0.00390625:-128>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x8x!quant.uniform<i8:f32, 0.00390625:-128>> {
    %0 = quant.scast %arg0 : tensor<1x8x!quant.uniform<i8:f32, 0.1:3>> to tensor<1x8xi8>
    %cst0 = "tosa.const"() {values = dense_resource<329e75d1> : tensor<256xi8>} : () -> tensor<256xi8>
    %1 = "tosa.table"(%0, %cst0) : (tensor<1x8xi8>, tensor<256xi8>) -> tensor<1x8xi8>
    %2 = quant.scast %1 : tensor<1x8xi8> to tensor<1x8x!quant.uniform<i8:f32, 0.00390625:-128>>
    return %2 : tensor<1x8x!quant.uniform<i8:f32, 0.00390625:-128>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x8x!quant.uniform<i8:f32, 0.00390625:-128>> {
    %0 = "tfl.bitcast"(%arg0) : (tensor<1x8x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<1x8xui8>
    %1 = "tfl.cast"(%0) : (tensor<1x8xui8>) -> tensor<1x8xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense_resource<2a9615cb> : tensor<256xi8>} : () -> tensor<256xi8>
    %2 = "tfl.gather"(%cst0, %1) {axis = 0, batch_dims = 0} : (tensor<256xi8>, tensor<1x8xi32>) -> tensor<1x8x!quant.uniform<i8:f32, 0.00390625:-128>>
    return %2 : tensor<1x8x!quant.uniform<i8:f32, 0.00390625:-128>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<1x8xi8> {tflq.name = "x"}) -> tensor<1x8xi8> {
    %cst0 = "tosa.const"() {values = dense_resource<329e75d1> : tensor<256xi8>} : () -> tensor<256xi8>
    %0 = "tosa.table"(%arg0, %cst0) : (tensor<1x8xi8>, tensor<256xi8>) -> tensor<1x8xi8>
    return %0 : tensor<1x8xi8>
  }
}

// ===== LEAKY_RELU, int8
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x8x!quant.uniform<i8:f32, 0.05:-9>> {
    %0 = "tfl.leaky_relu"(%arg0) {alpha = 0.2} : (tensor<1x8x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<1x8x!quant.uniform<i8:f32, 0.05:-9>>
    return %0 : tensor<1x8x!quant.uniform<i8:f32, 0.05:-9>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x8x!quant.uniform<i8:f32, 0.05:-9>> {
    %0 = quant.scast %arg0 : tensor<1x8x!quant.uniform<i8:f32, 0.1:3>> to tensor<1x8xi8>
    %1 = "tosa.cast"(%0) : (tensor<1x8xi8>) -> tensor<1x8xi32>
    %cst0 = "tosa.const"() {values = dense<3> : tensor<i32>} : () -> tensor<i32>
    %2 = "tosa.sub"(%1, %cst0) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %3 = "tosa.rescale"(%2) {multiplier = dense<[1717987072]> : tensor<1xi32>, shift = dense<[32]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst1 = "tosa.const"() {values = dense<0> : tensor<i32>} : () -> tensor<i32>
    %4 = "tosa.greater_equal"(%2, %cst1) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi1>
    %5 = "tosa.rescale"(%2) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[29]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xi32>) -> tensor<1x8xi32>
    %6 = "tosa.select"(%4, %5, %3) : (tensor<1x8xi1>, tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst2 = "tosa.const"() {values = dense<-9> : tensor<i32>} : () -> tensor<i32>
    %7 = "tosa.add"(%6, %cst2) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %8 = "tosa.clamp"(%7) {min_val = -128, max_val = 127} : (tensor<1x8xi32>) -> tensor<1x8xi32>
    %9 = "tosa.cast"(%8) : (tensor<1x8xi32>) -> tensor<1x8xi8>
    %10 = quant.scast %9 : tensor<1x8xi8> to tensor<1x8x!quant.uniform<i8:f32, 0.05:-9>>
    return %10 : tensor<1x8x!quant.uniform<i8:f32, 0.05:-9>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x8x!quant.uniform<i8:f32, 0.05:-9>> {
    %0 = "tfl.bitcast"(%arg0) : (tensor<1x8x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<1x8xui8>
    %1 = "tfl.cast"(%0) : (tensor<1x8xui8>) -> tensor<1x8xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense_resource<06ca2546> : tensor<256xi8>} : () -> tensor<256xi8>
    %2 = "tfl.gather"(%cst0, %1) {axis = 0, batch_dims = 0} : (tensor<256xi8>, tensor<1x8xi32>) -> tensor<1x8x!quant.uniform<i8:f32, 0.05:-9>>
    return %2 : tensor<1x8x!quant.uniform<i8:f32, 0.05:-9>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<1x8xi8> {tflq.name = "x"}) -> tensor<1x8xi8> {
    %cst0 = "tosa.const"() {values = dense_resource<bfda4a55> : tensor<256xi8>} : () -> tensor<256xi8>
    %0 = "tosa.table"(%arg0, %cst0) : (tensor<1x8xi8>, tensor<256xi8>) -> tensor<1x8xi8>
    return %0 : tensor<1x8xi8>
  }
}

// ===== RELU6, uint8, other scales
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<u8:f32, 0.1:128>> {tflq.name = "x"}) -> tensor<1x8x!quant.uniform<u8:f32, 0.03>> {
    %0 = "tfl.relu6"(%arg0) : (tensor<1x8x!quant.uniform<u8:f32, 0.1:128>>) -> tensor<1x8x!quant.uniform<u8:f32, 0.03>>
    return %0 : tensor<1x8x!quant.uniform<u8:f32, 0.03>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<u8:f32, 0.1:128>> {tflq.name = "x"}) -> tensor<1x8x!quant.uniform<u8:f32, 0.03>> {
    %0 = quant.scast %arg0 : tensor<1x8x!quant.uniform<u8:f32, 0.1:128>> to tensor<1x8xui8>
    %1 = "tosa.rescale"(%0) {multiplier = dense<[1789569792]> : tensor<1xi32>, shift = dense<[29]> : tensor<1xi8>, input_zp = 128, output_zp = 0, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xui8>) -> tensor<1x8xui8>
    %2 = "tosa.clamp"(%1) {min_val = 0, max_val = 200} : (tensor<1x8xui8>) -> tensor<1x8xui8>
    %3 = quant.scast %2 : tensor<1x8xui8> to tensor<1x8x!quant.uniform<u8:f32, 0.03>>
    return %3 : tensor<1x8x!quant.uniform<u8:f32, 0.03>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<u8:f32, 0.1:128>> {tflq.name = "x"}) -> tensor<1x8x!quant.uniform<u8:f32, 0.03>> {
    %0 = "tfl.cast"(%arg0) : (tensor<1x8x!quant.uniform<u8:f32, 0.1:128>>) -> tensor<1x8xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense_resource<44dc4211> : tensor<256xui8>} : () -> tensor<256xui8>
    %1 = "tfl.gather"(%cst0, %0) {axis = 0, batch_dims = 0} : (tensor<256xui8>, tensor<1x8xi32>) -> tensor<1x8x!quant.uniform<u8:f32, 0.03>>
    return %1 : tensor<1x8x!quant.uniform<u8:f32, 0.03>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<1x8xui8> {tflq.name = "x"}) -> tensor<1x8xui8> {
    %0 = "tosa.rescale"(%arg0) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[30]> : tensor<1xi8>, input_zp = 0, output_zp = -128, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xui8>) -> tensor<1x8xi8>
    %cst0 = "tosa.const"() {values = dense_resource<fb8ee7d5> : tensor<256xi8>} : () -> tensor<256xi8>
    %1 = "tosa.table"(%0, %cst0) : (tensor<1x8xi8>, tensor<256xi8>) -> tensor<1x8xi8>
    %2 = "tosa.rescale"(%1) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[30]> : tensor<1xi8>, input_zp = -128, output_zp = 0, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xi8>) -> tensor<1x8xui8>
    return %2 : tensor<1x8xui8>
  }
}

// ===== HARD_SWISH, int8
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.05:-4>> {tflq.name = "x"}) -> tensor<1x8x!quant.uniform<i8:f32, 0.04:-100>> {
    %0 = "tfl.hard_swish"(%arg0) : (tensor<1x8x!quant.uniform<i8:f32, 0.05:-4>>) -> tensor<1x8x!quant.uniform<i8:f32, 0.04:-100>>
    return %0 : tensor<1x8x!quant.uniform<i8:f32, 0.04:-100>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.05:-4>> {tflq.name = "x"}) -> tensor<1x8x!quant.uniform<i8:f32, 0.04:-100>> {
    %0 = quant.scast %arg0 : tensor<1x8x!quant.uniform<i8:f32, 0.05:-4>> to tensor<1x8xi8>
    %cst0 = "tosa.const"() {values = dense_resource<79c3e16c> : tensor<256xi8>} : () -> tensor<256xi8>
    %1 = "tosa.table"(%0, %cst0) : (tensor<1x8xi8>, tensor<256xi8>) -> tensor<1x8xi8>
    %2 = quant.scast %1 : tensor<1x8xi8> to tensor<1x8x!quant.uniform<i8:f32, 0.04:-100>>
    return %2 : tensor<1x8x!quant.uniform<i8:f32, 0.04:-100>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.05:-4>> {tflq.name = "x"}) -> tensor<1x8x!quant.uniform<i8:f32, 0.04:-100>> {
    %0 = "tfl.bitcast"(%arg0) : (tensor<1x8x!quant.uniform<i8:f32, 0.05:-4>>) -> tensor<1x8xui8>
    %1 = "tfl.cast"(%0) : (tensor<1x8xui8>) -> tensor<1x8xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense_resource<f2ca907f> : tensor<256xi8>} : () -> tensor<256xi8>
    %2 = "tfl.gather"(%cst0, %1) {axis = 0, batch_dims = 0} : (tensor<256xi8>, tensor<1x8xi32>) -> tensor<1x8x!quant.uniform<i8:f32, 0.04:-100>>
    return %2 : tensor<1x8x!quant.uniform<i8:f32, 0.04:-100>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<1x8xi8> {tflq.name = "x"}) -> tensor<1x8xi8> {
    %cst0 = "tosa.const"() {values = dense_resource<79c3e16c> : tensor<256xi8>} : () -> tensor<256xi8>
    %0 = "tosa.table"(%arg0, %cst0) : (tensor<1x8xi8>, tensor<256xi8>) -> tensor<1x8xi8>
    return %0 : tensor<1x8xi8>
  }
}

// ===== TANH, int16
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i16:f32, 0.00024414062>> {tflq.name = "x"}) -> tensor<1x8x!quant.uniform<i16:f32, 3.0517578e-05>> {
    %0 = "tfl.tanh"(%arg0) : (tensor<1x8x!quant.uniform<i16:f32, 0.00024414062>>) -> tensor<1x8x!quant.uniform<i16:f32, 3.0517578e-05>>
    return %0 : tensor<1x8x!quant.uniform<i16:f32, 3.0517578e-05>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i16:f32, 0.00024414062>> {tflq.name = "x"}) -> tensor<1x8x!quant.uniform<i16:f32, 3.0517578e-05>> {
    %0 = quant.scast %arg0 : tensor<1x8x!quant.uniform<i16:f32, 0.00024414062>> to tensor<1x8xi16>
    %1 = "tosa.cast"(%0) : (tensor<1x8xi16>) -> tensor<1x8xi32>
    %cst0 = "tosa.const"() {values = dense<3> : tensor<i32>} : () -> tensor<i32>
    %2 = "tosa.mul"(%1, %cst0) {shift = 0} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %cst1 = "tosa.const"() {values = dense<0> : tensor<i32>} : () -> tensor<i32>
    %3 = "tosa.sub"(%cst1, %2) : (tensor<i32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %4 = "tosa.maximum"(%2, %3) : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst2 = "tosa.const"() {values = dense<8> : tensor<i32>} : () -> tensor<i32>
    %5 = "tosa.arithmetic_right_shift"(%4, %cst2) {round = false} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %cst3 = "tosa.const"() {values = dense<255> : tensor<i32>} : () -> tensor<i32>
    %6 = "tosa.minimum"(%5, %cst3) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %cst4 = "tosa.const"() {values = dense<128> : tensor<i32>} : () -> tensor<i32>
    %7 = "tosa.sub"(%6, %cst4) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %8 = "tosa.cast"(%7) : (tensor<1x8xi32>) -> tensor<1x8xi8>
    %cst5 = "tosa.const"() {values = dense<256> : tensor<i32>} : () -> tensor<i32>
    %9 = "tosa.mul"(%5, %cst5) {shift = 0} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %10 = "tosa.sub"(%4, %9) : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst6 = "tosa.const"() {values = dense_resource<30a74721> : tensor<256xi32>} : () -> tensor<256xi32>
    %11 = "tosa.table"(%8, %cst6) : (tensor<1x8xi8>, tensor<256xi32>) -> tensor<1x8xi32>
    %cst7 = "tosa.const"() {values = dense_resource<93df13fe> : tensor<256xi32>} : () -> tensor<256xi32>
    %12 = "tosa.table"(%8, %cst7) : (tensor<1x8xi8>, tensor<256xi32>) -> tensor<1x8xi32>
    %13 = "tosa.mul"(%10, %12) {shift = 0} : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %14 = "tosa.add"(%11, %13) : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %15 = "tosa.greater_equal"(%2, %cst1) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi1>
    %cst8 = "tosa.const"() {values = dense<8388735> : tensor<i32>} : () -> tensor<i32>
    %16 = "tosa.sub"(%cst8, %14) : (tensor<i32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst9 = "tosa.const"() {values = dense<8388480> : tensor<i32>} : () -> tensor<i32>
    %17 = "tosa.sub"(%14, %cst9) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %18 = "tosa.select"(%15, %17, %16) : (tensor<1x8xi1>, tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %19 = "tosa.arithmetic_right_shift"(%18, %cst2) {round = false} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %20 = "tosa.cast"(%19) : (tensor<1x8xi32>) -> tensor<1x8xi16>
    %21 = quant.scast %20 : tensor<1x8xi16> to tensor<1x8x!quant.uniform<i16:f32, 3.0517578e-05>>
    return %21 : tensor<1x8x!quant.uniform<i16:f32, 3.0517578e-05>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i16:f32, 0.00024414062>> {tflq.name = "x"}) -> tensor<1x8x!quant.uniform<i16:f32, 3.0517578e-05>> {
    %0 = "tfl.cast"(%arg0) : (tensor<1x8x!quant.uniform<i16:f32, 0.00024414062>>) -> tensor<1x8xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
    %1 = "tfl.mul"(%0, %cst0) {fused_activation_function = "NONE"} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %cst1 = "tfl.pseudo_const"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %2 = "tfl.sub"(%cst1, %1) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<i32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %3 = "tfl.maximum"(%1, %2) : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst2 = "tfl.pseudo_const"() {value = dense<8> : tensor<i32>} : () -> tensor<i32>
    %4 = "tfl.right_shift"(%3, %cst2) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %cst3 = "tfl.pseudo_const"() {value = dense<255> : tensor<i32>} : () -> tensor<i32>
    %5 = "tfl.minimum"(%4, %cst3) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %cst4 = "tfl.pseudo_const"() {value = dense<128> : tensor<i32>} : () -> tensor<i32>
    %6 = "tfl.sub"(%5, %cst4) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %7 = "tfl.cast"(%6) : (tensor<1x8xi32>) -> tensor<1x8xi8>
    %cst5 = "tfl.pseudo_const"() {value = dense<256> : tensor<i32>} : () -> tensor<i32>
    %8 = "tfl.mul"(%4, %cst5) {fused_activation_function = "NONE"} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %9 = "tfl.sub"(%3, %8) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %10 = "tfl.bitcast"(%7) : (tensor<1x8xi8>) -> tensor<1x8xui8>
    %11 = "tfl.cast"(%10) : (tensor<1x8xui8>) -> tensor<1x8xi32>
    %cst6 = "tfl.pseudo_const"() {value = dense_resource<651773d1> : tensor<256xi32>} : () -> tensor<256xi32>
    %12 = "tfl.gather"(%cst6, %11) {axis = 0, batch_dims = 0} : (tensor<256xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst7 = "tfl.pseudo_const"() {value = dense_resource<ffcb95d8> : tensor<256xi32>} : () -> tensor<256xi32>
    %13 = "tfl.gather"(%cst7, %11) {axis = 0, batch_dims = 0} : (tensor<256xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %14 = "tfl.mul"(%9, %13) {fused_activation_function = "NONE"} : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %15 = "tfl.add"(%12, %14) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %16 = "tfl.greater_equal"(%1, %cst1) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi1>
    %cst8 = "tfl.pseudo_const"() {value = dense<8388735> : tensor<i32>} : () -> tensor<i32>
    %17 = "tfl.sub"(%cst8, %15) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<i32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst9 = "tfl.pseudo_const"() {value = dense<8388480> : tensor<i32>} : () -> tensor<i32>
    %18 = "tfl.sub"(%15, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %19 = "tfl.select_v2"(%16, %18, %17) : (tensor<1x8xi1>, tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %20 = "tfl.right_shift"(%19, %cst2) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %21 = "tfl.cast"(%20) : (tensor<1x8xi32>) -> tensor<1x8x!quant.uniform<i16:f32, 3.0517578e-05>>
    return %21 : tensor<1x8x!quant.uniform<i16:f32, 3.0517578e-05>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<1x8xi16> {tflq.name = "x"}) -> tensor<1x8xi16> {
    %0 = "tosa.cast"(%arg0) : (tensor<1x8xi16>) -> tensor<1x8xi32>
    %cst0 = "tosa.const"() {values = dense<[[3]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %1 = "tosa.mul"(%0, %cst0) {shift = 0} : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %cst1 = "tosa.const"() {values = dense<[[0]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %2 = "tosa.sub"(%cst1, %1) : (tensor<1x1xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %3 = "tosa.maximum"(%1, %2) : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst2 = "tosa.const"() {values = dense<[[8]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %4 = "tosa.arithmetic_right_shift"(%3, %cst2) {round = false} : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %cst3 = "tosa.const"() {values = dense<[[255]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %5 = "tosa.minimum"(%4, %cst3) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %cst4 = "tosa.const"() {values = dense<[[128]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %6 = "tosa.sub"(%5, %cst4) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %7 = "tosa.cast"(%6) : (tensor<1x8xi32>) -> tensor<1x8xi8>
    %cst5 = "tosa.const"() {values = dense<[[256]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %8 = "tosa.mul"(%4, %cst5) {shift = 0} : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %9 = "tosa.sub"(%3, %8) : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %10 = "tosa.cast"(%7) : (tensor<1x8xi8>) -> tensor<1x8xi32>
    %11 = "tosa.add"(%10, %cst4) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %cst6 = "tosa.const"() {values = dense_resource<30a74721> : tensor<1x256x1xi32>} : () -> tensor<1x256x1xi32>
    %12 = "tosa.gather"(%cst6, %11) : (tensor<1x256x1xi32>, tensor<1x8xi32>) -> tensor<1x8x1xi32>
    %13 = "tosa.reshape"(%12) : (tensor<1x8x1xi32>) -> tensor<1x8xi32>
    %cst7 = "tosa.const"() {values = dense_resource<93df13fe> : tensor<1x256x1xi32>} : () -> tensor<1x256x1xi32>
    %14 = "tosa.gather"(%cst7, %11) : (tensor<1x256x1xi32>, tensor<1x8xi32>) -> tensor<1x8x1xi32>
    %15 = "tosa.reshape"(%14) : (tensor<1x8x1xi32>) -> tensor<1x8xi32>
    %16 = "tosa.mul"(%9, %15) {shift = 0} : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %17 = "tosa.add"(%13, %16) : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %18 = "tosa.greater_equal"(%1, %cst1) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi1>
    %cst8 = "tosa.const"() {values = dense<[[8388735]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %19 = "tosa.sub"(%cst8, %17) : (tensor<1x1xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst9 = "tosa.const"() {values = dense<[[8388480]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %20 = "tosa.sub"(%17, %cst9) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %21 = "tosa.select"(%18, %20, %19) : (tensor<1x8xi1>, tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %22 = "tosa.arithmetic_right_shift"(%21, %cst2) {round = false} : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %23 = "tosa.cast"(%22) : (tensor<1x8xi32>) -> tensor<1x8xi16>
    return %23 : tensor<1x8xi16>
  }
}
