// Package checkpointtest has a disk for tests of whatever stores state in a checkpoint.Dir. It keeps everything in memory,
// writes down each operation, fails or stops where a test says so, and crashes as a real one may: what was not synced
// survives, or survives in part, or does not.
//
//	disk := checkpointtest.NewDisk()
//	disk.StopAt(7)                        // the process dies in its seventh operation
//	... use the disk until checkpointtest.ErrStopped ...
//	disk = disk.Crash(checkpointtest.Lose)
//	... open it again: what must hold? ...
package checkpointtest
