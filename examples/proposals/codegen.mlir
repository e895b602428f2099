// A sum of stored integers: its operands and its result have scales that are powers of two.
func.func @main(%x: tensor<1x4xf32>, %y: tensor<1x4xf32>) -> tensor<1x4xf32> {
  %0 = quant.region (%x, %y) {
    %1 = "tfl.add"(%x, %y) {fused_activation_function = "NONE"} : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
    quant.return %1
  } {input_specs = [!quant.uniform<i8:f32, 0.5>, !quant.uniform<i8:f32, 0.25>], output_specs = [!quant.uniform<i8:f32, 1.0>], kernel = "add"} :
    (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  return %0 : tensor<1x4xf32>
}
