// Eight bits hold no more than 12.75 - 10 * 0.05 = 12.25; the accumulator of 32 bits holds the sum.
!q = !quant.uniform<u8:f32, 0.05:10>
!wide = !quant.uniform<i32:f32, 0.05>
!result = !quant.uniform<u8:f32, 0.5>
func.func @reduce() -> tensor<f32> {
  %x = stablehlo.constant dense<[10.0, 11.0, 12.0]> : tensor<3xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.uniform_quantize %x : (tensor<3xf32>) -> tensor<3x!q>
  %1 = stablehlo.uniform_quantize %z : (tensor<f32>) -> tensor<!q>
  %2 = "stablehlo.reduce"(%0, %1) ({
  ^input_conversion(%e: tensor<!q>):
    %a = stablehlo.uniform_quantize %e : (tensor<!q>) -> tensor<!wide>
    stablehlo.return %a : tensor<!wide>
  }, {
  ^body(%lhs: tensor<!wide>, %rhs: tensor<!wide>):
    %a = stablehlo.add %lhs, %rhs : tensor<!wide>
    stablehlo.return %a : tensor<!wide>
  }, {
  ^output_conversion(%s: tensor<!wide>):
    %a = stablehlo.uniform_quantize %s : (tensor<!wide>) -> tensor<!result>
    stablehlo.return %a : tensor<!result>
  }) {dimensions = array<i64: 0>} : (tensor<3x!q>, tensor<!q>) -> tensor<!result>
  %3 = stablehlo.uniform_dequantize %2 : (tensor<!result>) -> tensor<f32>
  return %3 : tensor<f32>
}
