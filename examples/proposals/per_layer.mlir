func.func @per_layer(%x: tensor<3xf32>) -> tensor<3x!quant.uniform<i8<-8:7>:f32, 2.0:1>> {
  %0 = quant.qcast %x : tensor<3xf32> to tensor<3x!quant.uniform<i8<-8:7>:f32, 2.0:1>>
  return %0 : tensor<3x!quant.uniform<i8<-8:7>:f32, 2.0:1>>
}
