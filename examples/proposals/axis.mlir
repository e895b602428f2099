// Three scales for a dim of two.
func.func @axis(%x: tensor<2x5xf32>) -> tensor<2x5x!quant.uniform<i8:f32:0, {0.5, 0.25, 1.0}>> {
  %0 = quant.qcast %x : tensor<2x5xf32> to tensor<2x5x!quant.uniform<i8:f32:0, {0.5, 0.25, 1.0}>>
  return %0 : tensor<2x5x!quant.uniform<i8:f32:0, {0.5, 0.25, 1.0}>>
}
