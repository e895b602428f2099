// A matrix of floats by one of weights, two of which are known: [2, 1] by [[0.5, -1], [4, 0]].
func.func @weight_only() -> tensor<1x2xf32> {
  %x = stablehlo.constant dense<[[2.0, 1.0]]> : tensor<1x2xf32>
  %f = stablehlo.constant dense<[[0.5, -1.0], [4.0, 0.0]]> : tensor<2x2xf32>
  %w = stablehlo.uniform_quantize %f : (tensor<2x2xf32>) -> tensor<2x2x!quant.uniform<i8:f32, 0.5>>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<1x2xf32>, tensor<2x2x!quant.uniform<i8:f32, 0.5>>) -> tensor<1x2xf32>
  return %0 : tensor<1x2xf32>
}
