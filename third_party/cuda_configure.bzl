"""Finds the CUDA toolkit when the workspace loads: $CUDA_HOME, or /usr/local/cuda.

Creates @cuda with the libraries :cudart, :cublas_lt and :nccl, and cuda.bzl with
CUDA_AVAILABLE and CUDA_HOME. Without a toolkit the libraries are empty, so that
every BUILD file still loads.
"""

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
    found = ctx.path(home + "/bin/nvcc").exists
    if found:
        ctx.symlink(home, "toolkit")
        ctx.file("BUILD", _FOUND.replace("{lib}", home + "/lib64"))
    else:
        ctx.file("BUILD", _NOT_FOUND)
    ctx.file("cuda.bzl", "CUDA_AVAILABLE = {}\nCUDA_HOME = {}\n".format(found, repr(home)))

cuda_configure = repository_rule(
    implementation = _cuda_configure_impl,
    environ = ["CUDA_HOME"],
    local = True,
)
