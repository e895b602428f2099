module attributes {tflq.version = 3} {
  func.func @f(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "quant.region"(%arg0) ({
    ^bb0(%b0: tensor<4xf32>):
      %1 = "tfl.tanh"(%b0) : (tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%1) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 0.5:-3>], output_specs = [!quant.uniform<i8:f32, 0.5:-3>], kernel = "tanh", tflq.origins = ["annotation", "annotation"]} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "quant.region"(%0) ({
    ^bb0(%b1: tensor<4xf32>):
      %3 = "tfl.relu"(%b1) : (tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%3) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 0.5:-3>], output_specs = [!quant.uniform<i8:f32, 0.5:-3>], kernel = "relu", tflq.origins = ["neighbour", "same_scale"]} : (tensor<4xf32>) -> tensor<4xf32>
    %4 = "quant.region"(%arg1) ({
    ^bb0(%b2: tensor<4xf32>):
      %5 = "tfl.tanh"(%b2) : (tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%5) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 0.5:-3>], output_specs = [!quant.uniform<i8:f32, 2.0:7>], kernel = "tanh", tflq.origins = ["annotation", "annotation"]} : (tensor<4xf32>) -> tensor<4xf32>
    %6 = "quant.region"(%4) ({
    ^bb0(%b3: tensor<4xf32>):
      %7 = "tfl.relu"(%b3) : (tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%7) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 2.0:7>], output_specs = [!quant.uniform<i8:f32, 2.0:7>], kernel = "relu", tflq.origins = ["neighbour", "same_scale"]} : (tensor<4xf32>) -> tensor<4xf32>
    %8 = "quant.region"(%2, %6) ({
    ^bb0(%b4: tensor<4xf32>, %b5: tensor<4xf32>):
      %9 = "tfl.add"(%b4, %b5) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%9) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 0.5:-3>, !quant.uniform<i8:f32, 2.0:7>], output_specs = [!quant.uniform<i8:f32, 0.25>], kernel = "add", tflq.origins = ["neighbour", "neighbour", "annotation"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %8 : tensor<4xf32>
  }
}
