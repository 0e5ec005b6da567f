// RUN: tile-opt %s | tile-opt | FileCheck-22 %s
// RUN: tile-opt %s -mlir-print-op-generic | tile-opt | FileCheck-22 %s
// RUN: tile-opt %s -emit-bytecode | tile-opt | FileCheck-22 %s

#nm = #sparse_tile.tesa<nm<2 : 4, axis = 0, unit = [1, 32]>>
#i4 = #sparse_tile.tesa<
    nm<2 : 4, axis = 0, unit = [1, 32]> : format<i4, unsigned, scales = f16, zero_points = i4, group = [32, 1]>>
#cover = #sparse_tile.tesa<block<[32, 32]>, nm<1 : 2, axis = 1>, mask>

// CHECK-DAG: #[[$NM:.*]] = #sparse_tile.tesa<nm<2 : 4, axis = 0, unit = [1, 32]>>
// CHECK-DAG: #[[$I4:.*]] = #sparse_tile.tesa<nm<{{.*}}> : format<i4, unsigned, scales = f16, {{.*}}group = [32, 1]>>
// CHECK-DAG: #[[$COVER:.*]] = #sparse_tile.tesa<block<[32, 32]>, nm<1 : 2, axis = 1>, mask>

// CHECK-LABEL: func.func @formats
// CHECK: sparse_tile.pack %{{.*}} : tensor<64x96xf16> to tensor<64x96xf16, #[[$NM]]>
// CHECK: sparse_tile.quantize %{{.*}} scales %{{.*}} zero_points %{{.*}} : tensor<64x96xf16, #[[$NM]]>,
// CHECK-SAME: {{^}} tensor<2x96xf16>, tensor<2x96xi8> to tensor<64x96xf16, #[[$I4]]>
// CHECK: sparse_tile.parts
// CHECK: sparse_tile.assemble
// CHECK: sparse_tile.dequantize %{{.*}} : tensor<64x96xf16, #[[$I4]]> to tensor<64x96xf16, #[[$NM]]>
// CHECK: sparse_tile.unpack
func.func @formats(%x: tensor<64x96xf16>, %s: tensor<2x96xf16>, %z: tensor<2x96xi8>) -> tensor<64x96xf16> {
  %p = sparse_tile.pack %x : tensor<64x96xf16> to tensor<64x96xf16, #nm>
  %q = sparse_tile.quantize %p scales %s zero_points %z
      : tensor<64x96xf16, #nm>, tensor<2x96xf16>, tensor<2x96xi8> to tensor<64x96xf16, #i4>
  %v, %i, %s2, %z2 = sparse_tile.parts %q
      : tensor<64x96xf16, #i4> to tensor<32x96xi8>, tensor<32x3xi8>, tensor<2x96xf16>, tensor<2x96xi8>
  %a = sparse_tile.assemble %v, %i, %s2, %z2
      : tensor<32x96xi8>, tensor<32x3xi8>, tensor<2x96xf16>, tensor<2x96xi8> to tensor<64x96xf16, #i4>
  %d = sparse_tile.dequantize %a : tensor<64x96xf16, #i4> to tensor<64x96xf16, #nm>
  %u = sparse_tile.unpack %d : tensor<64x96xf16, #nm> to tensor<64x96xf16>
  return %u : tensor<64x96xf16>
}

// CHECK-LABEL: func.func @decodes
// CHECK: sparse_tile.decode unsigned %{{.*}} zero_point %{{.*}} : i8 scale %{{.*}} : f16 : i8 to f32
// CHECK: sparse_tile.decode %{{.*}} zero_point %{{.*}} : i8 : i8 to i32
// CHECK: sparse_tile.decode %{{.*}} scale %{{.*}} : f16 : f8E5M2 to bf16
func.func @decodes(%c: i8, %f: f8E5M2, %s: f16) -> (f32, i32, bf16) {
  %x = sparse_tile.decode unsigned %c zero_point %c : i8 scale %s : f16 : i8 to f32
  %y = sparse_tile.decode %c zero_point %c : i8 : i8 to i32
  %z = sparse_tile.decode %f scale %s : f16 : f8E5M2 to bf16
  return %x, %y, %z : f32, i32, bf16
}

// CHECK-LABEL: func.func @integers
// CHECK: sparse_tile.dequantize %{{.*}} : tensor<4x8xi32, #{{.*}}> to tensor<4x8xi32>
#integers = #sparse_tile.tesa<dense : format<i8, unsigned, zero_points = i8, group = [1, ?]>>
func.func @integers(%c: tensor<4x8xi8>, %z: tensor<4x1xi8>) -> tensor<4x8xi32> {
  %a = sparse_tile.assemble %c, %z : tensor<4x8xi8>, tensor<4x1xi8> to tensor<4x8xi32, #integers>
  %d = sparse_tile.dequantize %a : tensor<4x8xi32, #integers> to tensor<4x8xi32>
  return %d : tensor<4x8xi32>
}

// CHECK-LABEL: func.func @cover
// CHECK: sparse_tile.matmul {{.*}} : tensor<?x64xf32>, tensor<64x96xf32, #[[$COVER]]>, tensor<?x96xf32>
func.func @cover(%a: tensor<?x64xf32>, %b: tensor<64x96xf32, #cover>, %c: tensor<?x96xf32>) -> tensor<?x96xf32> {
  %d = sparse_tile.matmul %a, %b, %c : tensor<?x64xf32>, tensor<64x96xf32, #cover>, tensor<?x96xf32>
  return %d : tensor<?x96xf32>
}

// CHECK-LABEL: func.func @dynamic
// CHECK: sparse_tile.index {{.*}} unit [1, 64] axis 0 arrival_order : {{.*}} to tensor<?x1xi32>, tensor<1x1xi32>
// CHECK: sparse_tile.gather %{{.*}}[%{{.*}}] axis 0 : tensor<?x64xf32>, tensor<?xi32> to tensor<?x64xf32>
// CHECK: sparse_tile.scatter %{{.*}} into %{{.*}}[%{{.*}}] axis 0 : tensor<?x64xf32>, tensor<?xi32>, tensor<?x64xf32>
func.func @dynamic(%x: tensor<?x64xf32>, %rows: tensor<?xi32>) -> (tensor<?x1xi32>, tensor<?x64xf32>) {
  %live, %count = sparse_tile.index %x unit [1, 64] axis 0 arrival_order
      : tensor<?x64xf32> to tensor<?x1xi32>, tensor<1x1xi32>
  %g = sparse_tile.gather %x[%rows] axis 0 : tensor<?x64xf32>, tensor<?xi32> to tensor<?x64xf32>
  %s = sparse_tile.scatter %g into %x[%rows] axis 0 : tensor<?x64xf32>, tensor<?xi32>, tensor<?x64xf32>
  return %live, %s : tensor<?x1xi32>, tensor<?x64xf32>
}
