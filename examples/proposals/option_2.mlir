// Widened before the reduction and narrowed after it.
!q = !quant.uniform<u8:f32, 0.05:10>
!wide = !quant.uniform<i32:f32, 0.05>
func.func @option_2(%x: tensor<2x3x!q>) -> tensor<2x!q> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %z = stablehlo.uniform_quantize %c : (tensor<f32>) -> tensor<!wide>
  %0 = stablehlo.uniform_quantize %x : (tensor<2x3x!q>) -> tensor<2x3x!wide>
  %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<2x3x!wide>, tensor<!wide>) -> tensor<2x!wide>
  %2 = stablehlo.uniform_quantize %1 : (tensor<2x!wide>) -> tensor<2x!q>
  return %2 : tensor<2x!q>
}
