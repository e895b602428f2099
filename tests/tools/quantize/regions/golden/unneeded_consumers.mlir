module attributes {tflq.version = 3} {
  func.func @f(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "quant.region"(%arg1) ({
    ^bb0(%b0: tensor<4xf32>):
      %1 = "tfl.tanh"(%b0) : (tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%1) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 0.5:-3>], output_specs = [f32], kernel = "tanh", tflq.origins = ["annotation", "none"]} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "quant.region"(%arg0) ({
    ^bb0(%b1: tensor<4xf32>):
      %3 = "tfl.tanh"(%b1) : (tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%3) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 0.5:-3>], output_specs = [!quant.uniform<i8:f32, 0.25>], kernel = "tanh", tflq.origins = ["annotation", "neighbour"]} : (tensor<4xf32>) -> tensor<4xf32>
    %4 = "quant.region"(%2) ({
    ^bb0(%b2: tensor<4xf32>):
      %5 = "tfl.relu"(%b2) : (tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%5) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 0.25>], output_specs = [!quant.uniform<i8:f32, 0.25>], kernel = "relu", tflq.origins = ["same_scale", "annotation"]} : (tensor<4xf32>) -> tensor<4xf32>
    %6 = "quant.rescale"(%2) {from = !quant.uniform<i8:f32, 0.25>, to = !quant.uniform<i8:f32, 2.0:7>} : (tensor<4xf32>) -> tensor<4xf32>
    %7 = "quant.region"(%6) ({
    ^bb0(%b3: tensor<4xf32>):
      %8 = "tfl.relu"(%b3) : (tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%8) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 2.0:7>], output_specs = [!quant.uniform<i8:f32, 2.0:7>], kernel = "relu", tflq.origins = ["same_scale", "annotation"]} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
