!q = !quant.uniform<u8:f32, 0.5:128>
func.func private @square(tensor<3x!q>) -> tensor<3x!q>
func.func @calls(%x: tensor<3x!q>) -> tensor<3x!q> {
  %0 = func.call @square(%x) : (tensor<3x!q>) -> tensor<3x!q>
  return %0 : tensor<3x!q>
}
