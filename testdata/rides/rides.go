// Package rides is the sample data set of `penstock demo` and `penstock dev kafka`: 50,000 taxi rides through a town that does
// not exist. The zones of the town ship as a small file; the rides are computed from them, always the same.
package rides

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Count is how many rides the data set has. [At] goes on beyond it, for whoever wants more.
const Count = 50_000

//go:embed zones.csv
var zonesFile string

type zone struct {
	name        string
	east, north int64 // metres
}

var zones = sync.OnceValue(func() []zone {
	var list []zone
	for line := range strings.Lines(zonesFile) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, ",")
		east, errEast := strconv.ParseInt(f[1], 10, 64)
		north, errNorth := strconv.ParseInt(f[2], 10, 64)
		if len(f) != 3 || errEast != nil || errNorth != nil {
			panic(fmt.Sprintf("rides: zones.csv: bad line %q", line)) // embedded, so a defect of this package
		}
		list = append(list, zone{f[0], east, north})
	}
	return list
})

// Ride is one ride.
type Ride struct {
	ID     int64     `json:"ride"`
	Driver string    `json:"driver"`
	From   string    `json:"from"`
	To     string    `json:"to"`
	Km     float64   `json:"km"`
	Fare   float64   `json:"fare"`
	Ended  time.Time `json:"ended"`
}

const (
	drivers      = 240
	every        = 1700 * time.Millisecond
	baseCents    = 320
	centsPerKm   = 185
	shortestRide = 400 // metres
)

var firstRide = time.Date(2026, 1, 1, 5, 0, 0, 0, time.UTC)

// At computes ride number i, from 0. It computes in whole metres and cents, so that every machine gets the same.
func At(i int64) Ride {
	z := zones()
	x := mix(uint64(i))
	from, to := z[x%uint64(len(z))], z[(x>>16)%uint64(len(z))]
	metres := shortestRide + abs(from.east-to.east) + abs(from.north-to.north) + int64(x>>32&0x3ff)
	tenths := metres / 100
	return Ride{
		ID: i, Driver: fmt.Sprintf("d%03d", (x>>44)%drivers), From: from.name, To: to.name,
		Km: float64(tenths) / 10, Fare: float64(baseCents+tenths*centsPerKm/10) / 100, Ended: firstRide.Add(time.Duration(i) * every),
	}
}

func abs(n int64) int64 { return max(n, -n) }

// Key is the record key: the driver.
func (r Ride) Key() []byte { return []byte(r.Driver) }

// Value is the record value: a JSON object.
func (r Ride) Value() []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("rides: %v", err)) // the type has only plain fields
	}
	return b
}

// Partition spreads rides over n partitions, those of one driver in one.
func (r Ride) Partition(n int32) int32 {
	number, err := strconv.ParseInt(r.Driver[1:], 10, 32)
	if err != nil || n < 1 {
		return 0
	}
	return int32(number) % n
}

// mix is the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
