package main

import (
	"bufio"
	"os"

	"oracle/podautoscaler"
)

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
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
