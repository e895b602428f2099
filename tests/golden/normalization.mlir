// ===== SOFTMAX, int8
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x8x!quant.uniform<i8:f32, 0.00390625:-128>> {
    %0 = "tfl.softmax"(%arg0) {beta = 1.0} : (tensor<1x8x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<1x8x!quant.uniform<i8:f32, 0.00390625:-128>>
    return %0 : tensor<1x8x!quant.uniform<i8:f32, 0.00390625:-128>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x8x!quant.uniform<i8:f32, 0.00390625:-128>> {
    %0 = quant.scast %arg0 : tensor<1x8x!quant.uniform<i8:f32, 0.1:3>> to tensor<1x8xi8>
    %1 = "tosa.cast"(%0) : (tensor<1x8xi8>) -> tensor<1x8xi32>
    %2 = "tosa.reduce_max"(%0) {axis = 1} : (tensor<1x8xi8>) -> tensor<1x1xi8>
    %3 = "tosa.cast"(%2) : (tensor<1x1xi8>) -> tensor<1x1xi32>
    %4 = "tosa.sub"(%1, %3) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %cst0 = "tosa.const"() {values = dense<127> : tensor<i32>} : () -> tensor<i32>
    %5 = "tosa.add"(%4, %cst0) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %6 = "tosa.cast"(%5) : (tensor<1x8xi32>) -> tensor<1x8xi8>
    %cst1 = "tosa.const"() {values = dense_resource<cdaedbf0> : tensor<256xi32>} : () -> tensor<256xi32>
    %7 = "tosa.table"(%6, %cst1) : (tensor<1x8xi8>, tensor<256xi32>) -> tensor<1x8xi32>
    %8 = "tosa.reduce_sum"(%7) {axis = 1} : (tensor<1x8xi32>) -> tensor<1x1xi32>
    %9 = "tosa.clz"(%8) : (tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst2 = "tosa.const"() {values = dense<1> : tensor<i32>} : () -> tensor<i32>
    %10 = "tosa.sub"(%9, %cst2) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %11 = "tosa.logical_left_shift"(%8, %10) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst3 = "tosa.const"() {values = dense<-1010580540> : tensor<i32>} : () -> tensor<i32>
    %12 = "tosa.mul"(%11, %cst3) {shift = 31} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst4 = "tosa.const"() {values = dense<1515870810> : tensor<i32>} : () -> tensor<i32>
    %13 = "tosa.add"(%12, %cst4) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %14 = "tosa.mul"(%11, %13) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst5 = "tosa.const"() {values = dense<536870912> : tensor<i32>} : () -> tensor<i32>
    %15 = "tosa.sub"(%cst5, %14) : (tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %16 = "tosa.mul"(%13, %15) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst6 = "tosa.const"() {values = dense<4> : tensor<i32>} : () -> tensor<i32>
    %17 = "tosa.mul"(%16, %cst6) {shift = 0} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %18 = "tosa.add"(%13, %17) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %19 = "tosa.mul"(%11, %18) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %20 = "tosa.sub"(%cst5, %19) : (tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %21 = "tosa.mul"(%18, %20) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %22 = "tosa.mul"(%21, %cst6) {shift = 0} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %23 = "tosa.add"(%18, %22) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %24 = "tosa.mul"(%11, %23) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %25 = "tosa.sub"(%cst5, %24) : (tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %26 = "tosa.mul"(%23, %25) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %27 = "tosa.mul"(%26, %cst6) {shift = 0} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %28 = "tosa.add"(%23, %27) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst7 = "tosa.const"() {values = dense<1073741824> : tensor<i32>} : () -> tensor<i32>
    %29 = "tosa.minimum"(%28, %cst7) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst8 = "tosa.const"() {values = dense<1073741823> : tensor<i32>} : () -> tensor<i32>
    %30 = "tosa.minimum"(%28, %cst8) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %31 = "tosa.add"(%29, %30) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst9 = "tosa.const"() {values = dense<35> : tensor<i32>} : () -> tensor<i32>
    %32 = "tosa.sub"(%cst9, %9) : (tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst10 = "tosa.const"() {values = dense_resource<af71b713> : tensor<256xi32>} : () -> tensor<256xi32>
    %33 = "tosa.table"(%6, %cst10) : (tensor<1x8xi8>, tensor<256xi32>) -> tensor<1x8xi32>
    %34 = "tosa.mul"(%33, %31) {shift = 31} : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %35 = "tosa.arithmetic_right_shift"(%34, %32) {round = true} : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %cst11 = "tosa.const"() {values = dense<-128> : tensor<i32>} : () -> tensor<i32>
    %36 = "tosa.add"(%35, %cst11) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %37 = "tosa.minimum"(%36, %cst0) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %38 = "tosa.cast"(%37) : (tensor<1x8xi32>) -> tensor<1x8xi8>
    %39 = quant.scast %38 : tensor<1x8xi8> to tensor<1x8x!quant.uniform<i8:f32, 0.00390625:-128>>
    return %39 : tensor<1x8x!quant.uniform<i8:f32, 0.00390625:-128>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x8x!quant.uniform<i8:f32, 0.00390625:-128>> {
    %0 = "tfl.cast"(%arg0) : (tensor<1x8x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<1x8xi8>
    %1 = "tfl.cast"(%0) : (tensor<1x8xi8>) -> tensor<1x8xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense<[1]> : tensor<1xi32>} : () -> tensor<1xi32>
    %2 = "tfl.reduce_max"(%0, %cst0) {keep_dims = true} : (tensor<1x8xi8>, tensor<1xi32>) -> tensor<1x1xi8>
    %3 = "tfl.cast"(%2) : (tensor<1x1xi8>) -> tensor<1x1xi32>
    %4 = "tfl.sub"(%1, %3) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %cst1 = "tfl.pseudo_const"() {value = dense<127> : tensor<i32>} : () -> tensor<i32>
    %5 = "tfl.add"(%4, %cst1) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %6 = "tfl.cast"(%5) : (tensor<1x8xi32>) -> tensor<1x8xi8>
    %7 = "tfl.bitcast"(%6) : (tensor<1x8xi8>) -> tensor<1x8xui8>
    %8 = "tfl.cast"(%7) : (tensor<1x8xui8>) -> tensor<1x8xi32>
    %cst2 = "tfl.pseudo_const"() {value = dense_resource<5854ac90> : tensor<256xi32>} : () -> tensor<256xi32>
    %9 = "tfl.gather"(%cst2, %8) {axis = 0, batch_dims = 0} : (tensor<256xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %10 = "tfl.sum"(%9, %cst0) {keep_dims = true} : (tensor<1x8xi32>, tensor<1xi32>) -> tensor<1x1xi32>
    %11 = "tfl.bitcast"(%10) : (tensor<1x1xi32>) -> tensor<1x1xui32>
    %12 = "tfl.cast"(%11) : (tensor<1x1xui32>) -> tensor<1x1xi64>
    %cst3 = "tfl.pseudo_const"() {value = dense<[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576, 2097152, 4194304, 8388608, 16777216, 33554432, 67108864, 134217728, 268435456, 536870912, 1073741824, 2147483648]> : tensor<32xi64>} : () -> tensor<32xi64>
    %13 = "tfl.greater"(%cst3, %12) : (tensor<32xi64>, tensor<1x1xi64>) -> tensor<1x32xi1>
    %14 = "tfl.cast"(%13) : (tensor<1x32xi1>) -> tensor<1x32xi32>
    %cst4 = "tfl.pseudo_const"() {value = dense<[-1]> : tensor<1xi32>} : () -> tensor<1xi32>
    %15 = "tfl.sum"(%14, %cst4) {keep_dims = true} : (tensor<1x32xi32>, tensor<1xi32>) -> tensor<1x1xi32>
    %cst5 = "tfl.pseudo_const"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %16 = "tfl.sub"(%15, %cst5) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst6 = "tfl.pseudo_const"() {value = dense<[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576, 2097152, 4194304, 8388608, 16777216, 33554432, 67108864, 134217728, 268435456, 536870912, 1073741824, -2147483648]> : tensor<32xi32>} : () -> tensor<32xi32>
    %17 = "tfl.gather"(%cst6, %16) {axis = 0, batch_dims = 0} : (tensor<32xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %18 = "tfl.mul"(%10, %17) {fused_activation_function = "NONE"} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %19 = "tfl.cast"(%18) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %cst7 = "tfl.pseudo_const"() {value = dense<-2021161080> : tensor<i64>} : () -> tensor<i64>
    %20 = "tfl.mul"(%19, %cst7) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %cst8 = "tfl.pseudo_const"() {value = dense<2147483648> : tensor<i64>} : () -> tensor<i64>
    %21 = "tfl.add"(%20, %cst8) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %22 = "tfl.bitcast"(%21) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %cst9 = "tfl.pseudo_const"() {value = dense<[-1, 2]> : tensor<2xi32>} : () -> tensor<2xi32>
    %23 = "tfl.reshape"(%22, %cst9) {new_shape = dense<[-1, 2]> : tensor<2xi32>} : (tensor<1x1x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
    %cst10 = "tfl.pseudo_const"() {value = dense<[1, 0]> : tensor<2xi32>} : () -> tensor<2xi32>
    %24 = "tfl.transpose"(%23, %cst10) : (tensor<1x2xi32>, tensor<2xi32>) -> tensor<2x1xi32>
    %25 = "tfl.gather"(%24, %cst5) {axis = 0, batch_dims = 0} : (tensor<2x1xi32>, tensor<i32>) -> tensor<1xi32>
    %cst11 = "tfl.pseudo_const"() {value = dense<[-1, 1]> : tensor<2xi32>} : () -> tensor<2xi32>
    %26 = "tfl.reshape"(%25, %cst11) {new_shape = dense<[-1, 1]> : tensor<2xi32>} : (tensor<1xi32>, tensor<2xi32>) -> tensor<1x1xi32>
    %cst12 = "tfl.pseudo_const"() {value = dense<1515870810> : tensor<i32>} : () -> tensor<i32>
    %27 = "tfl.add"(%26, %cst12) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %28 = "tfl.cast"(%27) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %29 = "tfl.mul"(%19, %28) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %cst13 = "tfl.pseudo_const"() {value = dense<2> : tensor<i64>} : () -> tensor<i64>
    %30 = "tfl.mul"(%29, %cst13) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %31 = "tfl.add"(%30, %cst8) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %32 = "tfl.bitcast"(%31) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %33 = "tfl.reshape"(%32, %cst9) {new_shape = dense<[-1, 2]> : tensor<2xi32>} : (tensor<1x1x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
    %34 = "tfl.transpose"(%33, %cst10) : (tensor<1x2xi32>, tensor<2xi32>) -> tensor<2x1xi32>
    %35 = "tfl.gather"(%34, %cst5) {axis = 0, batch_dims = 0} : (tensor<2x1xi32>, tensor<i32>) -> tensor<1xi32>
    %36 = "tfl.reshape"(%35, %cst11) {new_shape = dense<[-1, 1]> : tensor<2xi32>} : (tensor<1xi32>, tensor<2xi32>) -> tensor<1x1xi32>
    %cst14 = "tfl.pseudo_const"() {value = dense<536870912> : tensor<i32>} : () -> tensor<i32>
    %37 = "tfl.sub"(%cst14, %36) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %38 = "tfl.cast"(%37) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %39 = "tfl.mul"(%28, %38) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %40 = "tfl.mul"(%39, %cst13) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %41 = "tfl.add"(%40, %cst8) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %42 = "tfl.bitcast"(%41) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %43 = "tfl.reshape"(%42, %cst9) {new_shape = dense<[-1, 2]> : tensor<2xi32>} : (tensor<1x1x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
    %44 = "tfl.transpose"(%43, %cst10) : (tensor<1x2xi32>, tensor<2xi32>) -> tensor<2x1xi32>
    %45 = "tfl.gather"(%44, %cst5) {axis = 0, batch_dims = 0} : (tensor<2x1xi32>, tensor<i32>) -> tensor<1xi32>
    %46 = "tfl.reshape"(%45, %cst11) {new_shape = dense<[-1, 1]> : tensor<2xi32>} : (tensor<1xi32>, tensor<2xi32>) -> tensor<1x1xi32>
    %cst15 = "tfl.pseudo_const"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
    %47 = "tfl.mul"(%46, %cst15) {fused_activation_function = "NONE"} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %48 = "tfl.add"(%27, %47) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %49 = "tfl.cast"(%48) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %50 = "tfl.mul"(%19, %49) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %51 = "tfl.mul"(%50, %cst13) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %52 = "tfl.add"(%51, %cst8) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %53 = "tfl.bitcast"(%52) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %54 = "tfl.reshape"(%53, %cst9) {new_shape = dense<[-1, 2]> : tensor<2xi32>} : (tensor<1x1x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
    %55 = "tfl.transpose"(%54, %cst10) : (tensor<1x2xi32>, tensor<2xi32>) -> tensor<2x1xi32>
    %56 = "tfl.gather"(%55, %cst5) {axis = 0, batch_dims = 0} : (tensor<2x1xi32>, tensor<i32>) -> tensor<1xi32>
    %57 = "tfl.reshape"(%56, %cst11) {new_shape = dense<[-1, 1]> : tensor<2xi32>} : (tensor<1xi32>, tensor<2xi32>) -> tensor<1x1xi32>
    %58 = "tfl.sub"(%cst14, %57) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %59 = "tfl.cast"(%58) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %60 = "tfl.mul"(%49, %59) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %61 = "tfl.mul"(%60, %cst13) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %62 = "tfl.add"(%61, %cst8) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %63 = "tfl.bitcast"(%62) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %64 = "tfl.reshape"(%63, %cst9) {new_shape = dense<[-1, 2]> : tensor<2xi32>} : (tensor<1x1x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
    %65 = "tfl.transpose"(%64, %cst10) : (tensor<1x2xi32>, tensor<2xi32>) -> tensor<2x1xi32>
    %66 = "tfl.gather"(%65, %cst5) {axis = 0, batch_dims = 0} : (tensor<2x1xi32>, tensor<i32>) -> tensor<1xi32>
    %67 = "tfl.reshape"(%66, %cst11) {new_shape = dense<[-1, 1]> : tensor<2xi32>} : (tensor<1xi32>, tensor<2xi32>) -> tensor<1x1xi32>
    %68 = "tfl.mul"(%67, %cst15) {fused_activation_function = "NONE"} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %69 = "tfl.add"(%48, %68) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %70 = "tfl.cast"(%69) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %71 = "tfl.mul"(%19, %70) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %72 = "tfl.mul"(%71, %cst13) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %73 = "tfl.add"(%72, %cst8) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %74 = "tfl.bitcast"(%73) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %75 = "tfl.reshape"(%74, %cst9) {new_shape = dense<[-1, 2]> : tensor<2xi32>} : (tensor<1x1x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
    %76 = "tfl.transpose"(%75, %cst10) : (tensor<1x2xi32>, tensor<2xi32>) -> tensor<2x1xi32>
    %77 = "tfl.gather"(%76, %cst5) {axis = 0, batch_dims = 0} : (tensor<2x1xi32>, tensor<i32>) -> tensor<1xi32>
    %78 = "tfl.reshape"(%77, %cst11) {new_shape = dense<[-1, 1]> : tensor<2xi32>} : (tensor<1xi32>, tensor<2xi32>) -> tensor<1x1xi32>
    %79 = "tfl.sub"(%cst14, %78) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %80 = "tfl.cast"(%79) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %81 = "tfl.mul"(%70, %80) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %82 = "tfl.mul"(%81, %cst13) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %83 = "tfl.add"(%82, %cst8) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %84 = "tfl.bitcast"(%83) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %85 = "tfl.reshape"(%84, %cst9) {new_shape = dense<[-1, 2]> : tensor<2xi32>} : (tensor<1x1x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
    %86 = "tfl.transpose"(%85, %cst10) : (tensor<1x2xi32>, tensor<2xi32>) -> tensor<2x1xi32>
    %87 = "tfl.gather"(%86, %cst5) {axis = 0, batch_dims = 0} : (tensor<2x1xi32>, tensor<i32>) -> tensor<1xi32>
    %88 = "tfl.reshape"(%87, %cst11) {new_shape = dense<[-1, 1]> : tensor<2xi32>} : (tensor<1xi32>, tensor<2xi32>) -> tensor<1x1xi32>
    %89 = "tfl.mul"(%88, %cst15) {fused_activation_function = "NONE"} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %90 = "tfl.add"(%69, %89) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst16 = "tfl.pseudo_const"() {value = dense<1073741824> : tensor<i32>} : () -> tensor<i32>
    %91 = "tfl.minimum"(%90, %cst16) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst17 = "tfl.pseudo_const"() {value = dense<1073741823> : tensor<i32>} : () -> tensor<i32>
    %92 = "tfl.minimum"(%90, %cst17) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %93 = "tfl.add"(%91, %92) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst18 = "tfl.pseudo_const"() {value = dense<35> : tensor<i32>} : () -> tensor<i32>
    %94 = "tfl.sub"(%cst18, %15) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst19 = "tfl.pseudo_const"() {value = dense_resource<dc8351f5> : tensor<256xi32>} : () -> tensor<256xi32>
    %95 = "tfl.gather"(%cst19, %8) {axis = 0, batch_dims = 0} : (tensor<256xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %96 = "tfl.cast"(%95) : (tensor<1x8xi32>) -> tensor<1x8xi64>
    %97 = "tfl.cast"(%93) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %98 = "tfl.mul"(%96, %97) {fused_activation_function = "NONE"} : (tensor<1x8xi64>, tensor<1x1xi64>) -> tensor<1x8xi64>
    %99 = "tfl.mul"(%98, %cst13) {fused_activation_function = "NONE"} : (tensor<1x8xi64>, tensor<i64>) -> tensor<1x8xi64>
    %100 = "tfl.add"(%99, %cst8) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi64>, tensor<i64>) -> tensor<1x8xi64>
    %101 = "tfl.bitcast"(%100) : (tensor<1x8xi64>) -> tensor<1x8x2xi32>
    %102 = "tfl.reshape"(%101, %cst9) {new_shape = dense<[-1, 2]> : tensor<2xi32>} : (tensor<1x8x2xi32>, tensor<2xi32>) -> tensor<8x2xi32>
    %103 = "tfl.transpose"(%102, %cst10) : (tensor<8x2xi32>, tensor<2xi32>) -> tensor<2x8xi32>
    %104 = "tfl.gather"(%103, %cst5) {axis = 0, batch_dims = 0} : (tensor<2x8xi32>, tensor<i32>) -> tensor<8xi32>
    %cst20 = "tfl.pseudo_const"() {value = dense<[-1, 8]> : tensor<2xi32>} : () -> tensor<2xi32>
    %105 = "tfl.reshape"(%104, %cst20) {new_shape = dense<[-1, 8]> : tensor<2xi32>} : (tensor<8xi32>, tensor<2xi32>) -> tensor<1x8xi32>
    %106 = "tfl.sub"(%cst5, %94) {fused_activation_function = "RELU", pot_scale_int16 = false} : (tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %107 = "tfl.sub"(%cst5, %106) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %108 = "tfl.sub"(%94, %107) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %109 = "tfl.right_shift"(%105, %108) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %110 = "tfl.right_shift"(%109, %107) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %111 = "tfl.mul"(%110, %107) {fused_activation_function = "NONE"} : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %112 = "tfl.sub"(%109, %111) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst21 = "tfl.pseudo_const"() {value = dense<-128> : tensor<i32>} : () -> tensor<i32>
    %113 = "tfl.add"(%112, %cst21) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %114 = "tfl.minimum"(%113, %cst1) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %115 = "tfl.cast"(%114) : (tensor<1x8xi32>) -> tensor<1x8x!quant.uniform<i8:f32, 0.00390625:-128>>
    return %115 : tensor<1x8x!quant.uniform<i8:f32, 0.00390625:-128>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<1x8xi8> {tflq.name = "x"}) -> tensor<1x8xi8> {
    %0 = "tosa.cast"(%arg0) : (tensor<1x8xi8>) -> tensor<1x8xi32>
    %1 = "tosa.reduce_max"(%arg0) {axis = 1} : (tensor<1x8xi8>) -> tensor<1x1xi8>
    %2 = "tosa.cast"(%1) : (tensor<1x1xi8>) -> tensor<1x1xi32>
    %3 = "tosa.sub"(%0, %2) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %cst0 = "tosa.const"() {values = dense<[[127]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %4 = "tosa.add"(%3, %cst0) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %5 = "tosa.cast"(%4) : (tensor<1x8xi32>) -> tensor<1x8xi8>
    %6 = "tosa.cast"(%5) : (tensor<1x8xi8>) -> tensor<1x8xi32>
    %cst1 = "tosa.const"() {values = dense<[[128]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %7 = "tosa.add"(%6, %cst1) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %cst2 = "tosa.const"() {values = dense_resource<cdaedbf0> : tensor<1x256x1xi32>} : () -> tensor<1x256x1xi32>
    %8 = "tosa.gather"(%cst2, %7) : (tensor<1x256x1xi32>, tensor<1x8xi32>) -> tensor<1x8x1xi32>
    %9 = "tosa.reshape"(%8) : (tensor<1x8x1xi32>) -> tensor<1x8xi32>
    %10 = "tosa.reduce_sum"(%9) {axis = 1} : (tensor<1x8xi32>) -> tensor<1x1xi32>
    %11 = "tosa.clz"(%10) : (tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst3 = "tosa.const"() {values = dense<[[1]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %12 = "tosa.sub"(%11, %cst3) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %13 = "tosa.logical_left_shift"(%10, %12) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst4 = "tosa.const"() {values = dense<[[-1010580540]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %14 = "tosa.mul"(%13, %cst4) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst5 = "tosa.const"() {values = dense<[[1515870810]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %15 = "tosa.add"(%14, %cst5) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %16 = "tosa.mul"(%13, %15) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst6 = "tosa.const"() {values = dense<[[536870912]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %17 = "tosa.sub"(%cst6, %16) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %18 = "tosa.mul"(%15, %17) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst7 = "tosa.const"() {values = dense<[[2]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %19 = "tosa.logical_left_shift"(%18, %cst7) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %20 = "tosa.add"(%15, %19) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %21 = "tosa.mul"(%13, %20) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %22 = "tosa.sub"(%cst6, %21) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %23 = "tosa.mul"(%20, %22) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %24 = "tosa.logical_left_shift"(%23, %cst7) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %25 = "tosa.add"(%20, %24) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %26 = "tosa.mul"(%13, %25) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %27 = "tosa.sub"(%cst6, %26) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %28 = "tosa.mul"(%25, %27) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %29 = "tosa.logical_left_shift"(%28, %cst7) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %30 = "tosa.add"(%25, %29) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst8 = "tosa.const"() {values = dense<[[1073741824]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %31 = "tosa.minimum"(%30, %cst8) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst9 = "tosa.const"() {values = dense<[[1073741823]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %32 = "tosa.minimum"(%30, %cst9) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %33 = "tosa.add"(%31, %32) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst10 = "tosa.const"() {values = dense<[[35]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %34 = "tosa.sub"(%cst10, %11) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst11 = "tosa.const"() {values = dense_resource<af71b713> : tensor<1x256x1xi32>} : () -> tensor<1x256x1xi32>
    %35 = "tosa.gather"(%cst11, %7) : (tensor<1x256x1xi32>, tensor<1x8xi32>) -> tensor<1x8x1xi32>
    %36 = "tosa.reshape"(%35) : (tensor<1x8x1xi32>) -> tensor<1x8xi32>
    %37 = "tosa.mul"(%36, %33) {shift = 31} : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %38 = "tosa.arithmetic_right_shift"(%37, %34) {round = true} : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %cst12 = "tosa.const"() {values = dense<[[-128]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %39 = "tosa.add"(%38, %cst12) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %40 = "tosa.minimum"(%39, %cst0) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %41 = "tosa.cast"(%40) : (tensor<1x8xi32>) -> tensor<1x8xi8>
    return %41 : tensor<1x8xi8>
  }
}

// ===== LOG_SOFTMAX, int8
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x8x!quant.uniform<i8:f32, 0.0625:127>> {
    %0 = "tfl.log_softmax"(%arg0) : (tensor<1x8x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<1x8x!quant.uniform<i8:f32, 0.0625:127>>
    return %0 : tensor<1x8x!quant.uniform<i8:f32, 0.0625:127>>
  }
}
// ----- integer form
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x8x!quant.uniform<i8:f32, 0.0625:127>> {
    %0 = quant.scast %arg0 : tensor<1x8x!quant.uniform<i8:f32, 0.1:3>> to tensor<1x8xi8>
    %1 = "tosa.cast"(%0) : (tensor<1x8xi8>) -> tensor<1x8xi32>
    %2 = "tosa.reduce_max"(%0) {axis = 1} : (tensor<1x8xi8>) -> tensor<1x1xi8>
    %3 = "tosa.cast"(%2) : (tensor<1x1xi8>) -> tensor<1x1xi32>
    %4 = "tosa.sub"(%1, %3) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %cst0 = "tosa.const"() {values = dense<127> : tensor<i32>} : () -> tensor<i32>
    %5 = "tosa.add"(%4, %cst0) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %6 = "tosa.cast"(%5) : (tensor<1x8xi32>) -> tensor<1x8xi8>
    %cst1 = "tosa.const"() {values = dense_resource<cdaedbf0> : tensor<256xi32>} : () -> tensor<256xi32>
    %7 = "tosa.table"(%6, %cst1) : (tensor<1x8xi8>, tensor<256xi32>) -> tensor<1x8xi32>
    %8 = "tosa.reduce_sum"(%7) {axis = 1} : (tensor<1x8xi32>) -> tensor<1x1xi32>
    %cst2 = "tosa.const"() {values = dense_resource<eb5d2164> : tensor<256xi32>} : () -> tensor<256xi32>
    %9 = "tosa.table"(%6, %cst2) : (tensor<1x8xi8>, tensor<256xi32>) -> tensor<1x8xi32>
    %10 = "tosa.clz"(%8) : (tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst3 = "tosa.const"() {values = dense<-1> : tensor<i32>} : () -> tensor<i32>
    %11 = "tosa.add"(%10, %cst3) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %12 = "tosa.logical_left_shift"(%8, %11) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst4 = "tosa.const"() {values = dense<1518500250> : tensor<i32>} : () -> tensor<i32>
    %13 = "tosa.mul"(%12, %cst4) {shift = 31} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst5 = "tosa.const"() {values = dense<1073741823> : tensor<i32>} : () -> tensor<i32>
    %14 = "tosa.greater"(%13, %cst5) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi1>
    %cst6 = "tosa.const"() {values = dense<2> : tensor<i32>} : () -> tensor<i32>
    %15 = "tosa.mul"(%13, %cst6) {shift = 0} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst7 = "tosa.const"() {values = dense<2147483647> : tensor<i32>} : () -> tensor<i32>
    %16 = "tosa.select"(%14, %cst7, %15) : (tensor<1x1xi1>, tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %17 = "tosa.mul"(%8, %cst4) {shift = 31} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %18 = "tosa.clz"(%17) : (tensor<1x1xi32>) -> tensor<1x1xi32>
    %19 = "tosa.sub"(%18, %10) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst8 = "tosa.const"() {values = dense<0> : tensor<i32>} : () -> tensor<i32>
    %20 = "tosa.greater"(%19, %cst8) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi1>
    %21 = "tosa.select"(%20, %cst7, %12) : (tensor<1x1xi1>, tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst9 = "tosa.const"() {values = dense<12> : tensor<i32>} : () -> tensor<i32>
    %22 = "tosa.sub"(%cst9, %10) : (tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst10 = "tosa.const"() {values = dense<33554432> : tensor<i32>} : () -> tensor<i32>
    %23 = "tosa.mul"(%22, %cst10) {shift = 0} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst11 = "tosa.const"() {values = dense<8388608> : tensor<i32>} : () -> tensor<i32>
    %24 = "tosa.add"(%23, %cst11) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %25 = "tosa.sub"(%22, %19) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst12 = "tosa.const"() {values = dense<1> : tensor<i32>} : () -> tensor<i32>
    %26 = "tosa.add"(%25, %cst12) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %27 = "tosa.mul"(%26, %cst10) {shift = 0} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst13 = "tosa.const"() {values = dense<-8388608> : tensor<i32>} : () -> tensor<i32>
    %28 = "tosa.add"(%27, %cst13) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %29 = "tosa.maximum"(%24, %28) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %30 = "tosa.minimum"(%16, %21) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %31 = "tosa.arithmetic_right_shift"(%30, %cst12) {round = false} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst14 = "tosa.const"() {values = dense<902905651> : tensor<i32>} : () -> tensor<i32>
    %32 = "tosa.add"(%31, %cst14) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst15 = "tosa.const"() {values = dense<-1805811301> : tensor<i32>} : () -> tensor<i32>
    %33 = "tosa.add"(%30, %cst15) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %34 = "tosa.mul"(%33, %cst6) {shift = 0} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %35 = "tosa.mul"(%34, %34) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %36 = "tosa.mul"(%34, %30) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %37 = "tosa.mul"(%34, %35) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst16 = "tosa.const"() {values = dense<117049297> : tensor<i32>} : () -> tensor<i32>
    %38 = "tosa.mul"(%37, %cst16) {shift = 31} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %39 = "tosa.add"(%36, %38) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst17 = "tosa.const"() {values = dense<1057819769> : tensor<i32>} : () -> tensor<i32>
    %40 = "tosa.add"(%34, %cst17) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst18 = "tosa.const"() {values = dense<127690142> : tensor<i32>} : () -> tensor<i32>
    %41 = "tosa.mul"(%35, %cst18) {shift = 31} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %42 = "tosa.add"(%40, %41) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %43 = "tosa.mul"(%32, %42) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst19 = "tosa.const"() {values = dense<638450708> : tensor<i32>} : () -> tensor<i32>
    %44 = "tosa.mul"(%34, %cst19) {shift = 31} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %45 = "tosa.add"(%43, %44) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst20 = "tosa.const"() {values = dense<31> : tensor<i32>} : () -> tensor<i32>
    %46 = "tosa.arithmetic_right_shift"(%39, %cst20) {round = false} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %47 = "tosa.add"(%39, %46) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst21 = "tosa.const"() {values = dense<6> : tensor<i32>} : () -> tensor<i32>
    %48 = "tosa.arithmetic_right_shift"(%47, %cst21) {round = true} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %49 = "tosa.arithmetic_right_shift"(%45, %cst12) {round = false} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst22 = "tosa.const"() {values = dense<1073741824> : tensor<i32>} : () -> tensor<i32>
    %50 = "tosa.add"(%49, %cst22) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst23 = "tosa.const"() {values = dense<-1010580540> : tensor<i32>} : () -> tensor<i32>
    %51 = "tosa.mul"(%50, %cst23) {shift = 31} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst24 = "tosa.const"() {values = dense<1515870810> : tensor<i32>} : () -> tensor<i32>
    %52 = "tosa.add"(%51, %cst24) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %53 = "tosa.mul"(%50, %52) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst25 = "tosa.const"() {values = dense<536870912> : tensor<i32>} : () -> tensor<i32>
    %54 = "tosa.sub"(%cst25, %53) : (tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %55 = "tosa.mul"(%52, %54) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst26 = "tosa.const"() {values = dense<4> : tensor<i32>} : () -> tensor<i32>
    %56 = "tosa.mul"(%55, %cst26) {shift = 0} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %57 = "tosa.add"(%52, %56) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %58 = "tosa.mul"(%50, %57) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %59 = "tosa.sub"(%cst25, %58) : (tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %60 = "tosa.mul"(%57, %59) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %61 = "tosa.mul"(%60, %cst26) {shift = 0} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %62 = "tosa.add"(%57, %61) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %63 = "tosa.mul"(%50, %62) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %64 = "tosa.sub"(%cst25, %63) : (tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %65 = "tosa.mul"(%62, %64) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %66 = "tosa.mul"(%65, %cst26) {shift = 0} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %67 = "tosa.add"(%62, %66) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %68 = "tosa.minimum"(%67, %cst22) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %69 = "tosa.minimum"(%67, %cst5) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %70 = "tosa.add"(%68, %69) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %71 = "tosa.mul"(%48, %70) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst27 = "tosa.const"() {values = dense<1488522236> : tensor<i32>} : () -> tensor<i32>
    %72 = "tosa.mul"(%29, %cst27) {shift = 31} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %73 = "tosa.add"(%72, %71) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %74 = "tosa.mul"(%73, %cst6) {shift = 0} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %75 = "tosa.sub"(%9, %74) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %76 = "tosa.arithmetic_right_shift"(%75, %cst20) {round = false} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %77 = "tosa.add"(%75, %76) : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst28 = "tosa.const"() {values = dense<22> : tensor<i32>} : () -> tensor<i32>
    %78 = "tosa.arithmetic_right_shift"(%77, %cst28) {round = true} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %79 = "tosa.add"(%78, %cst0) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %80 = "tosa.clamp"(%79) {min_val = -128, max_val = 127} : (tensor<1x8xi32>) -> tensor<1x8xi32>
    %81 = "tosa.cast"(%80) : (tensor<1x8xi32>) -> tensor<1x8xi8>
    %82 = quant.scast %81 : tensor<1x8xi8> to tensor<1x8x!quant.uniform<i8:f32, 0.0625:127>>
    return %82 : tensor<1x8x!quant.uniform<i8:f32, 0.0625:127>>
  }
}
// ----- kernels
module {
  func.func @main(%arg0: tensor<1x8x!quant.uniform<i8:f32, 0.1:3>> {tflq.name = "x"}) -> tensor<1x8x!quant.uniform<i8:f32, 0.0625:127>> {
    %0 = "tfl.cast"(%arg0) : (tensor<1x8x!quant.uniform<i8:f32, 0.1:3>>) -> tensor<1x8xi8>
    %1 = "tfl.cast"(%0) : (tensor<1x8xi8>) -> tensor<1x8xi32>
    %cst0 = "tfl.pseudo_const"() {value = dense<[1]> : tensor<1xi32>} : () -> tensor<1xi32>
    %2 = "tfl.reduce_max"(%0, %cst0) {keep_dims = true} : (tensor<1x8xi8>, tensor<1xi32>) -> tensor<1x1xi8>
    %3 = "tfl.cast"(%2) : (tensor<1x1xi8>) -> tensor<1x1xi32>
    %4 = "tfl.sub"(%1, %3) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %cst1 = "tfl.pseudo_const"() {value = dense<127> : tensor<i32>} : () -> tensor<i32>
    %5 = "tfl.add"(%4, %cst1) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %6 = "tfl.cast"(%5) : (tensor<1x8xi32>) -> tensor<1x8xi8>
    %7 = "tfl.bitcast"(%6) : (tensor<1x8xi8>) -> tensor<1x8xui8>
    %8 = "tfl.cast"(%7) : (tensor<1x8xui8>) -> tensor<1x8xi32>
    %cst2 = "tfl.pseudo_const"() {value = dense_resource<5854ac90> : tensor<256xi32>} : () -> tensor<256xi32>
    %9 = "tfl.gather"(%cst2, %8) {axis = 0, batch_dims = 0} : (tensor<256xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %10 = "tfl.sum"(%9, %cst0) {keep_dims = true} : (tensor<1x8xi32>, tensor<1xi32>) -> tensor<1x1xi32>
    %cst3 = "tfl.pseudo_const"() {value = dense_resource<9a84270c> : tensor<256xi32>} : () -> tensor<256xi32>
    %11 = "tfl.gather"(%cst3, %8) {axis = 0, batch_dims = 0} : (tensor<256xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %12 = "tfl.bitcast"(%10) : (tensor<1x1xi32>) -> tensor<1x1xui32>
    %13 = "tfl.cast"(%12) : (tensor<1x1xui32>) -> tensor<1x1xi64>
    %cst4 = "tfl.pseudo_const"() {value = dense<[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576, 2097152, 4194304, 8388608, 16777216, 33554432, 67108864, 134217728, 268435456, 536870912, 1073741824, 2147483648]> : tensor<32xi64>} : () -> tensor<32xi64>
    %14 = "tfl.greater"(%cst4, %13) : (tensor<32xi64>, tensor<1x1xi64>) -> tensor<1x32xi1>
    %15 = "tfl.cast"(%14) : (tensor<1x32xi1>) -> tensor<1x32xi32>
    %cst5 = "tfl.pseudo_const"() {value = dense<[-1]> : tensor<1xi32>} : () -> tensor<1xi32>
    %16 = "tfl.sum"(%15, %cst5) {keep_dims = true} : (tensor<1x32xi32>, tensor<1xi32>) -> tensor<1x1xi32>
    %cst6 = "tfl.pseudo_const"() {value = dense<-1> : tensor<i32>} : () -> tensor<i32>
    %17 = "tfl.add"(%16, %cst6) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst7 = "tfl.pseudo_const"() {value = dense<[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576, 2097152, 4194304, 8388608, 16777216, 33554432, 67108864, 134217728, 268435456, 536870912, 1073741824, -2147483648]> : tensor<32xi32>} : () -> tensor<32xi32>
    %18 = "tfl.gather"(%cst7, %17) {axis = 0, batch_dims = 0} : (tensor<32xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %19 = "tfl.mul"(%10, %18) {fused_activation_function = "NONE"} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %20 = "tfl.cast"(%19) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %cst8 = "tfl.pseudo_const"() {value = dense<3037000500> : tensor<i64>} : () -> tensor<i64>
    %21 = "tfl.mul"(%20, %cst8) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %cst9 = "tfl.pseudo_const"() {value = dense<2147483648> : tensor<i64>} : () -> tensor<i64>
    %22 = "tfl.add"(%21, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %23 = "tfl.bitcast"(%22) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %cst10 = "tfl.pseudo_const"() {value = dense<[-1, 2]> : tensor<2xi32>} : () -> tensor<2xi32>
    %24 = "tfl.reshape"(%23, %cst10) {new_shape = dense<[-1, 2]> : tensor<2xi32>} : (tensor<1x1x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
    %cst11 = "tfl.pseudo_const"() {value = dense<[1, 0]> : tensor<2xi32>} : () -> tensor<2xi32>
    %25 = "tfl.transpose"(%24, %cst11) : (tensor<1x2xi32>, tensor<2xi32>) -> tensor<2x1xi32>
    %cst12 = "tfl.pseudo_const"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %26 = "tfl.gather"(%25, %cst12) {axis = 0, batch_dims = 0} : (tensor<2x1xi32>, tensor<i32>) -> tensor<1xi32>
    %cst13 = "tfl.pseudo_const"() {value = dense<[-1, 1]> : tensor<2xi32>} : () -> tensor<2xi32>
    %27 = "tfl.reshape"(%26, %cst13) {new_shape = dense<[-1, 1]> : tensor<2xi32>} : (tensor<1xi32>, tensor<2xi32>) -> tensor<1x1xi32>
    %cst14 = "tfl.pseudo_const"() {value = dense<1073741823> : tensor<i32>} : () -> tensor<i32>
    %28 = "tfl.greater"(%27, %cst14) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi1>
    %cst15 = "tfl.pseudo_const"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
    %29 = "tfl.mul"(%27, %cst15) {fused_activation_function = "NONE"} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst16 = "tfl.pseudo_const"() {value = dense<2147483647> : tensor<i32>} : () -> tensor<i32>
    %30 = "tfl.select_v2"(%28, %cst16, %29) : (tensor<1x1xi1>, tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %31 = "tfl.cast"(%10) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %32 = "tfl.mul"(%31, %cst8) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %33 = "tfl.add"(%32, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %34 = "tfl.bitcast"(%33) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %35 = "tfl.reshape"(%34, %cst10) {new_shape = dense<[-1, 2]> : tensor<2xi32>} : (tensor<1x1x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
    %36 = "tfl.transpose"(%35, %cst11) : (tensor<1x2xi32>, tensor<2xi32>) -> tensor<2x1xi32>
    %37 = "tfl.gather"(%36, %cst12) {axis = 0, batch_dims = 0} : (tensor<2x1xi32>, tensor<i32>) -> tensor<1xi32>
    %38 = "tfl.reshape"(%37, %cst13) {new_shape = dense<[-1, 1]> : tensor<2xi32>} : (tensor<1xi32>, tensor<2xi32>) -> tensor<1x1xi32>
    %39 = "tfl.bitcast"(%38) : (tensor<1x1xi32>) -> tensor<1x1xui32>
    %40 = "tfl.cast"(%39) : (tensor<1x1xui32>) -> tensor<1x1xi64>
    %41 = "tfl.greater"(%cst4, %40) : (tensor<32xi64>, tensor<1x1xi64>) -> tensor<1x32xi1>
    %42 = "tfl.cast"(%41) : (tensor<1x32xi1>) -> tensor<1x32xi32>
    %43 = "tfl.sum"(%42, %cst5) {keep_dims = true} : (tensor<1x32xi32>, tensor<1xi32>) -> tensor<1x1xi32>
    %44 = "tfl.sub"(%43, %16) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst17 = "tfl.pseudo_const"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %45 = "tfl.greater"(%44, %cst17) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi1>
    %46 = "tfl.select_v2"(%45, %cst16, %19) : (tensor<1x1xi1>, tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst18 = "tfl.pseudo_const"() {value = dense<12> : tensor<i32>} : () -> tensor<i32>
    %47 = "tfl.sub"(%cst18, %16) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst19 = "tfl.pseudo_const"() {value = dense<33554432> : tensor<i32>} : () -> tensor<i32>
    %48 = "tfl.mul"(%47, %cst19) {fused_activation_function = "NONE"} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst20 = "tfl.pseudo_const"() {value = dense<8388608> : tensor<i32>} : () -> tensor<i32>
    %49 = "tfl.add"(%48, %cst20) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %50 = "tfl.sub"(%47, %44) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %51 = "tfl.add"(%50, %cst12) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %52 = "tfl.mul"(%51, %cst19) {fused_activation_function = "NONE"} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst21 = "tfl.pseudo_const"() {value = dense<-8388608> : tensor<i32>} : () -> tensor<i32>
    %53 = "tfl.add"(%52, %cst21) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %54 = "tfl.maximum"(%49, %53) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %55 = "tfl.minimum"(%30, %46) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %56 = "tfl.right_shift"(%55, %cst12) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst22 = "tfl.pseudo_const"() {value = dense<902905651> : tensor<i32>} : () -> tensor<i32>
    %57 = "tfl.add"(%56, %cst22) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst23 = "tfl.pseudo_const"() {value = dense<-1805811301> : tensor<i32>} : () -> tensor<i32>
    %58 = "tfl.add"(%55, %cst23) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %59 = "tfl.mul"(%58, %cst15) {fused_activation_function = "NONE"} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %60 = "tfl.cast"(%59) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %61 = "tfl.mul"(%60, %60) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %cst24 = "tfl.pseudo_const"() {value = dense<2> : tensor<i64>} : () -> tensor<i64>
    %62 = "tfl.mul"(%61, %cst24) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %63 = "tfl.add"(%62, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %64 = "tfl.bitcast"(%63) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %65 = "tfl.reshape"(%64, %cst10) {new_shape = dense<[-1, 2]> : tensor<2xi32>} : (tensor<1x1x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
    %66 = "tfl.transpose"(%65, %cst11) : (tensor<1x2xi32>, tensor<2xi32>) -> tensor<2x1xi32>
    %67 = "tfl.gather"(%66, %cst12) {axis = 0, batch_dims = 0} : (tensor<2x1xi32>, tensor<i32>) -> tensor<1xi32>
    %68 = "tfl.reshape"(%67, %cst13) {new_shape = dense<[-1, 1]> : tensor<2xi32>} : (tensor<1xi32>, tensor<2xi32>) -> tensor<1x1xi32>
    %69 = "tfl.cast"(%55) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %70 = "tfl.mul"(%60, %69) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %71 = "tfl.mul"(%70, %cst24) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %72 = "tfl.add"(%71, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %73 = "tfl.bitcast"(%72) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %74 = "tfl.reshape"(%73, %cst10) {new_shape = dense<[-1, 2]> : tensor<2xi32>} : (tensor<1x1x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
    %75 = "tfl.transpose"(%74, %cst11) : (tensor<1x2xi32>, tensor<2xi32>) -> tensor<2x1xi32>
    %76 = "tfl.gather"(%75, %cst12) {axis = 0, batch_dims = 0} : (tensor<2x1xi32>, tensor<i32>) -> tensor<1xi32>
    %77 = "tfl.reshape"(%76, %cst13) {new_shape = dense<[-1, 1]> : tensor<2xi32>} : (tensor<1xi32>, tensor<2xi32>) -> tensor<1x1xi32>
    %78 = "tfl.cast"(%68) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %79 = "tfl.mul"(%60, %78) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %80 = "tfl.mul"(%79, %cst24) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %81 = "tfl.add"(%80, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %82 = "tfl.bitcast"(%81) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %83 = "tfl.reshape"(%82, %cst10) {new_shape = dense<[-1, 2]> : tensor<2xi32>} : (tensor<1x1x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
    %84 = "tfl.transpose"(%83, %cst11) : (tensor<1x2xi32>, tensor<2xi32>) -> tensor<2x1xi32>
    %85 = "tfl.gather"(%84, %cst12) {axis = 0, batch_dims = 0} : (tensor<2x1xi32>, tensor<i32>) -> tensor<1xi32>
    %86 = "tfl.reshape"(%85, %cst13) {new_shape = dense<[-1, 1]> : tensor<2xi32>} : (tensor<1xi32>, tensor<2xi32>) -> tensor<1x1xi32>
    %87 = "tfl.cast"(%86) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %cst25 = "tfl.pseudo_const"() {value = dense<234098594> : tensor<i64>} : () -> tensor<i64>
    %88 = "tfl.mul"(%87, %cst25) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %89 = "tfl.add"(%88, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %90 = "tfl.bitcast"(%89) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %91 = "tfl.reshape"(%90, %cst10) {new_shape = dense<[-1, 2]> : tensor<2xi32>} : (tensor<1x1x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
    %92 = "tfl.transpose"(%91, %cst11) : (tensor<1x2xi32>, tensor<2xi32>) -> tensor<2x1xi32>
    %93 = "tfl.gather"(%92, %cst12) {axis = 0, batch_dims = 0} : (tensor<2x1xi32>, tensor<i32>) -> tensor<1xi32>
    %94 = "tfl.reshape"(%93, %cst13) {new_shape = dense<[-1, 1]> : tensor<2xi32>} : (tensor<1xi32>, tensor<2xi32>) -> tensor<1x1xi32>
    %95 = "tfl.add"(%77, %94) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst26 = "tfl.pseudo_const"() {value = dense<1057819769> : tensor<i32>} : () -> tensor<i32>
    %96 = "tfl.add"(%59, %cst26) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst27 = "tfl.pseudo_const"() {value = dense<255380284> : tensor<i64>} : () -> tensor<i64>
    %97 = "tfl.mul"(%78, %cst27) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %98 = "tfl.add"(%97, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %99 = "tfl.bitcast"(%98) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %100 = "tfl.reshape"(%99, %cst10) {new_shape = dense<[-1, 2]> : tensor<2xi32>} : (tensor<1x1x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
    %101 = "tfl.transpose"(%100, %cst11) : (tensor<1x2xi32>, tensor<2xi32>) -> tensor<2x1xi32>
    %102 = "tfl.gather"(%101, %cst12) {axis = 0, batch_dims = 0} : (tensor<2x1xi32>, tensor<i32>) -> tensor<1xi32>
    %103 = "tfl.reshape"(%102, %cst13) {new_shape = dense<[-1, 1]> : tensor<2xi32>} : (tensor<1xi32>, tensor<2xi32>) -> tensor<1x1xi32>
    %104 = "tfl.add"(%96, %103) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %105 = "tfl.cast"(%57) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %106 = "tfl.cast"(%104) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %107 = "tfl.mul"(%105, %106) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %108 = "tfl.mul"(%107, %cst24) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %109 = "tfl.add"(%108, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %110 = "tfl.bitcast"(%109) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %111 = "tfl.reshape"(%110, %cst10) {new_shape = dense<[-1, 2]> : tensor<2xi32>} : (tensor<1x1x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
    %112 = "tfl.transpose"(%111, %cst11) : (tensor<1x2xi32>, tensor<2xi32>) -> tensor<2x1xi32>
    %113 = "tfl.gather"(%112, %cst12) {axis = 0, batch_dims = 0} : (tensor<2x1xi32>, tensor<i32>) -> tensor<1xi32>
    %114 = "tfl.reshape"(%113, %cst13) {new_shape = dense<[-1, 1]> : tensor<2xi32>} : (tensor<1xi32>, tensor<2xi32>) -> tensor<1x1xi32>
    %cst28 = "tfl.pseudo_const"() {value = dense<1276901416> : tensor<i64>} : () -> tensor<i64>
    %115 = "tfl.mul"(%60, %cst28) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %116 = "tfl.add"(%115, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %117 = "tfl.bitcast"(%116) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %118 = "tfl.reshape"(%117, %cst10) {new_shape = dense<[-1, 2]> : tensor<2xi32>} : (tensor<1x1x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
    %119 = "tfl.transpose"(%118, %cst11) : (tensor<1x2xi32>, tensor<2xi32>) -> tensor<2x1xi32>
    %120 = "tfl.gather"(%119, %cst12) {axis = 0, batch_dims = 0} : (tensor<2x1xi32>, tensor<i32>) -> tensor<1xi32>
    %121 = "tfl.reshape"(%120, %cst13) {new_shape = dense<[-1, 1]> : tensor<2xi32>} : (tensor<1xi32>, tensor<2xi32>) -> tensor<1x1xi32>
    %122 = "tfl.add"(%114, %121) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst29 = "tfl.pseudo_const"() {value = dense<31> : tensor<i32>} : () -> tensor<i32>
    %123 = "tfl.right_shift"(%95, %cst29) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %124 = "tfl.add"(%95, %123) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst30 = "tfl.pseudo_const"() {value = dense<5> : tensor<i32>} : () -> tensor<i32>
    %125 = "tfl.right_shift"(%124, %cst30) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %126 = "tfl.right_shift"(%125, %cst12) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %127 = "tfl.sub"(%125, %126) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %128 = "tfl.right_shift"(%122, %cst12) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst31 = "tfl.pseudo_const"() {value = dense<1073741824> : tensor<i32>} : () -> tensor<i32>
    %129 = "tfl.add"(%128, %cst31) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %130 = "tfl.cast"(%129) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %cst32 = "tfl.pseudo_const"() {value = dense<-2021161080> : tensor<i64>} : () -> tensor<i64>
    %131 = "tfl.mul"(%130, %cst32) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %132 = "tfl.add"(%131, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %133 = "tfl.bitcast"(%132) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %134 = "tfl.reshape"(%133, %cst10) {new_shape = dense<[-1, 2]> : tensor<2xi32>} : (tensor<1x1x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
    %135 = "tfl.transpose"(%134, %cst11) : (tensor<1x2xi32>, tensor<2xi32>) -> tensor<2x1xi32>
    %136 = "tfl.gather"(%135, %cst12) {axis = 0, batch_dims = 0} : (tensor<2x1xi32>, tensor<i32>) -> tensor<1xi32>
    %137 = "tfl.reshape"(%136, %cst13) {new_shape = dense<[-1, 1]> : tensor<2xi32>} : (tensor<1xi32>, tensor<2xi32>) -> tensor<1x1xi32>
    %cst33 = "tfl.pseudo_const"() {value = dense<1515870810> : tensor<i32>} : () -> tensor<i32>
    %138 = "tfl.add"(%137, %cst33) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %139 = "tfl.cast"(%138) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %140 = "tfl.mul"(%130, %139) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %141 = "tfl.mul"(%140, %cst24) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %142 = "tfl.add"(%141, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %143 = "tfl.bitcast"(%142) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %144 = "tfl.reshape"(%143, %cst10) {new_shape = dense<[-1, 2]> : tensor<2xi32>} : (tensor<1x1x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
    %145 = "tfl.transpose"(%144, %cst11) : (tensor<1x2xi32>, tensor<2xi32>) -> tensor<2x1xi32>
    %146 = "tfl.gather"(%145, %cst12) {axis = 0, batch_dims = 0} : (tensor<2x1xi32>, tensor<i32>) -> tensor<1xi32>
    %147 = "tfl.reshape"(%146, %cst13) {new_shape = dense<[-1, 1]> : tensor<2xi32>} : (tensor<1xi32>, tensor<2xi32>) -> tensor<1x1xi32>
    %cst34 = "tfl.pseudo_const"() {value = dense<536870912> : tensor<i32>} : () -> tensor<i32>
    %148 = "tfl.sub"(%cst34, %147) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %149 = "tfl.cast"(%148) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %150 = "tfl.mul"(%139, %149) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %151 = "tfl.mul"(%150, %cst24) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %152 = "tfl.add"(%151, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %153 = "tfl.bitcast"(%152) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %154 = "tfl.reshape"(%153, %cst10) {new_shape = dense<[-1, 2]> : tensor<2xi32>} : (tensor<1x1x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
    %155 = "tfl.transpose"(%154, %cst11) : (tensor<1x2xi32>, tensor<2xi32>) -> tensor<2x1xi32>
    %156 = "tfl.gather"(%155, %cst12) {axis = 0, batch_dims = 0} : (tensor<2x1xi32>, tensor<i32>) -> tensor<1xi32>
    %157 = "tfl.reshape"(%156, %cst13) {new_shape = dense<[-1, 1]> : tensor<2xi32>} : (tensor<1xi32>, tensor<2xi32>) -> tensor<1x1xi32>
    %cst35 = "tfl.pseudo_const"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
    %158 = "tfl.mul"(%157, %cst35) {fused_activation_function = "NONE"} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %159 = "tfl.add"(%138, %158) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %160 = "tfl.cast"(%159) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %161 = "tfl.mul"(%130, %160) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %162 = "tfl.mul"(%161, %cst24) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %163 = "tfl.add"(%162, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %164 = "tfl.bitcast"(%163) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %165 = "tfl.reshape"(%164, %cst10) {new_shape = dense<[-1, 2]> : tensor<2xi32>} : (tensor<1x1x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
    %166 = "tfl.transpose"(%165, %cst11) : (tensor<1x2xi32>, tensor<2xi32>) -> tensor<2x1xi32>
    %167 = "tfl.gather"(%166, %cst12) {axis = 0, batch_dims = 0} : (tensor<2x1xi32>, tensor<i32>) -> tensor<1xi32>
    %168 = "tfl.reshape"(%167, %cst13) {new_shape = dense<[-1, 1]> : tensor<2xi32>} : (tensor<1xi32>, tensor<2xi32>) -> tensor<1x1xi32>
    %169 = "tfl.sub"(%cst34, %168) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %170 = "tfl.cast"(%169) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %171 = "tfl.mul"(%160, %170) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %172 = "tfl.mul"(%171, %cst24) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %173 = "tfl.add"(%172, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %174 = "tfl.bitcast"(%173) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %175 = "tfl.reshape"(%174, %cst10) {new_shape = dense<[-1, 2]> : tensor<2xi32>} : (tensor<1x1x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
    %176 = "tfl.transpose"(%175, %cst11) : (tensor<1x2xi32>, tensor<2xi32>) -> tensor<2x1xi32>
    %177 = "tfl.gather"(%176, %cst12) {axis = 0, batch_dims = 0} : (tensor<2x1xi32>, tensor<i32>) -> tensor<1xi32>
    %178 = "tfl.reshape"(%177, %cst13) {new_shape = dense<[-1, 1]> : tensor<2xi32>} : (tensor<1xi32>, tensor<2xi32>) -> tensor<1x1xi32>
    %179 = "tfl.mul"(%178, %cst35) {fused_activation_function = "NONE"} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %180 = "tfl.add"(%159, %179) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %181 = "tfl.cast"(%180) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %182 = "tfl.mul"(%130, %181) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %183 = "tfl.mul"(%182, %cst24) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %184 = "tfl.add"(%183, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %185 = "tfl.bitcast"(%184) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %186 = "tfl.reshape"(%185, %cst10) {new_shape = dense<[-1, 2]> : tensor<2xi32>} : (tensor<1x1x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
    %187 = "tfl.transpose"(%186, %cst11) : (tensor<1x2xi32>, tensor<2xi32>) -> tensor<2x1xi32>
    %188 = "tfl.gather"(%187, %cst12) {axis = 0, batch_dims = 0} : (tensor<2x1xi32>, tensor<i32>) -> tensor<1xi32>
    %189 = "tfl.reshape"(%188, %cst13) {new_shape = dense<[-1, 1]> : tensor<2xi32>} : (tensor<1xi32>, tensor<2xi32>) -> tensor<1x1xi32>
    %190 = "tfl.sub"(%cst34, %189) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %191 = "tfl.cast"(%190) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %192 = "tfl.mul"(%181, %191) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %193 = "tfl.mul"(%192, %cst24) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %194 = "tfl.add"(%193, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %195 = "tfl.bitcast"(%194) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %196 = "tfl.reshape"(%195, %cst10) {new_shape = dense<[-1, 2]> : tensor<2xi32>} : (tensor<1x1x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
    %197 = "tfl.transpose"(%196, %cst11) : (tensor<1x2xi32>, tensor<2xi32>) -> tensor<2x1xi32>
    %198 = "tfl.gather"(%197, %cst12) {axis = 0, batch_dims = 0} : (tensor<2x1xi32>, tensor<i32>) -> tensor<1xi32>
    %199 = "tfl.reshape"(%198, %cst13) {new_shape = dense<[-1, 1]> : tensor<2xi32>} : (tensor<1xi32>, tensor<2xi32>) -> tensor<1x1xi32>
    %200 = "tfl.mul"(%199, %cst35) {fused_activation_function = "NONE"} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %201 = "tfl.add"(%180, %200) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %202 = "tfl.minimum"(%201, %cst31) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %203 = "tfl.minimum"(%201, %cst14) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %204 = "tfl.add"(%202, %203) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %205 = "tfl.cast"(%127) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %206 = "tfl.cast"(%204) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %207 = "tfl.mul"(%205, %206) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %208 = "tfl.mul"(%207, %cst24) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %209 = "tfl.add"(%208, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %210 = "tfl.bitcast"(%209) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %211 = "tfl.reshape"(%210, %cst10) {new_shape = dense<[-1, 2]> : tensor<2xi32>} : (tensor<1x1x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
    %212 = "tfl.transpose"(%211, %cst11) : (tensor<1x2xi32>, tensor<2xi32>) -> tensor<2x1xi32>
    %213 = "tfl.gather"(%212, %cst12) {axis = 0, batch_dims = 0} : (tensor<2x1xi32>, tensor<i32>) -> tensor<1xi32>
    %214 = "tfl.reshape"(%213, %cst13) {new_shape = dense<[-1, 1]> : tensor<2xi32>} : (tensor<1xi32>, tensor<2xi32>) -> tensor<1x1xi32>
    %215 = "tfl.cast"(%54) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %cst36 = "tfl.pseudo_const"() {value = dense<2977044472> : tensor<i64>} : () -> tensor<i64>
    %216 = "tfl.mul"(%215, %cst36) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %217 = "tfl.add"(%216, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %218 = "tfl.bitcast"(%217) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %219 = "tfl.reshape"(%218, %cst10) {new_shape = dense<[-1, 2]> : tensor<2xi32>} : (tensor<1x1x2xi32>, tensor<2xi32>) -> tensor<1x2xi32>
    %220 = "tfl.transpose"(%219, %cst11) : (tensor<1x2xi32>, tensor<2xi32>) -> tensor<2x1xi32>
    %221 = "tfl.gather"(%220, %cst12) {axis = 0, batch_dims = 0} : (tensor<2x1xi32>, tensor<i32>) -> tensor<1xi32>
    %222 = "tfl.reshape"(%221, %cst13) {new_shape = dense<[-1, 1]> : tensor<2xi32>} : (tensor<1xi32>, tensor<2xi32>) -> tensor<1x1xi32>
    %223 = "tfl.add"(%222, %214) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %224 = "tfl.mul"(%223, %cst15) {fused_activation_function = "NONE"} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %225 = "tfl.sub"(%11, %224) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %226 = "tfl.right_shift"(%225, %cst29) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %227 = "tfl.add"(%225, %226) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst37 = "tfl.pseudo_const"() {value = dense<21> : tensor<i32>} : () -> tensor<i32>
    %228 = "tfl.right_shift"(%227, %cst37) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %229 = "tfl.right_shift"(%228, %cst12) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %230 = "tfl.sub"(%228, %229) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %231 = "tfl.add"(%230, %cst1) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %cst38 = "tfl.pseudo_const"() {value = dense<-128> : tensor<i32>} : () -> tensor<i32>
    %232 = "tfl.maximum"(%231, %cst38) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %233 = "tfl.minimum"(%232, %cst1) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %234 = "tfl.cast"(%233) : (tensor<1x8xi32>) -> tensor<1x8x!quant.uniform<i8:f32, 0.0625:127>>
    return %234 : tensor<1x8x!quant.uniform<i8:f32, 0.0625:127>>
  }
}
// ----- TOSA
module {
  func.func @main(%arg0: tensor<1x8xi8> {tflq.name = "x"}) -> tensor<1x8xi8> {
    %0 = "tosa.cast"(%arg0) : (tensor<1x8xi8>) -> tensor<1x8xi32>
    %1 = "tosa.reduce_max"(%arg0) {axis = 1} : (tensor<1x8xi8>) -> tensor<1x1xi8>
    %2 = "tosa.cast"(%1) : (tensor<1x1xi8>) -> tensor<1x1xi32>
    %3 = "tosa.sub"(%0, %2) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %cst0 = "tosa.const"() {values = dense<[[127]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %4 = "tosa.add"(%3, %cst0) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %5 = "tosa.cast"(%4) : (tensor<1x8xi32>) -> tensor<1x8xi8>
    %6 = "tosa.cast"(%5) : (tensor<1x8xi8>) -> tensor<1x8xi32>
    %cst1 = "tosa.const"() {values = dense<[[128]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %7 = "tosa.add"(%6, %cst1) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %cst2 = "tosa.const"() {values = dense_resource<cdaedbf0> : tensor<1x256x1xi32>} : () -> tensor<1x256x1xi32>
    %8 = "tosa.gather"(%cst2, %7) : (tensor<1x256x1xi32>, tensor<1x8xi32>) -> tensor<1x8x1xi32>
    %9 = "tosa.reshape"(%8) : (tensor<1x8x1xi32>) -> tensor<1x8xi32>
    %10 = "tosa.reduce_sum"(%9) {axis = 1} : (tensor<1x8xi32>) -> tensor<1x1xi32>
    %cst3 = "tosa.const"() {values = dense_resource<eb5d2164> : tensor<1x256x1xi32>} : () -> tensor<1x256x1xi32>
    %11 = "tosa.gather"(%cst3, %7) : (tensor<1x256x1xi32>, tensor<1x8xi32>) -> tensor<1x8x1xi32>
    %12 = "tosa.reshape"(%11) : (tensor<1x8x1xi32>) -> tensor<1x8xi32>
    %13 = "tosa.clz"(%10) : (tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst4 = "tosa.const"() {values = dense<[[-1]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %14 = "tosa.add"(%13, %cst4) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %15 = "tosa.logical_left_shift"(%10, %14) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst5 = "tosa.const"() {values = dense<[[1518500250]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %16 = "tosa.mul"(%15, %cst5) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst6 = "tosa.const"() {values = dense<[[1073741823]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %17 = "tosa.greater"(%16, %cst6) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi1>
    %cst7 = "tosa.const"() {values = dense<[[1]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %18 = "tosa.logical_left_shift"(%16, %cst7) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst8 = "tosa.const"() {values = dense<[[2147483647]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %19 = "tosa.select"(%17, %cst8, %18) : (tensor<1x1xi1>, tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %20 = "tosa.mul"(%10, %cst5) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %21 = "tosa.clz"(%20) : (tensor<1x1xi32>) -> tensor<1x1xi32>
    %22 = "tosa.sub"(%21, %13) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst9 = "tosa.const"() {values = dense<[[0]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %23 = "tosa.greater"(%22, %cst9) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi1>
    %24 = "tosa.select"(%23, %cst8, %15) : (tensor<1x1xi1>, tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst10 = "tosa.const"() {values = dense<[[12]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %25 = "tosa.sub"(%cst10, %13) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst11 = "tosa.const"() {values = dense<[[25]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %26 = "tosa.logical_left_shift"(%25, %cst11) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst12 = "tosa.const"() {values = dense<[[8388608]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %27 = "tosa.add"(%26, %cst12) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %28 = "tosa.sub"(%25, %22) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %29 = "tosa.add"(%28, %cst7) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %30 = "tosa.logical_left_shift"(%29, %cst11) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst13 = "tosa.const"() {values = dense<[[-8388608]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %31 = "tosa.add"(%30, %cst13) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %32 = "tosa.maximum"(%27, %31) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %33 = "tosa.minimum"(%19, %24) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %34 = "tosa.arithmetic_right_shift"(%33, %cst7) {round = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst14 = "tosa.const"() {values = dense<[[902905651]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %35 = "tosa.add"(%34, %cst14) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst15 = "tosa.const"() {values = dense<[[-1805811301]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %36 = "tosa.add"(%33, %cst15) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %37 = "tosa.logical_left_shift"(%36, %cst7) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %38 = "tosa.mul"(%37, %37) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %39 = "tosa.mul"(%37, %33) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %40 = "tosa.mul"(%37, %38) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst16 = "tosa.const"() {values = dense<[[117049297]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %41 = "tosa.mul"(%40, %cst16) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %42 = "tosa.add"(%39, %41) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst17 = "tosa.const"() {values = dense<[[1057819769]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %43 = "tosa.add"(%37, %cst17) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst18 = "tosa.const"() {values = dense<[[127690142]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %44 = "tosa.mul"(%38, %cst18) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %45 = "tosa.add"(%43, %44) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %46 = "tosa.mul"(%35, %45) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst19 = "tosa.const"() {values = dense<[[638450708]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %47 = "tosa.mul"(%37, %cst19) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %48 = "tosa.add"(%46, %47) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst20 = "tosa.const"() {values = dense<[[31]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %49 = "tosa.arithmetic_right_shift"(%42, %cst20) {round = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %50 = "tosa.add"(%42, %49) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst21 = "tosa.const"() {values = dense<[[6]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %51 = "tosa.arithmetic_right_shift"(%50, %cst21) {round = true} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %52 = "tosa.arithmetic_right_shift"(%48, %cst7) {round = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst22 = "tosa.const"() {values = dense<[[1073741824]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %53 = "tosa.add"(%52, %cst22) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst23 = "tosa.const"() {values = dense<[[-1010580540]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %54 = "tosa.mul"(%53, %cst23) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst24 = "tosa.const"() {values = dense<[[1515870810]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %55 = "tosa.add"(%54, %cst24) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %56 = "tosa.mul"(%53, %55) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst25 = "tosa.const"() {values = dense<[[536870912]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %57 = "tosa.sub"(%cst25, %56) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %58 = "tosa.mul"(%55, %57) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst26 = "tosa.const"() {values = dense<[[2]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %59 = "tosa.logical_left_shift"(%58, %cst26) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %60 = "tosa.add"(%55, %59) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %61 = "tosa.mul"(%53, %60) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %62 = "tosa.sub"(%cst25, %61) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %63 = "tosa.mul"(%60, %62) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %64 = "tosa.logical_left_shift"(%63, %cst26) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %65 = "tosa.add"(%60, %64) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %66 = "tosa.mul"(%53, %65) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %67 = "tosa.sub"(%cst25, %66) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %68 = "tosa.mul"(%65, %67) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %69 = "tosa.logical_left_shift"(%68, %cst26) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %70 = "tosa.add"(%65, %69) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %71 = "tosa.minimum"(%70, %cst22) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %72 = "tosa.minimum"(%70, %cst6) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %73 = "tosa.add"(%71, %72) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %74 = "tosa.mul"(%51, %73) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst27 = "tosa.const"() {values = dense<[[1488522236]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %75 = "tosa.mul"(%32, %cst27) {shift = 31} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %76 = "tosa.add"(%75, %74) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %77 = "tosa.logical_left_shift"(%76, %cst7) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %78 = "tosa.sub"(%12, %77) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %79 = "tosa.arithmetic_right_shift"(%78, %cst20) {round = false} : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %80 = "tosa.add"(%78, %79) : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst28 = "tosa.const"() {values = dense<[[22]]> : tensor<1x1xi32>} : () -> tensor<1x1xi32>
    %81 = "tosa.arithmetic_right_shift"(%80, %cst28) {round = true} : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %82 = "tosa.add"(%81, %cst0) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %83 = "tosa.rescale"(%82) {multiplier = dense<[1073741824]> : tensor<1xi32>, shift = dense<[30]> : tensor<1xi8>, input_zp = 0, output_zp = 0, rounding_mode = "SINGLE_ROUND", scale32 = true, per_channel = false} : (tensor<1x8xi32>) -> tensor<1x8xi8>
    return %83 : tensor<1x8xi8>
  }
}
