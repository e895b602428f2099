// ===== QUANTIZE, int8 to int16
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x8x!quant.uniform<i16:f32, 0.001>> {
    %0 = "tfl.quantize"(%arg0) : (tensor<1x8x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<1x8x!quant.uniform<i16:f32, 0.001>>
    return %0 : tensor<1x8x!quant.uniform<i16:f32, 0.001>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x8x!quant.uniform<i16:f32, 0.001>> {
    %0 = quant.scast %arg0 : tensor<1x8x!quant.uniform<i8:f32, 0.1:3>> to tensor<1x8xi8>
    %1 = "tosa.rescale"(%0) {multiplier = dense<[1677721545]> : tensor<1xi32>, shift = dense<[24]> : tensor<1xi8>, input_zp = 3, output_zp = 0, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xi8>) -> tensor<1x8xi16>
    %2 = quant.scast %1 : tensor<1x8xi16> to tensor<1x8x!quant.uniform<i16:f32, 0.001>>
    return %2 : tensor<1x8x!quant.uniform<i16:f32, 0.001>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x8x!quant.uniform<i16:f32, 0.001>> {
    %0 = "tfl.bitcast"(%arg0) : (tensor<1x8x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<1x8xui8>
    %1 = "tfl.cast"(%0) : (tensor<1x8xui8>) -> tensor<1x8xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense_resource<be609ea4> : tensor<256xi16>} : () -> tensor<256xi16>
    %2 = "tfl.gather"(%cst0, %1) {axis = 0, batch_dims = 0} : (tensor<256xi16>, tensor<1x8xi32>) -> tensor<1x8x!quant.uniform<i16:f32, 0.001>>
    return %2 : tensor<1x8x!quant.uniform<i16:f32, 0.001>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<1x8xi8> {tflq.name = "x"}) -> tensor<1x8xi16> {
    %0 = "tosa.rescale"(%arg0) {multiplier = dense<[1677721545]> : tensor<1xi32>, shift = dense<[24]> : tensor<1xi8>, input_zp = 3, output_zp = 0, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xi8>) -> tensor<1x8xi16>
    return %0 : tensor<1x8xi16>
  }
}

// ===== DEQUANTIZE, int8
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x8xf32> {
    %0 = "tfl.dequantize"(%arg0) : (tensor<1x8x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<1x8xf32>
    return %0 : tensor<1x8xf32>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x8xf32> {
    %0 = quant.dcast %arg0 : tensor<1x8x!quant.uniform<i8:f32, 0.1:3>> to tensor<1x8xf32>
    return %0 : tensor<1x8xf32>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x8xf32> {
    %0 = "tfl.cast"(%arg0) : (tensor<1x8x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<1x8xf32>
    %cst0 = "tfl.pseudo_const"() {value = dense<3.0> : tensor<f32>} : () -> tensor<f32>
    %1 = "tfl.sub"(%0, %cst0) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xf32>, tensor<f32>) -> tensor<1x8xf32>
    %cst1 = "tfl.pseudo_const"() {value = dense<0.1> : tensor<f32>} : () -> tensor<f32>
    %2 = "tfl.mul"(%1, %cst1) {fused_activation_function = "NONE"} : (tensor<1x8xf32>, tensor<f32>) -> tensor<1x8xf32>
    return %2 : tensor<1x8xf32>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<1x8xi8> {tflq.name = "x"}) -> tensor<1x8xf32> {
    %0 = "tosa.cast"(%arg0) : (tensor<1x8xi8>) -> tensor<1x8xf32>
    %cst0 = "tosa.const"() {values = dense<[[3.0]]> : tensor<1x1xf32>} : () -> tensor<1x1xf32>
    %1 = "tosa.sub"(%0, %cst0) : (tensor<1x8xf32>, tensor<1x1xf32>) -> tensor<1x8xf32>
    %cst1 = "tosa.const"() {values = dense<[[0.1]]> : tensor<1x1xf32>} : () -> tensor<1x1xf32>
    %2 = "tosa.mul"(%1, %cst1) {shift = 0} : (tensor<1x8xf32>, tensor<1x1xf32>) -> tensor<1x8xf32>
    return %2 : tensor<1x8xf32>
  }
}
