// Package connector is the one place where types are erased: it turns a typed source into what the engine drives, which
// knows splits only as encoded bytes. It also guards every call of connector code, so that a panic becomes an error.
package connector
