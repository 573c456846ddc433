"""CUDA code, built twice: for the GPU (under --config=cuda), and emulated on the CPU for tests.

tug_cuda_library defines `name` and `name_emulated`, tug_cuda_test a test of each, tug_cuda_benchmark a
benchmark of `name` and a test that runs it emulated.
"""

load("//bazel:folder.bzl", "test_units")
load("@cuda//:cuda.bzl", "CUDA_HOME", "CUDA_MISSING", "NVCC_COMPRESSION")

# sm_80: Ampere and Ada. sm_90a: Hopper, with its architecture-specific instructions. compute_80: PTX,
# which the driver compiles for later GPUs. NVCC_COMPRESSION (third_party/cuda_configure.bzl) reduces the
# kernels' archives to a fifth. Compressed code needs a driver of CUDA 12.4 (550.54) or later; every driver
# that CUDA 13 accepts qualifies.
_NVCC_FLAGS = [
    "-std=c++20",
    "-O3",
    "-gencode=arch=compute_80,code=[sm_80,compute_80]",
    "-gencode=arch=compute_90a,code=sm_90a",
    "-lineinfo",
    "-DTUG_CUDA=1",
    "-Werror=all-warnings",
    "-Xcompiler=-fPIC,-Wall,-ffp-contract=off",
] + NVCC_COMPRESSION

# The GPU's counterpart of -ffp-contract=off: the same bits as on the CPU.
_NO_CONTRACTION = "-fmad=false"

# Kernels use nvcc's #pragma unroll, and read memory as vectors of other types.
_EMULATION_COPTS = [
    "-Wno-unknown-pragmas",
    "-fno-strict-aliasing",
]

def _nvcc_archive_impl(ctx):
    if CUDA_MISSING:
        fail("--config=cuda needs the CUDA toolkit: %s lacks %s (set CUDA_HOME)" %
             (CUDA_HOME, ", ".join(CUDA_MISSING)))
    contexts = [dep[CcInfo].compilation_context for dep in ctx.attr.deps]
    headers = depset(ctx.files.hdrs, transitive = [c.headers for c in contexts])
    flags = list(_NVCC_FLAGS)
    for c in contexts:
        flags += ["-D" + d for d in c.defines.to_list() if d != "TUG_CUDA=1"]
        flags += ["-isystem=" + d for d in c.system_includes.to_list()]
    flags += ["-I.", "-I" + ctx.bin_dir.path, "-I" + ctx.genfiles_dir.path] + ctx.attr.copts

    archive = ctx.actions.declare_file("lib%s.a" % ctx.label.name)
    ctx.actions.run(
        executable = CUDA_HOME + "/bin/nvcc",
        arguments = ["--lib", "-o", archive.path] + flags + [f.path for f in ctx.files.srcs],
        env = {"PATH": "/usr/bin:/bin"},
        inputs = depset(ctx.files.srcs, transitive = [headers]),
        outputs = [archive],
        mnemonic = "NvccCompile",
        progress_message = "Compiling %s with nvcc" % ctx.label,
    )
    return [DefaultInfo(files = depset([archive]))]

_nvcc_archive = rule(
    implementation = _nvcc_archive_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu"], mandatory = True),
        "hdrs": attr.label_list(allow_files = True),
        "deps": attr.label_list(providers = [CcInfo]),
        "copts": attr.string_list(),
    },
)

def _emulated(labels):
    whole = [label if ":" in label else "%s:%s" % (label, label.split("/")[-1]) for label in labels]
    return [label + "_emulated" for label in whole]

def tug_cuda_library(
        name,
        kernels = [],
        srcs = [],
        emulated_srcs = None,
        without_cuda_srcs = [],
        hdrs = [],
        deps = [],
        cuda_deps = [],
        toolkit_deps = [],
        emulated_deps = [],
        contract = False,
        **kwargs):
    """A library of CUDA code.

    `name`: under --config=cuda the compiled code, and TUG_CUDA=1 for all dependents; otherwise the
    headers and `without_cuda_srcs`. Guard calls of functions that these do not define with `#if TUG_CUDA`,
    or make them after CheckGpu (kernels/cuda/device/device.h) in a file that is compiled with CUDA only.
    `name_emulated` (for tests): the same code compiled for the CPU, with TUG_CUDA_EMULATED=1.
    A program links one of the two.

    Args:
      name: target name.
      kernels: .cu files, written in kernels/cuda/device/cuda_language.h. They must not call `srcs`.
      srcs: .cc files that call the CUDA runtime, its libraries, or kernels.
      emulated_srcs: sources of `name_emulated` instead of `srcs`; None: `srcs`.
      without_cuda_srcs: sources of `name` in builds without CUDA: .cc files that report that there is
        no GPU.
      hdrs: headers. Plain C++, except those that only .cu files include.
      deps: libraries without CUDA.
      cuda_deps: labels of other tug_cuda_library targets.
      toolkit_deps: libraries of the toolkit, for `name` only.
      emulated_deps: libraries for `name_emulated` only.
      contract: whether nvcc may contract a * b + c to one operation. The bits then differ from the
        CPU's. For kernels whose bits differ anyway, such as those on tensor cores.
      **kwargs: as for cc_library.
    """
    testonly = kwargs.pop("testonly", False)
    all_deps = deps + cuda_deps + toolkit_deps + ["//third_party:cuda"]
    own_kernels = []
    if kernels:
        _nvcc_archive(
            name = name + "_nvcc",
            srcs = kernels,
            hdrs = hdrs,
            copts = [] if contract else [_NO_CONTRACTION],
            deps = all_deps,
            tags = ["manual"],
            testonly = testonly,
            visibility = ["//visibility:private"],
        )

        # A separate library, which the linker reads after `srcs`, so that it resolves their calls.
        native.cc_library(
            name = name + "_kernels",
            srcs = select({
                "//third_party:cuda_enabled": [":" + name + "_nvcc"],
                "//conditions:default": [],
            }),
            deps = all_deps,
            linkstatic = True,
            testonly = testonly,
            visibility = ["//visibility:private"],
        )
        own_kernels.append(":" + name + "_kernels")
    native.cc_library(
        name = name,
        srcs = select({
            "//third_party:cuda_enabled": srcs,
            "//conditions:default": without_cuda_srcs,
        }),
        hdrs = hdrs,
        deps = own_kernels + all_deps,
        linkstatic = True,
        testonly = testonly,
        **kwargs
    )

    # One C++ file per .cu file, so that it compiles as C++ and compiler messages name the .cu file.
    wrappers = []
    for kernel in kernels:
        wrapper = "%s_emulated/%s.cc" % (name, kernel)
        native.genrule(
            name = "%s_emulated_%s" % (name, kernel.replace(".", "_")),
            outs = [wrapper],
            cmd = "echo '#include \"%s/%s\"' > $@" % (native.package_name(), kernel),
            visibility = ["//visibility:private"],
        )
        wrappers.append(wrapper)
    native.cc_library(
        name = name + "_emulated",
        srcs = wrappers + (srcs if emulated_srcs == None else emulated_srcs),
        hdrs = hdrs,
        textual_hdrs = kernels,
        copts = _EMULATION_COPTS,
        defines = ["TUG_CUDA_EMULATED=1"],
        deps = deps + _emulated(cuda_deps) + emulated_deps,
        linkstatic = True,
        testonly = True,
        **kwargs
    )

def tug_cuda_test(name, srcs, kernels = [], deps = [], cuda_deps = [], late = None, **kwargs):
    """Tests of GPU code, on the GPU and emulated.

    `name`, which ends in _cuda_test: on the GPU, under --config=cuda; skipped without a GPU and in
    other builds. `..._cuda_emulated_test`: on the CPU, in every build. `..._cuda_late_test`, if `late` is
    given: emulated, with streams that run late (kernels/emulation/cuda_emulation_late.h), in a different
    order in every run.

    Args:
      name: target name.
      srcs: .cc and .h files; fixtures are those of kernels/cuda/device/cuda_test_support.h.
      kernels: .cu files of the test's own.
      deps: libraries without CUDA.
      cuda_deps: labels of tug_cuda_library targets.
      late: GoogleTest filter of the tests to also run with late streams; None: no such target.
      **kwargs: as for cc_test.
    """
    if not name.endswith("_cuda_test"):
        fail("%s does not end in _cuda_test" % name)
    hdrs = [src for src in srcs if src.endswith(".h")]
    srcs = test_units(name, [src for src in srcs if not src.endswith(".h")]) + hdrs
    cuda_deps = cuda_deps + ["//kernels/cuda/device:cuda_test_support"]
    if kernels:
        tug_cuda_library(
            name = name + "_kernels",
            kernels = kernels,
            hdrs = hdrs,
            deps = deps,
            cuda_deps = cuda_deps,
            testonly = True,
            visibility = ["//visibility:private"],
        )
        cuda_deps = cuda_deps + [":" + name + "_kernels"]
    native.cc_test(
        name = name,
        srcs = select({
            "//third_party:cuda_enabled": srcs,
            "//conditions:default": ["//kernels/cuda/device:cuda_test_without_cuda.cc"],
        }),
        tags = ["gpu"],
        deps = deps + cuda_deps + ["//third_party:bundled", "//third_party:gtest_main"],
        **kwargs
    )
    emulated = name[:-len("_cuda_test")] + "_cuda_emulated_test"
    native.cc_library(
        name = emulated + "_srcs",
        srcs = srcs,
        copts = _EMULATION_COPTS + ["-O1"],
        deps = deps + _emulated(cuda_deps) + ["//third_party:gtest_main"],
        alwayslink = True,
        testonly = True,
        visibility = ["//visibility:private"],
    )
    native.cc_test(name = emulated, tags = ["slow"], deps = [":" + emulated + "_srcs"], **kwargs)
    if late:
        native.cc_test(
            name = name[:-len("_cuda_test")] + "_cuda_late_test",
            args = ["--gtest_filter=" + late],
            env = {"TUG_EMULATED_STREAMS": "late"},
            tags = ["slow"],
            deps = [":" + emulated + "_srcs"],
            **kwargs
        )

def tug_cuda_benchmark(name, srcs, deps = [], cuda_deps = [], **kwargs):
    """A benchmark of CUDA code, and a test that it runs, emulated.

    `name`, a program: on the GPU, under --config=cuda; "skipped: no GPU" otherwise. `name_emulated_test`:
    on the CPU, in every build.

    Args:
      name: target name.
      srcs: .cc files, with main() of kernels/cuda/device/cuda_benchmark.h.
      deps: libraries without CUDA.
      cuda_deps: labels of tug_cuda_library targets.
      **kwargs: as for cc_binary and cc_test.
    """
    cuda_deps = cuda_deps + ["//kernels/cuda/device:cuda_benchmark"]
    native.cc_binary(
        name = name,
        testonly = True,
        srcs = srcs,
        tags = ["gpu"],
        deps = deps + cuda_deps + ["//third_party:bundled"],
        **kwargs
    )
    native.cc_test(
        name = name + "_emulated_test",
        size = "small",
        srcs = srcs,
        deps = deps + _emulated(cuda_deps),
        **kwargs
    )
