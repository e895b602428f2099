// 0.35 by 0.1, stored in four bits: 3.5 is between two of them.
func.func @rounding() -> tensor<2xi8> {
  %x = arith.constant dense<[0.35, 2.0]> : tensor<2xf64>
  %0 = quant.qcast %x : tensor<2xf64> to tensor<2x!quant.uniform<i8<-8:7>:f64, 0.1>>
  %1 = quant.scast %0 : tensor<2x!quant.uniform<i8<-8:7>:f64, 0.1>> to tensor<2xi8>
  return %1 : tensor<2xi8>
}
