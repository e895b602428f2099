// A layer as training simulated it: the fake quantizations of TensorFlow around a fully connected layer.
func.func @layer(%x: tensor<1x3xf32>) -> tensor<1x2xf32> {
  %w = "tf.Const"() {value = dense<[[0.5, -1.0, 0.25], [0.0, 0.75, -0.5]]> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %b = "tf.Const"() {value = dense<[0.125, -0.5]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "tf.FakeQuantWithMinMaxArgs"(%x) {min = -4.0 : f32, max = 3.96875 : f32, num_bits = 8 : i64, narrow_range = false} : (tensor<1x3xf32>) -> tensor<1x3xf32>
  %1 = "tf.FakeQuantWithMinMaxArgs"(%w) {min = -0.9921875 : f32, max = 0.9921875 : f32, num_bits = 8 : i64, narrow_range = true} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = "tfl.fully_connected"(%0, %1, %b) {fused_activation_function = "NONE", keep_num_dims = false, weights_format = "DEFAULT"} : (tensor<1x3xf32>, tensor<2x3xf32>, tensor<2xf32>) -> tensor<1x2xf32>
  %3 = "tf.FakeQuantWithMinMaxArgs"(%2) {min = -8.0 : f32, max = 7.9375 : f32, num_bits = 8 : i64, narrow_range = false} : (tensor<1x2xf32>) -> tensor<1x2xf32>
  return %3 : tensor<1x2xf32>
}
