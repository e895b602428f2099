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
    %cst1 = "tfl.pseudo_const"() {value = dense<255> : tensor<i32>} : () -> tensor<i32>
    %5 = "tfl.add"(%4, %cst1) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %cst2 = "tfl.pseudo_const"() {value = dense_resource<cdaedbf0> : tensor<256xi32>} : () -> tensor<256xi32>
    %6 = "tfl.gather"(%cst2, %5) {axis = 0, batch_dims = 0} : (tensor<256xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %7 = "tfl.sum"(%6, %cst0) {keep_dims = true} : (tensor<1x8xi32>, tensor<1xi32>) -> tensor<1x1xi32>
    %cst3 = "tfl.pseudo_const"() {value = dense<[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576, 2097152, 4194304, 8388608, 16777216, 33554432, 67108864, 134217728, 268435456, 536870912, 1073741824, 2147483647]> : tensor<32xi32>} : () -> tensor<32xi32>
    %8 = "tfl.greater"(%cst3, %7) : (tensor<32xi32>, tensor<1x1xi32>) -> tensor<1x32xi1>
    %9 = "tfl.cast"(%8) : (tensor<1x32xi1>) -> tensor<1x32xi32>
    %cst4 = "tfl.pseudo_const"() {value = dense<[-1]> : tensor<1xi32>} : () -> tensor<1xi32>
    %10 = "tfl.sum"(%9, %cst4) {keep_dims = true} : (tensor<1x32xi32>, tensor<1xi32>) -> tensor<1x1xi32>
    %cst5 = "tfl.pseudo_const"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %11 = "tfl.sub"(%10, %cst5) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst6 = "tfl.pseudo_const"() {value = dense<[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576, 2097152, 4194304, 8388608, 16777216, 33554432, 67108864, 134217728, 268435456, 536870912, 1073741824, -2147483648]> : tensor<32xi32>} : () -> tensor<32xi32>
    %12 = "tfl.gather"(%cst6, %11) {axis = 0, batch_dims = 0} : (tensor<32xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %13 = "tfl.mul"(%7, %12) {fused_activation_function = "NONE"} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %14 = "tfl.cast"(%13) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %cst7 = "tfl.pseudo_const"() {value = dense<-2021161080> : tensor<i64>} : () -> tensor<i64>
    %15 = "tfl.mul"(%14, %cst7) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %cst8 = "tfl.pseudo_const"() {value = dense<2147483648> : tensor<i64>} : () -> tensor<i64>
    %16 = "tfl.add"(%15, %cst8) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %17 = "tfl.bitcast"(%16) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %18 = "tfl.gather"(%17, %cst5) {axis = 2, batch_dims = 0} : (tensor<1x1x2xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst9 = "tfl.pseudo_const"() {value = dense<1515870810> : tensor<i32>} : () -> tensor<i32>
    %19 = "tfl.add"(%18, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %20 = "tfl.cast"(%19) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %cst10 = "tfl.pseudo_const"() {value = dense<2> : tensor<i64>} : () -> tensor<i64>
    %21 = "tfl.mul"(%14, %cst10) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %22 = "tfl.mul"(%21, %20) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %23 = "tfl.add"(%22, %cst8) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %24 = "tfl.bitcast"(%23) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %25 = "tfl.gather"(%24, %cst5) {axis = 2, batch_dims = 0} : (tensor<1x1x2xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst11 = "tfl.pseudo_const"() {value = dense<536870912> : tensor<i32>} : () -> tensor<i32>
    %26 = "tfl.sub"(%cst11, %25) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %27 = "tfl.cast"(%26) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %28 = "tfl.mul"(%20, %cst10) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %29 = "tfl.mul"(%28, %27) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %30 = "tfl.add"(%29, %cst8) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %31 = "tfl.bitcast"(%30) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %32 = "tfl.gather"(%31, %cst5) {axis = 2, batch_dims = 0} : (tensor<1x1x2xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst12 = "tfl.pseudo_const"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
    %33 = "tfl.mul"(%32, %cst12) {fused_activation_function = "NONE"} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %34 = "tfl.add"(%19, %33) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %35 = "tfl.cast"(%34) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %36 = "tfl.mul"(%21, %35) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %37 = "tfl.add"(%36, %cst8) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %38 = "tfl.bitcast"(%37) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %39 = "tfl.gather"(%38, %cst5) {axis = 2, batch_dims = 0} : (tensor<1x1x2xi32>, tensor<i32>) -> tensor<1x1xi32>
    %40 = "tfl.sub"(%cst11, %39) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %41 = "tfl.cast"(%40) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %42 = "tfl.mul"(%35, %cst10) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %43 = "tfl.mul"(%42, %41) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %44 = "tfl.add"(%43, %cst8) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %45 = "tfl.bitcast"(%44) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %46 = "tfl.gather"(%45, %cst5) {axis = 2, batch_dims = 0} : (tensor<1x1x2xi32>, tensor<i32>) -> tensor<1x1xi32>
    %47 = "tfl.mul"(%46, %cst12) {fused_activation_function = "NONE"} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %48 = "tfl.add"(%34, %47) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %49 = "tfl.cast"(%48) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %50 = "tfl.mul"(%21, %49) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %51 = "tfl.add"(%50, %cst8) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %52 = "tfl.bitcast"(%51) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %53 = "tfl.gather"(%52, %cst5) {axis = 2, batch_dims = 0} : (tensor<1x1x2xi32>, tensor<i32>) -> tensor<1x1xi32>
    %54 = "tfl.sub"(%cst11, %53) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %55 = "tfl.cast"(%54) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %56 = "tfl.mul"(%49, %cst10) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %57 = "tfl.mul"(%56, %55) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %58 = "tfl.add"(%57, %cst8) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %59 = "tfl.bitcast"(%58) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %60 = "tfl.gather"(%59, %cst5) {axis = 2, batch_dims = 0} : (tensor<1x1x2xi32>, tensor<i32>) -> tensor<1x1xi32>
    %61 = "tfl.mul"(%60, %cst12) {fused_activation_function = "NONE"} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %62 = "tfl.add"(%48, %61) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst13 = "tfl.pseudo_const"() {value = dense<1073741824> : tensor<i32>} : () -> tensor<i32>
    %63 = "tfl.minimum"(%62, %cst13) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst14 = "tfl.pseudo_const"() {value = dense<1073741823> : tensor<i32>} : () -> tensor<i32>
    %64 = "tfl.minimum"(%62, %cst14) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %65 = "tfl.add"(%63, %64) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst15 = "tfl.pseudo_const"() {value = dense<35> : tensor<i32>} : () -> tensor<i32>
    %66 = "tfl.sub"(%cst15, %10) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst16 = "tfl.pseudo_const"() {value = dense_resource<af71b713> : tensor<256xi32>} : () -> tensor<256xi32>
    %67 = "tfl.gather"(%cst16, %5) {axis = 0, batch_dims = 0} : (tensor<256xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %68 = "tfl.cast"(%67) : (tensor<1x8xi32>) -> tensor<1x8xi64>
    %69 = "tfl.cast"(%65) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %70 = "tfl.mul"(%69, %cst10) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %71 = "tfl.mul"(%68, %70) {fused_activation_function = "NONE"} : (tensor<1x8xi64>, tensor<1x1xi64>) -> tensor<1x8xi64>
    %72 = "tfl.add"(%71, %cst8) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi64>, tensor<i64>) -> tensor<1x8xi64>
    %73 = "tfl.bitcast"(%72) : (tensor<1x8xi64>) -> tensor<1x8x2xi32>
    %74 = "tfl.gather"(%73, %cst5) {axis = 2, batch_dims = 0} : (tensor<1x8x2xi32>, tensor<i32>) -> tensor<1x8xi32>
    %75 = "tfl.sub"(%66, %cst5) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %76 = "tfl.right_shift"(%74, %75) : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %77 = "tfl.right_shift"(%76, %cst5) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %78 = "tfl.sub"(%76, %77) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst17 = "tfl.pseudo_const"() {value = dense<-128> : tensor<i32>} : () -> tensor<i32>
    %79 = "tfl.add"(%78, %cst17) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %cst18 = "tfl.pseudo_const"() {value = dense<127> : tensor<i32>} : () -> tensor<i32>
    %80 = "tfl.minimum"(%79, %cst18) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %81 = "tfl.cast"(%80) : (tensor<1x8xi32>) -> tensor<1x8x!quant.uniform<i8:f32, 0.00390625:-128>>
    return %81 : tensor<1x8x!quant.uniform<i8:f32, 0.00390625:-128>>
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
    %cst1 = "tfl.pseudo_const"() {value = dense<255> : tensor<i32>} : () -> tensor<i32>
    %5 = "tfl.add"(%4, %cst1) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %cst2 = "tfl.pseudo_const"() {value = dense_resource<cdaedbf0> : tensor<256xi32>} : () -> tensor<256xi32>
    %6 = "tfl.gather"(%cst2, %5) {axis = 0, batch_dims = 0} : (tensor<256xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %7 = "tfl.sum"(%6, %cst0) {keep_dims = true} : (tensor<1x8xi32>, tensor<1xi32>) -> tensor<1x1xi32>
    %cst3 = "tfl.pseudo_const"() {value = dense_resource<eb5d2164> : tensor<256xi32>} : () -> tensor<256xi32>
    %8 = "tfl.gather"(%cst3, %5) {axis = 0, batch_dims = 0} : (tensor<256xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst4 = "tfl.pseudo_const"() {value = dense<[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576, 2097152, 4194304, 8388608, 16777216, 33554432, 67108864, 134217728, 268435456, 536870912, 1073741824, 2147483647]> : tensor<32xi32>} : () -> tensor<32xi32>
    %9 = "tfl.greater"(%cst4, %7) : (tensor<32xi32>, tensor<1x1xi32>) -> tensor<1x32xi1>
    %10 = "tfl.cast"(%9) : (tensor<1x32xi1>) -> tensor<1x32xi32>
    %cst5 = "tfl.pseudo_const"() {value = dense<[-1]> : tensor<1xi32>} : () -> tensor<1xi32>
    %11 = "tfl.sum"(%10, %cst5) {keep_dims = true} : (tensor<1x32xi32>, tensor<1xi32>) -> tensor<1x1xi32>
    %cst6 = "tfl.pseudo_const"() {value = dense<-1> : tensor<i32>} : () -> tensor<i32>
    %12 = "tfl.add"(%11, %cst6) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst7 = "tfl.pseudo_const"() {value = dense<[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1048576, 2097152, 4194304, 8388608, 16777216, 33554432, 67108864, 134217728, 268435456, 536870912, 1073741824, -2147483648]> : tensor<32xi32>} : () -> tensor<32xi32>
    %13 = "tfl.gather"(%cst7, %12) {axis = 0, batch_dims = 0} : (tensor<32xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %14 = "tfl.mul"(%7, %13) {fused_activation_function = "NONE"} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %15 = "tfl.cast"(%14) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %cst8 = "tfl.pseudo_const"() {value = dense<3037000500> : tensor<i64>} : () -> tensor<i64>
    %16 = "tfl.mul"(%15, %cst8) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %cst9 = "tfl.pseudo_const"() {value = dense<2147483648> : tensor<i64>} : () -> tensor<i64>
    %17 = "tfl.add"(%16, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %18 = "tfl.bitcast"(%17) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %cst10 = "tfl.pseudo_const"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %19 = "tfl.gather"(%18, %cst10) {axis = 2, batch_dims = 0} : (tensor<1x1x2xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst11 = "tfl.pseudo_const"() {value = dense<1073741823> : tensor<i32>} : () -> tensor<i32>
    %20 = "tfl.greater"(%19, %cst11) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi1>
    %cst12 = "tfl.pseudo_const"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
    %21 = "tfl.mul"(%19, %cst12) {fused_activation_function = "NONE"} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst13 = "tfl.pseudo_const"() {value = dense<2147483647> : tensor<i32>} : () -> tensor<i32>
    %22 = "tfl.select_v2"(%20, %cst13, %21) : (tensor<1x1xi1>, tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %23 = "tfl.cast"(%7) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %24 = "tfl.mul"(%23, %cst8) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %25 = "tfl.add"(%24, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %26 = "tfl.bitcast"(%25) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %27 = "tfl.gather"(%26, %cst10) {axis = 2, batch_dims = 0} : (tensor<1x1x2xi32>, tensor<i32>) -> tensor<1x1xi32>
    %28 = "tfl.greater"(%cst4, %27) : (tensor<32xi32>, tensor<1x1xi32>) -> tensor<1x32xi1>
    %29 = "tfl.cast"(%28) : (tensor<1x32xi1>) -> tensor<1x32xi32>
    %30 = "tfl.sum"(%29, %cst5) {keep_dims = true} : (tensor<1x32xi32>, tensor<1xi32>) -> tensor<1x1xi32>
    %31 = "tfl.sub"(%30, %11) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst14 = "tfl.pseudo_const"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %32 = "tfl.greater"(%31, %cst14) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi1>
    %33 = "tfl.select_v2"(%32, %cst13, %14) : (tensor<1x1xi1>, tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst15 = "tfl.pseudo_const"() {value = dense<12> : tensor<i32>} : () -> tensor<i32>
    %34 = "tfl.sub"(%cst15, %11) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst16 = "tfl.pseudo_const"() {value = dense<33554432> : tensor<i32>} : () -> tensor<i32>
    %35 = "tfl.mul"(%34, %cst16) {fused_activation_function = "NONE"} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst17 = "tfl.pseudo_const"() {value = dense<8388608> : tensor<i32>} : () -> tensor<i32>
    %36 = "tfl.add"(%35, %cst17) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %37 = "tfl.sub"(%34, %31) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %38 = "tfl.add"(%37, %cst10) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %39 = "tfl.mul"(%38, %cst16) {fused_activation_function = "NONE"} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst18 = "tfl.pseudo_const"() {value = dense<-8388608> : tensor<i32>} : () -> tensor<i32>
    %40 = "tfl.add"(%39, %cst18) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %41 = "tfl.maximum"(%36, %40) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %42 = "tfl.minimum"(%22, %33) : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %43 = "tfl.right_shift"(%42, %cst10) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst19 = "tfl.pseudo_const"() {value = dense<902905651> : tensor<i32>} : () -> tensor<i32>
    %44 = "tfl.add"(%43, %cst19) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst20 = "tfl.pseudo_const"() {value = dense<-1805811301> : tensor<i32>} : () -> tensor<i32>
    %45 = "tfl.add"(%42, %cst20) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %46 = "tfl.mul"(%45, %cst12) {fused_activation_function = "NONE"} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %47 = "tfl.cast"(%46) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %cst21 = "tfl.pseudo_const"() {value = dense<2> : tensor<i64>} : () -> tensor<i64>
    %48 = "tfl.mul"(%47, %cst21) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %49 = "tfl.mul"(%48, %47) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %50 = "tfl.add"(%49, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %51 = "tfl.bitcast"(%50) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %52 = "tfl.gather"(%51, %cst10) {axis = 2, batch_dims = 0} : (tensor<1x1x2xi32>, tensor<i32>) -> tensor<1x1xi32>
    %53 = "tfl.cast"(%42) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %54 = "tfl.mul"(%48, %53) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %55 = "tfl.add"(%54, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %56 = "tfl.bitcast"(%55) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %57 = "tfl.gather"(%56, %cst10) {axis = 2, batch_dims = 0} : (tensor<1x1x2xi32>, tensor<i32>) -> tensor<1x1xi32>
    %58 = "tfl.cast"(%52) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %59 = "tfl.mul"(%48, %58) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %60 = "tfl.add"(%59, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %61 = "tfl.bitcast"(%60) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %62 = "tfl.gather"(%61, %cst10) {axis = 2, batch_dims = 0} : (tensor<1x1x2xi32>, tensor<i32>) -> tensor<1x1xi32>
    %63 = "tfl.cast"(%62) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %cst22 = "tfl.pseudo_const"() {value = dense<234098594> : tensor<i64>} : () -> tensor<i64>
    %64 = "tfl.mul"(%63, %cst22) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %65 = "tfl.add"(%64, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %66 = "tfl.bitcast"(%65) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %67 = "tfl.gather"(%66, %cst10) {axis = 2, batch_dims = 0} : (tensor<1x1x2xi32>, tensor<i32>) -> tensor<1x1xi32>
    %68 = "tfl.add"(%57, %67) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst23 = "tfl.pseudo_const"() {value = dense<1057819769> : tensor<i32>} : () -> tensor<i32>
    %69 = "tfl.add"(%46, %cst23) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst24 = "tfl.pseudo_const"() {value = dense<255380284> : tensor<i64>} : () -> tensor<i64>
    %70 = "tfl.mul"(%58, %cst24) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %71 = "tfl.add"(%70, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %72 = "tfl.bitcast"(%71) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %73 = "tfl.gather"(%72, %cst10) {axis = 2, batch_dims = 0} : (tensor<1x1x2xi32>, tensor<i32>) -> tensor<1x1xi32>
    %74 = "tfl.add"(%69, %73) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %75 = "tfl.cast"(%44) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %76 = "tfl.cast"(%74) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %77 = "tfl.mul"(%75, %cst21) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %78 = "tfl.mul"(%77, %76) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %79 = "tfl.add"(%78, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %80 = "tfl.bitcast"(%79) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %81 = "tfl.gather"(%80, %cst10) {axis = 2, batch_dims = 0} : (tensor<1x1x2xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst25 = "tfl.pseudo_const"() {value = dense<1276901416> : tensor<i64>} : () -> tensor<i64>
    %82 = "tfl.mul"(%47, %cst25) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %83 = "tfl.add"(%82, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %84 = "tfl.bitcast"(%83) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %85 = "tfl.gather"(%84, %cst10) {axis = 2, batch_dims = 0} : (tensor<1x1x2xi32>, tensor<i32>) -> tensor<1x1xi32>
    %86 = "tfl.add"(%81, %85) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst26 = "tfl.pseudo_const"() {value = dense<31> : tensor<i32>} : () -> tensor<i32>
    %87 = "tfl.right_shift"(%68, %cst26) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %88 = "tfl.add"(%68, %87) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %cst27 = "tfl.pseudo_const"() {value = dense<5> : tensor<i32>} : () -> tensor<i32>
    %89 = "tfl.right_shift"(%88, %cst27) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %90 = "tfl.right_shift"(%89, %cst10) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %91 = "tfl.sub"(%89, %90) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %92 = "tfl.right_shift"(%86, %cst10) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst28 = "tfl.pseudo_const"() {value = dense<1073741824> : tensor<i32>} : () -> tensor<i32>
    %93 = "tfl.add"(%92, %cst28) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %94 = "tfl.cast"(%93) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %cst29 = "tfl.pseudo_const"() {value = dense<-2021161080> : tensor<i64>} : () -> tensor<i64>
    %95 = "tfl.mul"(%94, %cst29) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %96 = "tfl.add"(%95, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %97 = "tfl.bitcast"(%96) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %98 = "tfl.gather"(%97, %cst10) {axis = 2, batch_dims = 0} : (tensor<1x1x2xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst30 = "tfl.pseudo_const"() {value = dense<1515870810> : tensor<i32>} : () -> tensor<i32>
    %99 = "tfl.add"(%98, %cst30) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %100 = "tfl.cast"(%99) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %101 = "tfl.mul"(%94, %cst21) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %102 = "tfl.mul"(%101, %100) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %103 = "tfl.add"(%102, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %104 = "tfl.bitcast"(%103) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %105 = "tfl.gather"(%104, %cst10) {axis = 2, batch_dims = 0} : (tensor<1x1x2xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst31 = "tfl.pseudo_const"() {value = dense<536870912> : tensor<i32>} : () -> tensor<i32>
    %106 = "tfl.sub"(%cst31, %105) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %107 = "tfl.cast"(%106) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %108 = "tfl.mul"(%100, %cst21) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %109 = "tfl.mul"(%108, %107) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %110 = "tfl.add"(%109, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %111 = "tfl.bitcast"(%110) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %112 = "tfl.gather"(%111, %cst10) {axis = 2, batch_dims = 0} : (tensor<1x1x2xi32>, tensor<i32>) -> tensor<1x1xi32>
    %cst32 = "tfl.pseudo_const"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
    %113 = "tfl.mul"(%112, %cst32) {fused_activation_function = "NONE"} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %114 = "tfl.add"(%99, %113) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %115 = "tfl.cast"(%114) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %116 = "tfl.mul"(%101, %115) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %117 = "tfl.add"(%116, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %118 = "tfl.bitcast"(%117) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %119 = "tfl.gather"(%118, %cst10) {axis = 2, batch_dims = 0} : (tensor<1x1x2xi32>, tensor<i32>) -> tensor<1x1xi32>
    %120 = "tfl.sub"(%cst31, %119) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %121 = "tfl.cast"(%120) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %122 = "tfl.mul"(%115, %cst21) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %123 = "tfl.mul"(%122, %121) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %124 = "tfl.add"(%123, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %125 = "tfl.bitcast"(%124) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %126 = "tfl.gather"(%125, %cst10) {axis = 2, batch_dims = 0} : (tensor<1x1x2xi32>, tensor<i32>) -> tensor<1x1xi32>
    %127 = "tfl.mul"(%126, %cst32) {fused_activation_function = "NONE"} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %128 = "tfl.add"(%114, %127) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %129 = "tfl.cast"(%128) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %130 = "tfl.mul"(%101, %129) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %131 = "tfl.add"(%130, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %132 = "tfl.bitcast"(%131) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %133 = "tfl.gather"(%132, %cst10) {axis = 2, batch_dims = 0} : (tensor<1x1x2xi32>, tensor<i32>) -> tensor<1x1xi32>
    %134 = "tfl.sub"(%cst31, %133) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<i32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %135 = "tfl.cast"(%134) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %136 = "tfl.mul"(%129, %cst21) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %137 = "tfl.mul"(%136, %135) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %138 = "tfl.add"(%137, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %139 = "tfl.bitcast"(%138) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %140 = "tfl.gather"(%139, %cst10) {axis = 2, batch_dims = 0} : (tensor<1x1x2xi32>, tensor<i32>) -> tensor<1x1xi32>
    %141 = "tfl.mul"(%140, %cst32) {fused_activation_function = "NONE"} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %142 = "tfl.add"(%128, %141) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %143 = "tfl.minimum"(%142, %cst28) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %144 = "tfl.minimum"(%142, %cst11) : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %145 = "tfl.add"(%143, %144) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %146 = "tfl.cast"(%91) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %147 = "tfl.cast"(%145) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %148 = "tfl.mul"(%146, %cst21) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %149 = "tfl.mul"(%148, %147) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<1x1xi64>) -> tensor<1x1xi64>
    %150 = "tfl.add"(%149, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %151 = "tfl.bitcast"(%150) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %152 = "tfl.gather"(%151, %cst10) {axis = 2, batch_dims = 0} : (tensor<1x1x2xi32>, tensor<i32>) -> tensor<1x1xi32>
    %153 = "tfl.cast"(%41) : (tensor<1x1xi32>) -> tensor<1x1xi64>
    %cst33 = "tfl.pseudo_const"() {value = dense<2977044472> : tensor<i64>} : () -> tensor<i64>
    %154 = "tfl.mul"(%153, %cst33) {fused_activation_function = "NONE"} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %155 = "tfl.add"(%154, %cst9) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi64>, tensor<i64>) -> tensor<1x1xi64>
    %156 = "tfl.bitcast"(%155) : (tensor<1x1xi64>) -> tensor<1x1x2xi32>
    %157 = "tfl.gather"(%156, %cst10) {axis = 2, batch_dims = 0} : (tensor<1x1x2xi32>, tensor<i32>) -> tensor<1x1xi32>
    %158 = "tfl.add"(%157, %152) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x1xi32>, tensor<1x1xi32>) -> tensor<1x1xi32>
    %159 = "tfl.mul"(%158, %cst12) {fused_activation_function = "NONE"} : (tensor<1x1xi32>, tensor<i32>) -> tensor<1x1xi32>
    %160 = "tfl.sub"(%8, %159) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<1x1xi32>) -> tensor<1x8xi32>
    %161 = "tfl.right_shift"(%160, %cst26) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %162 = "tfl.add"(%160, %161) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst34 = "tfl.pseudo_const"() {value = dense<21> : tensor<i32>} : () -> tensor<i32>
    %163 = "tfl.right_shift"(%162, %cst34) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %164 = "tfl.right_shift"(%163, %cst10) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %165 = "tfl.sub"(%163, %164) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<1x8xi32>) -> tensor<1x8xi32>
    %cst35 = "tfl.pseudo_const"() {value = dense<127> : tensor<i32>} : () -> tensor<i32>
    %166 = "tfl.add"(%165, %cst35) {fused_activation_function = "NONE", pot_scale_int16 = false} : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %cst36 = "tfl.pseudo_const"() {value = dense<-128> : tensor<i32>} : () -> tensor<i32>
    %167 = "tfl.maximum"(%166, %cst36) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %168 = "tfl.minimum"(%167, %cst35) : (tensor<1x8xi32>, tensor<i32>) -> tensor<1x8xi32>
    %169 = "tfl.cast"(%168) : (tensor<1x8xi32>) -> tensor<1x8x!quant.uniform<i8:f32, 0.0625:127>>
    return %169 : tensor<1x8x!quant.uniform<i8:f32, 0.0625:127>>
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
