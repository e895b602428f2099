// ===== LESS, int8, two scales
module {
  func.func @main(%arg0: tensor<8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}, %arg1: tensor<8x!quant.uniform<i8:f32, 0.07:-3>> {tflq.name = "y"}) -> tensor<8xi1> {
    %0 = "tfl.less"(%arg0, %arg1) : (tensor<8x!quant.uniform<i8:f32, 0.1:3>>, tensor<8x!quant.uniform<i8:f32, 0.07:-3>>) -> tensor<8xi1>
    return %0 : tensor<8xi1>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}, %arg1: tensor<8x!quant.uniform<i8:f32, 0.07:-3>> {tflq.name = "y"}) -> tensor<8xi1> {
    %0 = quant.scast %arg0 : tensor<8x!quant.uniform<i8:f32, 0.1:3>> to tensor<8xi8>
    %1 = quant.scast %arg1 : tensor<8x!quant.uniform<i8:f32, 0.07:-3>> to tensor<8xi8>
    %2 = "tosa.cast"(%0) : (tensor<8xi8>) -> tensor<8xi32>
    %cst0 = "tosa.const"() {values = dense<3> : tensor<i32>} : () -> tensor<i32>
    %3 = "tosa.sub"(%2, %cst0) : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
    %cst1 = "tosa.const"() {values = dense<256> : tensor<i32>} : () -> tensor<i32>
    %4 = "tosa.mul"(%3, %cst1) {shift = 0} : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
    %5 = "tosa.rescale"(%4) {multiplier = dense<[1717986944]> : tensor<1xi32>, shift = dense<[34]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<8xi32>) -> tensor<8xi32>
    %6 = "tosa.cast"(%1) : (tensor<8xi8>) -> tensor<8xi32>
    %cst2 = "tosa.const"() {values = dense<-3> : tensor<i32>} : () -> tensor<i32>
    %7 = "tosa.sub"(%6, %cst2) : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
    %8 = "tosa.mul"(%7, %cst1) {shift = 0} : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
    %9 = "tosa.rescale"(%8) {multiplier = dense<[1202590848]> : tensor<1xi32>, shift = dense<[34]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<8xi32>) -> tensor<8xi32>
    %10 = "tosa.greater"(%9, %5) : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
    return %10 : tensor<8xi1>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}, %arg1: tensor<8x!quant.uniform<i8:f32, 0.07:-3>> {tflq.name = "y"}) -> tensor<8xi1> {
    %0 = "tfl.bitcast"(%arg0) : (tensor<8x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<8xui8>
    %1 = "tfl.cast"(%0) : (tensor<8xui8>) -> tensor<8xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense_resource<82200c10> : tensor<256xi32>} : () -> tensor<256xi32>
    %2 = "tfl.gather"(%cst0, %1) {axis = 0, batch_dims = 0} : (tensor<256xi32>, tensor<8xi32>) -> tensor<8xi32>
    %3 = "tfl.bitcast"(%arg1) : (tensor<8x!quant.uniform<i8:f32, 0.07:-3>>) -> tensor<8xui8>
    %4 = "tfl.cast"(%3) : (tensor<8xui8>) -> tensor<8xi32>
    %cst1 = "tfl.pseudo_const"() {value = dense_resource<7a5b85d9> : tensor<256xi32>} : () -> tensor<256xi32>
    %5 = "tfl.gather"(%cst1, %4) {axis = 0, batch_dims = 0} : (tensor<256xi32>, tensor<8xi32>) -> tensor<8xi32>
    %6 = "tfl.greater"(%5, %2) : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
    return %6 : tensor<8xi1>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<8xi8> {tflq.name = "x"}, %arg1: tensor<8xi8> {tflq.name = "y"}) -> tensor<8xi1> {
    %0 = "tosa.rescale"(%arg0) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[22]> : tensor<1xi8>, input_zp = 3, output_zp = 0, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<8xi8>) -> tensor<8xi32>
    %1 = "tosa.rescale"(%0) {multiplier = dense<[1717986944]> : tensor<1xi32>, shift = dense<[34]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<8xi32>) -> tensor<8xi32>
    %2 = "tosa.rescale"(%arg1) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[22]> : tensor<1xi8>, input_zp = -3, output_zp = 0, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<8xi8>) -> tensor<8xi32>
    %3 = "tosa.rescale"(%2) {multiplier = dense<[1202590848]> : tensor<1xi32>, shift = dense<[34]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<8xi32>) -> tensor<8xi32>
    %4 = "tosa.greater"(%3, %1) : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
    return %4 : tensor<8xi1>
  }
}

// ===== MAXIMUM, int8
module {
  func.func @main(%arg0: tensor<8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}, %arg1: tensor<8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "y"}) -> tensor<8x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = "tfl.maximum"(%arg0, %arg1) : (tensor<8x!quant.uniform<i8:f32, 0.1:3>>, tensor<8x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<8x!quant.uniform<i8:f32, 0.1:3>>
    return %0 : tensor<8x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}, %arg1: tensor<8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "y"}) -> tensor<8x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = quant.scast %arg0 : tensor<8x!quant.uniform<i8:f32, 0.1:3>> to tensor<8xi8>
    %1 = quant.scast %arg1 : tensor<8x!quant.uniform<i8:f32, 0.1:3>> to tensor<8xi8>
    %2 = "tosa.maximum"(%0, %1) : (tensor<8xi8>, tensor<8xi8>) -> tensor<8xi8>
    %3 = quant.scast %2 : tensor<8xi8> to tensor<8x!quant.uniform<i8:f32, 0.1:3>>
    return %3 : tensor<8x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}, %arg1: tensor<8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "y"}) -> tensor<8x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = "tfl.cast"(%arg0) : (tensor<8x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<8xi8>
    %1 = "tfl.cast"(%arg1) : (tensor<8x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<8xi8>
    %2 = "tfl.maximum"(%0, %1) : (tensor<8xi8>, tensor<8xi8>) -> tensor<8xi8>
    %3 = "tfl.cast"(%2) : (tensor<8xi8>) -> tensor<8x!quant.uniform<i8:f32, 0.1:3>>
    return %3 : tensor<8x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<8xi8> {tflq.name = "x"}, %arg1: tensor<8xi8> {tflq.name = "y"}) -> tensor<8xi8> {
    %0 = "tosa.cast"(%arg0) : (tensor<8xi8>) -> tensor<8xi32>
    %1 = "tosa.cast"(%arg1) : (tensor<8xi8>) -> tensor<8xi32>
    %2 = "tosa.maximum"(%0, %1) : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
    %3 = "tosa.cast"(%2) : (tensor<8xi32>) -> tensor<8xi8>
    return %3 : tensor<8xi8>
  }
}
