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
