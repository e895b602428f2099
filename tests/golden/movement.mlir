// ===== RESHAPE
module {
  func.func @main(%arg0: tensor<2x4x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<8x!quant.uniform<i8:f32, 0.1:3>> {
    %cst0 = "tfl.pseudo_const"() {value = dense<[8]> : tensor<1xi32>} : () -> tensor<1xi32>
    %0 = "tfl.reshape"(%arg0, %cst0) : (tensor<2x4x!quant.uniform<i8:f32, 0.1:3>>, tensor<1xi32>) -> tensor<8x!quant.uniform<i8:f32, 0.1:3>>
    return %0 : tensor<8x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<2x4x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<8x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = quant.scast %arg0 : tensor<2x4x!quant.uniform<i8:f32, 0.1:3>> to tensor<2x4xi8>
    %cst0 = "tfl.pseudo_const"() {value = dense<[8]> : tensor<1xi32>} : () -> tensor<1xi32>
    %1 = "tfl.reshape"(%0, %cst0) : (tensor<2x4xi8>, tensor<1xi32>) -> tensor<8xi8>
    %2 = quant.scast %1 : tensor<8xi8> to tensor<8x!quant.uniform<i8:f32, 0.1:3>>
    return %2 : tensor<8x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<2x4x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<8x!quant.uniform<i8:f32, 0.1:3>> {
    %cst0 = "tfl.pseudo_const"() {value = dense<[8]> : tensor<1xi32>} : () -> tensor<1xi32>
    %0 = "tfl.reshape"(%arg0, %cst0) : (tensor<2x4x!quant.uniform<i8:f32, 0.1:3>>, tensor<1xi32>) -> tensor<8x!quant.uniform<i8:f32, 0.1:3>>
    return %0 : tensor<8x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<2x4xi8> {tflq.name = "x"}) -> tensor<8xi8> {
    %0 = "tosa.reshape"(%arg0) : (tensor<2x4xi8>) -> tensor<8xi8>
    return %0 : tensor<8xi8>
  }
}

// ===== PAD, int8: the zero point
module {
  func.func @main(%arg0: tensor<4x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<7x!quant.uniform<i8:f32, 0.1:3>> {
    %cst0 = "tfl.pseudo_const"() {value = dense<[[1, 2]]> : tensor<1x2xi32>} : () -> tensor<1x2xi32>
    %0 = "tfl.pad"(%arg0, %cst0) : (tensor<4x!quant.uniform<i8:f32, 0.1:3>>, tensor<1x2xi32>) -> tensor<7x!quant.uniform<i8:f32, 0.1:3>>
    return %0 : tensor<7x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<4x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<7x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = quant.scast %arg0 : tensor<4x!quant.uniform<i8:f32, 0.1:3>> to tensor<4xi8>
    %cst0 = "tfl.pseudo_const"() {value = dense<[[1, 2]]> : tensor<1x2xi32>} : () -> tensor<1x2xi32>
    %cst1 = "tfl.pseudo_const"() {value = dense<3> : tensor<i8>} : () -> tensor<i8>
    %1 = "tfl.padv2"(%0, %cst0, %cst1) : (tensor<4xi8>, tensor<1x2xi32>, tensor<i8>) -> tensor<7xi8>
    %2 = quant.scast %1 : tensor<7xi8> to tensor<7x!quant.uniform<i8:f32, 0.1:3>>
    return %2 : tensor<7x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<4x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<7x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = "tfl.cast"(%arg0) : (tensor<4x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<4xi8>
    %cst0 = "tfl.pseudo_const"() {value = dense<[[1, 2]]> : tensor<1x2xi32>} : () -> tensor<1x2xi32>
    %cst1 = "tfl.pseudo_const"() {value = dense<3> : tensor<i8>} : () -> tensor<i8>
    %1 = "tfl.padv2"(%0, %cst0, %cst1) : (tensor<4xi8>, tensor<1x2xi32>, tensor<i8>) -> tensor<7xi8>
    %2 = "tfl.cast"(%1) : (tensor<7xi8>) -> tensor<7x!quant.uniform<i8:f32, 0.1:3>>
    return %2 : tensor<7x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<4xi8> {tflq.name = "x"}) -> tensor<7xi8> {
    %0 = "tosa.pad"(%arg0) {padding = #tflq.tuple<[1, 2]>, pad_const = 3} : (tensor<4xi8>) -> tensor<7xi8>
    return %0 : tensor<7xi8>
  }
}
