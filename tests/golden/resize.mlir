// ===== RESIZE_BILINEAR
module {
  func.func @main(%arg0: tensor<1x4x4x2x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x8x8x2x!quant.uniform<i8:f32, 0.1:3>> {
    %cst0 = "tfl.pseudo_const"() {value = dense<8> : tensor<2xi32>} : () -> tensor<2xi32>
    %0 = "tfl.resize_bilinear"(%arg0, %cst0) : (tensor<1x4x4x2x!quant.uniform<i8:f32, 0.1:3>>, tensor<2xi32>) -> tensor<1x8x8x2x!quant.uniform<i8:f32, 0.1:3>>
    return %0 : tensor<1x8x8x2x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<1x4x4x2x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x8x8x2x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = quant.scast %arg0 : tensor<1x4x4x2x!quant.uniform<i8:f32, 0.1:3>> to tensor<1x4x4x2xi8>
    %1 = "tosa.resize"(%0) {scale = #tflq.tuple<[1024, 512, 1024, 512]>, offset = #tflq.tuple<[0, 0]>, border = #tflq.tuple<[512, 512]>, mode = "BILINEAR"} : (tensor<1x4x4x2xi8>) -> tensor<1x8x8x2xi32>
    %cst0 = "tosa.const"() {values = dense<31> : tensor<i32>} : () -> tensor<i32>
    %2 = "tosa.arithmetic_right_shift"(%1, %cst0) {round = false} : (tensor<1x8x8x2xi32>, tensor<i32>) -> tensor<1x8x8x2xi32>
    %3 = "tosa.add"(%1, %2) : (tensor<1x8x8x2xi32>, tensor<1x8x8x2xi32>) -> tensor<1x8x8x2xi32>
    %cst1 = "tosa.const"() {values = dense<524288> : tensor<i32>} : () -> tensor<i32>
    %4 = "tosa.add"(%3, %cst1) : (tensor<1x8x8x2xi32>, tensor<i32>) -> tensor<1x8x8x2xi32>
    %cst2 = "tosa.const"() {values = dense<20> : tensor<i32>} : () -> tensor<i32>
    %5 = "tosa.arithmetic_right_shift"(%4, %cst2) {round = false} : (tensor<1x8x8x2xi32>, tensor<i32>) -> tensor<1x8x8x2xi32>
    %6 = "tosa.cast"(%5) : (tensor<1x8x8x2xi32>) -> tensor<1x8x8x2xi8>
    %7 = quant.scast %6 : tensor<1x8x8x2xi8> to tensor<1x8x8x2x!quant.uniform<i8:f32, 0.1:3>>
    return %7 : tensor<1x8x8x2x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<1x4x4x2x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x8x8x2x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = "tfl.cast"(%arg0) : (tensor<1x4x4x2x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<1x4x4x2xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense<[0, 0, 1, 1, 2, 2, 3, 3]> : tensor<8xi32>} : () -> tensor<8xi32>
    %1 = "tfl.gather"(%0, %cst0) {axis = 1, batch_dims = 0} : (tensor<1x4x4x2xi32>, tensor<8xi32>) -> tensor<1x8x4x2xi32>
    %cst1 = "tfl.pseudo_const"() {value = dense<[1, 1, 2, 2, 3, 3, 3, 3]> : tensor<8xi32>} : () -> tensor<8xi32>
    %2 = "tfl.gather"(%0, %cst1) {axis = 1, batch_dims = 0} : (tensor<1x4x4x2xi32>, tensor<8xi32>) -> tensor<1x8x4x2xi32>
    %cst2 = "tfl.pseudo_const"() {value = dense<[[[1024]], [[512]], [[1024]], [[512]], [[1024]], [[512]], [[1024]], [[512]]]> : tensor<8x1x1xi32>} : () -> tensor<8x1x1xi32>
    %3 = "tfl.mul"(%1, %cst2) {fused_activation_function = "NONE"} : (tensor<1x8x4x2xi32>, tensor<8x1x1xi32>) -> tensor<1x8x4x2xi32>
    %cst3 = "tfl.pseudo_const"() {value = dense<[[[0]], [[512]], [[0]], [[512]], [[0]], [[512]], [[0]], [[512]]]> : tensor<8x1x1xi32>} : () -> tensor<8x1x1xi32>
    %4 = "tfl.mul"(%2, %cst3) {fused_activation_function = "NONE"} : (tensor<1x8x4x2xi32>, tensor<8x1x1xi32>) -> tensor<1x8x4x2xi32>
    %5 = "tfl.add"(%3, %4) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8x4x2xi32>, tensor<1x8x4x2xi32>) -> tensor<1x8x4x2xi32>
    %6 = "tfl.gather"(%5, %cst0) {axis = 2, batch_dims = 0} : (tensor<1x8x4x2xi32>, tensor<8xi32>) -> tensor<1x8x8x2xi32>
    %7 = "tfl.gather"(%5, %cst1) {axis = 2, batch_dims = 0} : (tensor<1x8x4x2xi32>, tensor<8xi32>) -> tensor<1x8x8x2xi32>
    %cst4 = "tfl.pseudo_const"() {value = dense<[[1024], [512], [1024], [512], [1024], [512], [1024], [512]]> : tensor<8x1xi32>} : () -> tensor<8x1xi32>
    %8 = "tfl.mul"(%6, %cst4) {fused_activation_function = "NONE"} : (tensor<1x8x8x2xi32>, tensor<8x1xi32>) -> tensor<1x8x8x2xi32>
    %cst5 = "tfl.pseudo_const"() {value = dense<[[0], [512], [0], [512], [0], [512], [0], [512]]> : tensor<8x1xi32>} : () -> tensor<8x1xi32>
    %9 = "tfl.mul"(%7, %cst5) {fused_activation_function = "NONE"} : (tensor<1x8x8x2xi32>, tensor<8x1xi32>) -> tensor<1x8x8x2xi32>
    %10 = "tfl.add"(%8, %9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8x8x2xi32>, tensor<1x8x8x2xi32>) -> tensor<1x8x8x2xi32>
    %cst6 = "tfl.pseudo_const"() {value = dense<31> : tensor<i32>} : () -> tensor<i32>
    %11 = "tfl.right_shift"(%10, %cst6) : (tensor<1x8x8x2xi32>, tensor<i32>) -> tensor<1x8x8x2xi32>
    %12 = "tfl.add"(%10, %11) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8x8x2xi32>, tensor<1x8x8x2xi32>) -> tensor<1x8x8x2xi32>
    %cst7 = "tfl.pseudo_const"() {value = dense<524288> : tensor<i32>} : () -> tensor<i32>
    %13 = "tfl.add"(%12, %cst7) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8x8x2xi32>, tensor<i32>) -> tensor<1x8x8x2xi32>
    %cst8 = "tfl.pseudo_const"() {value = dense<20> : tensor<i32>} : () -> tensor<i32>
    %14 = "tfl.right_shift"(%13, %cst8) : (tensor<1x8x8x2xi32>, tensor<i32>) -> tensor<1x8x8x2xi32>
    %15 = "tfl.cast"(%14) : (tensor<1x8x8x2xi32>) -> tensor<1x8x8x2x!quant.uniform<i8:f32, 0.1:3>>
    return %15 : tensor<1x8x8x2x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<1x4x4x2xi8> {tflq.name = "x"}) -> tensor<1x8x8x2xi8> {
    %0 = "tosa.resize"(%arg0) {scale = #tflq.tuple<[1024, 512, 1024, 512]>, offset = #tflq.tuple<[0, 0]>, border = #tflq.tuple<[512, 512]>, mode = "BILINEAR"} : (tensor<1x4x4x2xi8>) -> tensor<1x8x8x2xi32>
    %cst0 = "tosa.const"() {values = dense<[[[[31]]]]> : tensor<1x1x1x1xi32>} : () -> tensor<1x1x1x1xi32>
    %1 = "tosa.arithmetic_right_shift"(%0, %cst0) {round = false} : (tensor<1x8x8x2xi32>, tensor<1x1x1x1xi32>) -> tensor<1x8x8x2xi32>
    %2 = "tosa.add"(%0, %1) : (tensor<1x8x8x2xi32>, tensor<1x8x8x2xi32>) -> tensor<1x8x8x2xi32>
    %cst1 = "tosa.const"() {values = dense<[[[[524288]]]]> : tensor<1x1x1x1xi32>} : () -> tensor<1x1x1x1xi32>
    %3 = "tosa.add"(%2, %cst1) : (tensor<1x8x8x2xi32>, tensor<1x1x1x1xi32>) -> tensor<1x8x8x2xi32>
    %cst2 = "tosa.const"() {values = dense<[[[[20]]]]> : tensor<1x1x1x1xi32>} : () -> tensor<1x1x1x1xi32>
    %4 = "tosa.arithmetic_right_shift"(%3, %cst2) {round = false} : (tensor<1x8x8x2xi32>, tensor<1x1x1x1xi32>) -> tensor<1x8x8x2xi32>
    %5 = "tosa.cast"(%4) : (tensor<1x8x8x2xi32>) -> tensor<1x8x8x2xi8>
    return %5 : tensor<1x8x8x2xi8>
  }
}
