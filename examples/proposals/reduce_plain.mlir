// The same sum without conversions.
!q = !quant.uniform<u8:f32, 0.05:10>
func.func @reduce_plain(%x: tensor<3x!q>, %z: tensor<!q>) -> tensor<!q> {
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<3x!q>, tensor<!q>) -> tensor<!q>
  return %0 : tensor<!q>
}
