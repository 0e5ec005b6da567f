// A recurrence over a list of batches: one weight is 2:4 sparse, the other one bytes with a scale for each row.

#two_of_four = #sparse_tile.tesa<nm<2 : 4, axis = 1>>
#bytes = #sparse_tile.tesa<dense : format<i8, scales = f32, group = [1, ?]>>
!column = tensor<8x1xf32>
!batch = !fractal.array<[3] of tensor<8x1xf32>>
!steps = !fractal.array<[5, 3] of tensor<8x1xf32>>

func.func @main(%xss: !steps) -> !steps {
  %w = arith.constant dense<[
    [1.0, 0.0, 0.0, 0.5, 0.0, 2.0, 1.0, 0.0], [0.0, 1.0, 0.5, 0.0, 0.0, 0.0, 1.0, 0.5],
    [0.5, 1.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.5], [0.0, 0.0, 1.0, 0.5, 0.5, 1.0, 0.0, 0.0],
    [0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.5, 0.0], [1.0, 0.0, 0.5, 0.0, 1.0, 0.0, 0.0, 0.0],
    [0.5, 0.0, 0.0, 2.0, 0.0, 0.5, 0.0, 1.0], [0.0, 0.5, 1.0, 0.0, 0.0, 1.0, 0.5, 0.0]]> : tensor<8x8xf32>
  %codes = arith.constant dense<[
    [12, -7, 3, 0, 100, -100, 5, 9], [1, 2, 3, 4, 5, 6, 7, 8], [-1, -2, -3, -4, -5, -6, -7, -8],
    [90, 0, 0, 0, 0, 0, 0, 1], [0, 90, 0, 0, 0, 0, 2, 0], [0, 0, 90, 0, 0, 3, 0, 0], [0, 0, 0, 90, 4, 0, 0, 0],
    [-90, 11, 0, 0, 0, 0, 0, 5]]> : tensor<8x8xi8>
  %scales = arith.constant dense<[[0.01], [0.02], [0.01], [0.03], [0.01], [0.01], [0.02], [0.01]]> : tensor<8x1xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !column
  %z = linalg.fill ins(%zero : f32) outs(%e : !column) -> !column
  %p = sparse_tile.pack %w : tensor<8x8xf32> to tensor<8x8xf32, #two_of_four>
  %q = sparse_tile.assemble %codes, %scales : tensor<8x8xi8>, tensor<8x1xf32> to tensor<8x8xf32, #bytes>
  %h0 = fractal.repeat %z times 3 : !column -> !batch
  %r = fractal.scan left (%hs = %h0) over (%xs = %xss) : (!batch, !steps) -> !steps {
    %next = fractal.map (%h = %hs, %x = %xs) : (!batch, !batch) -> !batch {
      %u = sparse_tile.dequantize %q : tensor<8x8xf32, #bytes> to tensor<8x8xf32>
      %a = sparse_tile.matmul %p, %x, %z : tensor<8x8xf32, #two_of_four>, !column, !column
      %b = linalg.matmul ins(%u, %h : tensor<8x8xf32>, !column) outs(%a : !column) -> !column
      %t = math.tanh %b : !column
      fractal.yield %t : !column
    }
    fractal.yield %next : !batch
  }
  return %r : !steps
}
