//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// Columns is the width of the terminal behind f, 0 when it is none.
func Columns(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	if size.Col == 0 {
		return 80 // a terminal that does not know its size
	}
	return int(size.Col)
}
