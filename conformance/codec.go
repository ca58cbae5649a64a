package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync"

	"github.com/penstock-dev/penstock/sdk"
)

func codecScenarios[S sdk.Split, B Backend]() map[string]func(*trial[S, B]) {
	return map[string]func(*trial[S, B]){
		"codec/round_trip":          codecRoundTrip[S, B],
		"codec/published_versions":  codecPublishedVersions[S, B],
		"codec/unknown_version":     codecUnknownVersion[S, B],
		"codec/truncated_or_longer": codecTruncatedOrLonger[S, B],
		"codec/damaged_bytes":       codecDamagedBytes[S, B],
	}
}

// specimens are splits at their start and further on, and their codec.
func (x *trial[S, B]) specimens() (sdk.Codec[S], []S) {
	x.start(3)
	source := x.h.Source(x.b)
	splits := x.splits(source, 3)
	l := x.reads(source, splits...)
	for p := range 3 {
		x.append(p, 5*p+1)
	}
	l.takeAll()
	codec := source.SplitCodec()
	if codec.Version() < 1 {
		x.stop("the codec's version is %d, the first is 1", codec.Version())
	}
	return codec, append(splits, l.snapshot(1)...)
}

// encode is Encode that has to work.
func (x *trial[S, B]) encode(codec sdk.Codec[S], s S) []byte {
	data, err := codec.Encode(s)
	x.must(fmt.Sprintf("encode split %q", s.SplitID()), err)
	return data
}

// decode turns a panic into a failure.
func (x *trial[S, B]) decode(codec sdk.Codec[S], version int, data []byte) (s S, err error) {
	defer func() {
		if v := recover(); v != nil {
			x.fail("Decode panicked on %q: %v", data, v)
			err = sdk.ErrCorrupt // told already
		}
	}()
	return codec.Decode(version, data)
}

func codecRoundTrip[S sdk.Split, B Backend](x *trial[S, B]) {
	codec, splits := x.specimens()
	for _, s := range splits {
		data := x.encode(codec, s)
		if !bytes.Equal(data, x.encode(codec, s)) {
			x.fail("split %q encodes to other bytes each time", s.SplitID())
		}
		given := bytes.Clone(data)
		back, err := x.decode(codec, codec.Version(), given)
		if err != nil {
			x.fail("split %q does not decode from its own bytes %q: %v", s.SplitID(), data, err)
			continue
		}
		for i := range given {
			given[i] ^= 0xff
		}
		if back.SplitID() != s.SplitID() {
			x.fail("split %q is %q after a round trip", s.SplitID(), back.SplitID())
		}
		if again := x.encode(codec, back); !bytes.Equal(again, data) {
			x.fail("split %q encodes to %q, and after a round trip to %q", s.SplitID(), data, again)
		}
	}
	x.codecTogether(codec, splits)
	x.positionsDiffer(codec, splits[0])
}

// positionsDiffer reads a split record by record: no two positions may have the same bytes.
func (x *trial[S, B]) positionsDiffer(codec sdk.Codec[S], split S) {
	for p := range x.appended {
		x.append(p, 20)
	}
	l := x.reads(x.h.Source(x.b), split)
	l.limits.Records = 1
	seen := map[string]int{}
	for n := range 20 {
		l.take(1)
		data := string(x.encode(codec, l.snapshot(1)[0]))
		if earlier, ok := seen[data]; ok {
			x.stop("the split encodes to %q after %d records and after %d", data, earlier+1, n+1)
		}
		seen[data] = n
	}
}

// codecTogether uses the codec from many goroutines, for the race detector.
func (x *trial[S, B]) codecTogether(codec sdk.Codec[S], splits []S) {
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for _, s := range splits {
				data, err := codec.Encode(s)
				if err == nil {
					_, err = codec.Decode(codec.Version(), data)
				}
				if err != nil {
					x.fail("used by many goroutines at once, the codec answers: %v", err)
				}
			}
		})
	}
	all.Wait()
}

func codecPublishedVersions[S sdk.Split, B Backend](x *trial[S, B]) {
	codec, splits := x.specimens()
	for version := 1; version <= codec.Version(); version++ {
		name := fmt.Sprintf(x.h.Golden, version)
		data, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) && version == codec.Version() && os.Getenv("PENSTOCK_GOLDEN") == "write" {
			data = x.encode(codec, splits[len(splits)-1])
			err = os.WriteFile(name, data, 0o644) //nolint:gosec // everybody who reads the sources reads it
		}
		if err != nil {
			x.fail("version %d has no encoded split to prove that it stays readable: %v", version, err)
			continue
		}
		s, err := x.decode(codec, version, data)
		if err != nil {
			x.fail("%s does not decode as version %d: %v", name, version, err)
			continue
		}
		if s.SplitID() == "" {
			x.fail("%s decodes to a split without an id", name)
		}
		if version == codec.Version() {
			if now := x.encode(codec, s); !bytes.Equal(now, data) {
				x.fail("%s holds %q, and its split encodes to %q now", name, data, now)
			}
		}
	}
}

func codecUnknownVersion[S sdk.Split, B Backend](x *trial[S, B]) {
	codec, splits := x.specimens()
	data := x.encode(codec, splits[0])
	for _, version := range []int{0, -1, codec.Version() + 1, math.MaxInt32} {
		_, err := x.decode(codec, version, data)
		if _, ok := errors.AsType[*sdk.UnknownVersionError](err); !ok {
			x.fail("version %d, which nobody has published, was answered with %v", version, err)
		}
	}
}

func codecTruncatedOrLonger[S sdk.Split, B Backend](x *trial[S, B]) {
	codec, splits := x.specimens()
	for _, s := range splits {
		data := x.encode(codec, s)
		for n := range data {
			if _, err := x.decode(codec, codec.Version(), data[:n:n]); !errors.Is(err, sdk.ErrCorrupt) {
				x.fail("the first %d of the %d bytes of split %q were answered with %v", n, len(data), s.SplitID(), err)
			}
		}
		for _, more := range [][]byte{{0}, {0xff}, []byte("x"), data} {
			if _, err := x.decode(codec, codec.Version(), slices.Concat(data, more)); !errors.Is(err, sdk.ErrCorrupt) {
				x.fail("split %q with %q behind it was answered with %v", s.SplitID(), more, err)
			}
		}
	}
}

func codecDamagedBytes[S sdk.Split, B Backend](x *trial[S, B]) {
	codec, splits := x.specimens()
	random := rand.New(rand.NewPCG(3, 3))
	encodings := make([][]byte, len(splits))
	for i, s := range splits {
		encodings[i] = x.encode(codec, s)
	}
	for range 20_000 {
		data := damage(random, encodings[random.IntN(len(encodings))])
		s, err := x.decode(codec, codec.Version(), data)
		if err != nil {
			if !errors.Is(err, sdk.ErrCorrupt) {
				x.stop("damaged bytes %q were answered with an error that is not sdk.ErrCorrupt: %v", data, err)
			}
			continue
		}
		again, err := codec.Encode(s)
		if err != nil {
			x.stop("damaged bytes %q decode to a split that cannot be encoded: %v", data, err)
		}
		if _, err := codec.Decode(codec.Version(), again); err != nil {
			x.stop("damaged bytes %q decode to a split whose own bytes %q do not decode: %v", data, again, err)
		}
	}
}

// damage changes a few bytes, or their number.
func damage(random *rand.Rand, data []byte) []byte {
	data = bytes.Clone(data)
	for range 1 + random.IntN(3) {
		at := random.IntN(len(data) + 1)
		switch random.IntN(4) {
		case 0:
			data = slices.Insert(data, at, byte(random.Uint32()))
		case 1:
			data = slices.Delete(data, at, min(at+1+random.IntN(4), len(data)))
		default:
			if at < len(data) {
				data[at] ^= 1 << random.IntN(8)
			}
		}
	}
	return data
}
