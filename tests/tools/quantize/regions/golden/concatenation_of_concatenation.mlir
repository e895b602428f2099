module attributes {tflq.version = 3} {
  func.func @f(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "quant.region"(%arg0) ({
    ^bb0(%b0: tensor<4xf32>):
      %1 = "tfl.relu"(%b0) : (tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%1) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 0.5:-3>], output_specs = [!quant.uniform<i8:f32, 0.5:-3>], kernel = "relu", tflq.origins = ["same_scale", "neighbour"]} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "quant.region"(%arg1) ({
    ^bb0(%b1: tensor<4xf32>):
      %3 = "tfl.softmax"(%b1) {beta = 1.0 : f32} : (tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%3) : (tensor<4xf32>) -> ()
    }) {input_specs = [f32], output_specs = [!quant.uniform<i8:f32, 0.00390625:-128>], kernel = "softmax", tflq.origins = ["none", "fixed_scale"]} : (tensor<4xf32>) -> tensor<4xf32>
    %4 = "quant.rescale"(%2) {from = !quant.uniform<i8:f32, 0.00390625:-128>, to = !quant.uniform<i8:f32, 0.5:-3>} : (tensor<4xf32>) -> tensor<4xf32>
    %5 = "quant.region"(%0, %4) ({
    ^bb0(%b2: tensor<4xf32>, %b3: tensor<4xf32>):
      %6 = "tfl.concatenation"(%b2, %b3) {axis = 0 : i32} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%6) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 0.5:-3>, !quant.uniform<i8:f32, 0.5:-3>], output_specs = [!quant.uniform<i8:f32, 0.5:-3>], kernel = "concatenation", tflq.origins = ["neighbour", "same_scale", "neighbour"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %7 = "quant.region"(%5, %0) ({
    ^bb0(%b4: tensor<4xf32>, %b5: tensor<4xf32>):
      %8 = "tfl.concatenation"(%b4, %b5) {axis = 0 : i32} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%8) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 0.5:-3>, !quant.uniform<i8:f32, 0.5:-3>], output_specs = [!quant.uniform<i8:f32, 0.5:-3>], kernel = "concatenation", tflq.origins = ["same_scale", "same_scale", "annotation"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %7 : tensor<4xf32>
  }
}
