package file

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/penstock-dev/penstock/sdk"
)

// The hidden names of a job, all in the output directory:
//
//	.penstock-JOB-t003-a17-0004.part   data, open or prepared, of task 3 in attempt 17
//	.penstock-JOB-t003.note            the note of task 3
//	.penstock-JOB-t003.note.new        the same while it is written
//	.penstock-JOB.lock                 locked while a process writes, and left behind
//
// Attempts are unique within a job, so no two writers ever make the same name.

func partName(job string, task int, attempt int64, number int) string {
	return fmt.Sprintf(".penstock-%s-t%03d-a%d-%04d.part", job, task, attempt, number)
}

func noteName(job string, task int) string { return fmt.Sprintf(".penstock-%s-t%03d.note", job, task) }

func lockName(job string) string { return ".penstock-" + job + ".lock" }

const newSuffix = ".new"

func finalName(job string, id sdk.CheckpointID, task, number int, ext string) string {
	return fmt.Sprintf("%s-%08d-t%03d-%04d%s", job, id, task, number, ext)
}

// The job may itself contain dashes and look like the rest of a name: the first group is greedy and the rest anchored, so
// there is only one way to take a name apart.
var (
	partPattern = regexp.MustCompile(`(?s)^\.penstock-(.+)-t\d{3,}-a\d+-\d{4,}\.part$`)
	notePattern = regexp.MustCompile(`(?s)^\.penstock-(.+)-t(\d{3,})\.note(\.new)?$`)
)

// isPart reports a hidden data file of the job.
func isPart(name, job string) bool {
	m := partPattern.FindStringSubmatch(name)
	return m != nil && m[1] == job
}

// noteTask reports a note of the job, its task, and whether it is the unfinished copy.
func noteTask(name, job string) (task int, unfinished, ok bool) {
	m := notePattern.FindStringSubmatch(name)
	if m == nil || m[1] != job {
		return 0, false, false
	}
	task, err := strconv.Atoi(m[2])
	return task, m[3] != "", err == nil
}
