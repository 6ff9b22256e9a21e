"""What kernels/ reads out of compilers' dumps: host code of Mosaic GPU and of CuTe DSL, XLA's thunks and arguments."""

import importlib.util
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
sys.dont_write_bytecode = True
sys.path.insert(0, str(KERNELS))


def load(path):
    spec = importlib.util.spec_from_file_location(path.replace("/", "_"), KERNELS / f"{path}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


# One array of 64 x 128 bf16 seen as [8, 8, 2, 64] tiles, whose map lies 128 bytes into the scratch.
_MOSAIC = """
    %0 = llvm.mlir.constant(8 : i64) : i64 loc(#loc2)
    %1 = llvm.mlir.constant(2 : i64) : i64 loc(#loc2)
    %2 = llvm.mlir.constant(64 : i64) : i64 loc(#loc2)
    %3 = llvm.mlir.constant(1 : i64) : i64 loc(#loc2)
    %4 = llvm.mlir.constant(128 : i64) : i64 loc(#loc2)
    %5 = llvm.mlir.constant(7 : i64) : i64 loc(#loc2)
    %6 = llvm.mlir.constant(3 : index) : i64 loc(#loc2)
    %7 = llvm.mlir.constant(4096 : i32) : i32 loc(#loc2)
    %8 = llvm.getelementptr %arg1[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr loc(#loc1)
    %9 = llvm.load %8 : !llvm.ptr -> !llvm.ptr loc(#loc1)
    %10 = llvm.mlir.undef : !llvm.struct<(ptr, ptr, i64)> loc(#loc2)
    %11 = llvm.insertvalue %9, %10[0] : !llvm.struct<(ptr, ptr, i64)> loc(#loc1)
    %12 = llvm.insertvalue %3, %11[2] : !llvm.struct<(ptr, ptr, i64)> loc(#loc1)
    %13 = builtin.unrealized_conversion_cast %12 : !llvm.struct<(ptr, ptr, i64)> to memref<64x128xbf16> loc(#loc1)
    %14 = llvm.alloca %3 x !llvm.array<256 x i8> {alignment = 64 : i64} : (i64) -> !llvm.ptr loc(#loc6)
    %15 = llvm.getelementptr %14[128] : (!llvm.ptr) -> !llvm.ptr, i8 loc(#loc1)
    %reinterpret_cast = memref.reinterpret_cast %13 to offset: [0], sizes: [2, 64], strides: [64, 1] : memref<64x128xbf16> to x
    %intptr = memref.extract_aligned_pointer_as_index %reinterpret_cast : memref<2x64xbf16> -> index loc(#loc1)
    %16 = builtin.unrealized_conversion_cast %intptr : index to i64 loc(#loc1)
    %17 = llvm.inttoptr %16 : i64 to !llvm.ptr loc(#loc1)
    %18 = llvm.alloca %1 x i64 : (i64) -> !llvm.ptr loc(#loc1)
    llvm.store %2, %18 : i64, !llvm.ptr loc(#loc1)
    %19 = llvm.getelementptr %18[1] : (!llvm.ptr) -> !llvm.ptr, i64 loc(#loc1)
    llvm.store %4, %19 : i64, !llvm.ptr loc(#loc1)
    %20 = llvm.alloca %1 x i64 : (i64) -> !llvm.ptr loc(#loc1)
    llvm.store %4, %20 : i64, !llvm.ptr loc(#loc1)
    %21 = llvm.getelementptr %20[1] : (!llvm.ptr) -> !llvm.ptr, i64 loc(#loc1)
    llvm.store %3, %21 : i64, !llvm.ptr loc(#loc1)
    %22 = llvm.alloca %1 x i64 : (i64) -> !llvm.ptr loc(#loc1)
    llvm.store %0, %22 : i64, !llvm.ptr loc(#loc1)
    %23 = llvm.getelementptr %22[1] : (!llvm.ptr) -> !llvm.ptr, i64 loc(#loc1)
    llvm.store %2, %23 : i64, !llvm.ptr loc(#loc1)
    call @mosaic_gpu_init_tma_desc(%15, %17, %5, %1, %18, %20, %4, %22) : (!llvm.ptr) -> () loc(#loc1)
    %24 = llvm.load %14 : !llvm.ptr -> !llvm.array<256 x i8> loc(#loc6)
    gpu.launch_func <%arg0 : !llvm.ptr> @m::@copy blocks in (%6, %3, %3) threads in (%4, %3, %3) : i64 dynamic_shared_memory_size %7 args(%24 : !llvm.array<256 x i8>) loc(#loc1)
"""


class Mosaic(unittest.TestCase):
    def setUp(self):
        self.mosaic = load("pallas/mosaic")

    def test_host_function_gives_launch_and_tensor_map(self):
        launch = self.mosaic.evaluate(_MOSAIC)
        self.assertEqual((launch.kernel, launch.grid, launch.block, launch.cluster, launch.shared),
                         ("copy", [3, 1, 1], [128, 1, 1], [], 4096))
        expected = self.mosaic.TensorMap(1, "bf16", [64, 128], [128, 1], [8, 64], "swizzle_128b")
        self.assertEqual(launch.parameters, [{128: expected}])

    def test_dimensions_are_written_fastest_first_and_strides_in_bytes(self):
        text = self.mosaic.evaluate(_MOSAIC).text(['buffer: "x"', 'buffer: "y"'])
        self.assertIn('field { at: "128" tensor_map { buffer: "y" element: "bf16" size: ["128", "64"] stride: ["256"] '
                      'box: ["64", "8"] swizzle: swizzle_128b } }', text)

    def test_a_map_of_what_is_no_array_is_refused(self):
        with self.assertRaises(SystemExit):
            self.mosaic.evaluate(_MOSAIC.replace("llvm.load %8", "llvm.load %14"))

    def test_a_host_function_without_launch_is_refused(self):
        with self.assertRaises(SystemExit):
            self.mosaic.evaluate(_MOSAIC.split("    gpu.launch_func")[0])


class CuteDsl(unittest.TestCase):
    _HOST = """
    %0 = llvm.mlir.constant(6 : i32) : i32
    %1 = llvm.mlir.constant(1 : i32) : i32
    %2 = llvm.mlir.constant(128 : i32) : i32
    %3 = llvm.mlir.constant(49152 : i64) : i64
""" + "".join(f"""    %1{i} = llvm.getelementptr %9[{path}] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(struct<(i32)>)>
    llvm.store {value}, %1{i} : i64, !llvm.ptr
""" for i, (path, value) in enumerate([("0, 1, 0", "%2"), ("0, 1, 1", "%1"), ("0, 1, 2", "%1"), ("0, 2", "%3"), ("0, 0, 0", "%1"),
                                       ("0, 0, 1", "%0"), ("0, 0, 2", "%1")]))

    def test_launch_configuration(self):
        self.assertEqual(load("cute_dsl/build").read_launch(self._HOST), ([1, 6, 1], [128, 1, 1], 49152))

    def test_a_grid_that_is_no_constant_is_refused(self):
        with self.assertRaises(SystemExit):
            load("cute_dsl/build").read_launch(self._HOST.replace("llvm.store %0,", "llvm.store %arg3,"))


class Xla(unittest.TestCase):
    def setUp(self):
        self.build = load("xla/build")

    def test_thunks(self):
        text = ("001: kCustomKernel [source] k_1 grid: [4, 1, 8] threads: [256, 1, 1]  shared_memory: 57344 bytes\n"
                "002: kCustomCall [sink] kCustomCall\n")
        self.assertEqual(self.build.read_thunks(text, ["called"]),
                         [self.build.Launch("k_1", [4, 1, 8], [256, 1, 1], 57344), "called"])
        with self.assertRaises(SystemExit):
            self.build.read_thunks(text, [])
        with self.assertRaises(SystemExit):
            self.build.read_thunks("001: kGemm gemm\n", ["called"])

    def test_shared_buffers_are_passed_as_often_as_the_kernel_has_parameters(self):
        a, b = (1, 0, 64), (2, 0, 64)
        self.assertEqual(self.build.arguments_of("k", [a, b, a], [b], 4), [a, b, a, b])
        self.assertEqual(self.build.arguments_of("k", [a, b, a], [b], 3), [a, b, b])
        self.assertEqual(self.build.arguments_of("k", [a, b, a], [b], 2), [a, b])
        with self.assertRaises(SystemExit):
            self.build.arguments_of("k", [a, b], [b], 5)


class Catalogue(unittest.TestCase):
    def test_every_framework_can_be_read_and_its_kernels_can_be_described(self):
        from builder import catalogue

        for folder in catalogue.all_frameworks():
            framework = catalogue.read(folder)
            for kernel in framework.kernels:
                with self.subTest(framework=folder, kernel=kernel.name):
                    committed = (framework.path / f"{kernel.name}.launch.textproto").exists()
                    self.assertTrue(committed or (framework.path / kernel.builder).is_file(), "neither description nor builder")
                    self.assertTrue(kernel.builder or (kernel.library and kernel.cubins), "nothing says where its cubin is from")
                    self.assertGreaterEqual(len(kernel.shapes), 2)

    def test_environments_are_pinned_by_hash(self):
        for requirements in KERNELS.glob("*/requirements.txt"):
            for line in requirements.read_text().splitlines():
                if line and not line.startswith("#"):
                    self.assertRegex(line, r"^[\w\-]+==[\w.]+( --hash=sha256:[0-9a-f]{64})+$")


@unittest.skipUnless(importlib.util.find_spec("lz4") and importlib.util.find_spec("zstandard"), "no tools/requirements.txt")
class Offline(unittest.TestCase):
    """Without the cache nothing is fetched, whatever a kernel comes from, and that is told apart from a failure."""

    def test_missing_packages_are_told(self):
        from builder import catalogue, cubins, packages

        # a library of a wheel, a script that wants a wheel, a script that wants an environment
        cases = [("sglang", "rmsnorm"), ("pytorch", "efficient_attention_backward"), ("xla", "mlp")]
        with tempfile.TemporaryDirectory() as cache, mock.patch.dict(os.environ, {"XDG_CACHE_HOME": cache}):
            for folder, name in cases:
                framework = catalogue.read(folder)
                framework.output_pattern = f"{cache}/out"
                kernel = next(k for k in framework.kernels if k.name == name)
                with self.subTest(folder), self.assertRaises(packages.Missing):
                    cubins.make(framework, kernel, "sm_80", offline=True)


if __name__ == "__main__":
    unittest.main()
