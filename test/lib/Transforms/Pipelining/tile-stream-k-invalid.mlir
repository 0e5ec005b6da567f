// RUN: tile-opt %s --tile-stream-k --split-input-file --verify-diagnostics

// expected-error@+1 {{has tile.stream_k = 1 : i64: it is a number of blocks, at least 2}}
tile.kernel @alone(%x: memref<4xf32>) grid(%i) attributes {tile.stream_k = 1 : i64} {
  tile.return
}

// -----

// expected-error@+1 {{attribute tile.stream_k must be an i64, got "all"}}
tile.kernel @words(%x: memref<4xf32>) grid(%i) attributes {tile.stream_k = "all"} {
  tile.return
}
