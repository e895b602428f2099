func.func @zero_points(%x: tensor<1x2xf32>, %w: tensor<2x2x!quant.uniform<i8:f32, 0.5:1>>) -> tensor<1x2xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<1x2xf32>, tensor<2x2x!quant.uniform<i8:f32, 0.5:1>>) -> tensor<1x2xf32>
  return %0 : tensor<1x2xf32>
}
