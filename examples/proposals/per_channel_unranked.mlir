func.func @per_channel_unranked(%x: tensor<*xf32>) -> tensor<*x!quant.uniform<i8:f32:2, {2.0:10, 3.0}>> {
  %0 = quant.qcast %x : tensor<*xf32> to tensor<*x!quant.uniform<i8:f32:2, {2.0:10, 3.0}>>
  return %0 : tensor<*x!quant.uniform<i8:f32:2, {2.0:10, 3.0}>>
}
