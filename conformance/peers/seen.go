package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// seen is what the output of a reader holds.
type seen struct {
	all, different, repeated int
	places                   map[place]struct{}
}

type place struct {
	partition int32
	offset    int64
}

func (s *seen) add(p place) {
	if s.places == nil {
		s.places = make(map[place]struct{})
	}
	s.all++
	if _, ok := s.places[p]; ok {
		s.repeated++
		return
	}
	s.places[p] = struct{}{}
	s.different++
}

// linesIn reads the committed files of Penstock's file sink.
func linesIn(dir string) (seen, error) {
	var s seen
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return s, err
	}
	for _, name := range files {
		if strings.HasPrefix(filepath.Base(name), ".") {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return s, err
		}
		for line := range bytes.Lines(data) {
			var at struct {
				Partition int32
				Offset    int64
			}
			if err := json.Unmarshal(line, &at); err != nil {
				return s, fmt.Errorf("%s: %w", name, err)
			}
			s.add(place{at.Partition, at.Offset})
		}
	}
	return s, nil
}

// noteBytes is the size of a note: a partition and an offset.
const noteBytes = 12

// notesIn reads what [note] wrote.
func notesIn(name string) (seen, error) {
	var s seen
	data, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	for ; len(data) >= noteBytes; data = data[noteBytes:] { // the last one may be torn
		s.add(place{int32(binary.BigEndian.Uint32(data)), int64(binary.BigEndian.Uint64(data[4:]))})
	}
	return s, nil
}

// note is the process of a consumer group that writes the place of each record to a file, before the client may commit it.
func note(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("note", flag.ContinueOnError)
	broker := flags.String("broker", "", "")
	name := flags.String("file", "", "")
	rate := flags.Int("pace", 0, "")
	interval := flags.Duration("interval", commitEvery, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	file, err := os.OpenFile(*name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	client, err := kgo.NewClient(kgo.SeedBrokers(*broker), kgo.ConsumeTopics(topicName), kgo.ConsumerGroup("noted"),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.AutoCommitInterval(*interval))
	if err != nil {
		return err
	}
	defer client.Close()
	began, taken := time.Now(), 0
	for {
		fetches := client.PollRecords(ctx, 1000)
		if err := fetches.Err(); err != nil {
			return err
		}
		if err := write(file, fetches); err != nil {
			return err
		}
		if taken += fetches.NumRecords(); *rate > 0 {
			due := began.Add(time.Duration(taken) * time.Second / time.Duration(*rate))
			if err := until(ctx, func() (bool, error) { return time.Now().After(due), nil }); err != nil {
				return err
			}
		}
	}
}

func write(to io.Writer, fetches kgo.Fetches) error {
	out := bufio.NewWriter(to)
	for r := range fetches.RecordsAll() {
		note := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, uint32(r.Partition)), uint64(r.Offset))
		if _, err := out.Write(note); err != nil {
			return err
		}
	}
	return out.Flush()
}
