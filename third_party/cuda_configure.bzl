"""Finds the CUDA toolkit when the workspace loads: $CUDA_HOME, or /usr/local/cuda.

Creates @cuda with the libraries :cudart, :cublas_lt and :nccl, and cuda.bzl with
CUDA_MISSING, CUDA_HOME and NVCC_COMPRESSION. CUDA_MISSING lists the required files that
the toolkit lacks; if there are any, the libraries are empty, so that every BUILD file
still loads. The file `missing` reports them to deploy/test. NVCC_COMPRESSION is nvcc's
flag for the smallest code if nvcc supports it (CUDA 12.8 and later), else empty.
"""

# Folders to search, and required files. NCCL's own packages install into system folders.
_NEEDED = [
    (["bin"], ["nvcc"]),
    (["include", "/usr/include"], ["cublasLt.h", "nccl.h"]),
    (["lib64"], ["libcudart_static.a"]),
    (["lib64", "/usr/lib/x86_64-linux-gnu"], ["libcublasLt.so", "libnccl.so"]),
]

_FOUND = """
package(default_visibility = ["//visibility:public"])

# Host code needs the C headers only; nvcc finds the rest (thrust, cub) by itself.
cc_library(
    name = "headers",
    hdrs = glob(["toolkit/include/" + files for files in [
        "*.h",
        "*.hpp",
        "crt/**",
        "nv/**",
        "cccl/nv/**",
    ]]),
    includes = [
        "toolkit/include",
        "toolkit/include/cccl",
    ],
)

# Static, so that a binary built with CUDA also starts where there is no toolkit.
cc_library(
    name = "cudart",
    linkopts = ["-L{lib}", "-lcudart_static", "-ldl", "-lrt", "-lpthread"],
    deps = [":headers"],
)

cc_library(
    name = "cublas_lt",
    linkopts = ["-L{lib}", "-Wl,-rpath,{lib}", "-lcublasLt"],
    deps = [":cudart"],
)

cc_library(
    name = "nccl",
    linkopts = ["-L{lib}", "-Wl,-rpath,{lib}", "-lnccl"],
    deps = [":cudart"],
)
"""

_NOT_FOUND = """
package(default_visibility = ["//visibility:public"])

[cc_library(name = name) for name in ["cudart", "cublas_lt", "nccl"]]
"""

def _cuda_configure_impl(ctx):
    home = ctx.os.environ.get("CUDA_HOME", "/usr/local/cuda")
    missing = []
    compression = []
    for folders, files in _NEEDED:
        places = [f if f.startswith("/") else home + "/" + f for f in folders]
        missing += [f for f in files if not any([ctx.path(p + "/" + f).exists for p in places])]
    if not missing:
        if "--compress-mode" in ctx.execute([home + "/bin/nvcc", "--help"]).stdout:
            compression = ["-compress-mode=size"]
        ctx.symlink(home, "toolkit")
        ctx.file("BUILD", _FOUND.replace("{lib}", home + "/lib64"))
    else:
        ctx.file("BUILD", _NOT_FOUND)
    ctx.file("cuda.bzl", "CUDA_MISSING = {}\nCUDA_HOME = {}\nNVCC_COMPRESSION = {}\n".format(
        missing,
        repr(home),
        compression,
    ))
    ctx.file("missing", "".join([home + " lacks " + ", ".join(missing) + "\n"] if missing else []))

cuda_configure = repository_rule(
    implementation = _cuda_configure_impl,
    environ = ["CUDA_HOME"],
    local = True,
)
