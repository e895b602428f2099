func.func @per_channel(%x: tensor<4x2x!quant.uniform<i8:f32:1, {2.0, 3.0:5}>>) -> tensor<4x2xf32> {
  %0 = quant.dcast %x : tensor<4x2x!quant.uniform<i8:f32:1, {2.0, 3.0:5}>> to tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}
