"""Rules for a folder of C++ code: tug_library (its library, and with testonly what it offers to tests) and tug_tests.

Reading headers takes most of the time of compiling a file, and the files of a folder include the same ones. They are therefore
compiled in units: generated files that include several of them. server/ takes 80 seconds file by file and 17 in units. A name
in an unnamed namespace of library code must be unique in its folder. `--config=files` compiles each file by itself, which
finds missing includes.
"""

_FILES_PER_UNIT = 12

# Flags for Highway's code: x86-64 with AVX-512 or AVX2; anything else runs the scalar version.
SIMD_COPTS = ["-DHWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4)"]

# Files that do not belong to a folder's library.
_NOT_LIBRARY = ["*_test.cc", "*_test.h", "*_benchmark.cc", "*_test_support.cc", "*_test_support.h", "*_ref.h"]

def _exported_impl(ctx):
    units = ctx.attr.units
    return [
        CcInfo(
            compilation_context = ctx.attr.headers[CcInfo].compilation_context,
            linking_context = units[CcInfo].linking_context,
        ),
        DefaultInfo(
            files = units[DefaultInfo].files,
            runfiles = units[DefaultInfo].default_runfiles,
        ),
    ]

# Exports the headers of one library and the objects of another, so that dependents do not depend on the text of .cc files.
_exported = rule(
    implementation = _exported_impl,
    attrs = {
        "headers": attr.label(providers = [CcInfo], mandatory = True),
        "units": attr.label(providers = [CcInfo], mandatory = True),
    },
)

def _shares(files):
    """Splits `files` evenly into groups of at most _FILES_PER_UNIT consecutive files."""
    count = (len(files) + _FILES_PER_UNIT - 1) // _FILES_PER_UNIT
    return [files[len(files) * i // count:len(files) * (i + 1) // count] for i in range(count)]

def _unit(name, srcs, cmd, testonly = False):
    native.genrule(
        name = name,
        srcs = srcs,
        outs = [name + ".cc"],
        cmd = cmd,
        testonly = testonly,
        visibility = ["//visibility:private"],
    )
    return name + ".cc"

def _library_units(name, srcs, alone, testonly):
    """Files to compile for a library: units of `srcs`, and the files of `alone`; with --config=files, all of `srcs`."""
    units = []
    for i, files in enumerate(_shares([src for src in srcs if src not in alone])):
        paths = " ".join(["%s/%s" % (native.package_name(), file) for file in files])
        units.append(_unit("%s_unit_%d" % (name, i), [], "printf '#include \"%%s\"\\n' %s > $@" % paths, testonly))
    return select({
        "//bazel:each_file": srcs,
        "//conditions:default": units + [src for src in srcs if src in alone],
    })

def test_units(name, srcs):
    """Units of tests. A file's unnamed namespace is given the file's name, so files of tests may use the same names."""
    units = []
    for i, files in enumerate(_shares(srcs)):
        cmd = " && ".join([
            "echo '#line 1 \"%s/%s\"' && sed 's/^namespace {$$/namespace %s {/' $(location %s)" %
            (native.package_name(), file, file[:-len(".cc")], file)
            for file in files
        ])
        units.append(_unit("%s_unit_%d" % (name, i), files, "(%s) > $@" % cmd, True))
    return units

def tug_library(
        name,
        srcs = None,
        hdrs = None,
        alone = [],
        without = [],
        textual_hdrs = [],
        deps = [],
        copts = [],
        testonly = False,
        visibility = None,
        **kwargs):
    """A library of a folder's files.

    Args:
      name: target name.
      srcs: .cc files; None: those of the folder, except tests, benchmarks and their support files.
      hdrs: headers; None: likewise.
      alone: those of srcs to compile by themselves and link only where they are used: code for several instruction sets,
        which includes itself, and code that needs a library that not every program should load.
      without: files that the defaults of srcs and hdrs omit because they belong to another target. Patterns, as for glob.
      textual_hdrs: as for cc_library.
      deps: libraries.
      copts: compiler flags.
      testonly: whether only tests may use it.
      visibility: as for cc_library.
      **kwargs: as for cc_library.
    """
    if srcs == None:
        srcs = native.glob(["*.cc"], exclude = _NOT_LIBRARY + without)
    if hdrs == None:
        hdrs = native.glob(["*.h"], exclude = _NOT_LIBRARY + without)
    private = ["//visibility:private"]
    headers = name + "_headers"
    native.cc_library(
        name = headers,
        hdrs = hdrs,
        textual_hdrs = textual_hdrs,
        deps = deps,
        testonly = testonly,
        visibility = private,
    )
    native.cc_library(
        name = name + "_sources",
        textual_hdrs = srcs,
        deps = [":" + headers],
        testonly = testonly,
        visibility = private,
    )
    native.cc_library(
        name = name + "_units",
        srcs = _library_units(name, srcs, alone, testonly),
        copts = copts,
        deps = [":" + name + "_sources"],
        testonly = testonly,
        visibility = private,
        **kwargs
    )
    _exported(
        name = name,
        headers = ":" + headers,
        units = ":" + name + "_units",
        testonly = testonly,
        visibility = visibility,
    )

def tug_tests(
        name = "tests",
        srcs = None,
        without = [],
        alone = [],
        deps = [],
        copts = [],
        size = "medium",
        variants = {},
        **kwargs):
    """One test program of a folder's test files; --test_filter selects tests.

    Args:
      name: target name.
      srcs: test files; None: all *_test.cc of the folder except `without` and *_cuda_test.cc.
      without: patterns, as for glob.
      alone: those of srcs to compile by themselves.
      deps: libraries; GoogleTest and GoogleMock need not be named.
      copts: compiler flags.
      size: as for cc_test.
      variants: further targets that run the same program in another way: name -> arguments of cc_test.
      **kwargs: as for cc_test.
    """
    if srcs == None:
        srcs = native.glob(["*_test.cc"], exclude = ["*_cuda_test.cc"] + without)
    deps = deps + ["//third_party:gtest_main"]
    native.cc_library(
        name = name + "_units",
        srcs = select({
            "//bazel:each_file": srcs,
            "//conditions:default": test_units(name, [src for src in srcs if src not in alone]) + alone,
        }),
        # Test code should compile fast; its speed does not matter.
        copts = ["-O1"] + copts,
        deps = deps,
        alwayslink = True,
        linkstatic = True,
        testonly = True,
        visibility = ["//visibility:private"],
    )
    native.cc_test(name = name, size = size, deps = [":" + name + "_units"], **kwargs)
    for variant, arguments in variants.items():
        native.cc_test(name = variant, size = size, deps = [":" + name + "_units"], **arguments)
