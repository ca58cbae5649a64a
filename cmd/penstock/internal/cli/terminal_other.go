//go:build !unix

package cli

import "os"

// Columns is the width of the terminal behind f, 0 when it is none. Here it is not known how to ask, so lines are plain.
func Columns(*os.File) int { return 0 }
