package kafka

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// maxSlots bounds the transactional ids of one task. Three are in use as long as checkpoints complete: one that is written, one
// that is prepared, and one that was committed last. Each checkpoint that is prepared and then aborted holds one more.
const maxSlots = 16

// slotID names a transactional id. It depends on nothing but job, task and slot, so every later run of the job finds it, and a
// cluster does not collect names.
func slotID(prefix, job string, task, slot int) string {
	return fmt.Sprintf("%s-%d-%d", jobPrefix(prefix, job), task, slot)
}

func jobPrefix(prefix, job string) string { return prefix + "-" + job }

// isSlotID reports that an id belongs to the job: exactly two numbers follow its name, so a job whose name continues with
// numbers is another one.
func isSlotID(id, prefix, job string) bool {
	rest, ok := strings.CutPrefix(id, jobPrefix(prefix, job)+"-")
	if !ok {
		return false
	}
	task, slot, ok := strings.Cut(rest, "-")
	return ok && isNumber(task) && isNumber(slot)
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 31)
	return err == nil && (s == "0" || s[0] >= '1' && s[0] <= '9')
}

// maxIDPart keeps ids far from the 32767 bytes that the protocol allows, and readable in logs.
const maxIDPart = 200

// checkIDs refuses what would make ids that nobody can write down, or that could be taken for another job's.
func checkIDs(prefix, job string) error {
	for field, part := range map[string]string{"transactional_id_prefix": prefix, "job": job} {
		if part == "" || len(part) > maxIDPart || strings.ContainsFunc(part, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) {
			return fmt.Errorf("kafka sink: %s: %q cannot be part of a transactional id: use 1 to %d bytes without spaces", field, part, maxIDPart)
		}
	}
	return nil
}
