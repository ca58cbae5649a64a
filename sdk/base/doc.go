// Package base is the managed base reader and the enumerator that most sources embed.
package base
