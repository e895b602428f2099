// ===== STABLEHLO_ADD, int8, three scales: the kernel adds stored integers
module {
  func.func @main(%arg0: tensor<8x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}, %arg1: tensor<8x!quant.uniform<i8:f32, 0.02:-20>> {tflq.name = "y"}) -> tensor<8x!quant.uniform<i8:f32, 0.06:-7>> {
    %0 = "tfl.stablehlo_add"(%arg0, %arg1) : (tensor<8x!quant.uniform<i8:f32, 0.05:3>>, tensor<8x!quant.uniform<i8:f32, 0.02:-20>>) -> tensor<8x!quant.uniform<i8:f32, 0.06:-7>>
    return %0 : tensor<8x!quant.uniform<i8:f32, 0.06:-7>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<8x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}, %arg1: tensor<8x!quant.uniform<i8:f32, 0.02:-20>> {tflq.name = "y"}) -> tensor<8x!quant.uniform<i8:f32, 0.06:-7>> {
    %0 = quant.scast %arg0 : tensor<8x!quant.uniform<i8:f32, 0.05:3>> to tensor<8xi8>
    %1 = quant.scast %arg1 : tensor<8x!quant.uniform<i8:f32, 0.02:-20>> to tensor<8xi8>
    %2 = "tosa.cast"(%0) : (tensor<8xi8>) -> tensor<8xi32>
    %3 = "tosa.cast"(%1) : (tensor<8xi8>) -> tensor<8xi32>
    %4 = "tosa.add"(%2, %3) : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
    %5 = "tosa.cast"(%4) : (tensor<8xi32>) -> tensor<8xi8>
    %6 = quant.scast %5 : tensor<8xi8> to tensor<8x!quant.uniform<i8:f32, 0.06:-7>>
    return %6 : tensor<8x!quant.uniform<i8:f32, 0.06:-7>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<8x!quant.uniform<i8:f32, 0.05:3>> {tflq.name = "x"}, %arg1: tensor<8x!quant.uniform<i8:f32, 0.02:-20>> {tflq.name = "y"}) -> tensor<8x!quant.uniform<i8:f32, 0.06:-7>> {
    %0 = "tfl.cast"(%arg0) : (tensor<8x!quant.uniform<i8:f32, 0.05:3>>) -> tensor<8xi32>
    %1 = "tfl.cast"(%arg1) : (tensor<8x!quant.uniform<i8:f32, 0.02:-20>>) -> tensor<8xi32>
    %2 = "tfl.add"(%0, %1) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
    %3 = "tfl.cast"(%2) : (tensor<8xi32>) -> tensor<8x!quant.uniform<i8:f32, 0.06:-7>>
    return %3 : tensor<8x!quant.uniform<i8:f32, 0.06:-7>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<8xi8> {tflq.name = "x"}, %arg1: tensor<8xi8> {tflq.name = "y"}) -> tensor<8xi8> {
    %0 = "tosa.cast"(%arg0) : (tensor<8xi8>) -> tensor<8xi32>
    %1 = "tosa.cast"(%arg1) : (tensor<8xi8>) -> tensor<8xi32>
    %2 = "tosa.add"(%0, %1) : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
    %3 = "tosa.cast"(%2) : (tensor<8xi32>) -> tensor<8xi8>
    return %3 : tensor<8xi8>
  }
}
