// Command protogen writes the Go code of a .proto file beside it, without protoc: it compiles the file with
// bufbuild/protocompile and hands the result to protoc-gen-go, both pinned by this module's go.mod. Run it from the
// repository's root:
//
//	go run -C .ci/tools ./protogen runtime/protocol/wire/penstock.proto
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	root := flag.String("root", "../..", "directory to which the .proto paths are relative")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: protogen [-root DIR] FILE.proto...")
		os.Exit(2)
	}
	if err := generate(context.Background(), *root, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func generate(ctx context.Context, root string, files []string) error {
	request, err := compile(ctx, root, files)
	if err != nil {
		return err
	}
	response, err := plugin(ctx, request)
	if err != nil {
		return err
	}
	for _, f := range response.GetFile() {
		path := filepath.Join(root, filepath.FromSlash(f.GetName()))
		if err := os.WriteFile(path, []byte(f.GetContent()), 0o644); err != nil {
			return fmt.Errorf("write generated code: %w", err)
		}
	}
	return nil
}

// compile parses and links the files. Comments are kept: the generated code carries them.
func compile(ctx context.Context, root string, files []string) (*pluginpb.CodeGeneratorRequest, error) {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{root}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	linked, err := compiler.Compile(ctx, files...)
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	descriptors := make([]*descriptorpb.FileDescriptorProto, 0, len(linked))
	for _, file := range linked {
		descriptors = append(descriptors, protoutil.ProtoFromFileDescriptor(file))
	}
	return &pluginpb.CodeGeneratorRequest{
		FileToGenerate: files,
		Parameter:      proto.String("paths=source_relative"),
		ProtoFile:      descriptors,
	}, nil
}

// plugin runs protoc-gen-go as protoc would.
func plugin(ctx context.Context, request *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorResponse, error) {
	input, err := proto.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "tool", "protoc-gen-go")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("protoc-gen-go: %w", err)
	}
	response := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(output, response); err != nil {
		return nil, fmt.Errorf("decode the response: %w", err)
	}
	if response.Error != nil {
		return nil, errors.New("protoc-gen-go: " + response.GetError())
	}
	return response, nil
}
