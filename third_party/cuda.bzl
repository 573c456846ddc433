"""tug_cuda_library: CUDA sources compiled by nvcc, only under --config=cuda."""

load("@cuda//:cuda.bzl", "CUDA_AVAILABLE", "CUDA_HOME")

# sm_90a: Hopper, with its architecture-specific instructions.
# -fmad=false is for the GPU what -ffp-contract=off is for the CPU.
_NVCC_FLAGS = [
    "-std=c++20",
    "-O3",
    "-fmad=false",
    "-gencode=arch=compute_90a,code=sm_90a",
    "-DTUG_CUDA=1",
    "-Xcompiler=-fPIC,-Wall,-ffp-contract=off",
]

def _nvcc_archive_impl(ctx):
    if not CUDA_AVAILABLE:
        fail("--config=cuda needs the CUDA toolkit: none at %s (set CUDA_HOME)" % CUDA_HOME)
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

def tug_cuda_library(name, srcs, hdrs = [], deps = [], copts = [], visibility = None):
    """A library of .cu files.

    Under --config=cuda it holds the compiled kernels and defines TUG_CUDA=1 for whoever
    depends on it. Otherwise it holds the headers alone: guard calls with `#if TUG_CUDA`.

    Args:
      name: target name.
      srcs: .cu files.
      hdrs: headers, plain C++ (no CUDA keywords outside `#ifdef __CUDACC__`).
      deps: libraries the sources include.
      copts: further nvcc flags.
      visibility: as for cc_library.
    """
    _nvcc_archive(
        name = name + "_nvcc",
        srcs = srcs,
        hdrs = hdrs,
        copts = copts,
        deps = deps + ["//third_party:cuda"],
        tags = ["manual"],
        visibility = ["//visibility:private"],
    )
    native.cc_library(
        name = name,
        srcs = select({
            "//third_party:cuda_enabled": [":" + name + "_nvcc"],
            "//conditions:default": [],
        }),
        hdrs = hdrs,
        linkstatic = True,
        visibility = visibility,
        deps = deps + ["//third_party:cuda"],
    )
