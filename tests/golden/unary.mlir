// ===== EXP, int8: a table
module {
  func.func @main(%arg0: tensor<8x!quant.uniform<i8:f32, 0.025:3>> {tflq.name = "x"}) -> tensor<8x!quant.uniform<i8:f32, 0.1:-128>> {
    %0 = "tfl.exp"(%arg0) : (tensor<8x!quant.uniform<i8:f32, 0.025:3>>) -> tensor<8x!quant.uniform<i8:f32, 0.1:-128>>
    return %0 : tensor<8x!quant.uniform<i8:f32, 0.1:-128>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<8x!quant.uniform<i8:f32, 0.025:3>> {tflq.name = "x"}) -> tensor<8x!quant.uniform<i8:f32, 0.1:-128>> {
    %0 = quant.scast %arg0 : tensor<8x!quant.uniform<i8:f32, 0.025:3>> to tensor<8xi8>
    %cst0 = "tosa.const"() {values = dense_resource<4e2c4a5d> : tensor<256xi8>} : () -> tensor<256xi8>
    %1 = "tosa.table"(%0, %cst0) : (tensor<8xi8>, tensor<256xi8>) -> tensor<8xi8>
    %2 = quant.scast %1 : tensor<8xi8> to tensor<8x!quant.uniform<i8:f32, 0.1:-128>>
    return %2 : tensor<8x!quant.uniform<i8:f32, 0.1:-128>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<8x!quant.uniform<i8:f32, 0.025:3>> {tflq.name = "x"}) -> tensor<8x!quant.uniform<i8:f32, 0.1:-128>> {
    %0 = "tfl.bitcast"(%arg0) : (tensor<8x!quant.uniform<i8:f32, 0.025:3>>) -> tensor<8xui8>
    %1 = "tfl.cast"(%0) : (tensor<8xui8>) -> tensor<8xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense_resource<2a69e140> : tensor<256xi8>} : () -> tensor<256xi8>
    %2 = "tfl.gather"(%cst0, %1) {axis = 0, batch_dims = 0} : (tensor<256xi8>, tensor<8xi32>) -> tensor<8x!quant.uniform<i8:f32, 0.1:-128>>
    return %2 : tensor<8x!quant.uniform<i8:f32, 0.1:-128>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<8xi8> {tflq.name = "x"}) -> tensor<8xi8> {
    %cst0 = "tosa.const"() {values = dense_resource<4e2c4a5d> : tensor<256xi8>} : () -> tensor<256xi8>
    %0 = "tosa.table"(%arg0, %cst0) : (tensor<8xi8>, tensor<256xi8>) -> tensor<8xi8>
    return %0 : tensor<8xi8>
  }
}

// ===== ABS, int8
module {
  func.func @main(%arg0: tensor<8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<8x!quant.uniform<i8:f32, 0.1:-3>> {
    %0 = "tfl.abs"(%arg0) : (tensor<8x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<8x!quant.uniform<i8:f32, 0.1:-3>>
    return %0 : tensor<8x!quant.uniform<i8:f32, 0.1:-3>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<8x!quant.uniform<i8:f32, 0.1:-3>> {
    %0 = quant.scast %arg0 : tensor<8x!quant.uniform<i8:f32, 0.1:3>> to tensor<8xi8>
    %1 = "tosa.cast"(%0) : (tensor<8xi8>) -> tensor<8xi32>
    %cst0 = "tosa.const"() {values = dense<3> : tensor<i32>} : () -> tensor<i32>
    %2 = "tosa.sub"(%1, %cst0) : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
    %cst1 = "tosa.const"() {values = dense<0> : tensor<i32>} : () -> tensor<i32>
    %3 = "tosa.sub"(%cst1, %2) : (tensor<i32>, tensor<8xi32>) -> tensor<8xi32>
    %4 = "tosa.maximum"(%2, %3) : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
    %5 = "tosa.rescale"(%4) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[30]> : tensor<1xi8>, input_zp = 0, output_zp = -3, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<8xi32>) -> tensor<8xi8>
    %6 = quant.scast %5 : tensor<8xi8> to tensor<8x!quant.uniform<i8:f32, 0.1:-3>>
    return %6 : tensor<8x!quant.uniform<i8:f32, 0.1:-3>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<8x!quant.uniform<i8:f32, 0.1:-3>> {
    %0 = "tfl.cast"(%arg0) : (tensor<8x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<8xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
    %1 = "tfl.sub"(%0, %cst0) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
    %cst1 = "tfl.pseudo_const"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %2 = "tfl.sub"(%cst1, %1) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<i32>, tensor<8xi32>) -> tensor<8xi32>
    %3 = "tfl.maximum"(%1, %2) : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
    %cst2 = "tfl.pseudo_const"() {value = dense<130> : tensor<i32>} : () -> tensor<i32>
    %4 = "tfl.sub"(%cst2, %3) {fused_activation_function = "RELU", pot_scale_int16 = false} : (tensor<i32>, tensor<8xi32>) -> tensor<8xi32>
    %cst3 = "tfl.pseudo_const"() {value = dense<127> : tensor<i32>} : () -> tensor<i32>
    %5 = "tfl.sub"(%cst3, %4) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<i32>, tensor<8xi32>) -> tensor<8xi32>
    %6 = "tfl.cast"(%5) : (tensor<8xi32>) -> tensor<8x!quant.uniform<i8:f32, 0.1:-3>>
    return %6 : tensor<8x!quant.uniform<i8:f32, 0.1:-3>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<8xi8> {tflq.name = "x"}) -> tensor<8xi8> {
    %cst0 = "tosa.const"() {values = dense_resource<5336091a> : tensor<256xi8>} : () -> tensor<256xi8>
    %0 = "tosa.table"(%arg0, %cst0) : (tensor<8xi8>, tensor<256xi8>) -> tensor<8xi8>
    return %0 : tensor<8xi8>
  }
}

// ===== RSQRT, int8
module {
  func.func @main(%arg0: tensor<8x!quant.uniform<i8:f32, 0.1:-128>> {tflq.name = "x"}) -> tensor<8x!quant.uniform<i8:f32, 0.05:-128>> {
    %0 = "tfl.rsqrt"(%arg0) : (tensor<8x!quant.uniform<i8:f32, 0.1:-128>>) -> tensor<8x!quant.uniform<i8:f32, 0.05:-128>>
    return %0 : tensor<8x!quant.uniform<i8:f32, 0.05:-128>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<8x!quant.uniform<i8:f32, 0.1:-128>> {tflq.name = "x"}) -> tensor<8x!quant.uniform<i8:f32, 0.05:-128>> {
    %0 = quant.scast %arg0 : tensor<8x!quant.uniform<i8:f32, 0.1:-128>> to tensor<8xi8>
    %cst0 = "tosa.const"() {values = dense_resource<294f430d> : tensor<256xi8>} : () -> tensor<256xi8>
    %1 = "tosa.table"(%0, %cst0) : (tensor<8xi8>, tensor<256xi8>) -> tensor<8xi8>
    %2 = quant.scast %1 : tensor<8xi8> to tensor<8x!quant.uniform<i8:f32, 0.05:-128>>
    return %2 : tensor<8x!quant.uniform<i8:f32, 0.05:-128>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<8x!quant.uniform<i8:f32, 0.1:-128>> {tflq.name = "x"}) -> tensor<8x!quant.uniform<i8:f32, 0.05:-128>> {
    %0 = "tfl.bitcast"(%arg0) : (tensor<8x!quant.uniform<i8:f32, 0.1:-128>>) -> tensor<8xui8>
    %1 = "tfl.cast"(%0) : (tensor<8xui8>) -> tensor<8xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense_resource<919a4395> : tensor<256xi8>} : () -> tensor<256xi8>
    %2 = "tfl.gather"(%cst0, %1) {axis = 0, batch_dims = 0} : (tensor<256xi8>, tensor<8xi32>) -> tensor<8x!quant.uniform<i8:f32, 0.05:-128>>
    return %2 : tensor<8x!quant.uniform<i8:f32, 0.05:-128>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<8xi8> {tflq.name = "x"}) -> tensor<8xi8> {
    %cst0 = "tosa.const"() {values = dense_resource<294f430d> : tensor<256xi8>} : () -> tensor<256xi8>
    %0 = "tosa.table"(%arg0, %cst0) : (tensor<8xi8>, tensor<256xi8>) -> tensor<8xi8>
    return %0 : tensor<8xi8>
  }
}

// ===== SIN, int8: no kernel, the real function
module {
  func.func @main(%arg0: tensor<8x!quant.uniform<i8:f32, 0.025:3>> {tflq.name = "x"}) -> tensor<8x!quant.uniform<i8:f32, 0.007874016>> {
    %0 = "tfl.sin"(%arg0) : (tensor<8x!quant.uniform<i8:f32, 0.025:3>>) -> tensor<8x!quant.uniform<i8:f32, 0.007874016>>
    return %0 : tensor<8x!quant.uniform<i8:f32, 0.007874016>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<8x!quant.uniform<i8:f32, 0.025:3>> {tflq.name = "x"}) -> tensor<8x!quant.uniform<i8:f32, 0.007874016>> {
    %0 = quant.scast %arg0 : tensor<8x!quant.uniform<i8:f32, 0.025:3>> to tensor<8xi8>
    %cst0 = "tosa.const"() {values = dense_resource<b9b8bf48> : tensor<256xi8>} : () -> tensor<256xi8>
    %1 = "tosa.table"(%0, %cst0) : (tensor<8xi8>, tensor<256xi8>) -> tensor<8xi8>
    %2 = quant.scast %1 : tensor<8xi8> to tensor<8x!quant.uniform<i8:f32, 0.007874016>>
    return %2 : tensor<8x!quant.uniform<i8:f32, 0.007874016>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<8x!quant.uniform<i8:f32, 0.025:3>> {tflq.name = "x"}) -> tensor<8x!quant.uniform<i8:f32, 0.007874016>> {
    %0 = "tfl.bitcast"(%arg0) : (tensor<8x!quant.uniform<i8:f32, 0.025:3>>) -> tensor<8xui8>
    %1 = "tfl.cast"(%0) : (tensor<8xui8>) -> tensor<8xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense_resource<fb8a6836> : tensor<256xi8>} : () -> tensor<256xi8>
    %2 = "tfl.gather"(%cst0, %1) {axis = 0, batch_dims = 0} : (tensor<256xi8>, tensor<8xi32>) -> tensor<8x!quant.uniform<i8:f32, 0.007874016>>
    return %2 : tensor<8x!quant.uniform<i8:f32, 0.007874016>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<8xi8> {tflq.name = "x"}) -> tensor<8xi8> {
    %cst0 = "tosa.const"() {values = dense_resource<b9b8bf48> : tensor<256xi8>} : () -> tensor<256xi8>
    %0 = "tosa.table"(%arg0, %cst0) : (tensor<8xi8>, tensor<256xi8>) -> tensor<8xi8>
    return %0 : tensor<8xi8>
  }
}
