// ===== IF: ADD in one branch, SUB in the other
module {
  func.func @main(%arg0: tensor<i1> {tflq.name = "condition"}, %arg1: tensor<8x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}, %arg2: tensor<8x!quant.uniform<i8:f32, 0.02:-20>> {tflq.name = "y"}) -> tensor<8x!quant.uniform<i8:f32, 0.06:-7>> {
    %0 = "tfl.if"(%arg0, %arg1, %arg2) {then_subgraph_index = 1, else_subgraph_index = 2} : (tensor<i1>, tensor<8x!quant.uniform<i8:f32, 0.05:3>>, tensor<8x!quant.uniform<i8:f32, 0.02:-20>>) -> tensor<8x!quant.uniform<i8:f32, 0.06:-7>>
    return %0 : tensor<8x!quant.uniform<i8:f32, 0.06:-7>>
  }
  func.func @graph1(%arg0: tensor<8x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}, %arg1: tensor<8x!quant.uniform<i8:f32, 0.02:-20>> {tflq.name = "y"}) -> tensor<8x!quant.uniform<i8:f32, 0.06:-7>> {
    %0 = "tfl.add"(%arg0, %arg1) : (tensor<8x!quant.uniform<i8:f32, 0.05:3>>, tensor<8x!quant.uniform<i8:f32, 0.02:-20>>) -> tensor<8x!quant.uniform<i8:f32, 0.06:-7>>
    return %0 : tensor<8x!quant.uniform<i8:f32, 0.06:-7>>
  }
  func.func @graph2(%arg0: tensor<8x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}, %arg1: tensor<8x!quant.uniform<i8:f32, 0.02:-20>> {tflq.name = "y"}) -> tensor<8x!quant.uniform<i8:f32, 0.06:-7>> {
    %0 = "tfl.sub"(%arg0, %arg1) : (tensor<8x!quant.uniform<i8:f32, 0.05:3>>, tensor<8x!quant.uniform<i8:f32, 0.02:-20>>) -> tensor<8x!quant.uniform<i8:f32, 0.06:-7>>
    return %0 : tensor<8x!quant.uniform<i8:f32, 0.06:-7>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<i1> {tflq.name = "condition"}, %arg1: tensor<8x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}, %arg2: tensor<8x!quant.uniform<i8:f32, 0.02:-20>> {tflq.name = "y"}) -> tensor<8x!quant.uniform<i8:f32, 0.06:-7>> {
    %0 = quant.scast %arg1 : tensor<8x!quant.uniform<i8:f32, 0.05:3>> to tensor<8xi8>
    %1 = quant.scast %arg2 : tensor<8x!quant.uniform<i8:f32, 0.02:-20>> to tensor<8xi8>
    %2 = "tfl.if"(%arg0, %0, %1) {then_subgraph_index = 1, else_subgraph_index = 2} : (tensor<i1>, tensor<8xi8>, tensor<8xi8>) -> tensor<8xi8>
    %3 = quant.scast %2 : tensor<8xi8> to tensor<8x!quant.uniform<i8:f32, 0.06:-7>>
    return %3 : tensor<8x!quant.uniform<i8:f32, 0.06:-7>>
  }
  func.func @graph1(%arg0: tensor<8xi8> {tflq.name = "x"}, %arg1: tensor<8xi8> {tflq.name = "y"}) -> tensor<8xi8> {
    %0 = "tosa.cast"(%arg0) : (tensor<8xi8>) -> tensor<8xi32>
    %cst0 = "tosa.const"() {values = dense<3> : tensor<i32>} : () -> tensor<i32>
    %1 = "tosa.sub"(%0, %cst0) : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
    %cst1 = "tosa.const"() {values = dense<524288> : tensor<i32>} : () -> tensor<i32>
    %2 = "tosa.mul"(%1, %cst1) {shift = 0} : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
    %3 = "tosa.cast"(%arg1) : (tensor<8xi8>) -> tensor<8xi32>
    %cst2 = "tosa.const"() {values = dense<-20> : tensor<i32>} : () -> tensor<i32>
    %4 = "tosa.sub"(%3, %cst2) : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
    %cst3 = "tosa.const"() {values = dense<1048576> : tensor<i32>} : () -> tensor<i32>
    %5 = "tosa.mul"(%4, %cst3) {shift = 0} : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
    %6 = "tosa.rescale"(%5) {multiplier = dense<[1717986854]> : tensor<1xi32>, shift = dense<[33]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<8xi32>) -> tensor<8xi32>
    %7 = "tosa.add"(%2, %6) : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
    %8 = "tosa.rescale"(%7) {multiplier = dense<[1789569773]> : tensor<1xi32>, shift = dense<[50]> : tensor<1xi8>, input_zp = 0, output_zp = -7, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<8xi32>) -> tensor<8xi8>
    return %8 : tensor<8xi8>
  }
  func.func @graph2(%arg0: tensor<8xi8> {tflq.name = "x"}, %arg1: tensor<8xi8> {tflq.name = "y"}) -> tensor<8xi8> {
    %0 = "tosa.cast"(%arg0) : (tensor<8xi8>) -> tensor<8xi32>
    %cst0 = "tosa.const"() {values = dense<3> : tensor<i32>} : () -> tensor<i32>
    %1 = "tosa.sub"(%0, %cst0) : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
    %cst1 = "tosa.const"() {values = dense<524288> : tensor<i32>} : () -> tensor<i32>
    %2 = "tosa.mul"(%1, %cst1) {shift = 0} : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
    %3 = "tosa.cast"(%arg1) : (tensor<8xi8>) -> tensor<8xi32>
    %cst2 = "tosa.const"() {values = dense<-20> : tensor<i32>} : () -> tensor<i32>
    %4 = "tosa.sub"(%3, %cst2) : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
    %cst3 = "tosa.const"() {values = dense<1048576> : tensor<i32>} : () -> tensor<i32>
    %5 = "tosa.mul"(%4, %cst3) {shift = 0} : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
    %6 = "tosa.rescale"(%5) {multiplier = dense<[1717986854]> : tensor<1xi32>, shift = dense<[33]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<8xi32>) -> tensor<8xi32>
    %7 = "tosa.sub"(%2, %6) : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
    %8 = "tosa.rescale"(%7) {multiplier = dense<[1789569773]> : tensor<1xi32>, shift = dense<[50]> : tensor<1xi8>, input_zp = 0, output_zp = -7, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<8xi32>) -> tensor<8xi8>
    return %8 : tensor<8xi8>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<i1> {tflq.name = "condition"}, %arg1: tensor<8x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}, %arg2: tensor<8x!quant.uniform<i8:f32, 0.02:-20>> {tflq.name = "y"}) -> tensor<8x!quant.uniform<i8:f32, 0.06:-7>> {
    %0 = "tfl.cast"(%arg1) : (tensor<8x!quant.uniform<i8:f32, 0.05:3>>) -> tensor<8xi8>
    %1 = "tfl.cast"(%arg2) : (tensor<8x!quant.uniform<i8:f32, 0.02:-20>>) -> tensor<8xi8>
    %2 = "tfl.if"(%arg0, %0, %1) {then_subgraph_index = 1, else_subgraph_index = 2} : (tensor<i1>, tensor<8xi8>, tensor<8xi8>) -> tensor<8xi8>
    %3 = "tfl.cast"(%2) : (tensor<8xi8>) -> tensor<8x!quant.uniform<i8:f32, 0.06:-7>>
    return %3 : tensor<8x!quant.uniform<i8:f32, 0.06:-7>>
  }
  func.func @graph1(%arg0: tensor<8xi8> {tflq.name = "x"}, %arg1: tensor<8xi8> {tflq.name = "y"}) -> tensor<8xi8> {
    %0 = "tfl.bitcast"(%arg0) : (tensor<8xi8>) -> tensor<8xui8>
    %1 = "tfl.cast"(%0) : (tensor<8xui8>) -> tensor<8xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense<256> : tensor<i32>} : () -> tensor<i32>
    %2 = "tfl.mul"(%1, %cst0) {fused_activation_function = "NONE"} : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
    %3 = "tfl.bitcast"(%arg1) : (tensor<8xi8>) -> tensor<8xui8>
    %4 = "tfl.cast"(%3) : (tensor<8xui8>) -> tensor<8xi32>
    %5 = "tfl.add"(%2, %4) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
    %cst1 = "tfl.pseudo_const"() {value = dense_resource<f82ee4ec> : tensor<65536xi8>} : () -> tensor<65536xi8>
    %6 = "tfl.gather"(%cst1, %5) {axis = 0, batch_dims = 0} : (tensor<65536xi8>, tensor<8xi32>) -> tensor<8xi8>
    return %6 : tensor<8xi8>
  }
  func.func @graph2(%arg0: tensor<8xi8> {tflq.name = "x"}, %arg1: tensor<8xi8> {tflq.name = "y"}) -> tensor<8xi8> {
    %0 = "tfl.bitcast"(%arg0) : (tensor<8xi8>) -> tensor<8xui8>
    %1 = "tfl.cast"(%0) : (tensor<8xui8>) -> tensor<8xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense<256> : tensor<i32>} : () -> tensor<i32>
    %2 = "tfl.mul"(%1, %cst0) {fused_activation_function = "NONE"} : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
    %3 = "tfl.bitcast"(%arg1) : (tensor<8xi8>) -> tensor<8xui8>
    %4 = "tfl.cast"(%3) : (tensor<8xui8>) -> tensor<8xi32>
    %5 = "tfl.add"(%2, %4) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
    %cst1 = "tfl.pseudo_const"() {value = dense_resource<8c805b6c> : tensor<65536xi8>} : () -> tensor<65536xi8>
    %6 = "tfl.gather"(%cst1, %5) {axis = 0, batch_dims = 0} : (tensor<65536xi8>, tensor<8xi32>) -> tensor<8xi8>
    return %6 : tensor<8xi8>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<i1> {tflq.name = "condition"}, %arg1: tensor<8xi8> {tflq.name = "x"}, %arg2: tensor<8xi8> {tflq.name = "y"}) -> tensor<8xi8> {
    %0 = "tosa.cond_if"(%arg0, %arg1, %arg2) {then_graph = 1, else_graph = 2} : (tensor<i1>, tensor<8xi8>, tensor<8xi8>) -> tensor<8xi8>
    return %0 : tensor<8xi8>
  }
  func.func @graph1(%arg0: tensor<8xi8> {tflq.name = "x"}, %arg1: tensor<8xi8> {tflq.name = "y"}) -> tensor<8xi8> {
    %0 = "tosa.rescale"(%arg0) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[11]> : tensor<1xi8>, input_zp = 3, output_zp = 0, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<8xi8>) -> tensor<8xi32>
    %1 = "tosa.rescale"(%arg1) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[10]> : tensor<1xi8>, input_zp = -20, output_zp = 0, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<8xi8>) -> tensor<8xi32>
    %2 = "tosa.rescale"(%1) {multiplier = dense<[1717986854]> : tensor<1xi32>, shift = dense<[33]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<8xi32>) -> tensor<8xi32>
    %3 = "tosa.add"(%0, %2) : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
    %4 = "tosa.rescale"(%3) {multiplier = dense<[1789569773]> : tensor<1xi32>, shift = dense<[50]> : tensor<1xi8>, input_zp = 0, output_zp = -7, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<8xi32>) -> tensor<8xi8>
    return %4 : tensor<8xi8>
  }
  func.func @graph2(%arg0: tensor<8xi8> {tflq.name = "x"}, %arg1: tensor<8xi8> {tflq.name = "y"}) -> tensor<8xi8> {
    %0 = "tosa.rescale"(%arg0) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[11]> : tensor<1xi8>, input_zp = 3, output_zp = 0, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<8xi8>) -> tensor<8xi32>
    %1 = "tosa.rescale"(%arg1) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[10]> : tensor<1xi8>, input_zp = -20, output_zp = 0, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<8xi8>) -> tensor<8xi32>
    %2 = "tosa.rescale"(%1) {multiplier = dense<[1717986854]> : tensor<1xi32>, shift = dense<[33]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<8xi32>) -> tensor<8xi32>
    %3 = "tosa.sub"(%0, %2) : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
    %4 = "tosa.rescale"(%3) {multiplier = dense<[1789569773]> : tensor<1xi32>, shift = dense<[50]> : tensor<1xi8>, input_zp = 0, output_zp = -7, rounding_mode = "DOUBLE_ROUND", scale32 = true, per_channel = false} : (tensor<8xi32>) -> tensor<8xi8>
    return %4 : tensor<8xi8>
  }
}

// ===== READ_VARIABLE, int8
module {
  func.func @main(%arg0: tensor<!tfl.resource> {tflq.name = "x"}) -> tensor<2x4x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = "tfl.read_variable"(%arg0) : (tensor<!tfl.resource>) -> tensor<2x4x!quant.uniform<i8:f32, 0.1:3>>
    return %0 : tensor<2x4x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<!tfl.resource> {tflq.name = "x"}) -> tensor<2x4x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = "tfl.read_variable"(%arg0) : (tensor<!tfl.resource>) -> tensor<2x4xi8>
    %1 = quant.scast %0 : tensor<2x4xi8> to tensor<2x4x!quant.uniform<i8:f32, 0.1:3>>
    return %1 : tensor<2x4x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<!tfl.resource> {tflq.name = "x"}) -> tensor<2x4x!quant.uniform<i8:f32, 0.1:3>> {
    %0 = "tfl.read_variable"(%arg0) : (tensor<!tfl.resource>) -> tensor<2x4xi8>
    %1 = "tfl.cast"(%0) : (tensor<2x4xi8>) -> tensor<2x4x!quant.uniform<i8:f32, 0.1:3>>
    return %1 : tensor<2x4x!quant.uniform<i8:f32, 0.1:3>>
  }
}
// ----- TOSA
// no form in TOSA on this target for 1 operator:
  subgraph 0, operator 0 (READ_VARIABLE), tensor 'x': the variable is not named by a VAR_HANDLE
  convert to a .tflite file, or only the part before it (--cut)
