// RUN: tile-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{tile sizes must be positive, got 0}}
func.func private @tile_type_c1(!tile.tile<8x0xf32>)

// -----

// expected-error@+1 {{elements of a tile must be signless integers, floats or index, got 'complex<f32>'}}
func.func private @tile_type_c2(!tile.tile<8xcomplex<f32>>)

// -----

// expected-error@+1 {{elements of a tile must be signless integers, floats or index, got 'si8'}}
func.func private @tile_type_c2_signed(!tile.tile<8xsi8>)

// -----

// expected-error@+1 {{layout permutes 2 dimensions of a tile of rank 1}}
func.func private @tile_type_c3(!tile.tile<8xf32, #tile.layout<perm = [1, 0]>>)

// -----

// expected-error@+1 {{layout cuts dimension 1 of a tile of rank 1}}
func.func private @tile_type_c3_inner(!tile.tile<8xf32, #tile.layout<inner = [1], tiles = [4]>>)

// -----

// expected-error@+1 {{a level's name must not be empty}}
func.func private @level_c1(memref<8xf32, #tile.level<"">>)

// -----

// expected-error@+1 {{'l1' is given twice}}
func.func private @rtile_c1() attributes {rtile = #tile.rtile<l1 = [1], l1 = [2]>}

// -----

// expected-error@+1 {{level 'l1' needs a list of sizes}}
func.func private @rtile_c1_empty() attributes {rtile = #tile.rtile<l1 = []>}

// -----

// expected-error@+1 {{level 'l2' has 1 sizes where another level has 2}}
func.func private @rtile_c2() attributes {rtile = #tile.rtile<l1 = [1, 2], l2 = [2]>}

// -----

// expected-error@+1 {{size 0 of level 'l1' is not positive}}
func.func private @rtile_c3() attributes {rtile = #tile.rtile<l1 = [1, 0]>}

// -----

// expected-error@+1 {{order must be a permutation of the 2 loops}}
func.func private @rtile_c4() attributes {rtile = #tile.rtile<l1 = [1, 2], order = [0, 0]>}

// -----

// expected-error@+1 {{perm is no permutation}}
func.func private @layout_c1() attributes {layouts = [#tile.layout<perm = [1, 2]>]}

// -----

// expected-error@+1 {{inner has 1 dimensions and tiles 2}}
func.func private @layout_c2() attributes {layouts = [#tile.layout<inner = [1], tiles = [2, 2]>]}

// -----

// expected-error@+1 {{inner dimension 2 is negative, given twice or out of range}}
func.func private @layout_c3() attributes {layouts = [#tile.layout<perm = [1, 0], inner = [2], tiles = [2]>]}

// -----

// expected-error@+1 {{block size 0 is not positive}}
func.func private @layout_c4() attributes {layouts = [#tile.layout<inner = [0], tiles = [0]>]}

// -----

// expected-error@+1 {{swizzle must be 32, 64 or 128 bytes, got 48}}
func.func private @layout_c5() attributes {layouts = [#tile.layout<swizzle = 48>]}

// -----

// expected-error@+1 {{interleave must be at least 2, got 1}}
func.func private @layout_c5_interleave() attributes {layouts = [#tile.layout<interleave = 1>]}

// -----

// expected-error@+1 {{storage must be an integer or float type, got 'index'}}
func.func private @layout_c6() attributes {layouts = [#tile.layout<storage = index>]}

// -----

// expected-error@+1 {{'order' is not part of a layout: expected perm, inner, tiles, swizzle, interleave or storage}}
func.func private @layout_key() attributes {layouts = [#tile.layout<order = [1, 0]>]}

// -----

// expected-error@+1 {{a device needs a name}}
func.func private @device_c1() attributes {device = #tile.device<units = {}>}

// -----

// expected-error@+1 {{each level must be a dictionary with a name of its own}}
func.func private @device_c2() attributes {device = #tile.device<name = "d", levels = [{name = "l1"}, {name = "l1"}]>}

// -----

// expected-error@+1 {{levels must be an array of dictionaries}}
func.func private @device_c2_array() attributes {device = #tile.device<name = "d", levels = 1>}

// -----

// expected-error@+1 {{units must be a dictionary}}
func.func private @device_c3() attributes {device = #tile.device<name = "d", units = 1>}

// -----

// expected-error@+1 {{attribute tile.rtile must be a #tile.rtile<...>}}
func.func private @rtile_attribute() attributes {tile.rtile = [8, 32]}

// -----

// expected-error@+1 {{attribute tile.device must be a #tile.device<...>}}
func.func private @device_attribute() attributes {tile.device = "host"}
