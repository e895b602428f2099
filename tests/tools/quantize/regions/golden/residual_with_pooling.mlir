module attributes {tflq.version = 3} {
  func.func @f(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "quant.region"(%arg0) ({
    ^bb0(%b0: tensor<4xf32>):
      %1 = "tfl.tanh"(%b0) : (tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%1) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 0.5:-3>], output_specs = [!quant.uniform<i8:f32, 0.5:-3>], kernel = "tanh", tflq.origins = ["annotation", "annotation"]} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "quant.rescale"(%0) {from = !quant.uniform<i8:f32, 0.5:-3>, to = !quant.uniform<i8:f32, 2.0:7>} : (tensor<4xf32>) -> tensor<4xf32>
    %3 = "quant.region"(%2) ({
    ^bb0(%b1: tensor<4xf32>):
      %4 = "tfl.average_pool_2d"(%b1) : (tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%4) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 2.0:7>], output_specs = [!quant.uniform<i8:f32, 2.0:7>], kernel = "average_pool_2d", tflq.origins = ["same_scale", "annotation"]} : (tensor<4xf32>) -> tensor<4xf32>
    %5 = "quant.region"(%0, %3) ({
    ^bb0(%b2: tensor<4xf32>, %b3: tensor<4xf32>):
      %6 = "tfl.add"(%b2, %b3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%6) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 0.5:-3>, !quant.uniform<i8:f32, 2.0:7>], output_specs = [!quant.uniform<i8:f32, 0.25>], kernel = "add", tflq.origins = ["neighbour", "neighbour", "annotation"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %5 : tensor<4xf32>
  }
}
