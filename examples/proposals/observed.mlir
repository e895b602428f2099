// Statistics of a value, a point where they are to be gathered, and a simulated quantization.
func.func @observed(%x: tensor<8x2xf32>) -> tensor<8x2xf32> {
  %0 = "quant.stats"(%x) {layerStats = dense<[-3.0, 5.0]> : tensor<2xf32>} : (tensor<8x2xf32>) -> tensor<8x2xf32>
  %1 = "quant.stats_ref"(%0) {statsKey = "behind the input"} : (tensor<8x2xf32>) -> tensor<8x2xf32>
  %2 = "quant.const_fake_quant"(%1) {min = 0.0 : f32, max = 6.0 : f32, num_bits = 8 : i64} : (tensor<8x2xf32>) -> tensor<8x2xf32>
  return %2 : tensor<8x2xf32>
}
