module attributes {tflq.version = 3} {
  func.func @f(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "quant.region"(%arg0) ({
    ^bb0(%b0: tensor<4xf32>):
      %1 = "tfl.softmax"(%b0) {beta = 1.0 : f32} : (tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%1) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 0.5:-3>], output_specs = [!quant.uniform<i8:f32, 0.00390625:-128>], kernel = "softmax", tflq.origins = ["annotation", "fixed_scale"]} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "quant.rescale"(%0) {from = !quant.uniform<i8:f32, 0.00390625:-128>, to = !quant.uniform<i8:f32, 2.0:7>} : (tensor<4xf32>) -> tensor<4xf32>
    %3 = "quant.region"(%2) ({
    ^bb0(%b1: tensor<4xf32>):
      %4 = "tfl.relu"(%b1) : (tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%4) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 2.0:7>], output_specs = [!quant.uniform<i8:f32, 2.0:7>], kernel = "relu", tflq.origins = ["same_scale", "annotation"]} : (tensor<4xf32>) -> tensor<4xf32>
    return %3 : tensor<4xf32>
  }
}
