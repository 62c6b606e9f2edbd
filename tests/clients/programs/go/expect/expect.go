// Package expect has the assertions of the programs: the first that does not hold ends its check.
package expect

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// failure is what an assertion panics with.
type failure string

// Failf ends the check with a text, which is preceded by the line of the check.
func Failf(format string, arguments ...any) {
	panic(failure(fmt.Sprintf("%s: ", caller()) + fmt.Sprintf(format, arguments...)))
}

// caller returns the file and line of the first frame outside of this package.
func caller() string {
	counters := make([]uintptr, 16)
	frames := runtime.CallersFrames(counters[:runtime.Callers(1, counters)])
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, "clients/expect.") {
			return fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
		}
		if !more {
			return "?"
		}
	}
}

// Problem runs a check and returns why it failed; an empty string if it did not.
func Problem(check func()) (problem string) {
	defer func() {
		switch found := recover().(type) {
		case nil:
		case failure:
			problem = string(found)
		default:
			problem = fmt.Sprintf("%v\n%s", found, debug.Stack())
		}
	}()
	check()
	return ""
}

// OK returns a value that must have come without an error.
func OK[T any](value T, err error) T {
	NoError(err)
	return value
}

// NoError demands that there is no error.
func NoError(err error) {
	if err != nil {
		Failf("%v", err)
	}
}

// Equal demands a value.
func Equal[T any](what string, got, expected T) {
	if !reflect.DeepEqual(got, expected) {
		Failf("%s is %v, want %v", what, got, expected)
	}
}

// AnyReason is for errors without a reason of their own.
func AnyReason(error) bool { return true }

// Refused demands an error that the predicate recognises and whose text contains some words.
func Refused(err error, predicate func(error) bool, words string) {
	if err == nil {
		Failf("no error, want %q", words)
	}
	if !predicate(err) {
		Failf("%q has reason %q", err, apierrors.ReasonForError(err))
	}
	if !strings.Contains(err.Error(), words) {
		Failf("the error is %q, want %q in it", err, words)
	}
}

// Until waits for a condition that other goroutines or the server bring about.
func Until(ctx context.Context, what string, condition func() bool) {
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
	if err != nil {
		Failf("%s: %v", what, err)
	}
}

// Names returns the names of objects, sorted.
func Names[T any, P interface {
	*T
	metav1.Object
}](items []T) []string {
	found := []string{}
	for i := range items {
		found = append(found, P(&items[i]).GetName())
	}
	slices.Sort(found)
	return found
}
