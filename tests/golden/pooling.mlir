// ===== AVERAGE_POOL_2D
module {
  func.func @main(%arg0: tensor<1x4x4x2x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x2x2x2x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = "tfl.average_pool_2d"(%arg0) {padding = "SAME", stride_w = 2, stride_h = 2, filter_width = 3, filter_height = 3} : (tensor<1x4x4x2x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<1x2x2x2x!quant.uniform<i8:f32, 0.1:3>>
    return %0 : tensor<1x2x2x2x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<1x4x4x2x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x2x2x2x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = quant.scast %arg0 : tensor<1x4x4x2x!quant.uniform<i8:f32, 0.1:3>> to tensor<1x4x4x2xi8>
    %1 = "tosa.avg_pool2d"(%0) {kernel = #tflq.tuple<[3, 3]>, stride = #tflq.tuple<[2, 2]>, pad = #tflq.tuple<[0, 1, 0, 1]>, input_zp = 0, output_zp = 0} : (tensor<1x4x4x2xi8>) -> tensor<1x2x2x2xi8>
    %2 = quant.scast %1 : tensor<1x2x2x2xi8> to tensor<1x2x2x2x!quant.uniform<i8:f32, 0.1:3>>
    return %2 : tensor<1x2x2x2x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<1x4x4x2x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x2x2x2x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = "tfl.cast"(%arg0) : (tensor<1x4x4x2x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<1x4x4x2xi8>
    %1 = "tfl.average_pool_2d"(%0) {padding = "SAME", stride_w = 2, stride_h = 2, filter_width = 3, filter_height = 3, fused_activation_function = "NONE"} : (tensor<1x4x4x2xi8>) -> tensor<1x2x2x2xi8>
    %2 = "tfl.cast"(%1) : (tensor<1x2x2x2xi8>) -> tensor<1x2x2x2x!quant.uniform<i8:f32, 0.1:3>>
    return %2 : tensor<1x2x2x2x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<1x4x4x2xi8> {tflq.name = "x"}) -> tensor<1x2x2x2xi8> {
    %0 = "tosa.avg_pool2d"(%arg0) {kernel = #tflq.tuple<[3, 3]>, stride = #tflq.tuple<[2, 2]>, pad = #tflq.tuple<[0, 1, 0, 1]>, input_zp = 0, output_zp = 0} : (tensor<1x4x4x2xi8>) -> tensor<1x2x2x2xi8>
    return %0 : tensor<1x2x2x2xi8>
  }
}

// ===== MAX_POOL_2D
module {
  func.func @main(%arg0: tensor<1x4x4x2x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x2x2x2x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = "tfl.max_pool_2d"(%arg0) {padding = "SAME", stride_w = 2, stride_h = 2, filter_width = 3, filter_height = 3} : (tensor<1x4x4x2x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<1x2x2x2x!quant.uniform<i8:f32, 0.1:3>>
    return %0 : tensor<1x2x2x2x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<1x4x4x2x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x2x2x2x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = quant.scast %arg0 : tensor<1x4x4x2x!quant.uniform<i8:f32, 0.1:3>> to tensor<1x4x4x2xi8>
    %1 = "tosa.max_pool2d"(%0) {kernel = #tflq.tuple<[3, 3]>, stride = #tflq.tuple<[2, 2]>, pad = #tflq.tuple<[0, 1, 0, 1]>} : (tensor<1x4x4x2xi8>) -> tensor<1x2x2x2xi8>
    %2 = quant.scast %1 : tensor<1x2x2x2xi8> to tensor<1x2x2x2x!quant.uniform<i8:f32, 0.1:3>>
    return %2 : tensor<1x2x2x2x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<1x4x4x2x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x2x2x2x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = "tfl.cast"(%arg0) : (tensor<1x4x4x2x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<1x4x4x2xi8>
    %1 = "tfl.max_pool_2d"(%0) {padding = "SAME", stride_w = 2, stride_h = 2, filter_width = 3, filter_height = 3, fused_activation_function = "NONE"} : (tensor<1x4x4x2xi8>) -> tensor<1x2x2x2xi8>
    %2 = "tfl.cast"(%1) : (tensor<1x2x2x2xi8>) -> tensor<1x2x2x2x!quant.uniform<i8:f32, 0.1:3>>
    return %2 : tensor<1x2x2x2x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<1x4x4x2xi8> {tflq.name = "x"}) -> tensor<1x2x2x2xi8> {
    %0 = "tosa.max_pool2d"(%arg0) {kernel = #tflq.tuple<[3, 3]>, stride = #tflq.tuple<[2, 2]>, pad = #tflq.tuple<[0, 1, 0, 1]>} : (tensor<1x4x4x2xi8>) -> tensor<1x2x2x2xi8>
    return %0 : tensor<1x2x2x2xi8>
  }
}
