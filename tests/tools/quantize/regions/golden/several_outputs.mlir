module attributes {tflq.version = 3} {
  func.func @f(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %cst0 = arith.constant dense<0> : tensor<i32>
    %0, %1 = "quant.region"(%cst0, %arg0) ({
    ^bb0(%b0: tensor<i32>, %b1: tensor<4xf32>):
      %2, %3 = "tfl.split"(%b0, %b1) {num_splits = 2 : i32} : (tensor<i32>, tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
      "quant.return"(%2, %3) : (tensor<2xf32>, tensor<2xf32>) -> ()
    }) {input_specs = [i32, !quant.uniform<i8:f32, 0.5:-3>], output_specs = [!quant.uniform<i8:f32, 0.5:-3>, !quant.uniform<i8:f32, 0.5:-3>], kernel = "split", tflq.origins = ["none", "same_scale", "annotation", "same_scale"]} : (tensor<i32>, tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
    %4 = "quant.region"(%0) ({
    ^bb0(%b2: tensor<2xf32>):
      %5 = "tfl.tanh"(%b2) : (tensor<2xf32>) -> tensor<2xf32>
      "quant.return"(%5) : (tensor<2xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 0.5:-3>], output_specs = [!quant.uniform<i8:f32, 0.25>], kernel = "tanh", tflq.origins = ["neighbour", "annotation"]} : (tensor<2xf32>) -> tensor<2xf32>
    %6 = "quant.rescale"(%1) {from = !quant.uniform<i8:f32, 0.5:-3>, to = !quant.uniform<i8:f32, 2.0:7>} : (tensor<2xf32>) -> tensor<2xf32>
    return %4, %6 : tensor<2xf32>, tensor<2xf32>
  }
}
