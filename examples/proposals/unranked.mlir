func.func @unranked(%x: tensor<*x!quant.uniform<u8:f32, 2.0:10>>) -> tensor<*xf32> {
  %0 = quant.dcast %x : tensor<*x!quant.uniform<u8:f32, 2.0:10>> to tensor<*xf32>
  return %0 : tensor<*xf32>
}
