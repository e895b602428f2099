"""Tensors, loops, shapes and calls, evaluated from text."""

from __future__ import annotations

import numpy as np
import pytest
from support.core_ops import of_text

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def test_views_and_parts() -> None:
    text = """
    func.func @f(%x: tensor<2x3x4xf32>) -> (tensor<6x4xf32>, tensor<2x3x2x2xf32>, tensor<3x2xf32>, f32, index, index) {
      %c = "tensor.collapse_shape"(%x) {reassociation = [[0, 1], [2]]} : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
      %e = "tensor.expand_shape"(%x) {reassociation = [[0], [1], [2, 3]], static_output_shape = array<i64: 2, 3, 2, 2>}
        : (tensor<2x3x4xf32>) -> tensor<2x3x2x2xf32>
      %s = "tensor.extract_slice"(%x) {operandSegmentSizes = array<i32: 1, 0, 0, 0>,
        static_offsets = array<i64: 1, 0, 1>, static_sizes = array<i64: 1, 3, 2>, static_strides = array<i64: 1, 1, 2>}
        : (tensor<2x3x4xf32>) -> tensor<3x2xf32>
      %i = arith.constant 1 : index
      %v = tensor.extract %x[%i, %i, %i] : tensor<2x3x4xf32>
      %d = tensor.dim %x, %i : tensor<2x3x4xf32>
      %r = tensor.rank %x : tensor<2x3x4xf32>
      return %c, %e, %s, %v, %d, %r : tensor<6x4xf32>, tensor<2x3x2x2xf32>, tensor<3x2xf32>, f32, index, index
    }"""
    collapsed, expanded, part, element, dim, rank = of_text(text, X)
    assert np.array_equal(collapsed, X.reshape(6, 4))
    assert np.array_equal(expanded, X.reshape(2, 3, 2, 2))
    assert np.array_equal(part, X[1, :, 1::2])
    assert element == X[1, 1, 1]
    assert (int(dim), int(rank)) == (3, 3)


def test_tensors_made_of_elements() -> None:
    text = """
    func.func @f(%a: i8, %n: index) -> (tensor<2x2xi8>, tensor<?x2xi8>, tensor<?xindex>, tensor<4xi8>) {
      %e = tensor.from_elements %a, %a, %a, %a : tensor<2x2xi8>
      %s = tensor.splat %a[%n] : tensor<?x2xi8>
      %g = "tensor.generate"(%n) ({
      ^bb0(%i: index):
        %sq = arith.muli %i, %i : index
        tensor.yield %sq : index
      }) : (index) -> tensor<?xindex>
      %two = tensor.from_elements %a, %a : tensor<2xi8>
      %j = "tensor.concat"(%two, %two) {dim = 0 : i64} : (tensor<2xi8>, tensor<2xi8>) -> tensor<4xi8>
      return %e, %s, %g, %j : tensor<2x2xi8>, tensor<?x2xi8>, tensor<?xindex>, tensor<4xi8>
    }"""
    elements, splat, squares, joined = of_text(text, np.int8(7), np.int64(3))
    assert np.array_equal(elements, np.full((2, 2), 7))
    assert np.array_equal(splat, np.full((3, 2), 7))
    assert squares.tolist() == [0, 1, 4]
    assert joined.tolist() == [7] * 4


def test_padding_by_what_a_body_yields() -> None:
    text = """
    func.func @f(%x: tensor<2xi8>) -> tensor<5xi8> {
      %p = "tensor.pad"(%x) ({
      ^bb0(%i: index):
        %n = arith.index_cast %i : index to i8
        tensor.yield %n : i8
      }) {operandSegmentSizes = array<i32: 1, 0, 0>, static_low = array<i64: 1>, static_high = array<i64: 2>}
        : (tensor<2xi8>) -> tensor<5xi8>
      return %p : tensor<5xi8>
    }"""
    assert of_text(text, np.array([50, 60], np.int8))[0].tolist() == [0, 50, 60, 3, 4]


def test_a_loop_with_maps_of_blocks_places_and_values_from_outside() -> None:
    text = """
    func.func @f(%x: tensor<4x3xf32>, %s: tensor<2x1xf32>, %k: f32) -> tensor<3x4xf32> {
      %out = tensor.empty() : tensor<3x4xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i floordiv 2, 0)>,
          affine_map<(i, j) -> (j, i)>], iterator_types = ["parallel", "parallel"]}
          ins(%x, %s : tensor<4x3xf32>, tensor<2x1xf32>) outs(%out : tensor<3x4xf32>) {
        ^bb0(%a: f32, %b: f32, %o: f32):
          %p = arith.mulf %a, %b : f32
          %i = linalg.index 1 : index
          %n = arith.index_cast %i : index to i32
          %m = arith.sitofp %n : i32 to f32
          %q = arith.addf %p, %m : f32
          %t = arith.addf %q, %k : f32
          linalg.yield %t : f32
      } -> tensor<3x4xf32>
      return %r : tensor<3x4xf32>
    }"""
    x, s = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([[10], [100]], np.float32)
    wanted = (x * np.repeat(s, 2, 0) + np.arange(3, dtype=np.float32) + np.float32(0.5)).T
    assert np.array_equal(of_text(text, x, s, np.float32(0.5))[0], wanted)


def test_a_reduction_takes_the_points_in_order() -> None:
    text = """
    func.func @f(%x: tensor<5x3xf32>, %init: tensor<3xf32>) -> tensor<3xf32> {
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>],
          iterator_types = ["reduction", "parallel"]} ins(%x : tensor<5x3xf32>) outs(%init : tensor<3xf32>) {
        ^bb0(%a: f32, %o: f32):
          %t = arith.addf %o, %a : f32
          linalg.yield %t : f32
      } -> tensor<3xf32>
      return %r : tensor<3xf32>
    }"""
    x = np.array([[1e8, 1, 3], [1, 1e8, 1], [-1e8, 1, 1e8], [1, -1e8, 5], [1, 7, -1e8]], np.float32)
    wanted = np.zeros(3, np.float32)
    for row in x:
        wanted = wanted + row
    assert np.array_equal(of_text(text, x, np.zeros(3, np.float32))[0], wanted)


def test_a_matrix_product_as_a_loop() -> None:
    text = """
    func.func @f(%x: tensor<3x4xi8>, %y: tensor<4x2xi8>) -> tensor<3x2xi8> {
      %zero = arith.constant dense<0> : tensor<3x2xi8>
      %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
          affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x, %y : tensor<3x4xi8>, tensor<4x2xi8>) outs(%zero : tensor<3x2xi8>) {
        ^bb0(%a: i8, %b: i8, %o: i8):
          %p = arith.muli %a, %b : i8
          %t = arith.addi %o, %p : i8
          linalg.yield %t : i8
      } -> tensor<3x2xi8>
      return %r : tensor<3x2xi8>
    }"""
    rng = np.random.default_rng(0)
    x, y = rng.integers(-128, 128, (3, 4)).astype(np.int8), rng.integers(-128, 128, (4, 2)).astype(np.int8)
    assert np.array_equal(of_text(text, x, y)[0], (x.astype(int) @ y.astype(int)).astype(np.int8))


def test_calls_by_name_and_of_functions_that_are_values() -> None:
    text = """
    func.func @f(%x: i8) -> i8 {
      %a = func.call @twice(%x) : (i8) -> i8
      %g = func.constant @twice : (i8) -> i8
      %b = func.call_indirect %g(%a) : (i8) -> i8
      return %b : i8
    }
    func.func private @twice(%x: i8) -> i8 {
      %y = arith.addi %x, %x : i8
      return %y : i8
    }"""
    assert of_text(text, np.int8(5))[0] == 20


@pytest.mark.parametrize(
    ("callee", "reason"),
    [
        ("func.func private @g(i8) -> i8", "@g is declared without a body"),
        ("func.func @g(%x: i8) -> i8 {\n%y = func.call @g(%x) : (i8) -> i8\nreturn %y : i8\n}", "@g calls itself"),
    ],
)
def test_calls_without_an_end_are_named(callee: str, reason: str) -> None:
    caller = "func.func @f(%x: i8) -> i8 {\n%y = func.call @g(%x) : (i8) -> i8\nreturn %y : i8\n}"
    with pytest.raises(NotImplementedError, match=reason):
        of_text(f"{caller}\n{callee}", np.int8(1))


def test_shapes() -> None:
    text = """
    func.func @f(%x: tensor<*xf32>) -> (tensor<?xindex>, tensor<?xindex>, index, tensor<?x?xf32>) {
      %s = shape.shape_of %x : tensor<*xf32> -> tensor<?xindex>
      %n = shape.num_elements %s : tensor<?xindex> -> index
      %one = arith.constant 1 : index
      %h, %t = "shape.split_at"(%s, %one) : (tensor<?xindex>, index) -> (tensor<?xindex>, tensor<?xindex>)
      %rest = shape.num_elements %t : tensor<?xindex> -> index
      %first = "shape.get_extent"(%s, %one) : (tensor<?xindex>, index) -> index
      %flat = tensor.from_elements %first, %rest : tensor<2xindex>
      %two = arith.constant 2 : index
      %shape = tensor.from_elements %two, %rest : tensor<2xindex>
      %r = tensor.reshape %x(%shape) : (tensor<*xf32>, tensor<2xindex>) -> tensor<?x?xf32>
      return %h, %t, %n, %r : tensor<?xindex>, tensor<?xindex>, index, tensor<?x?xf32>
    }"""
    head, tail, count, flat = of_text(text, X)
    assert (head.tolist(), tail.tolist(), int(count)) == ([2], [3, 4], 24)
    assert np.array_equal(flat, X.reshape(2, 12))


def test_an_index_outside_is_an_error() -> None:
    text = """
    func.func @f(%x: tensor<2xf32>, %i: index) -> f32 {
      %v = tensor.extract %x[%i] : tensor<2xf32>
      return %v : f32
    }"""
    assert of_text(text, np.array([1, 2], np.float32), np.int64(1))[0] == 2
    for index in (-1, 2):
        with pytest.raises(IndexError):
            of_text(text, np.array([1, 2], np.float32), np.int64(index))
