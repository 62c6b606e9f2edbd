// Command hpa_betas reads HPAs, one a line, and prints what the API server of this release makes of each: the error of
// its decoder, or the object as autoscaling/v2 and the errors of its validation.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	"k8s.io/kubernetes/pkg/apis/autoscaling/install"
	"k8s.io/kubernetes/pkg/apis/autoscaling/validation"
)

type answer struct {
	Error    string          `json:"error,omitempty"`
	V2       json.RawMessage `json:"v2,omitempty"`
	Problems [][2]string     `json:"problems,omitempty"`
}

func main() {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	internal := schema.GroupVersion{Group: "autoscaling", Version: runtime.APIVersionInternal}
	decoder := codecs.UniversalDecoder(internal)
	encoder := codecs.LegacyCodec(autoscalingv2.SchemeGroupVersion)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<26)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var a answer
		obj, err := runtime.Decode(decoder, append([]byte(nil), in.Bytes()...))
		if err != nil {
			a.Error = err.Error()
		} else {
			hpa := obj.(*autoscaling.HorizontalPodAutoscaler)
			for _, e := range validation.ValidateHorizontalPodAutoscaler(hpa) {
				a.Problems = append(a.Problems, [2]string{e.Field, e.ErrorBody()})
			}
			text, err := runtime.Encode(encoder, hpa)
			if err != nil {
				a.Error = err.Error()
			}
			a.V2 = text
		}
		if err := out.Encode(a); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
