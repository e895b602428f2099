// ===== SVDF, int8, state of int16
module {
  func.func @main(%arg0: tensor<1x3x!quant.uniform<i8:f32, 0.05:7>> {tflq.name = "x"}) -> tensor<1x2x!quant.uniform<i8:f32, 0.03:-5>> {
    %cst0 = "tfl.pseudo_const"() {value = dense<[[-127, -90, -53], [-16, 21, 58], [95, -123, -86], [-49, -12, 25]]> : tensor<4x3xi8>} : () -> tensor<4x3x!quant.uniform<i8:f32, 0.01>>
    %cst1 = "tfl.pseudo_const"() {value = dense<[[-3000, -2963], [-2926, -2889], [-2852, -2815], [-2778, -2741]]> : tensor<4x2xi16>} : () -> tensor<4x2x!quant.uniform<i16:f32, 0.001>>
    %cst2 = "tfl.pseudo_const"() {value = dense<[-3000, -2963]> : tensor<2xi32>} : () -> tensor<2x!quant.uniform<i32:f32, 2.0e-05>>
    %cst3 = "tflq.tensor"() : () -> tensor<1x8x!quant.uniform<i16:f32, 0.0009>>
    %0 = "tfl.svdf"(%arg0, %cst0, %cst1, %cst2, %cst3) {rank = 2, fused_activation_function = "RELU"} : (tensor<1x3x!quant.uniform<i8:f32, 0.05:7>>, tensor<4x3x!quant.uniform<i8:f32, 0.01>>, tensor<4x2x!quant.uniform<i16:f32, 0.001>>, tensor<2x!quant.uniform<i32:f32, 2.0e-05>>, tensor<1x8x!quant.uniform<i16:f32, 0.0009>>) -> tensor<1x2x!quant.uniform<i8:f32, 0.03:-5>>
    return %0 : tensor<1x2x!quant.uniform<i8:f32, 0.03:-5>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<1x3x!quant.uniform<i8:f32, 0.05:7>> {tflq.name = "x"}) -> tensor<1x2x!quant.uniform<i8:f32, 0.03:-5>> {
    %cst0 = "tfl.pseudo_const"() {value = dense<[[-127, -90, -53], [-16, 21, 58], [95, -123, -86], [-49, -12, 25]]> : tensor<4x3xi8>} : () -> tensor<4x3x!quant.uniform<i8:f32, 0.01>>
    %cst1 = "tfl.pseudo_const"() {value = dense<[[-3000, -2963], [-2926, -2889], [-2852, -2815], [-2778, -2741]]> : tensor<4x2xi16>} : () -> tensor<4x2x!quant.uniform<i16:f32, 0.001>>
    %cst2 = "tfl.pseudo_const"() {value = dense<[-3000, -2963]> : tensor<2xi32>} : () -> tensor<2x!quant.uniform<i32:f32, 2.0e-05>>
    %cst3 = "tflq.tensor"() : () -> tensor<1x8x!quant.uniform<i16:f32, 0.0009>>
    %0 = "tfl.svdf"(%arg0, %cst0, %cst1, %cst2, %cst3) {rank = 2, fused_activation_function = "RELU"} : (tensor<1x3x!quant.uniform<i8:f32, 0.05:7>>, tensor<4x3x!quant.uniform<i8:f32, 0.01>>, tensor<4x2x!quant.uniform<i16:f32, 0.001>>, tensor<2x!quant.uniform<i32:f32, 2.0e-05>>, tensor<1x8x!quant.uniform<i16:f32, 0.0009>>) -> tensor<1x2x!quant.uniform<i8:f32, 0.03:-5>>
    return %0 : tensor<1x2x!quant.uniform<i8:f32, 0.03:-5>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<1x3x!quant.uniform<i8:f32, 0.05:7>> {tflq.name = "x"}) -> tensor<1x2x!quant.uniform<i8:f32, 0.03:-5>> {
    %cst0 = "tfl.pseudo_const"() {value = dense<[[-127, -90, -53], [-16, 21, 58], [95, -123, -86], [-49, -12, 25]]> : tensor<4x3xi8>} : () -> tensor<4x3x!quant.uniform<i8:f32, 0.01>>
    %cst1 = "tfl.pseudo_const"() {value = dense<[[-3000, -2963], [-2926, -2889], [-2852, -2815], [-2778, -2741]]> : tensor<4x2xi16>} : () -> tensor<4x2x!quant.uniform<i16:f32, 0.001>>
    %cst2 = "tfl.pseudo_const"() {value = dense<[-3000, -2963]> : tensor<2xi32>} : () -> tensor<2x!quant.uniform<i32:f32, 2.0e-05>>
    %cst3 = "tflq.tensor"() : () -> tensor<1x8x!quant.uniform<i16:f32, 0.0009>>
    %0 = "tfl.svdf"(%arg0, %cst0, %cst1, %cst2, %cst3) {rank = 2, fused_activation_function = "RELU"} : (tensor<1x3x!quant.uniform<i8:f32, 0.05:7>>, tensor<4x3x!quant.uniform<i8:f32, 0.01>>, tensor<4x2x!quant.uniform<i16:f32, 0.001>>, tensor<2x!quant.uniform<i32:f32, 2.0e-05>>, tensor<1x8x!quant.uniform<i16:f32, 0.0009>>) -> tensor<1x2x!quant.uniform<i8:f32, 0.03:-5>>
    return %0 : tensor<1x2x!quant.uniform<i8:f32, 0.03:-5>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<1x3xi8> {tflq.name = "x"}) -> tensor<1x2xi8> {
    %cst0 = "tosa.const"() {values = dense<0> : tensor<2x1x8xi8>} : () -> tensor<2x1x8xi8>
    "tosa.variable"(%cst0) {name = "state"} : (tensor<2x1x8xi8>) -> ()
    %0 = "tosa.reshape"(%arg0) : (tensor<1x3xi8>) -> tensor<1x1x1x3xi8>
    %cst1 = "tosa.const"() {values = dense<[[[[-127, -90, -53]]], [[[-16, 21, 58]]], [[[95, -123, -86]]], [[[-49, -12, 25]]]]> : tensor<4x1x1x3xi8>} : () -> tensor<4x1x1x3xi8>
    %cst2 = "tosa.const"() {values = dense<0> : tensor<4xi32>} : () -> tensor<4xi32>
    %1 = "tosa.conv2d"(%0, %cst1, %cst2) {pad = #tflq.tuple<[0, 0, 0, 0]>, stride = #tflq.tuple<[1, 1]>, dilation = #tflq.tuple<[1, 1]>, input_zp = 7, weight_zp = 0} : (tensor<1x1x1x3xi8>, tensor<4x1x1x3xi8>, tensor<4xi32>) -> tensor<1x1x1x4xi32>
    %2 = "tosa.rescale"(%1) {multiplier = dense<[1193046528]> : tensor<1xi32>, shift = dense<[31]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x1x1x4xi32>) -> tensor<1x1x1x4xi16>
    %3 = "tosa.reshape"(%2) : (tensor<1x1x1x4xi16>) -> tensor<1x4x1xi16>
    %4 = "tosa.variable_read"() {name = "state"} : () -> tensor<2x1x8xi8>
    %5 = "tosa.slice"(%4) {start = #tflq.tuple<[0, 0, 0]>, size = #tflq.tuple<[1, 1, 8]>} : (tensor<2x1x8xi8>) -> tensor<1x1x8xi8>
    %6 = "tosa.cast"(%5) : (tensor<1x1x8xi8>) -> tensor<1x1x8xi32>
    %7 = "tosa.reshape"(%6) : (tensor<1x1x8xi32>) -> tensor<1x8xi32>
    %cst3 = "tosa.const"() {values = dense<[[255]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %8 = "tosa.bitwise_and"(%7, %cst3) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %9 = "tosa.slice"(%4) {start = #tflq.tuple<[1, 0, 0]>, size = #tflq.tuple<[1, 1, 8]>} : (tensor<2x1x8xi8>) -> tensor<1x1x8xi8>
    %10 = "tosa.cast"(%9) : (tensor<1x1x8xi8>) -> tensor<1x1x8xi32>
    %11 = "tosa.reshape"(%10) : (tensor<1x1x8xi32>) -> tensor<1x8xi32>
    %cst4 = "tosa.const"() {values = dense<[[8]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %12 = "tosa.logical_left_shift"(%11, %cst4) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %13 = "tosa.bitwise_or"(%8, %12) : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %14 = "tosa.cast"(%13) : (tensor<1x8xi32>) -> tensor<1x8xi16>
    %15 = "tosa.reshape"(%14) : (tensor<1x8xi16>) -> tensor<1x4x2xi16>
    %16 = "tosa.slice"(%15) {start = #tflq.tuple<[0, 0, 1]>, size = #tflq.tuple<[1, 4, 1]>} : (tensor<1x4x2xi16>) -> tensor<1x4x1xi16>
    %17 = "tosa.concat"(%16, %3) {axis = 2} : (tensor<1x4x1xi16>, tensor<1x4x1xi16>) -> tensor<1x4x2xi16>
    %18 = "tosa.reshape"(%17) : (tensor<1x4x2xi16>) -> tensor<1x8xi16>
    %19 = "tosa.cast"(%18) : (tensor<1x8xi16>) -> tensor<1x8xi32>
    %20 = "tosa.reshape"(%19) : (tensor<1x8xi32>) -> tensor<1x1x8xi32>
    %cst5 = "tosa.const"() {values = dense<[[[0]]]> : tensor<1x1x1xi32>} : () -> tensor<1x1x1xi32>
    %21 = "tosa.arithmetic_right_shift"(%20, %cst5) {round = false} : (tensor<1x1x8xi32>, tensor<1x1x1xi32>) -> tensor<1x1x8xi32>
    %22 = "tosa.cast"(%21) : (tensor<1x1x8xi32>) -> tensor<1x1x8xi8>
    %cst6 = "tosa.const"() {values = dense<[[[8]]]> : tensor<1x1x1xi32>} : () -> tensor<1x1x1xi32>
    %23 = "tosa.arithmetic_right_shift"(%20, %cst6) {round = false} : (tensor<1x1x8xi32>, tensor<1x1x1xi32>) -> tensor<1x1x8xi32>
    %24 = "tosa.cast"(%23) : (tensor<1x1x8xi32>) -> tensor<1x1x8xi8>
    %25 = "tosa.concat"(%22, %24) {axis = 0} : (tensor<1x1x8xi8>, tensor<1x1x8xi8>) -> tensor<2x1x8xi8>
    "tosa.variable_write"(%25) {name = "state"} : (tensor<2x1x8xi8>) -> ()
    %26 = "tosa.cast"(%17) : (tensor<1x4x2xi16>) -> tensor<1x4x2xi32>
    %cst7 = "tosa.const"() {values = dense<[[[-3000, -2963], [-2926, -2889], [-2852, -2815], [-2778, -2741]]]> : tensor<1x4x2xi32>} : () -> tensor<1x4x2xi32>
    %27 = "tosa.mul"(%26, %cst7) {shift = 0} : (tensor<1x4x2xi32>, tensor<1x4x2xi32>) -> tensor<1x4x2xi32>
    %28 = "tosa.reshape"(%27) : (tensor<1x4x2xi32>) -> tensor<1x2x4xi32>
    %cst8 = "tosa.const"() {values = dense<[[[-3000], [-2963]]]> : tensor<1x2x1xi32>} : () -> tensor<1x2x1xi32>
    %29 = "tosa.concat"(%28, %cst8) {axis = 2} : (tensor<1x2x4xi32>, tensor<1x2x1xi32>) -> tensor<1x2x5xi32>
    %30 = "tosa.reduce_sum"(%29) {axis = 2} : (tensor<1x2x5xi32>) -> tensor<1x2x1xi32>
    %31 = "tosa.reshape"(%30) : (tensor<1x2x1xi32>) -> tensor<1x2xi32>
    %32 = "tosa.rescale"(%31) {multiplier = dense<[2111062400]> : tensor<1xi32>, shift = dense<[46]> : tensor<1xi8>, input_zp = 0, output_zp = -5, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x2xi32>) -> tensor<1x2xi8>
    return %32 : tensor<1x2xi8>
  }
}

// ===== UNIDIRECTIONAL_SEQUENCE_LSTM, int8, cell state of int16, two steps
module {
  func.func @main(%arg0: tensor<1x2x3x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}) -> tensor<1x2x2x!quant.uniform<i8:f32, 0.0078:4>> {
    %cst0 = "tfl.pseudo_const"() {value = dense<[[-127, -90, -53], [-16, 21, 58]]> : tensor<2x3xi8>} : () -> tensor<2x3x!quant.uniform<i8:f32, 0.01>>
    %cst1 = "tfl.pseudo_const"() {value = dense<[[-127, -90, -53], [-16, 21, 58]]> : tensor<2x3xi8>} : () -> tensor<2x3x!quant.uniform<i8:f32, 0.01>>
    %cst2 = "tfl.pseudo_const"() {value = dense<[[-127, -90, -53], [-16, 21, 58]]> : tensor<2x3xi8>} : () -> tensor<2x3x!quant.uniform<i8:f32, 0.01>>
    %cst3 = "tfl.pseudo_const"() {value = dense<[[-127, -90, -53], [-16, 21, 58]]> : tensor<2x3xi8>} : () -> tensor<2x3x!quant.uniform<i8:f32, 0.01>>
    %cst4 = "tfl.pseudo_const"() {value = dense<[[-127, -90], [-53, -16]]> : tensor<2x2xi8>} : () -> tensor<2x2x!quant.uniform<i8:f32, 0.02>>
    %cst5 = "tfl.pseudo_const"() {value = dense<[[-127, -90], [-53, -16]]> : tensor<2x2xi8>} : () -> tensor<2x2x!quant.uniform<i8:f32, 0.02>>
    %cst6 = "tfl.pseudo_const"() {value = dense<[[-127, -90], [-53, -16]]> : tensor<2x2xi8>} : () -> tensor<2x2x!quant.uniform<i8:f32, 0.02>>
    %cst7 = "tfl.pseudo_const"() {value = dense<[[-127, -90], [-53, -16]]> : tensor<2x2xi8>} : () -> tensor<2x2x!quant.uniform<i8:f32, 0.02>>
    %none = "tfl.no_value"() {value} : () -> none
    %cst8 = "tfl.pseudo_const"() {value = dense<[-3000, -2963]> : tensor<2xi32>} : () -> tensor<2x!quant.uniform<i32:f32, 0.0005>>
    %cst9 = "tfl.pseudo_const"() {value = dense<[-3000, -2963]> : tensor<2xi32>} : () -> tensor<2x!quant.uniform<i32:f32, 0.0005>>
    %cst10 = "tfl.pseudo_const"() {value = dense<[-3000, -2963]> : tensor<2xi32>} : () -> tensor<2x!quant.uniform<i32:f32, 0.0005>>
    %cst11 = "tfl.pseudo_const"() {value = dense<[-3000, -2963]> : tensor<2xi32>} : () -> tensor<2x!quant.uniform<i32:f32, 0.0005>>
    %cst12 = "tflq.tensor"() : () -> tensor<1x2x!quant.uniform<i8:f32, 0.0078:4>>
    %cst13 = "tflq.tensor"() : () -> tensor<1x2x!quant.uniform<i16:f32, 0.00048828125>>
    %cst14 = "tflq.tensor"() : () -> tensor<0x!quant.uniform<i16:f32, 0.0005>>
    %cst15 = "tflq.tensor"() : () -> tensor<0x!quant.uniform<i16:f32, 0.0005>>
    %cst16 = "tflq.tensor"() : () -> tensor<0x!quant.uniform<i16:f32, 0.0005>>
    %cst17 = "tflq.tensor"() : () -> tensor<0x!quant.uniform<i16:f32, 0.0005>>
    %cst18 = "tflq.tensor"() : () -> tensor<0x!quant.uniform<i8:f32, 0.0078:4>>
    %0 = "tfl.unidirectional_sequence_lstm"(%arg0, %cst0, %cst1, %cst2, %cst3, %cst4, %cst5, %cst6, %cst7, %none, %none, %none, %cst8, %cst9, %cst10, %cst11, %none, %none, %cst12, %cst13, %none, %none, %none, %none, %cst14, %cst15, %cst16, %cst17, %cst18) {fused_activation_function = "TANH"} : (tensor<1x2x3x!quant.uniform<i8:f32, 0.05:3>>, tensor<2x3x!quant.uniform<i8:f32, 0.01>>, tensor<2x3x!quant.uniform<i8:f32, 0.01>>, tensor<2x3x!quant.uniform<i8:f32, 0.01>>, tensor<2x3x!quant.uniform<i8:f32, 0.01>>, tensor<2x2x!quant.uniform<i8:f32, 0.02>>, tensor<2x2x!quant.uniform<i8:f32, 0.02>>, tensor<2x2x!quant.uniform<i8:f32, 0.02>>, tensor<2x2x!quant.uniform<i8:f32, 0.02>>, none, none, none, tensor<2x!quant.uniform<i32:f32, 0.0005>>, tensor<2x!quant.uniform<i32:f32, 0.0005>>, tensor<2x!quant.uniform<i32:f32, 0.0005>>, tensor<2x!quant.uniform<i32:f32, 0.0005>>, none, none, tensor<1x2x!quant.uniform<i8:f32, 0.0078:4>>, tensor<1x2x!quant.uniform<i16:f32, 0.00048828125>>, none, none, none, none, tensor<0x!quant.uniform<i16:f32, 0.0005>>, tensor<0x!quant.uniform<i16:f32, 0.0005>>, tensor<0x!quant.uniform<i16:f32, 0.0005>>, tensor<0x!quant.uniform<i16:f32, 0.0005>>, tensor<0x!quant.uniform<i8:f32, 0.0078:4>>) -> tensor<1x2x2x!quant.uniform<i8:f32, 0.0078:4>>
    return %0 : tensor<1x2x2x!quant.uniform<i8:f32, 0.0078:4>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<1x2x3x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}) -> tensor<1x2x2x!quant.uniform<i8:f32, 0.0078:4>> {
    %cst0 = "tfl.pseudo_const"() {value = dense<[[-127, -90, -53], [-16, 21, 58]]> : tensor<2x3xi8>} : () -> tensor<2x3x!quant.uniform<i8:f32, 0.01>>
    %cst1 = "tfl.pseudo_const"() {value = dense<[[-127, -90, -53], [-16, 21, 58]]> : tensor<2x3xi8>} : () -> tensor<2x3x!quant.uniform<i8:f32, 0.01>>
    %cst2 = "tfl.pseudo_const"() {value = dense<[[-127, -90, -53], [-16, 21, 58]]> : tensor<2x3xi8>} : () -> tensor<2x3x!quant.uniform<i8:f32, 0.01>>
    %cst3 = "tfl.pseudo_const"() {value = dense<[[-127, -90, -53], [-16, 21, 58]]> : tensor<2x3xi8>} : () -> tensor<2x3x!quant.uniform<i8:f32, 0.01>>
    %cst4 = "tfl.pseudo_const"() {value = dense<[[-127, -90], [-53, -16]]> : tensor<2x2xi8>} : () -> tensor<2x2x!quant.uniform<i8:f32, 0.02>>
    %cst5 = "tfl.pseudo_const"() {value = dense<[[-127, -90], [-53, -16]]> : tensor<2x2xi8>} : () -> tensor<2x2x!quant.uniform<i8:f32, 0.02>>
    %cst6 = "tfl.pseudo_const"() {value = dense<[[-127, -90], [-53, -16]]> : tensor<2x2xi8>} : () -> tensor<2x2x!quant.uniform<i8:f32, 0.02>>
    %cst7 = "tfl.pseudo_const"() {value = dense<[[-127, -90], [-53, -16]]> : tensor<2x2xi8>} : () -> tensor<2x2x!quant.uniform<i8:f32, 0.02>>
    %none = "tfl.no_value"() {value} : () -> none
    %cst8 = "tfl.pseudo_const"() {value = dense<[-3000, -2963]> : tensor<2xi32>} : () -> tensor<2x!quant.uniform<i32:f32, 0.0005>>
    %cst9 = "tfl.pseudo_const"() {value = dense<[-3000, -2963]> : tensor<2xi32>} : () -> tensor<2x!quant.uniform<i32:f32, 0.0005>>
    %cst10 = "tfl.pseudo_const"() {value = dense<[-3000, -2963]> : tensor<2xi32>} : () -> tensor<2x!quant.uniform<i32:f32, 0.0005>>
    %cst11 = "tfl.pseudo_const"() {value = dense<[-3000, -2963]> : tensor<2xi32>} : () -> tensor<2x!quant.uniform<i32:f32, 0.0005>>
    %cst12 = "tflq.tensor"() : () -> tensor<1x2x!quant.uniform<i8:f32, 0.0078:4>>
    %cst13 = "tflq.tensor"() : () -> tensor<1x2x!quant.uniform<i16:f32, 0.00048828125>>
    %cst14 = "tflq.tensor"() : () -> tensor<0x!quant.uniform<i16:f32, 0.0005>>
    %cst15 = "tflq.tensor"() : () -> tensor<0x!quant.uniform<i16:f32, 0.0005>>
    %cst16 = "tflq.tensor"() : () -> tensor<0x!quant.uniform<i16:f32, 0.0005>>
    %cst17 = "tflq.tensor"() : () -> tensor<0x!quant.uniform<i16:f32, 0.0005>>
    %cst18 = "tflq.tensor"() : () -> tensor<0x!quant.uniform<i8:f32, 0.0078:4>>
    %0 = "tfl.unidirectional_sequence_lstm"(%arg0, %cst0, %cst1, %cst2, %cst3, %cst4, %cst5, %cst6, %cst7, %none, %none, %none, %cst8, %cst9, %cst10, %cst11, %none, %none, %cst12, %cst13, %none, %none, %none, %none, %cst14, %cst15, %cst16, %cst17, %cst18) {fused_activation_function = "TANH"} : (tensor<1x2x3x!quant.uniform<i8:f32, 0.05:3>>, tensor<2x3x!quant.uniform<i8:f32, 0.01>>, tensor<2x3x!quant.uniform<i8:f32, 0.01>>, tensor<2x3x!quant.uniform<i8:f32, 0.01>>, tensor<2x3x!quant.uniform<i8:f32, 0.01>>, tensor<2x2x!quant.uniform<i8:f32, 0.02>>, tensor<2x2x!quant.uniform<i8:f32, 0.02>>, tensor<2x2x!quant.uniform<i8:f32, 0.02>>, tensor<2x2x!quant.uniform<i8:f32, 0.02>>, none, none, none, tensor<2x!quant.uniform<i32:f32, 0.0005>>, tensor<2x!quant.uniform<i32:f32, 0.0005>>, tensor<2x!quant.uniform<i32:f32, 0.0005>>, tensor<2x!quant.uniform<i32:f32, 0.0005>>, none, none, tensor<1x2x!quant.uniform<i8:f32, 0.0078:4>>, tensor<1x2x!quant.uniform<i16:f32, 0.00048828125>>, none, none, none, none, tensor<0x!quant.uniform<i16:f32, 0.0005>>, tensor<0x!quant.uniform<i16:f32, 0.0005>>, tensor<0x!quant.uniform<i16:f32, 0.0005>>, tensor<0x!quant.uniform<i16:f32, 0.0005>>, tensor<0x!quant.uniform<i8:f32, 0.0078:4>>) -> tensor<1x2x2x!quant.uniform<i8:f32, 0.0078:4>>
    return %0 : tensor<1x2x2x!quant.uniform<i8:f32, 0.0078:4>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<1x2x3x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}) -> tensor<1x2x2x!quant.uniform<i8:f32, 0.0078:4>> {
    %cst0 = "tfl.pseudo_const"() {value = dense<[[-127, -90, -53], [-16, 21, 58]]> : tensor<2x3xi8>} : () -> tensor<2x3x!quant.uniform<i8:f32, 0.01>>
    %cst1 = "tfl.pseudo_const"() {value = dense<[[-127, -90, -53], [-16, 21, 58]]> : tensor<2x3xi8>} : () -> tensor<2x3x!quant.uniform<i8:f32, 0.01>>
    %cst2 = "tfl.pseudo_const"() {value = dense<[[-127, -90, -53], [-16, 21, 58]]> : tensor<2x3xi8>} : () -> tensor<2x3x!quant.uniform<i8:f32, 0.01>>
    %cst3 = "tfl.pseudo_const"() {value = dense<[[-127, -90, -53], [-16, 21, 58]]> : tensor<2x3xi8>} : () -> tensor<2x3x!quant.uniform<i8:f32, 0.01>>
    %cst4 = "tfl.pseudo_const"() {value = dense<[[-127, -90], [-53, -16]]> : tensor<2x2xi8>} : () -> tensor<2x2x!quant.uniform<i8:f32, 0.02>>
    %cst5 = "tfl.pseudo_const"() {value = dense<[[-127, -90], [-53, -16]]> : tensor<2x2xi8>} : () -> tensor<2x2x!quant.uniform<i8:f32, 0.02>>
    %cst6 = "tfl.pseudo_const"() {value = dense<[[-127, -90], [-53, -16]]> : tensor<2x2xi8>} : () -> tensor<2x2x!quant.uniform<i8:f32, 0.02>>
    %cst7 = "tfl.pseudo_const"() {value = dense<[[-127, -90], [-53, -16]]> : tensor<2x2xi8>} : () -> tensor<2x2x!quant.uniform<i8:f32, 0.02>>
    %none = "tfl.no_value"() {value} : () -> none
    %cst8 = "tfl.pseudo_const"() {value = dense<[-3000, -2963]> : tensor<2xi32>} : () -> tensor<2x!quant.uniform<i32:f32, 0.0005>>
    %cst9 = "tfl.pseudo_const"() {value = dense<[-3000, -2963]> : tensor<2xi32>} : () -> tensor<2x!quant.uniform<i32:f32, 0.0005>>
    %cst10 = "tfl.pseudo_const"() {value = dense<[-3000, -2963]> : tensor<2xi32>} : () -> tensor<2x!quant.uniform<i32:f32, 0.0005>>
    %cst11 = "tfl.pseudo_const"() {value = dense<[-3000, -2963]> : tensor<2xi32>} : () -> tensor<2x!quant.uniform<i32:f32, 0.0005>>
    %cst12 = "tflq.tensor"() : () -> tensor<1x2x!quant.uniform<i8:f32, 0.0078:4>>
    %cst13 = "tflq.tensor"() : () -> tensor<1x2x!quant.uniform<i16:f32, 0.00048828125>>
    %cst14 = "tflq.tensor"() : () -> tensor<0x!quant.uniform<i16:f32, 0.0005>>
    %cst15 = "tflq.tensor"() : () -> tensor<0x!quant.uniform<i16:f32, 0.0005>>
    %cst16 = "tflq.tensor"() : () -> tensor<0x!quant.uniform<i16:f32, 0.0005>>
    %cst17 = "tflq.tensor"() : () -> tensor<0x!quant.uniform<i16:f32, 0.0005>>
    %cst18 = "tflq.tensor"() : () -> tensor<0x!quant.uniform<i8:f32, 0.0078:4>>
    %0 = "tfl.unidirectional_sequence_lstm"(%arg0, %cst0, %cst1, %cst2, %cst3, %cst4, %cst5, %cst6, %cst7, %none, %none, %none, %cst8, %cst9, %cst10, %cst11, %none, %none, %cst12, %cst13, %none, %none, %none, %none, %cst14, %cst15, %cst16, %cst17, %cst18) {fused_activation_function = "TANH"} : (tensor<1x2x3x!quant.uniform<i8:f32, 0.05:3>>, tensor<2x3x!quant.uniform<i8:f32, 0.01>>, tensor<2x3x!quant.uniform<i8:f32, 0.01>>, tensor<2x3x!quant.uniform<i8:f32, 0.01>>, tensor<2x3x!quant.uniform<i8:f32, 0.01>>, tensor<2x2x!quant.uniform<i8:f32, 0.02>>, tensor<2x2x!quant.uniform<i8:f32, 0.02>>, tensor<2x2x!quant.uniform<i8:f32, 0.02>>, tensor<2x2x!quant.uniform<i8:f32, 0.02>>, none, none, none, tensor<2x!quant.uniform<i32:f32, 0.0005>>, tensor<2x!quant.uniform<i32:f32, 0.0005>>, tensor<2x!quant.uniform<i32:f32, 0.0005>>, tensor<2x!quant.uniform<i32:f32, 0.0005>>, none, none, tensor<1x2x!quant.uniform<i8:f32, 0.0078:4>>, tensor<1x2x!quant.uniform<i16:f32, 0.00048828125>>, none, none, none, none, tensor<0x!quant.uniform<i16:f32, 0.0005>>, tensor<0x!quant.uniform<i16:f32, 0.0005>>, tensor<0x!quant.uniform<i16:f32, 0.0005>>, tensor<0x!quant.uniform<i16:f32, 0.0005>>, tensor<0x!quant.uniform<i8:f32, 0.0078:4>>) -> tensor<1x2x2x!quant.uniform<i8:f32, 0.0078:4>>
    return %0 : tensor<1x2x2x!quant.uniform<i8:f32, 0.0078:4>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<1x2x3xi8> {tflq.name = "x"}) -> tensor<1x2x2xi8> {
    %cst0 = "tosa.const"() {values = dense<4> : tensor<1x2xi8>} : () -> tensor<1x2xi8>
    "tosa.variable"(%cst0) {name = "h"} : (tensor<1x2xi8>) -> ()
    %cst1 = "tosa.const"() {values = dense<0> : tensor<2x1x2xi8>} : () -> tensor<2x1x2xi8>
    "tosa.variable"(%cst1) {name = "c"} : (tensor<2x1x2xi8>) -> ()
    %0 = "tosa.reshape"(%arg0) : (tensor<1x2x3xi8>) -> tensor<2x1x1x3xi8>
    %cst2 = "tosa.const"() {values = dense<[[[[-127, -90, -53]]], [[[-16, 21, 58]]], [[[-127, -90, -53]]], [[[-16, 21, 58]]], [[[-127, -90, -53]]], [[[-16, 21, 58]]], [[[-127, -90, -53]]], [[[-16, 21, 58]]]]> : tensor<8x1x1x3xi8>} : () -> tensor<8x1x1x3xi8>
    %cst3 = "tosa.const"() {values = dense<[-3000, -2963, -3000, -2963, -3000, -2963, -3000, -2963]> : tensor<8xi32>} : () -> tensor<8xi32>
    %1 = "tosa.conv2d"(%0, %cst2, %cst3) {pad = #tflq.tuple<[0, 0, 0, 0]>, stride = #tflq.tuple<[1, 1]>, dilation = #tflq.tuple<[1, 1]>, input_zp = 3, weight_zp = 0} : (tensor<2x1x1x3xi8>, tensor<8x1x1x3xi8>, tensor<8xi32>) -> tensor<2x1x1x8xi32>
    %2 = "tosa.rescale"(%1) {multiplier = dense<1099511680> : tensor<8xi32>, shift = dense<29> : tensor<8xi8>, input_zp = 0, output_zp = 0, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = true} : (tensor<2x1x1x8xi32>) -> tensor<2x1x1x8xi16>
    %3 = "tosa.reshape"(%2) : (tensor<2x1x1x8xi16>) -> tensor<1x2x8xi16>
    %4 = "tosa.variable_read"() {name = "h"} : () -> tensor<1x2xi8>
    %5 = "tosa.variable_read"() {name = "c"} : () -> tensor<2x1x2xi8>
    %6 = "tosa.slice"(%5) {start = #tflq.tuple<[0, 0, 0]>, size = #tflq.tuple<[1, 1, 2]>} : (tensor<2x1x2xi8>) -> tensor<1x1x2xi8>
    %7 = "tosa.cast"(%6) : (tensor<1x1x2xi8>) -> tensor<1x1x2xi32>
    %8 = "tosa.reshape"(%7) : (tensor<1x1x2xi32>) -> tensor<1x2xi32>
    %cst4 = "tosa.const"() {values = dense<[[255]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %9 = "tosa.bitwise_and"(%8, %cst4) : (tensor<1x2xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
    %10 = "tosa.slice"(%5) {start = #tflq.tuple<[1, 0, 0]>, size = #tflq.tuple<[1, 1, 2]>} : (tensor<2x1x2xi8>) -> tensor<1x1x2xi8>
    %11 = "tosa.cast"(%10) : (tensor<1x1x2xi8>) -> tensor<1x1x2xi32>
    %12 = "tosa.reshape"(%11) : (tensor<1x1x2xi32>) -> tensor<1x2xi32>
    %cst5 = "tosa.const"() {values = dense<[[8]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %13 = "tosa.logical_left_shift"(%12, %cst5) : (tensor<1x2xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
    %14 = "tosa.bitwise_or"(%9, %13) : (tensor<1x2xi32>, tensor<1x2xi32>) -> tensor<1x2xi32>
    %15 = "tosa.cast"(%14) : (tensor<1x2xi32>) -> tensor<1x2xi16>
    %16 = "tosa.cast"(%15) : (tensor<1x2xi16>) -> tensor<1x2xi32>
    %17 = "tosa.slice"(%3) {start = #tflq.tuple<[0, 0, 0]>, size = #tflq.tuple<[1, 1, 8]>} : (tensor<1x2x8xi16>) -> tensor<1x1x8xi16>
    %18 = "tosa.reshape"(%17) : (tensor<1x1x8xi16>) -> tensor<1x8xi16>
    %19 = "tosa.reshape"(%4) : (tensor<1x2xi8>) -> tensor<1x1x1x2xi8>
    %cst6 = "tosa.const"() {values = dense<[[[[-127, -90]]], [[[-53, -16]]], [[[-127, -90]]], [[[-53, -16]]], [[[-127, -90]]], [[[-53, -16]]], [[[-127, -90]]], [[[-53, -16]]]]> : tensor<8x1x1x2xi8>} : () -> tensor<8x1x1x2xi8>
    %cst7 = "tosa.const"() {values = dense<0> : tensor<8xi32>} : () -> tensor<8xi32>
    %20 = "tosa.conv2d"(%19, %cst6, %cst7) {pad = #tflq.tuple<[0, 0, 0, 0]>, stride = #tflq.tuple<[1, 1]>, dilation = #tflq.tuple<[1, 1]>, input_zp = 4, weight_zp = 0} : (tensor<1x1x1x2xi8>, tensor<8x1x1x2xi8>, tensor<8xi32>) -> tensor<1x1x1x8xi32>
    %21 = "tosa.reshape"(%20) : (tensor<1x1x1x8xi32>) -> tensor<1x8xi32>
    %22 = "tosa.rescale"(%21) {multiplier = dense<1372190464> : tensor<8xi32>, shift = dense<31> : tensor<8xi8>, input_zp = 0, output_zp = 0, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = true} : (tensor<1x8xi32>) -> tensor<1x8xi32>
    %23 = "tosa.cast"(%18) : (tensor<1x8xi16>) -> tensor<1x8xi32>
    %24 = "tosa.add"(%22, %23) : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst8 = "tosa.const"() {values = dense<[[-32768]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %25 = "tosa.maximum"(%24, %cst8) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %cst9 = "tosa.const"() {values = dense<[[32767]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %26 = "tosa.minimum"(%25, %cst9) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %27 = "tosa.slice"(%26) {start = #tflq.tuple<[0, 2]>, size = #tflq.tuple<[1, 2]>} : (tensor<1x8xi32>) -> tensor<1x2xi32>
    %28 = "tosa.cast"(%27) : (tensor<1x2xi32>) -> tensor<1x2xi16>
    %29 = "tosa.cast"(%28) : (tensor<1x2xi16>) -> tensor<1x2xi32>
    %cst10 = "tosa.const"() {values = dense<[[32768]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %30 = "tosa.add"(%29, %cst10) : (tensor<1x2xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
    %cst11 = "tosa.const"() {values = dense_resource<ae979cdd> : tensor<1x65536x1xi16>} : () -> tensor<1x65536x1xi16>
    %31 = "tosa.gather"(%cst11, %30) : (tensor<1x65536x1xi16>, tensor<1x2xi32>) -> tensor<1x2x1xi16>
    %32 = "tosa.reshape"(%31) : (tensor<1x2x1xi16>) -> tensor<1x2xi16>
    %33 = "tosa.cast"(%32) : (tensor<1x2xi16>) -> tensor<1x2xi32>
    %34 = "tosa.slice"(%26) {start = #tflq.tuple<[0, 6]>, size = #tflq.tuple<[1, 2]>} : (tensor<1x8xi32>) -> tensor<1x2xi32>
    %35 = "tosa.cast"(%34) : (tensor<1x2xi32>) -> tensor<1x2xi16>
    %36 = "tosa.cast"(%35) : (tensor<1x2xi16>) -> tensor<1x2xi32>
    %37 = "tosa.add"(%36, %cst10) : (tensor<1x2xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
    %cst12 = "tosa.const"() {values = dense_resource<59e10c47> : tensor<1x65536x1xi16>} : () -> tensor<1x65536x1xi16>
    %38 = "tosa.gather"(%cst12, %37) : (tensor<1x65536x1xi16>, tensor<1x2xi32>) -> tensor<1x2x1xi16>
    %39 = "tosa.reshape"(%38) : (tensor<1x2x1xi16>) -> tensor<1x2xi16>
    %40 = "tosa.cast"(%39) : (tensor<1x2xi16>) -> tensor<1x2xi32>
    %41 = "tosa.slice"(%26) {start = #tflq.tuple<[0, 0]>, size = #tflq.tuple<[1, 2]>} : (tensor<1x8xi32>) -> tensor<1x2xi32>
    %42 = "tosa.cast"(%41) : (tensor<1x2xi32>) -> tensor<1x2xi16>
    %43 = "tosa.cast"(%42) : (tensor<1x2xi16>) -> tensor<1x2xi32>
    %44 = "tosa.add"(%43, %cst10) : (tensor<1x2xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
    %45 = "tosa.gather"(%cst11, %44) : (tensor<1x65536x1xi16>, tensor<1x2xi32>) -> tensor<1x2x1xi16>
    %46 = "tosa.reshape"(%45) : (tensor<1x2x1xi16>) -> tensor<1x2xi16>
    %47 = "tosa.cast"(%46) : (tensor<1x2xi16>) -> tensor<1x2xi32>
    %48 = "tosa.mul"(%33, %16) {shift = 0} : (tensor<1x2xi32>, tensor<1x2xi32>) -> tensor<1x2xi32>
    %cst13 = "tosa.const"() {values = dense<[[31]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %49 = "tosa.arithmetic_right_shift"(%48, %cst13) {round = false} : (tensor<1x2xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
    %50 = "tosa.add"(%48, %49) : (tensor<1x2xi32>, tensor<1x2xi32>) -> tensor<1x2xi32>
    %cst14 = "tosa.const"() {values = dense<[[15]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %51 = "tosa.arithmetic_right_shift"(%50, %cst14) {round = true} : (tensor<1x2xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
    %52 = "tosa.mul"(%47, %40) {shift = 0} : (tensor<1x2xi32>, tensor<1x2xi32>) -> tensor<1x2xi32>
    %53 = "tosa.arithmetic_right_shift"(%52, %cst13) {round = false} : (tensor<1x2xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
    %54 = "tosa.add"(%52, %53) : (tensor<1x2xi32>, tensor<1x2xi32>) -> tensor<1x2xi32>
    %cst15 = "tosa.const"() {values = dense<[[19]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %55 = "tosa.arithmetic_right_shift"(%54, %cst15) {round = true} : (tensor<1x2xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
    %56 = "tosa.add"(%51, %55) : (tensor<1x2xi32>, tensor<1x2xi32>) -> tensor<1x2xi32>
    %57 = "tosa.maximum"(%56, %cst8) : (tensor<1x2xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
    %58 = "tosa.minimum"(%57, %cst9) : (tensor<1x2xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
    %59 = "tosa.slice"(%26) {start = #tflq.tuple<[0, 4]>, size = #tflq.tuple<[1, 2]>} : (tensor<1x8xi32>) -> tensor<1x2xi32>
    %60 = "tosa.cast"(%59) : (tensor<1x2xi32>) -> tensor<1x2xi16>
    %61 = "tosa.cast"(%60) : (tensor<1x2xi16>) -> tensor<1x2xi32>
    %62 = "tosa.add"(%61, %cst10) : (tensor<1x2xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
    %63 = "tosa.gather"(%cst11, %62) : (tensor<1x65536x1xi16>, tensor<1x2xi32>) -> tensor<1x2x1xi16>
    %64 = "tosa.reshape"(%63) : (tensor<1x2x1xi16>) -> tensor<1x2xi16>
    %65 = "tosa.cast"(%64) : (tensor<1x2xi16>) -> tensor<1x2xi32>
    %66 = "tosa.rescale"(%56) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[30]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x2xi32>) -> tensor<1x2xi16>
    %67 = "tosa.cast"(%66) : (tensor<1x2xi16>) -> tensor<1x2xi32>
    %68 = "tosa.add"(%67, %cst10) : (tensor<1x2xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
    %cst16 = "tosa.const"() {values = dense_resource<69322aed> : tensor<1x65536x1xi16>} : () -> tensor<1x65536x1xi16>
    %69 = "tosa.gather"(%cst16, %68) : (tensor<1x65536x1xi16>, tensor<1x2xi32>) -> tensor<1x2x1xi16>
    %70 = "tosa.reshape"(%69) : (tensor<1x2x1xi16>) -> tensor<1x2xi16>
    %71 = "tosa.cast"(%70) : (tensor<1x2xi16>) -> tensor<1x2xi32>
    %72 = "tosa.mul"(%65, %71) {shift = 0} : (tensor<1x2xi32>, tensor<1x2xi32>) -> tensor<1x2xi32>
    %73 = "tosa.rescale"(%72) {multiplier = dense<[1075462656]> : tensor<1xi32>, shift = dense<[53]> : tensor<1xi8>, input_zp = 0, output_zp = 4, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x2xi32>) -> tensor<1x2xi8>
    %74 = "tosa.reshape"(%73) : (tensor<1x2xi8>) -> tensor<1x1x2xi8>
    %75 = "tosa.slice"(%3) {start = #tflq.tuple<[0, 1, 0]>, size = #tflq.tuple<[1, 1, 8]>} : (tensor<1x2x8xi16>) -> tensor<1x1x8xi16>
    %76 = "tosa.reshape"(%75) : (tensor<1x1x8xi16>) -> tensor<1x8xi16>
    %77 = "tosa.reshape"(%73) : (tensor<1x2xi8>) -> tensor<1x1x1x2xi8>
    %78 = "tosa.conv2d"(%77, %cst6, %cst7) {pad = #tflq.tuple<[0, 0, 0, 0]>, stride = #tflq.tuple<[1, 1]>, dilation = #tflq.tuple<[1, 1]>, input_zp = 4, weight_zp = 0} : (tensor<1x1x1x2xi8>, tensor<8x1x1x2xi8>, tensor<8xi32>) -> tensor<1x1x1x8xi32>
    %79 = "tosa.reshape"(%78) : (tensor<1x1x1x8xi32>) -> tensor<1x8xi32>
    %80 = "tosa.rescale"(%79) {multiplier = dense<1372190464> : tensor<8xi32>, shift = dense<31> : tensor<8xi8>, input_zp = 0, output_zp = 0, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = true} : (tensor<1x8xi32>) -> tensor<1x8xi32>
    %81 = "tosa.cast"(%76) : (tensor<1x8xi16>) -> tensor<1x8xi32>
    %82 = "tosa.add"(%80, %81) : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %83 = "tosa.maximum"(%82, %cst8) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %84 = "tosa.minimum"(%83, %cst9) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %85 = "tosa.slice"(%84) {start = #tflq.tuple<[0, 2]>, size = #tflq.tuple<[1, 2]>} : (tensor<1x8xi32>) -> tensor<1x2xi32>
    %86 = "tosa.cast"(%85) : (tensor<1x2xi32>) -> tensor<1x2xi16>
    %87 = "tosa.cast"(%86) : (tensor<1x2xi16>) -> tensor<1x2xi32>
    %88 = "tosa.add"(%87, %cst10) : (tensor<1x2xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
    %89 = "tosa.gather"(%cst11, %88) : (tensor<1x65536x1xi16>, tensor<1x2xi32>) -> tensor<1x2x1xi16>
    %90 = "tosa.reshape"(%89) : (tensor<1x2x1xi16>) -> tensor<1x2xi16>
    %91 = "tosa.cast"(%90) : (tensor<1x2xi16>) -> tensor<1x2xi32>
    %92 = "tosa.slice"(%84) {start = #tflq.tuple<[0, 6]>, size = #tflq.tuple<[1, 2]>} : (tensor<1x8xi32>) -> tensor<1x2xi32>
    %93 = "tosa.cast"(%92) : (tensor<1x2xi32>) -> tensor<1x2xi16>
    %94 = "tosa.cast"(%93) : (tensor<1x2xi16>) -> tensor<1x2xi32>
    %95 = "tosa.add"(%94, %cst10) : (tensor<1x2xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
    %96 = "tosa.gather"(%cst12, %95) : (tensor<1x65536x1xi16>, tensor<1x2xi32>) -> tensor<1x2x1xi16>
    %97 = "tosa.reshape"(%96) : (tensor<1x2x1xi16>) -> tensor<1x2xi16>
    %98 = "tosa.cast"(%97) : (tensor<1x2xi16>) -> tensor<1x2xi32>
    %99 = "tosa.slice"(%84) {start = #tflq.tuple<[0, 0]>, size = #tflq.tuple<[1, 2]>} : (tensor<1x8xi32>) -> tensor<1x2xi32>
    %100 = "tosa.cast"(%99) : (tensor<1x2xi32>) -> tensor<1x2xi16>
    %101 = "tosa.cast"(%100) : (tensor<1x2xi16>) -> tensor<1x2xi32>
    %102 = "tosa.add"(%101, %cst10) : (tensor<1x2xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
    %103 = "tosa.gather"(%cst11, %102) : (tensor<1x65536x1xi16>, tensor<1x2xi32>) -> tensor<1x2x1xi16>
    %104 = "tosa.reshape"(%103) : (tensor<1x2x1xi16>) -> tensor<1x2xi16>
    %105 = "tosa.cast"(%104) : (tensor<1x2xi16>) -> tensor<1x2xi32>
    %106 = "tosa.mul"(%91, %58) {shift = 0} : (tensor<1x2xi32>, tensor<1x2xi32>) -> tensor<1x2xi32>
    %107 = "tosa.arithmetic_right_shift"(%106, %cst13) {round = false} : (tensor<1x2xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
    %108 = "tosa.add"(%106, %107) : (tensor<1x2xi32>, tensor<1x2xi32>) -> tensor<1x2xi32>
    %109 = "tosa.arithmetic_right_shift"(%108, %cst14) {round = true} : (tensor<1x2xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
    %110 = "tosa.mul"(%105, %98) {shift = 0} : (tensor<1x2xi32>, tensor<1x2xi32>) -> tensor<1x2xi32>
    %111 = "tosa.arithmetic_right_shift"(%110, %cst13) {round = false} : (tensor<1x2xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
    %112 = "tosa.add"(%110, %111) : (tensor<1x2xi32>, tensor<1x2xi32>) -> tensor<1x2xi32>
    %113 = "tosa.arithmetic_right_shift"(%112, %cst15) {round = true} : (tensor<1x2xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
    %114 = "tosa.add"(%109, %113) : (tensor<1x2xi32>, tensor<1x2xi32>) -> tensor<1x2xi32>
    %115 = "tosa.slice"(%84) {start = #tflq.tuple<[0, 4]>, size = #tflq.tuple<[1, 2]>} : (tensor<1x8xi32>) -> tensor<1x2xi32>
    %116 = "tosa.cast"(%115) : (tensor<1x2xi32>) -> tensor<1x2xi16>
    %117 = "tosa.cast"(%116) : (tensor<1x2xi16>) -> tensor<1x2xi32>
    %118 = "tosa.add"(%117, %cst10) : (tensor<1x2xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
    %119 = "tosa.gather"(%cst11, %118) : (tensor<1x65536x1xi16>, tensor<1x2xi32>) -> tensor<1x2x1xi16>
    %120 = "tosa.reshape"(%119) : (tensor<1x2x1xi16>) -> tensor<1x2xi16>
    %121 = "tosa.cast"(%120) : (tensor<1x2xi16>) -> tensor<1x2xi32>
    %122 = "tosa.rescale"(%114) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[30]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x2xi32>) -> tensor<1x2xi16>
    %123 = "tosa.cast"(%122) : (tensor<1x2xi16>) -> tensor<1x2xi32>
    %124 = "tosa.add"(%123, %cst10) : (tensor<1x2xi32>, tensor<1x1xi32>) -> tensor<1x2xi32>
    %125 = "tosa.gather"(%cst16, %124) : (tensor<1x65536x1xi16>, tensor<1x2xi32>) -> tensor<1x2x1xi16>
    %126 = "tosa.reshape"(%125) : (tensor<1x2x1xi16>) -> tensor<1x2xi16>
    %127 = "tosa.cast"(%126) : (tensor<1x2xi16>) -> tensor<1x2xi32>
    %128 = "tosa.mul"(%121, %127) {shift = 0} : (tensor<1x2xi32>, tensor<1x2xi32>) -> tensor<1x2xi32>
    %129 = "tosa.rescale"(%128) {multiplier = dense<[1075462656]> : tensor<1xi32>, shift = dense<[53]> : tensor<1xi8>, input_zp = 0, output_zp = 4, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x2xi32>) -> tensor<1x2xi8>
    %130 = "tosa.reshape"(%129) : (tensor<1x2xi8>) -> tensor<1x1x2xi8>
    "tosa.variable_write"(%129) {name = "h"} : (tensor<1x2xi8>) -> ()
    %131 = "tosa.reshape"(%123) : (tensor<1x2xi32>) -> tensor<1x1x2xi32>
    %cst17 = "tosa.const"() {values = dense<[[[0]]]> : tensor<1x1x1xi32>} : () -> tensor<1x1x1xi32>
    %132 = "tosa.arithmetic_right_shift"(%131, %cst17) {round = false} : (tensor<1x1x2xi32>, tensor<1x1x1xi32>) -> tensor<1x1x2xi32>
    %133 = "tosa.cast"(%132) : (tensor<1x1x2xi32>) -> tensor<1x1x2xi8>
    %cst18 = "tosa.const"() {values = dense<[[[8]]]> : tensor<1x1x1xi32>} : () -> tensor<1x1x1xi32>
    %134 = "tosa.arithmetic_right_shift"(%131, %cst18) {round = false} : (tensor<1x1x2xi32>, tensor<1x1x1xi32>) -> tensor<1x1x2xi32>
    %135 = "tosa.cast"(%134) : (tensor<1x1x2xi32>) -> tensor<1x1x2xi8>
    %136 = "tosa.concat"(%133, %135) {axis = 0} : (tensor<1x1x2xi8>, tensor<1x1x2xi8>) -> tensor<2x1x2xi8>
    "tosa.variable_write"(%136) {name = "c"} : (tensor<2x1x2xi8>) -> ()
    %137 = "tosa.concat"(%74, %130) {axis = 1} : (tensor<1x1x2xi8>, tensor<1x1x2xi8>) -> tensor<1x2x2xi8>
    return %137 : tensor<1x2x2xi8>
  }
}
