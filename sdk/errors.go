package sdk

import (
	"errors"
	"fmt"
)

var (
	// ErrWakeup is the cancellation cause of a fetch that was woken to serve a control. The fetch returns what it has, or
	// the cause; nothing fetched may be lost. The engine never reports it.
	ErrWakeup = errors.New("woken up")

	// ErrClosed is the cancellation cause of work that was ended by a close.
	ErrClosed = errors.New("closed")

	// ErrNotManaged marks a source that cannot run in the managed lane. The engine refuses the job.
	ErrNotManaged = errors.New("source is not eligible for the managed lane")

	// ErrIncompatibleState marks a restored state that does not fit the configuration: other topics, another stop. The
	// engine fails the start; the error says what to change. Return it from NewEnumerator or NewReader.
	ErrIncompatibleState = errors.New("the saved state does not fit this job")

	// ErrFatal marks an error that a restart cannot cure: the engine fails the job at once instead of restarting. Every
	// other error of a connector is retried under the restart policy. Use [Fatal].
	ErrFatal = errors.New("fatal")

	// ErrBackpressure says that a bound was reached and nothing was taken. Try again later; nothing is lost.
	ErrBackpressure = errors.New("bound reached, try again later")
)

type fatalError struct{ err error }

func (e *fatalError) Error() string   { return e.err.Error() }
func (e *fatalError) Unwrap() []error { return []error{ErrFatal, e.err} }

// Fatal marks err with [ErrFatal] and keeps its text. Fatal(nil) is nil.
func Fatal(err error) error {
	if err == nil {
		return nil
	}
	return &fatalError{err}
}

// Fatalf is Fatal of fmt.Errorf.
func Fatalf(format string, args ...any) error { return Fatal(fmt.Errorf(format, args...)) }
