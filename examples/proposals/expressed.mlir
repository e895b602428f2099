// The type expresses f16, the operand is of f32.
func.func @expressed(%x: tensor<3xf32>) -> tensor<3x!quant.uniform<i8:f16, 0.5>> {
  %0 = quant.qcast %x : tensor<3xf32> to tensor<3x!quant.uniform<i8:f16, 0.5>>
  return %0 : tensor<3x!quant.uniform<i8:f16, 0.5>>
}
