// ===== RFFT2D
module {
  func.func @main(%arg0: tensor<1x4x4xf32> {tflq.name = "x"}) -> tensor<1x4x3xcomplex<f32>> {
    %cst0 = "tfl.pseudo_const"() {value = dense<4> : tensor<2xi32>} : () -> tensor<2xi32>
    %0 = "tfl.rfft2d"(%arg0, %cst0) : (tensor<1x4x4xf32>, tensor<2xi32>) -> tensor<1x4x3xcomplex<f32>>
    return %0 : tensor<1x4x3xcomplex<f32>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<1x4x4xf32> {tflq.name = "x"}) -> tensor<1x4x3xcomplex<f32>> {
    %cst0 = "tfl.pseudo_const"() {value = dense<4> : tensor<2xi32>} : () -> tensor<2xi32>
    %0 = "tfl.rfft2d"(%arg0, %cst0) : (tensor<1x4x4xf32>, tensor<2xi32>) -> tensor<1x4x3xcomplex<f32>>
    return %0 : tensor<1x4x3xcomplex<f32>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<1x4x4xf32> {tflq.name = "x"}) -> tensor<1x4x3xcomplex<f32>> {
    %cst0 = "tfl.pseudo_const"() {value = dense<4> : tensor<2xi32>} : () -> tensor<2xi32>
    %0 = "tfl.rfft2d"(%arg0, %cst0) : (tensor<1x4x4xf32>, tensor<2xi32>) -> tensor<1x4x3xcomplex<f32>>
    return %0 : tensor<1x4x3xcomplex<f32>>
  }
}
// ----- TOSA
// no form in TOSA on this target for 1 operator:
  subgraph 0, operator 0 (RFFT2D), tensor 'x': TOSA has no form of tfl.rfft2d yet
  convert to a .tflite file, or only the part before it (--cut)
