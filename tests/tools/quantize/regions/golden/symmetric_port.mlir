module attributes {tflq.version = 3} {
  func.func @f(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "quant.region"(%arg1) ({
    ^bb0(%b0: tensor<4xf32>):
      %1 = "tfl.tanh"(%b0) : (tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%1) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 0.5:-3>], output_specs = [!quant.uniform<i8:f32, 0.5:-3>], kernel = "tanh", tflq.origins = ["annotation", "annotation"]} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "quant.region"(%arg0, %0) ({
    ^bb0(%b1: tensor<4xf32>, %b2: tensor<4xf32>):
      %3 = "tfl.fully_connected"(%b1, %b2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%3) : (tensor<4xf32>) -> ()
    }) {input_specs = [f32, f32], output_specs = [!quant.uniform<i8:f32, 0.25>], kernel = "fully_connected", tflq.origins = ["none", "none", "neighbour"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %4 = "quant.region"(%0, %2) ({
    ^bb0(%b3: tensor<4xf32>, %b4: tensor<4xf32>):
      %5 = "tfl.fully_connected"(%b3, %b4) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%5) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 0.5:-3>, !quant.uniform<i8:f32, 0.25>], output_specs = [!quant.uniform<i8:f32, 2.0:7>], kernel = "fully_connected", tflq.origins = ["neighbour", "annotation", "annotation"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %4 : tensor<4xf32>
  }
}
