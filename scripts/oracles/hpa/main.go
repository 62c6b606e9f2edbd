// Decide what each line of the standard input describes. With the argument `benchmark`, the first line is one case, and
// each further line a number of reconciles of it, answered with their CPU time in nanoseconds.
package main

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"

	"oracle/podautoscaler"
)

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	if len(os.Args) > 1 && os.Args[1] == "benchmark" {
		benchmark(in, out)
		return
	}
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 1 {
			out.Write(podautoscaler.Oracle(line))
			out.WriteByte('\n')
		}
		if err != nil {
			return
		}
	}
}

func benchmark(in *bufio.Reader, out *bufio.Writer) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		panic(err)
	}
	repeated := podautoscaler.NewBenchmark(line)
	for {
		line, err := in.ReadString('\n')
		if err == io.EOF {
			return
		}
		steps, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			panic(err)
		}
		out.WriteString(strconv.FormatInt(repeated.Run(steps), 10))
		out.WriteByte('\n')
		out.Flush()
	}
}
