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

// ===== GATHER_ND, rows
module {
  func.func @main(%arg0: tensor<4x2x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}, %arg1: tensor<3x1xi32> {tflq.name = "x"}) -> tensor<3x2x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = "tfl.gather_nd"(%arg0, %arg1) : (tensor<4x2x!quant.uniform<i8:f32, 0.1:3>>, tensor<3x1xi32>) -> tensor<3x2x!quant.uniform<i8:f32, 0.1:3>>
    return %0 : tensor<3x2x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<4x2x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}, %arg1: tensor<3x1xi32> {tflq.name = "x"}) -> tensor<3x2x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = quant.scast %arg0 : tensor<4x2x!quant.uniform<i8:f32, 0.1:3>> to tensor<4x2xi8>
    %1 = "tfl.gather_nd"(%0, %arg1) : (tensor<4x2xi8>, tensor<3x1xi32>) -> tensor<3x2xi8>
    %2 = quant.scast %1 : tensor<3x2xi8> to tensor<3x2x!quant.uniform<i8:f32, 0.1:3>>
    return %2 : tensor<3x2x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<4x2x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}, %arg1: tensor<3x1xi32> {tflq.name = "x"}) -> tensor<3x2x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = "tfl.cast"(%arg0) : (tensor<4x2x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<4x2xi8>
    %1 = "tfl.gather_nd"(%0, %arg1) : (tensor<4x2xi8>, tensor<3x1xi32>) -> tensor<3x2xi8>
    %2 = "tfl.cast"(%1) : (tensor<3x2xi8>) -> tensor<3x2x!quant.uniform<i8:f32, 0.1:3>>
    return %2 : tensor<3x2x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<4x2xi8> {tflq.name = "x"}, %arg1: tensor<3x1xi32> {tflq.name = "x"}) -> tensor<3x2xi8> {
    %cst0 = "tosa.const"() {values = dense<[[1]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %0 = "tosa.mul"(%arg1, %cst0) {shift = 0} : (tensor<3x1xi32>, tensor<1x1xi32>) -> tensor<3x1xi32>
    %1 = "tosa.reduce_sum"(%0) {axis = 1} : (tensor<3x1xi32>) -> tensor<3x1xi32>
    %2 = "tosa.reshape"(%1) : (tensor<3x1xi32>) -> tensor<1x3xi32>
    %3 = "tosa.reshape"(%arg0) : (tensor<4x2xi8>) -> tensor<1x4x2xi8>
    %4 = "tosa.gather"(%3, %2) : (tensor<1x4x2xi8>, tensor<1x3xi32>) -> tensor<1x3x2xi8>
    %5 = "tosa.reshape"(%4) : (tensor<1x3x2xi8>) -> tensor<3x2xi8>
    return %5 : tensor<3x2xi8>
  }
}
