module attributes {tflq.version = 3} {
  func.func @f(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "quant.region"(%arg0) ({
    ^bb0(%b0: tensor<4xf32>):
      %1 = "tfl.relu"(%b0) : (tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%1) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 0.5:-3>], output_specs = [!quant.uniform<i8:f32, 0.5:-3>], kernel = "relu", tflq.origins = ["annotation", "same_scale"]} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "quant.region"(%arg0) ({
    ^bb0(%b1: tensor<4xf32>):
      %3 = "tfl.relu6"(%b1) : (tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%3) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 2.0:7>], output_specs = [!quant.uniform<i8:f32, 2.0:7>], kernel = "relu6", tflq.origins = ["annotation", "same_scale"]} : (tensor<4xf32>) -> tensor<4xf32>
    %4 = "quant.region"(%0, %2) ({
    ^bb0(%b2: tensor<4xf32>, %b3: tensor<4xf32>):
      %5 = "tfl.add"(%b2, %b3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%5) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 0.5:-3>, !quant.uniform<i8:f32, 2.0:7>], output_specs = [!quant.uniform<i8:f32, 0.25>], kernel = "add", tflq.origins = ["neighbour", "neighbour", "annotation"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %4 : tensor<4xf32>
  }
}
