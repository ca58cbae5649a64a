package connector

import (
	"fmt"
	"runtime/debug"
)

// PanicError is a panic of connector code, caught at the border. Stack is for the log, never for an error message.
type PanicError struct {
	Where string
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("%s panicked: %v", e.Where, e.Value) }

// Unwrap gives access to an error that was the panic's value.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Guard calls f and turns a panic into a [PanicError].
func Guard(where string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Where: where, Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}
