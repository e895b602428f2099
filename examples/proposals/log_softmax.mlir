!q = !quant.uniform<i8:f32, 0.25>
func.func @main(%x: tensor<1x2x!q>) -> tensor<1x2x!q> {
  %0 = "tfl.log_softmax"(%x) : (tensor<1x2x!q>) -> tensor<1x2x!q>
  return %0 : tensor<1x2x!q>
}
