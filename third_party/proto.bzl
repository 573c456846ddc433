"""tug_proto_library: a library of a folder's .proto files, by the distribution's protoc."""

load("@system//:tools.bzl", "GRPC_CPP_PLUGIN", "PROTOC", "PROTO_INCLUDES")

def tug_proto_library(name, srcs, grpc = [], visibility = None):
    """Include the result as "package/file.pb.h" (and "package/file.grpc.pb.h").

    Args:
      name: target name.
      srcs: .proto files of this package; imports are written from the root of the tree.
      grpc: names of the files with services, without .proto.
      visibility: as for cc_library.
    """
    stems = [src[:-len(".proto")] + ".pb" for src in srcs]
    services = [stem + ".grpc.pb" for stem in grpc]
    headers = [stem + ".h" for stem in stems + services]
    sources = [stem + ".cc" for stem in stems + services]
    grpc_srcs = [stem + ".proto" for stem in grpc]
    protoc = "%s -I. -I%s " % (PROTOC, PROTO_INCLUDES)
    protoc_grpc = protoc + "--plugin=protoc-gen-grpc=%s --grpc_out=$(GENDIR) " % GRPC_CPP_PLUGIN
    native.genrule(
        name = name + "_protoc",
        srcs = srcs,
        outs = headers + sources,
        # Warnings in generated headers cannot be fixed here: treat them as system headers.
        cmd = " && ".join(
            [protoc + "--cpp_out=$(GENDIR) $(SRCS)"] +
            ([protoc_grpc + " ".join(["$(location %s)" % src for src in grpc_srcs])] if grpc else []) +
            ["sed -i '1i #pragma GCC system_header' " + " ".join(["$(location %s)" % header for header in headers])],
        ),
        visibility = ["//visibility:private"],
    )

    native.cc_library(
        name = name,
        srcs = sources,
        hdrs = headers,
        copts = [
            "-O1",
            "-w",
        ],
        visibility = visibility,
        deps = ["//third_party:protobuf"] + (["//third_party:grpc"] if grpc else []),
    )
