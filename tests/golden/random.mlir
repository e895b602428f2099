// ===== RANDOM_UNIFORM
module {
  func.func @main() -> tensor<2x4xf32> {
    %cst0 = "tfl.pseudo_const"() {value = dense<[2, 4]> : tensor<2xi32>} : () -> tensor<2xi32>
    %0 = "tfl.random_uniform"(%cst0) {seed = 1, seed2 = 2} : (tensor<2xi32>) -> tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
}
// ----- integer form
module {
  func.func @main() -> tensor<2x4xf32> {
    %cst0 = "tfl.pseudo_const"() {value = dense<[2, 4]> : tensor<2xi32>} : () -> tensor<2xi32>
    %0 = "tfl.random_uniform"(%cst0) {seed = 1, seed2 = 2} : (tensor<2xi32>) -> tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
}
// ----- kernels
module {
  func.func @main() -> tensor<2x4xf32> {
    %cst0 = "tfl.pseudo_const"() {value = dense<[2, 4]> : tensor<2xi32>} : () -> tensor<2xi32>
    %0 = "tfl.random_uniform"(%cst0) {seed = 1, seed2 = 2} : (tensor<2xi32>) -> tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
}
// ----- TOSA
// no form in TOSA on this target for 1 operator:
  subgraph 0, operator 0 (RANDOM_UNIFORM), tensor 'x': TOSA has no form of tfl.random_uniform yet
  convert to a .tflite file, or only the part before it (--cut)
