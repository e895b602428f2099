// Both kernels keep their scale, and each has another.
func.func @conflict(%x: tensor<1x4xf32>) -> tensor<1x4xf32> {
  %0 = quant.region (%x) {
    %1 = "tfl.relu"(%x) : (tensor<1x4xf32>) -> tensor<1x4xf32>
    quant.return %1
  } {input_specs = [!quant.uniform<i8:f32, 0.5:-3>], output_specs = [f32], kernel = "relu"} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %2 = quant.region (%0) {
    %3 = "tfl.relu"(%0) : (tensor<1x4xf32>) -> tensor<1x4xf32>
    quant.return %3
  } {input_specs = [f32], output_specs = [!quant.uniform<i8:f32, 2.0:7>], kernel = "relu"} : (tensor<1x4xf32>) -> tensor<1x4xf32>
  return %2 : tensor<1x4xf32>
}
