module attributes {tflq.version = 3} {
  func.func @f(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "quant.region"(%arg0) ({
    ^bb0(%b0: tensor<4xf32>):
      %1 = "tfl.tanh"(%b0) : (tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%1) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 0.01:-128>], output_specs = [!quant.uniform<i8:f32, 0.5:-3>], kernel = "tanh", tflq.origins = ["calibration", "annotation"]} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "quant.rescale"(%0) {from = !quant.uniform<i8:f32, 0.5:-3>, to = !quant.uniform<i8:f32, 1.0:-128>} : (tensor<4xf32>) -> tensor<4xf32>
    %3 = "quant.region"(%2) ({
    ^bb0(%b1: tensor<4xf32>):
      %4 = "tfl.relu"(%b1) : (tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%4) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 1.0:-128>], output_specs = [!quant.uniform<i8:f32, 1.0:-128>], kernel = "relu", tflq.origins = ["calibration", "same_scale"]} : (tensor<4xf32>) -> tensor<4xf32>
    return %3 : tensor<4xf32>
  }
}
