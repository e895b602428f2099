// The init value says the accumulator's type.
!q = !quant.uniform<u8:f32, 0.05:10>
!wide = !quant.uniform<i32:f32, 0.05>
func.func @option_3(%x: tensor<3x!q>, %z: tensor<!wide>) -> tensor<!wide> {
  %0 = "stablehlo.reduce"(%x, %z) ({
  ^bb0(%e: tensor<!q>, %acc: tensor<!wide>):
    %a = stablehlo.uniform_quantize %e : (tensor<!q>) -> tensor<!wide>
    %b = stablehlo.add %a, %acc : tensor<!wide>
    stablehlo.return %b : tensor<!wide>
  }) {dimensions = array<i64: 0>} : (tensor<3x!q>, tensor<!wide>) -> tensor<!wide>
  return %0 : tensor<!wide>
}
