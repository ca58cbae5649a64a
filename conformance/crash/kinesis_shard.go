package main

import (
	"fmt"
	"math/big"
)

// shard is an open one, with its hash keys.
type shard struct {
	id          string
	first, last *big.Int
}

func newShard(id, first, last string) (shard, error) {
	s := shard{id: id}
	var ok1, ok2 bool
	s.first, ok1 = new(big.Int).SetString(first, 10)
	s.last, ok2 = new(big.Int).SetString(last, 10)
	if !ok1 || !ok2 {
		return shard{}, fmt.Errorf("shard %s has the hash keys %q to %q", id, first, last)
	}
	return s, nil
}

// middle is the first hash key of the upper half.
func (s shard) middle() string {
	sum := new(big.Int).Add(s.first, s.last)
	return sum.Rsh(sum, 1).Add(sum, big.NewInt(1)).String()
}
