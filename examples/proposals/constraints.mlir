// The four kinds of model constraint, as element types.
func.func @constraints(
    %known: tensor<4x!quant.uniform<i8:f32, 0.5:-3>>,
    %wide: tensor<4x!quant.any<i16:f32>>,
    %seen: tensor<4x!quant.calibrated<f32<-1.5:2.5>>>,
    %kept: tensor<4x!quant.none<f32>>) {
  return
}
