"""Finds the CUDA toolkit when the workspace loads: $CUDA_HOME, or /usr/local/cuda.

Creates @cuda with the libraries :cudart, :cublas_lt and :nccl, and cuda.bzl with
CUDA_MISSING, CUDA_HOME and NVCC_COMPRESSION. CUDA_MISSING lists the required files that
the toolkit lacks; if there are any, the libraries are empty, so that every BUILD file
still loads. The file `missing` reports them to deploy/test. NVCC_COMPRESSION is nvcc's
flag for the smallest code if nvcc supports it (CUDA 12.8 and later), else empty.
"""

# Required files, and their folder. NCCL's own packages install into system folders.
_NEEDED = {
    "nvcc": "bin",
    "cublasLt.h": "include",
    "nccl.h": "include",
    "libcudart_static.a": "lib64",
    "libcublasLt.so": "lib64",
    "libnccl.so": "lib64",
}

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

def _exists(ctx, path, file):
    """Whether there is `path`, or `file` in a system folder for headers or libraries."""
    system = "/usr/include/" + file
    if ".h" not in file:
        system = ctx.execute(["g++", "-print-file-name=" + file]).stdout.strip()  # `file` itself if there is none
    return ctx.path(path).exists or "/" in system and ctx.path(system).exists

def _cuda_configure_impl(ctx):
    home = ctx.os.environ.get("CUDA_HOME", "/usr/local/cuda")
    missing = [file for file, folder in _NEEDED.items() if not _exists(ctx, "%s/%s/%s" % (home, folder, file), file)]
    compression = []
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
