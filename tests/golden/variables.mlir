// ===== READ_VARIABLE, int8
module {
  func.func @main(%arg0: tensor<!tfl.resource> {tflq.name = "x"}) -> tensor<2x4x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = "tfl.read_variable"(%arg0) : (tensor<!tfl.resource>) -> tensor<2x4x!quant.uniform<i8:f32, 0.1:3>>
    return %0 : tensor<2x4x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<!tfl.resource> {tflq.name = "x"}) -> tensor<2x4x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = "tfl.read_variable"(%arg0) : (tensor<!tfl.resource>) -> tensor<2x4xi8>
    %1 = quant.scast %0 : tensor<2x4xi8> to tensor<2x4x!quant.uniform<i8:f32, 0.1:3>>
    return %1 : tensor<2x4x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<!tfl.resource> {tflq.name = "x"}) -> tensor<2x4x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = "tfl.read_variable"(%arg0) : (tensor<!tfl.resource>) -> tensor<2x4xi8>
    %1 = "tfl.cast"(%0) : (tensor<2x4xi8>) -> tensor<2x4x!quant.uniform<i8:f32, 0.1:3>>
    return %1 : tensor<2x4x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- TOSA
// 1 operator(s) have no form in TOSA on this target:
  subgraph 0, operator 0 (READ_VARIABLE), tensor 'x': the variable is not named by a VAR_HANDLE
