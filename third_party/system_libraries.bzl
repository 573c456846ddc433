"""Finds the distribution's libraries when the workspace loads, by pkg-config. //third_party:NAME is one library.

Creates @system with one target per library, and tools.bzl with the paths of protoc and its plugin. A library that is missing or
too old stops only the targets that use it, and is named (missing.bzl).
"""

# Library -> modules of pkg-config. A version is the oldest with which Tugboat was built.
_MODULES = {
    "absl": [
        "absl_status >= 20220623",
        "absl_statusor",
        "absl_strings",
        "absl_str_format",
        "absl_time",
        "absl_synchronization",
        "absl_flat_hash_map",
        "absl_flat_hash_set",
        "absl_inlined_vector",
        "absl_function_ref",
        "absl_cleanup",
        "absl_memory",
    ],
    "benchmark": ["benchmark"],
    "cli11": ["CLI11"],
    "eigen": ["eigen3"],
    "gmock": ["gmock"],
    "grpc": ["grpc++ >= 1.51", "grpc"],
    "gtest": ["gtest"],
    "gtest_main": ["gmock_main"],  # main(), with GoogleMock initialised too
    "httplib": ["cpp-httplib >= 0.11.4", "openssl"],
    "hwy": ["libhwy >= 1.0.3"],
    "json": ["nlohmann_json"],
    "openssl": ["openssl >= 3"],
    "prometheus": ["prometheus-cpp-core"],
    "protobuf": ["protobuf >= 3.21"],
    "spdlog": ["spdlog >= 1.10", "fmt"],
    "utf8proc": ["libutf8proc"],
    "xxhash": ["libxxhash"],
    "yaml": ["yaml-cpp"],
    "zlib": ["zlib"],
    "zmq": ["libzmq >= 4.3.4"],
    "zstd": ["libzstd"],
}

# Those whose headers are in a folder of their own below /usr/include, which the compiler does not search by itself.
_OWN_FOLDER = ["eigen"]

# Libraries without a module: name, as after -l.
_WITHOUT_MODULE = {
    "benchmark_main": "benchmark_main",  # main()
    "dnnl": "dnnl",
}

# Library -> program that its users need too, and the program's name in tools.bzl.
_TOOLS = {
    "protobuf": ("protoc", "PROTOC"),
    "grpc": ("grpc_cpp_plugin", "GRPC_CPP_PLUGIN"),
}

LIBRARIES = sorted(_MODULES.keys() + _WITHOUT_MODULE.keys())

_REMEDY = "deploy/setup installs what the build needs"

def _unique(items):
    return {item: None for item in items}.keys()

def _library(name, defines, linkopts, folders):
    return """
cc_library(
    name = "{name}",
    hdrs = glob({hdrs}),
    defines = {defines},
    includes = {folders},
    linkopts = {linkopts},
)
""".format(
        name = name,
        defines = defines,
        # Only the libraries that a program uses become its dependencies.
        linkopts = ["-Wl,--push-state,--as-needed"] + linkopts + ["-Wl,--pop-state"] if linkopts else [],
        hdrs = [folder + "/**" for folder in folders],
        folders = folders,
    )

def _missing(name, reason):
    return "\nmissing(\n    name = {},\n    reason = {},\n)\n".format(repr(name), repr(reason))

def _fault(ctx, pkg_config, modules):
    """What is wrong with the first of the modules that is missing or too old."""
    for module in modules:
        name = module.split(" ")[0]
        version = ctx.execute([pkg_config, "--modversion", name])
        if version.return_code != 0:
            return "%s is missing: pkg-config does not find it" % name
        if ctx.execute([pkg_config, "--exists", module]).return_code != 0:
            return "%s %s is too old: needed is %s" % (name, version.stdout.strip(), module)
    return None

def _from_module(ctx, pkg_config, name, modules):
    if not pkg_config:
        return _missing(name, "%s cannot be looked for: pkg-config is missing; %s" % (name, _REMEDY))
    result = ctx.execute([pkg_config, "--cflags", "--libs"] + modules)
    if result.return_code != 0:
        return _missing(name, "%s; %s" % (_fault(ctx, pkg_config, modules) or result.stderr.strip(), _REMEDY))
    if name in _TOOLS and not ctx.which(_TOOLS[name][0]):
        return _missing(name, "%s is missing; %s" % (_TOOLS[name][0], _REMEDY))
    defines, linkopts, folders = [], [], []
    for flag in _unique(result.stdout.strip().split(" ")):
        if flag.startswith("-D") and flag != "-DNOMINMAX":  # Abseil's, for Windows
            defines.append(flag[2:])
        elif flag.startswith("-L"):
            linkopts += [flag, "-Wl,-rpath," + flag[2:]]
        elif flag.startswith("-I") and (name in _OWN_FOLDER or not flag.startswith("-I/usr/include")):
            folders.append("include/" + flag[2:].replace("/", "_"))
            if not ctx.path(folders[-1]).exists:
                ctx.symlink(flag[2:], folders[-1])
        elif flag.startswith("-l") or flag == "-pthread":
            linkopts.append(flag)
    return _library(name, defines, linkopts, folders)

def _without_module(ctx, name, library):
    files = [ctx.execute(["g++", "-print-file-name=lib%s.%s" % (library, end)]).stdout for end in ["so", "a"]]
    if not any(["/" in file for file in files]):  # g++ prints the name itself if it finds no such file
        return _missing(name, "lib%s.so is missing; %s" % (library, _REMEDY))
    return _library(name, [], ["-l" + library], [])

def _system_libraries_impl(ctx):
    pkg_config = ctx.which("pkg-config")
    targets = [_from_module(ctx, pkg_config, name, modules) for name, modules in _MODULES.items()]
    targets += [_without_module(ctx, name, library) for name, library in _WITHOUT_MODULE.items()]
    ctx.file("BUILD", 'load("@tugboat//third_party:missing.bzl", "missing")\n\n' +
                      'package(default_visibility = ["//visibility:public"])\n' + "".join(targets))
    includes = ctx.execute([pkg_config, "--variable=includedir", "protobuf"]).stdout.strip() if pkg_config else ""
    paths = {constant: str(ctx.which(tool) or tool) for tool, constant in _TOOLS.values()}
    paths["PROTO_INCLUDES"] = includes or "/usr/include"
    ctx.file("tools.bzl", "".join(["%s = %r\n" % path for path in paths.items()]))

system_libraries = repository_rule(
    implementation = _system_libraries_impl,
    configure = True,
    environ = [
        "PATH",
        "PKG_CONFIG_LIBDIR",
        "PKG_CONFIG_PATH",
        "PKG_CONFIG_SYSROOT_DIR",
    ],
    local = True,
)
