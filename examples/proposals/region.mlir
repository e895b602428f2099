// A logical kernel in the proposal's own syntax.
func.func @kernel(%a: tensor<2x8xf32>, %b: tensor<8x4xf32>, %c: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = quant.region (%a, %b, %c) {
    %1 = "tfl.batch_matmul"(%a, %b) {adj_x = false, adj_y = false} : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
    %2 = "tfl.add"(%1, %c) {fused_activation_function = "NONE"} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    quant.return %2
  } {input_specs = [!quant.uniform<i8:f32, 0.5:-3>, !quant.any<i8:f32>, f32],
     output_specs = [!quant.calibrated<f32<-1.0:1.0>>], kernel = "matmul_add"} :
    (tensor<2x8xf32>, tensor<8x4xf32>, tensor<2x4xf32>) -> (tensor<2x4xf32>)
  return %0 : tensor<2x4xf32>
}
