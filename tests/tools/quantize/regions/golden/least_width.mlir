module attributes {tflq.version = 3} {
  func.func @f(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "quant.region"(%arg0, %arg1) ({
    ^bb0(%b0: tensor<4xf32>, %b1: tensor<4xf32>):
      %1 = "tfl.mul"(%b0, %b1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%1) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i16:f32, 0.125>, !quant.uniform<i16:f32, 0.125>], output_specs = [!quant.uniform<i16:f32, 0.125>], kernel = "mul", tflq.origins = ["annotation", "annotation", "annotation"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = "quant.region"(%arg1, %arg0) ({
    ^bb0(%b2: tensor<4xf32>, %b3: tensor<4xf32>):
      %3 = "tfl.mul"(%b2, %b3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%3) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i16:f32, 0.125>, !quant.uniform<i16:f32, 0.125>], output_specs = [!quant.uniform<i8:f32, 0.5:-3>], kernel = "mul", tflq.origins = ["annotation", "annotation", "annotation"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %4 = "quant.rescale"(%2) {from = !quant.uniform<i8:f32, 0.5:-3>, to = !quant.uniform<i16:f32, 0.125>} : (tensor<4xf32>) -> tensor<4xf32>
    %5 = "quant.region"(%0, %4) ({
    ^bb0(%b4: tensor<4xf32>, %b5: tensor<4xf32>):
      %6 = "tfl.maximum"(%b4, %b5) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%6) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i16:f32, 0.125>, !quant.uniform<i16:f32, 0.125>], output_specs = [!quant.uniform<i16:f32, 0.125>], kernel = "maximum", tflq.origins = ["same_scale", "annotation", "same_scale"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %5 : tensor<4xf32>
  }
}
