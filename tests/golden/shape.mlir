// ===== FILL, int8: stored integers
module {
  func.func @main(%arg0: tensor<!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<2x4x!quant.uniform<i8:f32, 0.1:3>> {
    %cst0 = "tfl.pseudo_const"() {value = dense<[2, 4]> : tensor<2xi32>} : () -> tensor<2xi32>
    %0 = "tfl.fill"(%cst0, %arg0) : (tensor<2xi32>, tensor<!quant.uniform<i8:f32, 0.1:3>>) -> tensor<2x4x!quant.uniform<i8:f32, 0.1:3>>
    return %0 : tensor<2x4x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<2x4x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = quant.scast %arg0 : tensor<!quant.uniform<i8:f32, 0.1:3>> to tensor<i8>
    %cst0 = "tfl.pseudo_const"() {value = dense<[2, 4]> : tensor<2xi32>} : () -> tensor<2xi32>
    %1 = "tfl.fill"(%cst0, %0) : (tensor<2xi32>, tensor<i8>) -> tensor<2x4xi8>
    %2 = quant.scast %1 : tensor<2x4xi8> to tensor<2x4x!quant.uniform<i8:f32, 0.1:3>>
    return %2 : tensor<2x4x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<2x4x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = "tfl.cast"(%arg0) : (tensor<!quant.uniform<i8:f32, 0.1:3>>) -> tensor<i8>
    %cst0 = "tfl.pseudo_const"() {value = dense<[2, 4]> : tensor<2xi32>} : () -> tensor<2xi32>
    %1 = "tfl.fill"(%cst0, %0) : (tensor<2xi32>, tensor<i8>) -> tensor<2x4xi8>
    %2 = "tfl.cast"(%1) : (tensor<2x4xi8>) -> tensor<2x4x!quant.uniform<i8:f32, 0.1:3>>
    return %2 : tensor<2x4x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<i8> {tflq.name = "x"}) -> tensor<2x4xi8> {
    %0 = "tosa.reshape"(%arg0) : (tensor<i8>) -> tensor<1x1xi8>
    %1 = "tosa.tile"(%0) {multiples = #tflq.tuple<[2, 4]>} : (tensor<1x1xi8>) -> tensor<2x4xi8>
    return %1 : tensor<2x4xi8>
  }
}
