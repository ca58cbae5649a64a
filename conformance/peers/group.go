package main

import (
	"fmt"
	"os"
)

// groupName is a group that nobody had before: its members begin at the start of the topic.
func groupName() string { return fmt.Sprintf("peers-%d", os.Getpid()) }
