module attributes {tflq.version = 3} {
  func.func @f(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %cst0 = arith.constant dense<0.5> : tensor<4xf32>
    %cst1 = arith.constant dense<1.0> : tensor<4xf32>
    %0 = "quant.region"(%arg0, %cst0, %cst1) ({
    ^bb0(%b0: tensor<4xf32>, %b1: tensor<4xf32>, %b2: tensor<4xf32>):
      %1 = "tfl.fully_connected"(%b0, %b1, %b2) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%1) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 0.5:-3>, !quant.uniform<i8:f32, 0.25>, !quant.uniform<i32:f32, 0.125>], output_specs = [!quant.uniform<i8:f32, 2.0:7>], kernel = "fully_connected", tflq.origins = ["annotation", "annotation", "multiplier_accumulator_scale", "annotation"]} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = "quant.region"(%0, %cst0, %cst1) ({
    ^bb0(%b3: tensor<4xf32>, %b4: tensor<4xf32>, %b5: tensor<4xf32>):
      %3 = "tfl.fully_connected"(%b3, %b4, %b5) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%3) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 2.0:7>, !quant.uniform<i8:f32, 0.25>, !quant.uniform<i32:f32, 0.5>], output_specs = [!quant.uniform<i8:f32, 2.0:7>], kernel = "fully_connected", tflq.origins = ["neighbour", "neighbour", "multiplier_accumulator_scale", "annotation"]} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %4 = "quant.region"(%2, %cst0, %cst1) ({
    ^bb0(%b6: tensor<4xf32>, %b7: tensor<4xf32>, %b8: tensor<4xf32>):
      %5 = "tfl.fully_connected"(%b6, %b7, %b8) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%5) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 2.0:7>, !quant.uniform<i8:f32, 0.125>, !quant.uniform<i32:f32, 0.25>], output_specs = [!quant.uniform<i8:f32, 2.0:7>], kernel = "fully_connected", tflq.origins = ["neighbour", "annotation", "multiplier_accumulator_scale", "annotation"]} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %6 = "quant.region"(%arg1) ({
    ^bb0(%b9: tensor<4xf32>):
      %7 = "tfl.tanh"(%b9) : (tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%7) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 0.5:-3>], output_specs = [!quant.uniform<i8:f32, 0.25>], kernel = "tanh", tflq.origins = ["annotation", "annotation"]} : (tensor<4xf32>) -> tensor<4xf32>
    %8 = "quant.rescale"(%6) {from = !quant.uniform<i8:f32, 0.25>, to = !quant.uniform<i8:f32, 0.125>} : (tensor<4xf32>) -> tensor<4xf32>
    %9 = "quant.region"(%4, %8, %cst1) ({
    ^bb0(%b10: tensor<4xf32>, %b11: tensor<4xf32>, %b12: tensor<4xf32>):
      %10 = "tfl.fully_connected"(%b10, %b11, %b12) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      "quant.return"(%10) : (tensor<4xf32>) -> ()
    }) {input_specs = [!quant.uniform<i8:f32, 2.0:7>, !quant.uniform<i8:f32, 0.125>, !quant.uniform<i32:f32, 0.25>], output_specs = [!quant.uniform<i8:f32, 2.0:7>], kernel = "fully_connected", tflq.origins = ["neighbour", "annotation", "multiplier_accumulator_scale", "annotation"]} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %9 : tensor<4xf32>
  }
}
