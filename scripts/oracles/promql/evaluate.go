package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// Times are Unix seconds, as in the HTTP API of Prometheus.
type task struct {
	Target  map[string]string `json:"target"`
	Scrapes []struct {
		Time int64  `json:"time"`
		Text string `json:"text"`
	} `json:"scrapes"`
	Queries []query `json:"queries"`
}

// A query without a step is an instant query at its end.
type query struct {
	Expression string `json:"expression"`
	Start      int64  `json:"start"`
	End        int64  `json:"end"`
	Step       int64  `json:"step"`
}

type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                    { return s.at }
func (sample) ST() int64                     { return 0 }
func (s sample) F() float64                  { return s.value }
func (sample) H() *histogram.Histogram       { return nil }
func (sample) FH() *histogram.FloatHistogram { return nil }
func (sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample         { return s }

type series struct {
	labels  labels.Labels
	samples []chunks.Sample
}

// A database holds the samples of scrapes in memory, series in the order of their first sample.
type database struct {
	target map[string]string
	series []*series
	byKey  map[string]*series
	last   map[string]bool
}

// scrape adds what Prometheus stores of a scrape: the samples, and a stale marker for each series that has ended.
func (d *database) scrape(at int64, text string) error {
	seen := map[string]bool{}
	read := textparse.NewPromParser([]byte(text), labels.NewSymbolTable(), false)
	for {
		entry, err := read.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		_, _, number := read.Series()
		var found labels.Labels
		read.Labels(&found)
		seen[d.add(found, at, number)] = true
	}
	for _, one := range d.series {
		if key := one.labels.String(); d.last[key] && !seen[key] {
			one.samples = append(one.samples, sample{at, math.Float64frombits(value.StaleNaN)})
		}
	}
	d.last = seen
	return nil
}

func (d *database) add(found labels.Labels, at int64, number float64) string {
	builder := labels.NewBuilder(found)
	for name, text := range d.target {
		builder.Set(name, text)
	}
	all := builder.Labels()
	key := all.String()
	if d.byKey[key] == nil {
		d.byKey[key] = &series{labels: all}
		d.series = append(d.series, d.byKey[key])
	}
	d.byKey[key].samples = append(d.byKey[key].samples, sample{at, number})
	return key
}

func (d *database) selected(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := []storage.Series{}
	for _, one := range d.series {
		if matches(one.labels, matchers) {
			found = append(found, storage.NewListSeries(one.labels, one.samples))
		}
	}
	return &seriesSet{rest: found}
}

type seriesSet struct {
	current storage.Series
	rest    []storage.Series
}

func (s *seriesSet) Next() bool {
	if len(s.rest) == 0 {
		return false
	}
	s.current, s.rest = s.rest[0], s.rest[1:]
	return true
}

func (s *seriesSet) At() storage.Series              { return s.current }
func (*seriesSet) Err() error                        { return nil }
func (*seriesSet) Warnings() annotations.Annotations { return nil }

func matches(all labels.Labels, matchers []*labels.Matcher) bool {
	for _, matcher := range matchers {
		if !matcher.Matches(all.Get(matcher.Name)) {
			return false
		}
	}
	return true
}

func evaluate(given io.Reader) (any, error) {
	var wanted task
	if err := json.NewDecoder(given).Decode(&wanted); err != nil {
		return nil, err
	}
	stored := &database{target: wanted.Target, byKey: map[string]*series{}}
	for _, one := range wanted.Scrapes {
		if err := stored.scrape(one.Time*1000, one.Text); err != nil {
			return nil, fmt.Errorf("scrape at %d: %w", one.Time, err)
		}
	}
	engine := promql.NewEngine(promql.EngineOpts{
		Logger: slog.New(slog.DiscardHandler), MaxSamples: 50_000_000, Timeout: time.Minute,
		LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{}),
	})
	source := &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: stored.selected}}
	results := []any{}
	for _, one := range wanted.Queries {
		result, err := run(engine, source, one)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.Expression, err)
		}
		results = append(results, result)
	}
	return results, nil
}

func run(engine *promql.Engine, source storage.Queryable, one query) (any, error) {
	ctx, start, end := context.Background(), time.Unix(one.Start, 0), time.Unix(one.End, 0)
	var prepared promql.Query
	var err error
	if one.Step == 0 {
		prepared, err = engine.NewInstantQuery(ctx, source, nil, one.Expression, end)
	} else {
		prepared, err = engine.NewRangeQuery(ctx, source, nil, one.Expression, start, end, time.Duration(one.Step)*time.Second)
	}
	if err != nil {
		return nil, err
	}
	defer prepared.Close()
	result := prepared.Exec(ctx)
	if result.Err != nil {
		return nil, result.Err
	}
	// Marshalled before Close, which recycles the samples.
	text, err := json.Marshal(result.Value)
	return json.RawMessage(text), err
}
