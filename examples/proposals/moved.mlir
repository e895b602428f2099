!q = !quant.uniform<i8:f32, 0.5:-3>
func.func @moved(%q: tensor<4x!q>) -> tensor<4x!q> {
  %0 = quant.dcast %q : tensor<4x!q> to tensor<4xf32>
  %1 = "tosa.reverse"(%0) {axis = 0 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = quant.qcast %1 : tensor<4xf32> to tensor<4x!q>
  return %2 : tensor<4x!q>
}
