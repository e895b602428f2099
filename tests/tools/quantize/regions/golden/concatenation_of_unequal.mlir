module attributes {tflq.version = 3} {
  func.func @f(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "quant.region"(%arg0) ({
    ^bb0(%b0: tensor<4xf32>):
      %1 = "tfl.tanh"(%b0) : (tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%1) : (tensor<4xf32>) -> ()
    }) {input_specs = [f32], output_specs = [!quant.uniform<i8:f32, 0.5:-3>], kernel = "tanh", tflq.origins = ["none", "annotation"]} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "quant.region"(%arg1) ({
    ^bb0(%b1: tensor<4xf32>):
      %3 = "tfl.tanh"(%b1) : (tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%3) : (tensor<4xf32>) -> ()
    }) {input_specs = [f32], output_specs = [!quant.uniform<i8:f32, 2.0:7>], kernel = "tanh", tflq.origins = ["none", "annotation"]} : (tensor<4xf32>) -> tensor<4xf32>
    %4 = "quant.rescale"(%2) {from = !quant.uniform<i8:f32, 2.0:7>, to = !quant.uniform<i8:f32, 0.5:-3>} : (tensor<4xf32>) -> tensor<4xf32>
    %5 = "quant.region"(%0, %4) ({
    ^bb0(%b2: tensor<4xf32>, %b3: tensor<4xf32>):
      %6 = "tfl.concatenation"(%b2, %b3) {axis = 0 : i32} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%6) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 0.5:-3>, !quant.uniform<i8:f32, 0.5:-3>], output_specs = [!quant.uniform<i8:f32, 0.5:-3>], kernel = "concatenation", tflq.origins = ["neighbour", "same_scale", "same_scale"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %5 : tensor<4xf32>
  }
}
