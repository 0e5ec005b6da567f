func.func @group(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = tile.group "l1" (%a = %x : tensor<4xf32>) -> (tensor<4xf32>) {
    %0 = math.exp %a : tensor<4xf32>
    tile.yield %0 : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}
