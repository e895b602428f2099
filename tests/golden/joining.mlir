// ===== CONCATENATION, int8, two scales
module {
  func.func @main(%arg0: tensor<1x4x!quant.uniform<u8:f32, 0.1:128>> {tflq.name = "x"}, %arg1: tensor<1x4x!quant.uniform<u8:f32, 0.05:3>> {tflq.name = "y"}) -> tensor<1x8x!quant.uniform<u8:f32, 0.1:128>> {
    %0 = "tfl.concatenation"(%arg0, %arg1) {axis = 1} : (tensor<1x4x!quant.uniform<u8:f32, 0.1:128>>, tensor<1x4x!quant.uniform<u8:f32, 0.05:3>>) -> tensor<1x8x!quant.uniform<u8:f32, 0.1:128>>
    return %0 : tensor<1x8x!quant.uniform<u8:f32, 0.1:128>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<1x4x!quant.uniform<u8:f32, 0.1:128>> {tflq.name = "x"}, %arg1: tensor<1x4x!quant.uniform<u8:f32, 0.05:3>> {tflq.name = "y"}) -> tensor<1x8x!quant.uniform<u8:f32, 0.1:128>> {
    %0 = quant.scast %arg0 : tensor<1x4x!quant.uniform<u8:f32, 0.1:128>> to tensor<1x4xui8>
    %1 = quant.scast %arg1 : tensor<1x4x!quant.uniform<u8:f32, 0.05:3>> to tensor<1x4xui8>
    %cst0 = "tosa.const"() {values = dense_resource<03f5214c> : tensor<256xui8>} : () -> tensor<256xui8>
    %2 = "tosa.table"(%1, %cst0) : (tensor<1x4xui8>, tensor<256xui8>) -> tensor<1x4xui8>
    %3 = "tfl.concatenation"(%0, %2) {axis = 1} : (tensor<1x4xui8>, tensor<1x4xui8>) -> tensor<1x8xui8>
    %4 = quant.scast %3 : tensor<1x8xui8> to tensor<1x8x!quant.uniform<u8:f32, 0.1:128>>
    return %4 : tensor<1x8x!quant.uniform<u8:f32, 0.1:128>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<1x4x!quant.uniform<u8:f32, 0.1:128>> {tflq.name = "x"}, %arg1: tensor<1x4x!quant.uniform<u8:f32, 0.05:3>> {tflq.name = "y"}) -> tensor<1x8x!quant.uniform<u8:f32, 0.1:128>> {
    %0 = "tfl.cast"(%arg0) : (tensor<1x4x!quant.uniform<u8:f32, 0.1:128>>) -> tensor<1x4xui8>
    %1 = "tfl.cast"(%arg1) : (tensor<1x4x!quant.uniform<u8:f32, 0.05:3>>) -> tensor<1x4xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense_resource<03f5214c> : tensor<256xui8>} : () -> tensor<256xui8>
    %2 = "tfl.gather"(%cst0, %1) {axis = 0, batch_dims = 0} : (tensor<256xui8>, tensor<1x4xi32>) -> tensor<1x4xui8>
    %3 = "tfl.concatenation"(%0, %2) {axis = 1} : (tensor<1x4xui8>, tensor<1x4xui8>) -> tensor<1x8xui8>
    %4 = "tfl.cast"(%3) : (tensor<1x8xui8>) -> tensor<1x8x!quant.uniform<u8:f32, 0.1:128>>
    return %4 : tensor<1x8x!quant.uniform<u8:f32, 0.1:128>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<1x4xui8> {tflq.name = "x"}, %arg1: tensor<1x4xui8> {tflq.name = "y"}) -> tensor<1x8xui8> {
    %0 = "tosa.rescale"(%arg0) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[30]> : tensor<1xi8>, input_zp = 0, output_zp = -128, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x4xui8>) -> tensor<1x4xi8>
    %1 = "tosa.rescale"(%arg1) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[30]> : tensor<1xi8>, input_zp = 0, output_zp = -128, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x4xui8>) -> tensor<1x4xi8>
    %cst0 = "tosa.const"() {values = dense_resource<be81924c> : tensor<256xi8>} : () -> tensor<256xi8>
    %2 = "tosa.table"(%1, %cst0) : (tensor<1x4xi8>, tensor<256xi8>) -> tensor<1x4xi8>
    %3 = "tosa.concat"(%0, %2) {axis = 1} : (tensor<1x4xi8>, tensor<1x4xi8>) -> tensor<1x8xi8>
    %4 = "tosa.rescale"(%3) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[30]> : tensor<1xi8>, input_zp = -128, output_zp = 0, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xi8>) -> tensor<1x8xui8>
    return %4 : tensor<1x8xui8>
  }
}
