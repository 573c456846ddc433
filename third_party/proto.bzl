"""tug_proto_library: a cc_library from .proto files, by the distribution's protoc."""

def tug_proto_library(name, srcs, deps = [], grpc = False, visibility = None):
    """Include the result as "package/file.pb.h" (and "package/file.grpc.pb.h").

    Args:
      name: target name.
      srcs: .proto files of this package; imports are written from the root of the tree.
      deps: other tug_proto_library targets that srcs import.
      grpc: also generate gRPC services.
      visibility: as for cc_library.
    """
    stems = [src[:-len(".proto")] for src in srcs]
    kinds = [".pb"] + ([".grpc.pb"] if grpc else [])
    headers = [stem + kind + ".h" for stem in stems for kind in kinds]
    sources = [stem + kind + ".cc" for stem in stems for kind in kinds]
    protoc = "/usr/bin/protoc -I. -I/usr/include --cpp_out=$(GENDIR) "
    if grpc:
        protoc += "--plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin --grpc_out=$(GENDIR) "

    native.filegroup(
        name = name + "_protos",
        srcs = srcs + [_sibling(dep, "_protos") for dep in deps],
        visibility = visibility,
    )
    native.genrule(
        name = name + "_protoc",
        srcs = [":" + name + "_protos"] + srcs,
        outs = headers + sources,
        # Warnings in generated headers are not ours to mend: treat them as system headers.
        cmd = protoc + " ".join(["$(locations %s)" % src for src in srcs]) +
              " && sed -i '1i #pragma GCC system_header' " +
              " ".join(["$(locations %s)" % header for header in headers]),
        visibility = ["//visibility:private"],
    )
    native.cc_library(
        name = name,
        srcs = sources,
        hdrs = headers,
        copts = ["-w"],
        visibility = visibility,
        deps = deps + ["//third_party:protobuf"] + (["//third_party:grpc"] if grpc else []),
    )

def _sibling(label, suffix):
    """//a/b -> //a/b:b<suffix>; //a:b -> //a:b<suffix>; :b -> :b<suffix>."""
    if ":" in label:
        return label + suffix
    return label + ":" + label.split("/")[-1] + suffix
