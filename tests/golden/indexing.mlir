// ===== GATHER, rows
module {
  func.func @main(%arg0: tensor<4x2x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}, %arg1: tensor<3xi32> {tflq.name = "x"}) -> tensor<3x2x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = "tfl.gather"(%arg0, %arg1) : (tensor<4x2x!quant.uniform<i8:f32, 0.1:3>>, tensor<3xi32>) -> tensor<3x2x!quant.uniform<i8:f32, 0.1:3>>
    return %0 : tensor<3x2x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<4x2x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}, %arg1: tensor<3xi32> {tflq.name = "x"}) -> tensor<3x2x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = quant.scast %arg0 : tensor<4x2x!quant.uniform<i8:f32, 0.1:3>> to tensor<4x2xi8>
    %1 = "tfl.gather"(%0, %arg1) : (tensor<4x2xi8>, tensor<3xi32>) -> tensor<3x2xi8>
    %2 = quant.scast %1 : tensor<3x2xi8> to tensor<3x2x!quant.uniform<i8:f32, 0.1:3>>
    return %2 : tensor<3x2x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<4x2x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}, %arg1: tensor<3xi32> {tflq.name = "x"}) -> tensor<3x2x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = "tfl.gather"(%arg0, %arg1) : (tensor<4x2x!quant.uniform<i8:f32, 0.1:3>>, tensor<3xi32>) -> tensor<3x2x!quant.uniform<i8:f32, 0.1:3>>
    return %0 : tensor<3x2x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<4x2xi8> {tflq.name = "x"}, %arg1: tensor<3xi32> {tflq.name = "x"}) -> tensor<3x2xi8> {
    %0 = "tosa.reshape"(%arg0) : (tensor<4x2xi8>) -> tensor<1x4x2xi8>
    %1 = "tosa.reshape"(%arg1) : (tensor<3xi32>) -> tensor<1x3xi32>
    %2 = "tosa.gather"(%0, %1) : (tensor<1x4x2xi8>, tensor<1x3xi32>) -> tensor<1x3x2xi8>
    %3 = "tosa.reshape"(%2) : (tensor<1x3x2xi8>) -> tensor<3x2xi8>
    return %3 : tensor<3x2xi8>
  }
}

// ===== ARG_MAX, int8
module {
  func.func @main(%arg0: tensor<2x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<2xi32> {
    %cst0 = "tfl.pseudo_const"() {value = dense<[1]> : tensor<1xi32>} : () -> tensor<1xi32>
    %0 = "tfl.arg_max"(%arg0, %cst0) : (tensor<2x8x!quant.uniform<i8:f32, 0.1:3>>, tensor<1xi32>) -> tensor<2xi32>
    return %0 : tensor<2xi32>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<2x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<2xi32> {
    %0 = quant.scast %arg0 : tensor<2x8x!quant.uniform<i8:f32, 0.1:3>> to tensor<2x8xi8>
    %1 = "tosa.argmax"(%0) {axis = 1} : (tensor<2x8xi8>) -> tensor<2xi32>
    return %1 : tensor<2xi32>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<2x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<2xi32> {
    %0 = "tfl.cast"(%arg0) : (tensor<2x8x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<2x8xi8>
    %cst0 = "tfl.pseudo_const"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %1 = "tfl.arg_max"(%0, %cst0) {output_type = "INT32"} : (tensor<2x8xi8>, tensor<i32>) -> tensor<2xi32>
    return %1 : tensor<2xi32>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<2x8xi8> {tflq.name = "x"}) -> tensor<2xi32> {
    %0 = "tosa.argmax"(%arg0) {axis = 1} : (tensor<2x8xi8>) -> tensor<2xi32>
    return %0 : tensor<2xi32>
  }
}
