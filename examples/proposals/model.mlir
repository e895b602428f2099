// Floats: the input has parameters, the sum a range.
func.func @model(%x: tensor<1x4xf32>, %y: tensor<1x4xf32> {tflq.name = "y"}) -> tensor<1x4xf32> {
  %0 = quant.qcast %x : tensor<1x4xf32> to tensor<1x4x!quant.uniform<i8:f32, 0.5:-3>>
  %1 = quant.dcast %0 : tensor<1x4x!quant.uniform<i8:f32, 0.5:-3>> to tensor<1x4xf32>
  %2 = "tfl.relu"(%1) : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %3 = "tfl.add"(%2, %y) {fused_activation_function = "NONE"} : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  %4 = "quant.stats"(%3) {layerStats = dense<[-2.55, 2.55]> : tensor<2xf32>} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %5 = "tfl.logistic"(%4) : (tensor<1x4xf32>) -> tensor<1x4xf32>
  return %5 : tensor<1x4xf32>
}
