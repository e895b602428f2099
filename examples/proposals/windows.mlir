// Sums of windows of two, and values scattered to where a window has its largest.
!q = !quant.uniform<i8:f32, 1.0>
func.func @windows() -> (tensor<3xf32>, tensor<4xf32>) {
  %xf = stablehlo.constant dense<[1.0, 4.0, 2.0, 3.0]> : tensor<4xf32>
  %sf = stablehlo.constant dense<[10.0, 20.0]> : tensor<2xf32>
  %zf = stablehlo.constant dense<0.0> : tensor<f32>
  %x = stablehlo.uniform_quantize %xf : (tensor<4xf32>) -> tensor<4x!q>
  %s = stablehlo.uniform_quantize %sf : (tensor<2xf32>) -> tensor<2x!q>
  %z = stablehlo.uniform_quantize %zf : (tensor<f32>) -> tensor<!q>
  %0 = "stablehlo.reduce_window"(%x, %z) ({
  ^bb0(%a: tensor<!q>, %b: tensor<!q>):
    %c = stablehlo.add %a, %b : tensor<!q>
    stablehlo.return %c : tensor<!q>
  }) {window_dimensions = array<i64: 2>} : (tensor<4x!q>, tensor<!q>) -> tensor<3x!q>
  %1 = "stablehlo.select_and_scatter"(%x, %s, %z) ({
  ^bb0(%a: tensor<!q>, %b: tensor<!q>):
    %c = stablehlo.compare GE, %a, %b : (tensor<!q>, tensor<!q>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%a: tensor<!q>, %b: tensor<!q>):
    %c = stablehlo.add %a, %b : tensor<!q>
    stablehlo.return %c : tensor<!q>
  }) {window_dimensions = array<i64: 2>, window_strides = array<i64: 2>} : (tensor<4x!q>, tensor<2x!q>, tensor<!q>) -> tensor<4x!q>
  %2 = stablehlo.uniform_dequantize %0 : (tensor<3x!q>) -> tensor<3xf32>
  %3 = stablehlo.uniform_dequantize %1 : (tensor<4x!q>) -> tensor<4xf32>
  return %2, %3 : tensor<3xf32>, tensor<4xf32>
}
