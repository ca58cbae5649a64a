// Package wire is the generated code of penstock.proto: the bodies of the engine's wire and checkpoint formats. Only
// package protocol uses it; everything else uses that package's types, which do not change when a format does.
package wire
