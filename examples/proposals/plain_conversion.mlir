func.func @plain_conversion(%x: tensor<3xbf16>, %z: tensor<bf16>) -> tensor<bf16> {
  %0 = "stablehlo.reduce"(%x, %z) ({
  ^bb0(%e: tensor<bf16>):
    %a = stablehlo.convert %e : (tensor<bf16>) -> tensor<f32>
    stablehlo.return %a : tensor<f32>
  }, {
  ^bb0(%lhs: tensor<f32>, %rhs: tensor<f32>):
    %a = stablehlo.add %lhs, %rhs : tensor<f32>
    stablehlo.return %a : tensor<f32>
  }, {
  ^bb0(%s: tensor<f32>):
    %a = stablehlo.convert %s : (tensor<f32>) -> tensor<bf16>
    stablehlo.return %a : tensor<bf16>
  }) {dimensions = array<i64: 0>} : (tensor<3xbf16>, tensor<bf16>) -> tensor<bf16>
  return %0 : tensor<bf16>
}
