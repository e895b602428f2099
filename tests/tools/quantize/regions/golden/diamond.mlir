module attributes {tflq.version = 3} {
  func.func @f(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "quant.region"(%arg0) ({
    ^bb0(%b0: tensor<4xf32>):
      %1 = "tfl.tanh"(%b0) : (tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%1) : (tensor<4xf32>) -> ()
    }) {input_specs = [f32], output_specs = [!quant.uniform<i8:f32, 0.5:-3>], kernel = "tanh", tflq.origins = ["none", "annotation"]} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "quant.region"(%0) ({
    ^bb0(%b1: tensor<4xf32>):
      %3 = "tfl.relu"(%b1) : (tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%3) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 0.5:-3>], output_specs = [!quant.uniform<i8:f32, 0.5:-3>], kernel = "relu", tflq.origins = ["neighbour", "same_scale"]} : (tensor<4xf32>) -> tensor<4xf32>
    %4 = "quant.rescale"(%0) {from = !quant.uniform<i8:f32, 0.5:-3>, to = !quant.uniform<i8:f32, 2.0:7>} : (tensor<4xf32>) -> tensor<4xf32>
    %5 = "quant.region"(%4) ({
    ^bb0(%b2: tensor<4xf32>):
      %6 = "tfl.relu6"(%b2) : (tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%6) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 2.0:7>], output_specs = [!quant.uniform<i8:f32, 2.0:7>], kernel = "relu6", tflq.origins = ["same_scale", "annotation"]} : (tensor<4xf32>) -> tensor<4xf32>
    %7 = "quant.region"(%2, %5) ({
    ^bb0(%b3: tensor<4xf32>, %b4: tensor<4xf32>):
      %8 = "tfl.add"(%b3, %b4) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%8) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 0.5:-3>, !quant.uniform<i8:f32, 2.0:7>], output_specs = [!quant.uniform<i8:f32, 0.25>], kernel = "add", tflq.origins = ["neighbour", "neighbour", "annotation"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %7 : tensor<4xf32>
  }
}
