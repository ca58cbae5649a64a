package file

import (
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// part is an open hidden file.
type part struct {
	name    string
	handle  handle
	encoded int64     // bytes before compression, the buffered ones included
	since   time.Time // when it was made
}

// packer compresses what is written to it into the file it was last reset to. Close completes the compressed stream and
// leaves the file open. One is reused for all files of a writer, as compressors are costly to make.
type packer interface {
	io.WriteCloser
	Reset(w io.Writer)
}

func newPacker(c Compression) (packer, error) {
	switch c {
	case Gzip:
		return gzip.NewWriter(nil), nil
	case Zstd:
		// One goroutine: the tasks of a job are the parallelism.
		return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	case None:
		return new(plain), nil
	default:
		return nil, fmt.Errorf("compression %q is not known", c)
	}
}

type plain struct{ w io.Writer }

func (p *plain) Write(b []byte) (int, error) { return p.w.Write(b) }
func (p *plain) Reset(w io.Writer)           { p.w = w }
func (p *plain) Close() error                { return nil }
