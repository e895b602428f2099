// The three casts: of a scalar, per channel, and of unsigned storage with bounds.
!narrow = !quant.uniform<u16<0:1023>:f32, 1.23:512>
func.func @casts(%a: f32, %b: tensor<?x2xf32>, %c: tensor<*x!narrow>) -> (!quant.uniform<i8:f32, 2.0>, tensor<?x2xf32>, tensor<*xi16>) {
  %0 = quant.qcast %a : f32 to !quant.uniform<i8:f32, 2.0>
  %1 = quant.qcast %b : tensor<?x2xf32> to tensor<?x2x!quant.uniform<i8:f32:1, {0.5, 0.25:-3}>>
  %2 = quant.dcast %1 : tensor<?x2x!quant.uniform<i8:f32:1, {0.5, 0.25:-3}>> to tensor<?x2xf32>
  %3 = quant.scast %c : tensor<*x!narrow> to tensor<*xi16>
  return %0, %2, %3 : !quant.uniform<i8:f32, 2.0>, tensor<?x2xf32>, tensor<*xi16>
}
