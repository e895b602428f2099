// What a pass for two ops makes that computes quantized values in floats: (x * y) + x.
!q = !quant.uniform<i8:f32, 0.5>
func.func @workflow(%x: tensor<3x!q>, %y: tensor<3x!q>) -> tensor<3x!q> {
  %0 = quant.dcast %x : tensor<3x!q> to tensor<3xf32>
  %1 = quant.dcast %y : tensor<3x!q> to tensor<3xf32>
  %2 = arith.mulf %0, %1 : tensor<3xf32>
  %3 = quant.qcast %2 : tensor<3xf32> to tensor<3x!q>
  %4 = quant.dcast %3 : tensor<3x!q> to tensor<3xf32>
  %5 = quant.dcast %x : tensor<3x!q> to tensor<3xf32>
  %6 = arith.addf %4, %5 : tensor<3xf32>
  %7 = quant.qcast %6 : tensor<3xf32> to tensor<3x!q>
  return %7 : tensor<3x!q>
}
